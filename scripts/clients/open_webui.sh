#!/usr/bin/env bash
# Open WebUI as a client: installs it, points it at a running Lectern, asks an agent through it, and looks for the annotations that it
# makes sources of. Not part of the tests: the package and what it needs are 7 GB on disk.
#
#   OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=… LECTERN_AGENT=… scripts/clients/open_webui.sh [question]
#
# The page stays at http://127.0.0.1:${PORT:-8090} until Enter is pressed, if this is run by a person.
set -euo pipefail
: "${OPENAI_BASE_URL:?}" "${OPENAI_API_KEY:?}" "${LECTERN_AGENT:?the id of an agent}"
question=${1:-"What do the documents say?"}
port=${PORT:-8090}
folder=${OPEN_WEBUI_FOLDER:-target/open-webui}
mkdir -p "$folder"
if [ ! -x "$folder/venv/bin/open-webui" ]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --no-cache-dir open-webui
fi
data=$(mktemp -d)
page=http://127.0.0.1:$port
DATA_DIR=$data HF_HUB_OFFLINE=1 RAG_EMBEDDING_ENGINE=openai OPENAI_API_BASE_URL=$OPENAI_BASE_URL ENABLE_OLLAMA_API=False \
    WEBUI_AUTH=False WEBUI_SECRET_KEY=for-this-run ENABLE_VERSION_UPDATE_CHECK=False \
    "$folder/venv/bin/open-webui" serve --host 127.0.0.1 --port "$port" > "$data/log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$data"' EXIT
until curl -sf "$page/health" > /dev/null; do
    kill -0 "$server" 2>/dev/null || { tail -20 "$data/log" >&2; exit 1; }
    sleep 1
done
json='Content-Type: application/json'
token=$(curl -sf -X POST "$page/api/v1/auths/signin" -H "$json" -d '{"email": "", "password": ""}' |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')
body=$(python3 -c 'import json, sys; print(json.dumps({"model": sys.argv[1], "stream": True,
    "messages": [{"role": "user", "content": sys.argv[2]}]}))' "$LECTERN_AGENT" "$question")
curl -sfN "$page/api/chat/completions" -H "Authorization: Bearer $token" -H "$json" -d "$body" | tee "$data/answer"
grep -q '"url_citation"' "$data/answer" || { echo "no source came through" >&2; exit 1; }
echo "sources came through; the page is $page/?model=$LECTERN_AGENT"
if [ -t 0 ]; then read -r -p "Enter ends it. " _; fi
