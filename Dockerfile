# The image of workers on Dataflow, and on runners that start Beam's workers in containers (--environment_type=DOCKER).
#   docker build --tag IMAGE .
# The versions are those of requirements/setup.txt. The machine that sends a job needs the same versions and the same Python.
#
# A tag of a base image can be moved, a digest cannot. To pin both images, give their digests, as
#   docker buildx imagetools inspect apache/beam_python3.11_sdk:2.77.0 --format '{{.Manifest.Digest}}'
# prints them: --build-arg BEAM_IMAGE=apache/beam_python3.11_sdk:2.77.0@sha256:...
ARG PYTHON_IMAGE=python:3.11-bookworm
ARG BEAM_IMAGE=apache/beam_python3.11_sdk:2.77.0

# This stage has a C compiler, for the C extensions of c4pipe.
FROM ${PYTHON_IMAGE} AS package
WORKDIR /src
COPY requirements/build.txt requirements/build.txt
RUN python -m pip install --quiet --require-hashes --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY c4pipe c4pipe
COPY scripts/c4pipe-boot scripts/c4pipe-boot
RUN python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels .

FROM ${BEAM_IMAGE}
# The dependencies come first, in a layer of their own: a change of c4pipe does not invalidate it.
COPY requirements/build.txt requirements/setup.txt /tmp/c4pipe/
RUN python -m pip install --quiet --no-cache-dir --require-hashes --requirement /tmp/c4pipe/build.txt \
    && python -m pip install --quiet --no-cache-dir --require-hashes --no-build-isolation --use-pep517 \
        --requirement /tmp/c4pipe/setup.txt
COPY --from=package /wheels /tmp/c4pipe/wheels
RUN python -m pip install --quiet --no-cache-dir --no-deps --no-build-isolation /tmp/c4pipe/wheels/*.whl \
    && python -c "import c4pipe.clean.steps, c4pipe.dedup.graph" \
    && rm -r /tmp/c4pipe
# The entry point is that of Beam's image: /opt/apache/beam/boot
