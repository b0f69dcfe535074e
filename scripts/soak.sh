#!/usr/bin/env bash
#
# The long runs: workers killed at random, servers stopped and emptied under load, a backlog of 20,000 documents, and how
# quick the queue is. `scripts/soak.sh [part of a name]`; without one, all of them, which takes about a quarter of an hour.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

exec ./test.sh --release --package lectern --test e2e -- --ignored --nocapture --test-threads 1 "soak::${1:-}"
