# The image of workers on Dataflow, and on runners that start Beam's workers in containers (--environment_type=DOCKER).
#   docker build --tag IMAGE .
# The versions are those of constraints.txt. The machine that sends a job needs the same versions and the same Python.
ARG PYTHON=3.11
ARG BEAM=2.77.0

# This stage has a C compiler, for the C extensions of c4pipe.
FROM python:${PYTHON}-bookworm AS package
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY c4pipe c4pipe
COPY scripts/c4pipe-boot scripts/c4pipe-boot
RUN python -m pip wheel --quiet --no-deps --wheel-dir /wheels .

FROM apache/beam_python${PYTHON}_sdk:${BEAM}
# The dependencies come first, in a layer of their own: a change of c4pipe does not invalidate it.
COPY constraints.txt pyproject.toml /tmp/c4pipe/
RUN python -c "import tomllib; print(*tomllib.load(open('/tmp/c4pipe/pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
        > /tmp/c4pipe/needs.txt \
    && python -m pip install --quiet --no-cache-dir --requirement /tmp/c4pipe/needs.txt --constraint /tmp/c4pipe/constraints.txt
COPY --from=package /wheels /tmp/c4pipe/wheels
RUN python -m pip install --quiet --no-cache-dir --no-deps /tmp/c4pipe/wheels/*.whl \
    && python -c "import c4pipe.clean.steps, c4pipe.dedup.steps" \
    && rm -r /tmp/c4pipe
# The entry point is that of Beam's image: /opt/apache/beam/boot
