#!/usr/bin/env bash
#
# Measures what docs/performance.md shows: `scripts/performance.sh [arguments of lectern-load table]`.
#
# It builds the release, and starts a PostgreSQL and a Redis of its own (scripts/servers.sh), which are thrown away; PostgreSQL
# waits for the disk, as it does in earnest. Nothing else should run on the machine meanwhile. To put the table into the page:
#
#   scripts/performance.sh --output docs/performance.md
#
# What is used when it is set, and not started or fetched: TEST_DATABASE_URL, TEST_REDIS_URL and TEST_MODEL_DIR as in
# scripts/test.sh; and TEST_QDRANT_URL, without which the cluster's index is in PostgreSQL.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/servers.sh
source scripts/servers.sh

have cargo || die "cargo was not found; see https://rustup.rs"

# Before the servers: they have nothing to do meanwhile.
cargo build --release --locked --bins

# shellcheck disable=SC2034 # read by start_postgres
postgres_durable=yes
need_servers
need_model

arguments=(--programs "${CARGO_TARGET_DIR:-target}/release")
arguments+=(--database-url "$TEST_DATABASE_URL" --redis-url "$TEST_REDIS_URL")
if [[ -n ${TEST_QDRANT_URL:-} ]]; then arguments+=(--qdrant-url "$TEST_QDRANT_URL"); fi
if [[ -n ${TEST_MODEL_DIR:-} ]]; then arguments+=(--model-dir "$TEST_MODEL_DIR"); fi

status=0
run_in_group "${CARGO_TARGET_DIR:-target}/release/lectern-load" table "${arguments[@]}" "$@" || status=$?
exit "$status"
