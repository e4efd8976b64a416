# The README's two commands, on CPUs:
#   docker build -t schedgym . && docker run --rm schedgym
#   docker build -t schedgym-test --target test . && docker run --rm schedgym-test
FROM python:3.11-slim AS compare
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /schedgym
COPY . .
RUN make .venv/.eval
CMD ["make", "compare"]

FROM compare AS test
# has torch without CUDA, which is much smaller
ENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
RUN make .venv/.dev
CMD ["make", "test"]

# the stage that docker builds if none is named
FROM compare
