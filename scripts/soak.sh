#!/usr/bin/env bash
#
# The long runs.
#
#   scripts/soak.sh [part of a name]
#
# Workers killed at random, servers stopped and emptied under load, faults of the network between the parts (`faults`), a backlog of 20,000 documents, fifty
# members whose roles change while they work (`members`), and how quick the queue is:
# without a name all of them, which takes about a quarter of an hour.
#
#   LECTERN_SOAK_ROUNDS=20 scripts/soak.sh crowd
#
# One of them, twenty times: 300 documents on a machine that is too busy, with workers killed at random; what was published is
# compared with the index passage by passage, over the embedded index and, with TEST_QDRANT_URL, over Qdrant.
#
#   LECTERN_SOAK_MINUTES=10 scripts/soak.sh attackers
#
# What users do, by lectern-load, first undisturbed and then while one client of each kind attacks: no error is allowed for them.
# LECTERN_SOAK_ATTACK=parts of names, with commas between, has only those attack whose functions in tests/soak/attackers.rs have one of them.
#
#   scripts/soak.sh mix embedded|cluster [arguments of lectern-load mix]
#
# Ten minutes of documents, searches and questions at set rates against a release build, every answer checked; no error, no
# growth of memory and no stuck job are allowed. See docs/performance.md.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [[ ${1:-} != mix ]]; then
    exec ./test.sh --release --package lectern --test e2e -- --ignored --nocapture --test-threads 1 "soak::${1:-}"
fi

cd ..
# shellcheck source=scripts/servers.sh
source scripts/servers.sh

have cargo || die "cargo was not found; see https://rustup.rs"
mode=${2:-}
[[ $mode == embedded || $mode == cluster ]] || die "say which mode: scripts/soak.sh mix embedded|cluster"
shift 2

cargo build --release --locked --bins
programs=${CARGO_TARGET_DIR:-target}/release

if [[ $mode == cluster ]]; then need_servers; fi

port=$(some_port)
data=$(mktemp -d "${TMPDIR:-/tmp}/lectern-soak.XXXXXX")
export LECTERN_DATA_DIR=$data LECTERN_ADDR=127.0.0.1:$port LECTERN_RATE_LIMIT=off LECTERN_SIGN_UP=open
# What is asked differs by made-up names alone, which a model of meaning cannot tell apart.
export LECTERN_EMBEDDER=none
metrics=(--metrics "http://127.0.0.1:$port/metrics")

# Runs one of the programs, and writes what it logs into the data's folder.
# shellcheck disable=SC2317,SC2329 # called by run_beside
serve() { "$programs/$1" >"$data/$1.log" 2>&1; }

# Waits until one of the programs is ready.
ready() {
    for _ in $(seq 200); do
        if "$programs/$1" health >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    tail -n 20 "$data/$1.log" >&2
    die "$1 is not ready"
}

# Runs a statement on the server of TEST_DATABASE_URL.
sql() { psql --quiet --no-psqlrc --dbname "$TEST_DATABASE_URL" --command "$1"; }

database=""
# shellcheck disable=SC2317,SC2329 # called by `finish`
at_end() {
    if [[ -n $database ]]; then sql "DROP DATABASE $database WITH (FORCE)"; fi
    if [[ $1 -eq 0 ]]; then
        rm -rf -- "$data"
    else
        say "the data and the logs are in $data"
    fi
}

if [[ $mode == embedded ]]; then
    run_beside serve lectern
    ready lectern
else
    export DATABASE_URL=$TEST_DATABASE_URL REDIS_URL=$TEST_REDIS_URL
    if [[ -z $postgres_data ]]; then
        # The server is somebody else's, so it gets a database for this.
        have psql || die "psql was not found: it makes a database on the server of TEST_DATABASE_URL"
        database=lectern_soak_$$
        sql "CREATE DATABASE $database TEMPLATE template0"
        export DATABASE_URL=${TEST_DATABASE_URL%/*}/$database
    fi
    export LECTERN_WORKER_ADDR=127.0.0.1:$((port + 1)) LECTERN_SECRET_KEY="a key that only this soak ever uses"
    if [[ -n ${TEST_QDRANT_URL:-} ]]; then export QDRANT_URL=$TEST_QDRANT_URL; fi
    metrics+=(--metrics "http://$LECTERN_WORKER_ADDR/metrics")
    run_beside serve lectern-api
    run_beside serve lectern-worker
    ready lectern-api
    ready lectern-worker
fi

status=0
run_in_group "$programs/lectern-load" mix --url "http://127.0.0.1:$port" "${metrics[@]}" "$@" || status=$?
exit "$status"
