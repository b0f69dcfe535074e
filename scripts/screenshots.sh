#!/usr/bin/env bash
#
# Makes the pictures of docs/dashboard.md: `scripts/screenshots.sh`. It is not part of the tests, and is run when the pages have
# changed.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/servers.sh
source scripts/servers.sh

need_chromium
export TEST_SCREENSHOTS=$PWD/docs/images
mkdir -p -- "$TEST_SCREENSHOTS"
run_in_group cargo test --test e2e --locked dashboard::screenshots -- --ignored --exact \
    dashboard::screenshots::pages_are_pictured
