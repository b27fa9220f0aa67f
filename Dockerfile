# syntax=docker/dockerfile:1
# Images without a GPU. Build the server with `docker build .`, and a node of a Ray cluster with `--target ray`.
FROM python:3.12.11-slim-bookworm AS base
ENV NUMBA_CACHE_DIR=/tmp/numba PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/opt/venv/bin:$PATH
RUN groupadd --gid 10001 trialogue \
    && useradd --uid 10001 --gid trialogue --create-home trialogue \
    && install --directory --owner=trialogue --group=trialogue /data

FROM base AS install
# PyTorch wheels without CUDA are about four times smaller.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN python -m venv /opt/venv
WORKDIR /build
COPY constraints.txt ./
RUN pip install --constraint constraints.txt --extra-index-url "$TORCH_INDEX" torch
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --constraint constraints.txt --extra-index-url "$TORCH_INDEX" '.[serve]'

FROM install AS install-ray
COPY lab ./lab
RUN pip install --constraint constraints.txt --extra-index-url "$TORCH_INDEX" '.[ray]' ./lab

FROM base AS ray
COPY --from=install-ray /opt/venv /opt/venv
USER 10001:10001
WORKDIR /data
ENV TRIALOGUE_HOME=/data RAY_USAGE_STATS_ENABLED=0
EXPOSE 6379 10001
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 CMD ["ray", "health-check"]
CMD ["ray", "start", "--head", "--port=6379", "--ray-client-server-port=10001", "--block"]

FROM base AS server
COPY --from=install /opt/venv /opt/venv
USER 10001:10001
WORKDIR /data
ENV TRIALOGUE_HOME=/data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["trialogue"]
CMD ["serve", "--model", "smollm2", "--host", "0.0.0.0", "--port", "8000"]
