# Targets: `local` (default) scores with the embedded model inside, no key, no network.
#          `base`  is small and needs a judge and an embedder configured; mount your tracescore.yaml.
#
#   docker build -t tracescore .                    docker build --target base -t tracescore:base .
#   docker run --read-only -p 4317:4317 -p 4318:4318 -p 9464:9464 tracescore
ARG PYTHON_IMAGE=docker.io/library/python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
RUN python3 -m venv /opt/venv && python3 -m venv /opt/build
ENV PATH=/opt/venv/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY deploy/docker/base.txt deploy/docker/local.txt deploy/docker/build.txt /pins/
RUN pip install --no-deps --require-hashes -r /pins/base.txt \
    && /opt/build/bin/pip install --no-deps --require-hashes -r /pins/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY tracescore tracescore
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation -w /wheels . && pip install --no-deps /wheels/*.whl

FROM build AS build-local
RUN pip install --no-deps --require-hashes -r /pins/local.txt

FROM ${PYTHON_IMAGE} AS runtime
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin tracescore
COPY deploy/docker/tracescore.yaml /etc/tracescore/tracescore.yaml
ENV PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
USER 10001
EXPOSE 4317 4318 9464
# Exec form: SIGTERM must reach the process that drains.
ENTRYPOINT ["tracescore", "serve"]
CMD ["-c", "/etc/tracescore/tracescore.yaml"]

FROM runtime AS base
COPY --from=build /opt/venv /opt/venv

FROM runtime AS local
COPY --from=build-local /opt/venv /opt/venv
