#!/usr/bin/env bash
#
# Measures how the service behaves as it holds more: `scripts/grow.sh [arguments of lectern-load grow]`.
#
# It builds the release, and starts a PostgreSQL and a Redis of its own (scripts/servers.sh), which are thrown away; PostgreSQL
# waits for the disk, as it does in earnest. Nothing else should run on the machine meanwhile. As it is it takes hours, and some
# ten gigabytes below TMPDIR; smaller steps, or a limit, make it shorter:
#
#   scripts/grow.sh --mode embedded --steps 1000,10000,100000 --workspaces none
#   scripts/grow.sh --steps none --workspaces 100,1000 --each 20 --time-limit 30m
#
# To put the tables into a file of their own, or between the lines `<!-- grow -->` and `<!-- /grow -->` of a page:
#
#   scripts/grow.sh --output grow.md
#
# What is used when it is set, and not started: TEST_DATABASE_URL and TEST_REDIS_URL as in scripts/test.sh; TEST_QDRANT_URL,
# without which the cluster's index is in PostgreSQL; and TEST_MODEL_DIR, without which documents are found by words only.

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

arguments=(--programs "${CARGO_TARGET_DIR:-target}/release")
arguments+=(--database-url "$TEST_DATABASE_URL" --redis-url "$TEST_REDIS_URL")
if [[ -n ${TEST_QDRANT_URL:-} ]]; then arguments+=(--qdrant-url "$TEST_QDRANT_URL"); fi
if [[ -n ${TEST_MODEL_DIR:-} ]]; then arguments+=(--model-dir "$TEST_MODEL_DIR"); fi

status=0
run_in_group "${CARGO_TARGET_DIR:-target}/release/lectern-load" grow "${arguments[@]}" "$@" || status=$?
exit "$status"
