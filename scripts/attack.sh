#!/usr/bin/env bash
#
# The attacks that are too heavy for every change: scripts/attack.sh [part of a name]
#
# Each is tried against the real programs, built for release, and says what it saw: memory, descriptors, time. The quick ones are
# part of scripts/test.sh. docs/security.md lists all of them, with what held. An attack on something outside this machine is not
# possible with this: everything listens on loopback, and ends with the script.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

exec ./test.sh --release --package lectern --test e2e -- --ignored --nocapture --test-threads 1 "attacks::${1:-}"
