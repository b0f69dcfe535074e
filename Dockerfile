# syntax=docker/dockerfile:1

# One image with the three programs: `lectern` (everything in one process; what runs without a command), `lectern-api` and
# `lectern-worker`. The builder and the final image are of the same Debian release, so that they agree about glibc.

# Chromium's PDF engine, from a published build that is checked against its hash. Each platform has its own.
FROM --platform=$BUILDPLATFORM python:3.13-slim-trixie AS pdfium
ARG TARGETARCH
ARG PYPDFIUM2_VERSION=5.15.2
ARG PYPDFIUM2_X86_64=dc31aea5b0fb9fefc9b537a65f4113980b2c40798445736a7e6565bc85161e37
ARG PYPDFIUM2_AARCH64=dd46e93c0c3a73f6cea8489baff6d77a5d0759dd53fbbce0aeb49c91830176fc
WORKDIR /pdfium
RUN case "$TARGETARCH" in \
        amd64) machine=x86_64 ;; \
        arm64) machine=aarch64 ;; \
        *) echo "there is no PDF engine for $TARGETARCH" >&2; exit 1 ;; \
    esac \
    && printf '%s' "pypdfium2==$PYPDFIUM2_VERSION --hash=sha256:$PYPDFIUM2_X86_64 --hash=sha256:$PYPDFIUM2_AARCH64" \
        > requirements.txt \
    && pip download --no-cache-dir --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
        --platform "manylinux_2_17_$machine" --requirement requirements.txt \
    && python -m zipfile -e pypdfium2-*.whl wheel \
    && mkdir licenses \
    && cp -r wheel/pypdfium2-*.dist-info/licenses/BUILD_LICENSES licenses/pdfium

FROM rust:1.95-slim-trixie AS build
WORKDIR /lectern
COPY Cargo.toml Cargo.lock ./
COPY migrations migrations
COPY shared shared
COPY api api
COPY worker worker
COPY load load
COPY src src
# Cargo goes by the times of files, and another checkout's may be older than what is cached: they are all new here. The
# cache is gone after this step, so the programs are copied out of it in the same one.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/lectern/target,sharing=locked \
    find api load migrations shared src worker -type f -exec touch {} + \
    && cargo build --profile dist --locked --bins \
    && mkdir /programs \
    && cp target/dist/lectern target/dist/lectern-api target/dist/lectern-worker /programs/

FROM debian:trixie-slim
# The roots by which certificates are judged; the newest ones, so no version is named.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 lectern \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin lectern \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY LICENSE /usr/local/share/licenses/lectern/LICENSE
COPY --from=pdfium /pdfium/licenses /usr/local/share/licenses
COPY --from=pdfium /pdfium/wheel/pypdfium2_raw/libpdfium.so /usr/local/lib/libpdfium.so
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
