# syntax=docker/dockerfile:1

# One image with the three programs: `lectern` (everything in one process; what runs without a command), `lectern-api` and
# `lectern-worker`. The builder and the final image are of the same Debian release, so that they agree about glibc.

FROM rust:1.95-slim-trixie AS build
WORKDIR /lectern
COPY Cargo.toml Cargo.lock ./
COPY migrations migrations
COPY shared shared
COPY api api
COPY worker worker
COPY load load
COPY fuzz fuzz
COPY src src
# Cargo goes by the times of files, and another checkout's may be older than what is cached: they are all new here. The
# cache is gone after this step, so the programs are copied out of it in the same one.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/lectern/target,sharing=locked \
    find api fuzz load migrations shared src worker -type f -exec touch {} + \
    && cargo build --profile dist --locked --bins \
    && mkdir /programs \
    && cp target/dist/lectern target/dist/lectern-api target/dist/lectern-worker /programs/

FROM debian:trixie-slim
# Languages of scanned pages besides English, as Debian's packages tesseract-ocr-… call them: "deu fra".
ARG OCR_LANGUAGES=""
# The roots by which certificates are judged, and what reads scanned pages; the newest ones, so no version is named.
# hadolint ignore=DL3008
RUN for language in $OCR_LANGUAGES; do set -- "$@" "tesseract-ocr-$language"; done \
    && apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates tesseract-ocr "$@" \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 lectern \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin lectern \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY LICENSE /usr/local/share/licenses/lectern/LICENSE
COPY --from=build /programs/ /usr/local/bin/
ENV LECTERN_ADDR=0.0.0.0:8080 \
    LECTERN_DATA_DIR=/data \
    LECTERN_LOG_FORMAT=json
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Lectern" \
      org.opencontainers.image.description="Keeps documents, and answers from them with citations" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
# There is no HEALTHCHECK: each program is asked by itself (`lectern health`, `lectern-api health`, `lectern-worker health`),
# and only whoever starts the container knows which one runs.
CMD ["lectern"]
