#!/usr/bin/env bash
#
# Takes the walk of README.md, from sign-up to a cited answer, against a running service: `scripts/walk.sh [address]`.
#
# The commands are read out of README.md, so what is tried is what a reader pastes. The service must be one that nobody has
# signed up with, or one that lets everybody (LECTERN_SIGN_UP=open), and not know ada@example.com. The address is
# http://127.0.0.1:8080 when none is given. Needs curl and Python 3.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
    printf 'walk.sh: %s\n' "$*" >&2
    exit 1
}

[[ $# -le 1 ]] || die "usage: scripts/walk.sh [address]"
address=${1:-http://127.0.0.1:8080}

# The first block of commands under the heading.
commands=$(awk '
    /^## A walk/ { inside = 1 }
    inside && /^```sh$/ { block = 1; next }
    block && /^```$/ { exit }
    block { print }
' README.md)
[[ $commands == API=http://127.0.0.1:8080/* ]] || die "README.md has no walk, or one that begins otherwise"
commands=${commands/http:\/\/127.0.0.1:8080/${address%/}}

# A step that is refused ends the walk. A document that is never ingested would be waited for without end.
answer=$(timeout 120 bash -eu -c "$commands") || die "the walk failed; the service's log says more"
printf '%s\n' "$answer"
python3 -c '
import json, sys
answer = json.load(sys.stdin)
citations = answer["trace"]["citations"]
assert "[1]" in answer["data"], "the answer cites nothing"
assert citations and citations[0]["verified"], "the quote was not found in the document"
assert "cellar" in citations[0]["quote"], "another passage was cited"
' <<<"$answer" || die "the answer is not what README.md promises"
