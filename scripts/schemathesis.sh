#!/usr/bin/env bash
#
# Holds a running service against its own description: `scripts/schemathesis.sh [options of schemathesis run]`.
#
# A service is started here, in its embedded mode, on a free port, with data of its own; all of it is gone afterwards.
# schemathesis (https://schemathesis.io) makes requests from /openapi.json, valid and invalid ones, and fails when an answer is
# a 5xx or is not described. It needs Python 3.10 or later, and is installed into a folder that is thrown away too.
#
#   LECTERN_BIN              the program to test; built here when it is not set
#   SCHEMATHESIS             the schemathesis to use; installed here when it is not set
#   SCHEMATHESIS_EXAMPLES    requests of each kind for each operation; 20 when it is not set
#   SCHEMATHESIS_SEED        repeats a run that found something; its output tells the seed

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What found what is found should be known; a newer one is tried with SCHEMATHESIS.
version=4.32.5

say() { printf 'schemathesis.sh: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/lectern-schemathesis.XXXXXX")
service_pid=""

# shellcheck disable=SC2317,SC2329 # called by the traps
finish() {
    local status=$?
    trap - EXIT INT TERM HUP
    if [[ -n $service_pid ]]; then
        kill -TERM "$service_pid" 2>/dev/null || true
        wait "$service_pid" 2>/dev/null || true
    fi
    rm -rf -- "$scratch"
    exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

command -v curl >/dev/null || die "install curl"
command -v python3 >/dev/null || die "install Python 3"

if [[ -z ${SCHEMATHESIS:-} ]]; then
    say "installing schemathesis $version"
    python3 -m venv "$scratch/venv" || die "Python's venv module is missing"
    "$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version" ||
        die "schemathesis could not be installed"
    SCHEMATHESIS=$scratch/venv/bin/schemathesis
fi

if [[ -z ${LECTERN_BIN:-} ]]; then
    cargo build --locked --bin lectern
    LECTERN_BIN=${CARGO_TARGET_DIR:-target}/debug/lectern
fi

# --- the service -----------------------------------------------------------------------------------------------------

log=$scratch/service.log
env -i PATH="$PATH" HOME="$scratch" \
    LECTERN_ADDR=127.0.0.1:0 LECTERN_DATA_DIR="$scratch/data" LECTERN_EMBEDDER=none \
    LECTERN_SIGN_UP=open LECTERN_RATE_LIMIT=off LECTERN_REFUSAL_RATE=off LECTERN_LOG_FORMAT=json \
    "$LECTERN_BIN" >"$log" 2>&1 &
service_pid=$!

url=""
for _ in $(seq 300); do
    address=$(sed -n 's/.*"addr":"\([0-9.:]*\)".*/\1/p' "$log" | head -n 1)
    if [[ -n $address ]] && curl -fs -o "$scratch/ready" "http://$address/health/ready"; then
        url=http://$address
        break
    fi
    kill -0 "$service_pid" 2>/dev/null || break
    sleep 0.1
done
if [[ -z $url ]]; then
    cat "$log" >&2
    die "the service did not start"
fi
say "the service listens at $url"

# Prints the value at a path such as `data.token` of JSON.
pick() {
    python3 -c 'import functools, json, sys
print(functools.reduce(lambda value, key: value[key], sys.argv[1].split("."), json.load(sys.stdin)))' "$1"
}

# Posts a JSON body and prints the value at a path of the answer.
post() {
    local path=$1 body=$2 at=$3
    shift 3
    curl -fsS "$url/api/v1$path" -H 'Content-Type: application/json' --data "$body" "$@" | pick "$at"
}

# Not the password of the description's examples: one of those deletes the account. And an API token outlasts the sign-outs.
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
session=$(post /auth/sign-up '{"email": "tester@example.com", "password": "'"$password"'"}' data.token)
token=$(post /api-tokens '{"description": "schemathesis"}' data.token -H "Authorization: Bearer $session")
auth=(-H "Authorization: Bearer $token")
workspace=$(curl -fsS "$url/api/v1/users/me" "${auth[@]}" | pick data.id)

# What no request of one operation alone could find.
agent=$(post /agents '{"name": "Clerk", "type": "CHATVENDOR"}' data.id "${auth[@]}")
changed=$(post /agents '{"name": "Judge", "type": "CHATVENDOR"}' data.id "${auth[@]}")
trace=$(post "/agents/$agent/predict" '{"input": {"input": "When does the gate open?"}}' trace.id "${auth[@]}")
upload=$(curl -fsS "$url/api/v1/documents/upload" "${auth[@]}" -F 'file=The gate opens at nine.;filename=gate.txt' | pick data.id)

# --- the tests -------------------------------------------------------------------------------------------------------

cat >"$scratch/schemathesis.toml" <<CONF
# Any other workspace is refused, whatever else is right.
[parameters]
"header.X-Workspace" = "$workspace"

# What an answer says is checked, not which requests are refused: an id of nothing is a 404, and unknown fields are ignored.
[checks]
positive_data_acceptance.enabled = false
negative_data_rejection.enabled = false

# Events are not each a value of the body's schema, which is that of the whole text. The tests hold the other answers of these against it.
[[operations]]
include-operation-id = ["followIngestion", "openaiCreateChatCompletion", "openaiCreateResponse", "predict", "replayTrace"]
[operations.checks.response_schema_conformance]
enabled = false

# An agent's own model may fail, which is described.
[[operations]]
include-operation-id = "predict"
[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", 502, 503, 504]
[operations.parameters]
"path.id" = "$agent"

# The agent that is asked keeps its model, which is none of somebody else's.
[[operations]]
include-operation-id = "updateAgent"
[operations.parameters]
"path.id" = "$changed"

[[operations]]
include-operation-id = ["getTrace", "replayTrace"]
[operations.parameters]
"path.id" = "$trace"

[[operations]]
include-operation-id = "getDocumentSource"
[operations.parameters]
"path.id" = "$upload"
CONF

status=0
run() {
    # It leaves files where it runs.
    (cd "$scratch" && "$SCHEMATHESIS" run "$url/openapi.json" --url "$url" "${auth[@]}" \
        --max-examples "${SCHEMATHESIS_EXAMPLES:-20}" --request-timeout 30 --generation-database none \
        --continue-on-failure ${SCHEMATHESIS_SEED:+--seed "$SCHEMATHESIS_SEED"} --no-color "$@") || status=1
}

# It remembers the ids that it has seen, and would delete its own credential before most of the work is done.
run --exclude-operation-id deleteApiToken "$@"
# Otherwise most of it has tested a refusal.
curl -fs -o "$scratch/me" "$url/api/v1/users/me" "${auth[@]}" || {
    say "the credentials have ended, or the service has"
    status=1
}
run --include-operation-id deleteApiToken "$@"
kill -0 "$service_pid" 2>/dev/null || die "the service has ended: $(tail -n 20 "$log")"
# Requests are logged by their status, which was looked at already.
if grep '"level":"ERROR"' "$log" | grep -v '"message":"request"' | head -n 20 >"$scratch/errors"; then
    cat "$scratch/errors" >&2
    die "the service has logged errors"
fi
exit "$status"
