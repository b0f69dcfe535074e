#!/usr/bin/env bash
#
# Runs every test of the workspace: `scripts/test.sh [arguments of cargo test]`.
#
# The end-to-end tests run over each store that the service supports. The servers they need are started here, private and
# thrown away afterwards, whatever the tests' result; nothing that already runs on this machine is touched. Each server is
# one `start_…` function that exports one variable, and is not started when that variable is already set:
#
#   TEST_DATABASE_URL   a PostgreSQL server, as a role that may create databases

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'test.sh: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# --- what is undone at the end ---------------------------------------------------------------------------------------

scratch=""
postgres_data=""
postgres_bin=""
tests_pid=""

# shellcheck disable=SC2317,SC2329 # called by the traps
finish() {
    local status=$?
    trap - EXIT INT TERM HUP
    if [[ -n $tests_pid ]]; then
        kill -TERM -- "-$tests_pid" 2>/dev/null || true
        wait "$tests_pid" 2>/dev/null || true
    fi
    if [[ -n $postgres_data ]]; then stop_postgres; fi
    if [[ -n $scratch ]]; then rm -rf -- "$scratch"; fi
    exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# --- accounts and folders --------------------------------------------------------------------------------------------

# The account that owns the throw-away servers: empty means the caller. PostgreSQL refuses to run as root.
server_account=""

choose_server_account() {
    [[ $(id -u) -eq 0 ]] || return 0
    local name
    for name in postgres nobody; do
        if id -u "$name" >/dev/null 2>&1; then
            server_account=$name
            return 0
        fi
    done
    useradd --system --no-create-home --shell /usr/sbin/nologin lectern-test 2>/dev/null ||
        adduser -S -D -H lectern-test 2>/dev/null ||
        die "PostgreSQL does not run as root, and no other account could be made; run this as an ordinary user"
    server_account=lectern-test
}

# Runs a command as the servers' account.
as_server() {
    if [[ -z $server_account ]]; then
        "$@"
    elif have runuser; then
        runuser -u "$server_account" -- "$@"
    elif have setpriv; then
        setpriv --reuid "$(id -u "$server_account")" --regid "$(id -g "$server_account")" --clear-groups -- "$@"
    else
        # shellcheck disable=SC2016 # the inner shell expands them
        su -s /bin/sh -c '"$0" "$@"' -- "$server_account" "$@"
    fi
}

# Runs a command as root, without asking when nobody is there to answer.
as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    elif ! have sudo; then
        return 1
    elif [[ -t 0 ]]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

# A folder of the servers' account. TMPDIR may lie where that account cannot go; /tmp never does.
make_scratch() {
    local parent
    for parent in "${TMPDIR:-/tmp}" /tmp; do
        scratch=$(mktemp -d "${parent%/}/lectern-test.XXXXXX") || continue
        if [[ -n $server_account ]]; then chown "$server_account" "$scratch"; fi
        if as_server test -w "$scratch"; then return 0; fi
        rm -rf -- "$scratch"
    done
    scratch=""
    die "no temporary folder could be made for the test servers"
}

# --- PostgreSQL ------------------------------------------------------------------------------------------------------

# Prints the folder that holds PostgreSQL's server programs: of several versions, the newest.
postgres_programs() {
    local folder prefix=""
    if have brew; then prefix=$(brew --prefix 2>/dev/null || true); fi
    for folder in \
        "$(dirname "$(command -v pg_ctl || echo /nowhere/pg_ctl)")" \
        "$(printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin | sort -V | tail -n 1)" \
        "$(printf '%s\n' "${prefix:-/nowhere}"/opt/postgresql*/bin | sort -V | tail -n 1)" \
        "/Applications/Postgres.app/Contents/Versions/latest/bin"; do
        if [[ -x $folder/initdb && -x $folder/pg_ctl && -x $folder/postgres ]]; then
            printf '%s\n' "$folder"
            return 0
        fi
    done
    return 1
}

install_postgres() {
    if have apt-get; then
        say "installing PostgreSQL with apt-get"
        as_root apt-get update -q </dev/null >&2 &&
            as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get install -q -y --no-install-recommends postgresql </dev/null >&2
    elif have brew; then
        say "installing PostgreSQL with Homebrew"
        brew install postgresql@17 </dev/null >&2
    else
        return 1
    fi
}

start_postgres() {
    local programs
    programs=$(postgres_programs) || {
        install_postgres || say "PostgreSQL could not be installed here"
        programs=$(postgres_programs) ||
            die "install PostgreSQL's server (initdb, pg_ctl), or set TEST_DATABASE_URL to a server to test with"
    }

    local data=$scratch/postgres log=$scratch/postgres.log password
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    as_server tee "$scratch/password" <<<"$password" >/dev/null
    (
        # The servers' account may not be allowed to stand in the caller's folder.
        cd "$scratch"
        as_server "$programs/initdb" --pgdata "$data" --username postgres --pwfile "$scratch/password" \
            --auth scram-sha-256 --encoding UTF8 --locale C --no-sync >"$scratch/initdb.log" 2>&1
    ) || {
        cat "$scratch/initdb.log" >&2
        die "initdb failed"
    }

    # Nothing here outlives the tests, so nothing waits for the disk.
    as_server tee -a "$data/postgresql.conf" >/dev/null <<'CONF'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
fsync = off
synchronous_commit = off
full_page_writes = off
CONF

    # There is no way to have PostgreSQL pick a free port, so a taken one is a reason to try the next.
    local port
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        port=$((20000 + RANDOM % 12000))
        postgres_data=$data postgres_bin=$programs
        if (cd "$scratch" && as_server "$programs/pg_ctl" start --pgdata "$data" --log "$log" \
            --options "-p $port" --wait --timeout 60 --silent </dev/null >&2); then
            export TEST_DATABASE_URL="postgres://postgres:$password@127.0.0.1:$port/postgres"
            say "PostgreSQL $("$programs/postgres" --version | awk '{print $3}') listens on 127.0.0.1:$port"
            return 0
        fi
        postgres_data=""
        grep -qi 'in use' "$log" || break
        as_server rm -f "$log"
    done
    if [[ -r $log ]]; then cat "$log" >&2; fi
    die "PostgreSQL did not start"
}

# shellcheck disable=SC2317,SC2329 # called by `finish`
stop_postgres() {
    (cd "$scratch" && as_server "$postgres_bin/pg_ctl" stop --pgdata "$postgres_data" --mode immediate --silent \
        </dev/null >&2) || say "PostgreSQL in $postgres_data did not stop"
}

# --- the tests -------------------------------------------------------------------------------------------------------

have cargo || die "cargo was not found; see https://rustup.rs"

if [[ -z ${TEST_DATABASE_URL:-} ]]; then
    choose_server_account
    make_scratch
    start_postgres
fi

if [[ -n ${CI:-} ]]; then export CARGO_INCREMENTAL=0; fi

# In a process group of their own, so that a signal to this script reaches cargo and every process that the tests
# started, and `wait` is interrupted at once.
set -m
cargo test --workspace --locked "$@" </dev/null &
tests_pid=$!
set +m
status=0
wait "$tests_pid" || status=$?
tests_pid=""
exit "$status"
