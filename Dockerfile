# The workers of Dataflow, and of engines that start Beam's workers in containers (--environment_type=DOCKER).
#   docker build --tag IMAGE .
# The versions are those of constraints.txt: the command that sends a job must run with the same, on the same Python.
ARG PYTHON=3.11
ARG BEAM=2.77.0

# With a compiler, for the part of c4pipe that is in C.
FROM python:${PYTHON}-bookworm AS package
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY c4pipe c4pipe
COPY scripts/c4pipe-boot scripts/c4pipe-boot
RUN python -m pip wheel --quiet --no-deps --wheel-dir /wheels .

FROM apache/beam_python${PYTHON}_sdk:${BEAM}
# What c4pipe needs comes first, in a layer that a change of c4pipe itself leaves in the cache.
COPY constraints.txt pyproject.toml /tmp/c4pipe/
RUN python -c "import tomllib; print(*tomllib.load(open('/tmp/c4pipe/pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
        > /tmp/c4pipe/needs.txt \
    && python -m pip install --quiet --no-cache-dir --requirement /tmp/c4pipe/needs.txt --constraint /tmp/c4pipe/constraints.txt
COPY --from=package /wheels /tmp/c4pipe/wheels
RUN python -m pip install --quiet --no-cache-dir --no-deps /tmp/c4pipe/wheels/*.whl \
    && python -c "import c4pipe.clean.steps, c4pipe.dedup.steps" \
    && rm -r /tmp/c4pipe
# The entry point stays that of Beam's image: /opt/apache/beam/boot
