# Two images with c4pipe.
#   docker build --tag c4pipe .                   c4pipe and its environment alone, for one machine, Kubernetes and batch services
#   docker build --tag WORKER --target worker .   c4pipe in the image of another system, whose entry point stays: for workers of
#                                                 Dataflow, and of runners that start Beam's workers in containers
# The versions are those of requirements/local.txt and requirements/setup.txt, with hashes.
#
# A tag of a base image can be moved, a digest cannot. To pin the images, give their digests, as
#   docker buildx imagetools inspect apache/beam_python3.11_sdk:2.77.0 --format '{{.Manifest.Digest}}'
# prints them: --build-arg WORKER_IMAGE=apache/beam_python3.11_sdk:2.77.0@sha256:...
ARG BUILD_IMAGE=python:3.11-bookworm
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG WORKER_IMAGE=apache/beam_python3.11_sdk:2.77.0

# This stage has a C compiler, for the C extensions of c4pipe.
FROM ${BUILD_IMAGE} AS package
RUN python3 -m venv /opt/c4pipe
ENV PATH=/opt/c4pipe/bin:$PATH
WORKDIR /src
COPY requirements/build.txt requirements/build.txt
RUN python -m pip install --quiet --no-cache-dir --require-hashes --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY c4pipe c4pipe
COPY scripts/c4pipe-boot scripts/c4pipe-boot
RUN python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels .

# The environment is made here, because a package without a wheel for the machine needs the compiler.
# The dependencies come first, in a layer of their own: a change of c4pipe does not invalidate it.
FROM ${BUILD_IMAGE} AS environment
RUN python3 -m venv /opt/c4pipe
ENV PATH=/opt/c4pipe/bin:$PATH
COPY requirements/build.txt requirements/local.txt /requirements/
RUN python -m pip install --quiet --no-cache-dir --require-hashes --requirement /requirements/build.txt \
    && python -m pip install --quiet --no-cache-dir --require-hashes --no-build-isolation --use-pep517 \
        --requirement /requirements/local.txt
COPY --from=package /wheels /wheels
RUN python -m pip install --quiet --no-cache-dir --no-deps --no-build-isolation /wheels/*.whl \
    && python -m pip uninstall --quiet --yes setuptools pip

# c4pipe in the image of another system. The image must have Python 3.11, for which the wheel was built.
FROM ${WORKER_IMAGE} AS worker
# local.txt where the other system is not Beam
ARG REQUIREMENTS=setup
COPY requirements/build.txt requirements/${REQUIREMENTS}.txt /tmp/c4pipe/
RUN python -m pip install --quiet --no-cache-dir --require-hashes --requirement /tmp/c4pipe/build.txt \
    && python -m pip install --quiet --no-cache-dir --require-hashes --no-build-isolation --use-pep517 \
        --requirement /tmp/c4pipe/${REQUIREMENTS}.txt
COPY --from=package /wheels /tmp/c4pipe/wheels
RUN python -m pip install --quiet --no-cache-dir --no-deps --no-build-isolation /tmp/c4pipe/wheels/*.whl \
    && python -c "import c4pipe.clean.steps, c4pipe.dedup.graph"

# The last stage is what is built without --target.
FROM ${PYTHON_IMAGE}
COPY --from=environment /opt/c4pipe /opt/c4pipe
ENV PATH=/opt/c4pipe/bin:$PATH
RUN useradd --uid 1000 --create-home c4pipe && install --directory --owner=c4pipe --group=c4pipe /data
USER 1000
WORKDIR /data
VOLUME /data
ENTRYPOINT ["c4pipe"]
