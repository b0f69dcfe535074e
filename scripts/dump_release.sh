#!/usr/bin/env bash
#
# Writes the dumps of this release, tests/upgrade/VERSION.sqlite.sql and .postgres.sql: what a service of this program leaves
# behind when it is killed, with rows in every table. Later releases are tested over them. Run it when a version is final, and
# never again for that version.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec scripts/test.sh --test e2e -- --ignored --exact upgrade::dump::the_dumps_of_this_release_are_written
