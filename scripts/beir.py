#!/usr/bin/env python3
"""Retrieval quality of a running service, measured on BEIR-style folders.

    scripts/beir.py FOLDER... [--url http://127.0.0.1:8080] (--token TOKEN | --email E --password P) [--json FILE]

A folder is a collection and holds `corpus.jsonl` ({"_id", "title", "text"} a line), `queries.jsonl` ({"_id", "text"}), and the
judgements in `qrels.tsv` or `qrels/test.tsv` (query-id, corpus-id, score, separated by tabs, under a header). Its documents are added
through the API; run again, the script adds only those that are not there yet. Then every judged query is asked in each mode of
`POST /search`, restricted to the collection, and a table is printed: nDCG@10, recall@10, recall@50 and the latency as seen from here. `rrf` is
computed in this script from the lists of `lexical` and `dense` (reciprocal rank fusion, k = 60), to compare with; the service
does not use it. A document counts at the place of its best passage.

The service should not limit requests while it is measured (LECTERN_RATE_LIMIT=off); if it does, the script waits as it is told.
Needs Python 3.9 or later, and nothing else.
"""

import argparse
import concurrent.futures
import http.client
import json
import math
import os
import pathlib
import sys
import threading
import time
import urllib.parse

DEPTH = 50  # The most passages that the service returns.
RRF_K = 60
NAME = 200  # Characters of a title that become the document's name.
MODES = ("lexical", "dense", "hybrid")
GIVE_UP = 8  # Tries of one request.
NO_MODEL = "no_embedding_model"  # What a search by meaning gets where there is no model; it does not pass by itself.


class Refused(Exception):
    """An answer that is not a success, and will not become one."""

    def __init__(self, status, body):
        error = error_of(body)
        super().__init__(f"{status} {error.get('code', '')}: {error.get('message', '')}{fields(error)}")
        self.status, self.code = status, error.get("code")


def error_of(body):
    return (body.get("error") if isinstance(body, dict) else None) or {}


def error_code(body):
    return error_of(body).get("code")


def fields(error):
    return "".join(f" [{f.get('path')} {f.get('message')}]" for f in error.get("fields") or [])


class Api:
    """The service's API. Each thread keeps a connection of its own."""

    def __init__(self, url, token=None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SystemExit(f"not an address: {url}")
        self.parts, self.token, self.local = parts, token, threading.local()
        self.prefix = parts.path.rstrip("/") + "/api/v1"

    def connection(self):
        if getattr(self.local, "connection", None) is None:
            kind = http.client.HTTPSConnection if self.parts.scheme == "https" else http.client.HTTPConnection
            self.local.connection = kind(self.parts.hostname, self.parts.port, timeout=120)
        return self.local.connection

    def call(self, method, path, body=None, headers=None):
        """The parsed answer and the seconds that its last try took. Waits when the service says so; repeats what failed on the way."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        for attempt in range(GIVE_UP):
            began = time.perf_counter()
            try:
                connection = self.connection()
                connection.request(method, self.prefix + path, data, headers)
                answer = connection.getresponse()
                raw = answer.read()
            except (OSError, http.client.HTTPException):
                self.local.connection = None
                if attempt + 1 == GIVE_UP:
                    raise
                time.sleep(min(2**attempt / 4, 10))
                continue
            took = time.perf_counter() - began
            try:
                parsed = json.loads(raw)
            except ValueError:
                parsed = None
            if answer.status == 200 and parsed is not None:
                return parsed, took
            wait = answer.getheader("Retry-After")
            passes = answer.status in (502, 503, 504) and wait is not None and error_code(parsed) != NO_MODEL
            again = answer.status == 429 or passes
            if not again or attempt + 1 == GIVE_UP:
                raise Refused(answer.status, parsed)
            time.sleep(float(wait) if wait and wait.isdigit() else min(2**attempt, 30))
        raise AssertionError("unreachable")

    def data(self, method, path, body=None, headers=None):
        return self.call(method, path, body, headers)[0]["data"]


def sign_in(api, email, password):
    """Signs in, or up when the account does not exist."""
    who = {"email": email, "password": password}
    try:
        api.token = api.data("POST", "/auth/sign-in", who)["token"]
    except Refused as refused:
        if refused.status not in (401, 404):
            raise
        api.token = api.data("POST", "/auth/sign-up", who)["token"]


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


class Collection:
    """A folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.name = self.folder.resolve().name
        self.corpus = {str(d["_id"]): (d.get("title") or "", d.get("text") or "") for d in lines(self.folder / "corpus.jsonl")}
        self.judged = self.judgements()
        queries = {str(q["_id"]): q["text"] for q in lines(self.folder / "queries.jsonl")}
        # Only queries for which something relevant is there can be answered well or badly.
        self.queries = {key: text for key, text in queries.items() if key in self.judged and text.strip()}

    def judgements(self):
        files = [self.folder / "qrels.tsv", self.folder / "qrels" / "test.tsv"]
        file = next((file for file in files if file.exists()), None)
        if file is None:
            raise SystemExit(f"{self.folder}: no qrels.tsv")
        judged = {}
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
            columns = line.split("\t")
            if number and len(columns) >= 3 and float(columns[2]) > 0 and columns[1] in self.corpus:
                judged.setdefault(columns[0], {})[columns[1]] = float(columns[2])
        return judged

    def document(self, key):
        title, text = (" ".join(part.split("\0")).strip() for part in self.corpus[key])
        # A document needs a name. One that all have in common decides nothing.
        name = title[:NAME].strip() or "Untitled"
        content = text or title or "Untitled"
        if len(title) > NAME and text:
            content = f"{title}\n\n{text}"
        return {"name": name, "type": "TXT", "content": content, "metadata": {"_id": key, "beir": key, "collection": self.name}}


def documents(api):
    """All documents of the account, a page at a time."""
    cursor = None
    while True:
        query = {"limit": 200, **({"cursor": cursor} if cursor else {})}
        page = api.call("GET", "/documents?" + urllib.parse.urlencode(query))[0]
        yield from page["data"]
        cursor = page.get("nextCursor")
        if not cursor:
            return


def present(api, collection):
    """The id and the state of each document of the collection that is there."""
    found = {}
    for document in documents(api):
        metadata = document.get("metadata") or {}
        if metadata.get("collection") == collection.name and "beir" in metadata:
            found[str(metadata["beir"])] = (document["id"], (document.get("ingestion") or {}).get("status"))
    return found


def load(api, collection, threads, patience):
    """Adds what is missing, and waits until all of it can be searched. Returns each document's id in the collection, by its id."""
    there = present(api, collection)
    missing = [key for key in collection.corpus if key not in there]
    say(f"{collection.name}: {len(collection.corpus)} documents, {len(missing)} to be added")
    began = time.monotonic()

    def add(key):
        # The key of the request keeps a repeated one from adding the document twice.
        once = {"Idempotency-Key": f"beir {collection.name} {key}"[:255]}
        api.data("POST", "/documents", collection.document(key), once)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for number, _ in enumerate(pool.map(add, missing), 1):
            if number % 500 == 0:
                say(f"{collection.name}: {number} added")
    last, quiet_since, said = None, time.monotonic(), 0.0
    while True:
        there = present(api, collection)
        states = {}
        for key in collection.corpus:
            state = there.get(key, (None, "missing"))[1]
            states[state] = states.get(state, 0) + 1
        failed = [key for key, (_, state) in there.items() if state in ("FAILED", "CANCELED")]
        waiting = sum(count for state, count in states.items() if state not in ("SUCCEEDED", "FAILED", "CANCELED"))
        if failed and not waiting:
            raise SystemExit(f"{collection.name}: {len(failed)} documents failed, {failed[0]} among them")
        if not waiting:
            break
        if waiting != last:
            last, quiet_since = waiting, time.monotonic()
            if quiet_since - said > 15:
                said = quiet_since
                say(f"{collection.name}: {waiting} not yet searchable")
        elif time.monotonic() - quiet_since > patience:
            raise SystemExit(f"{collection.name}: nothing has become searchable for {patience} seconds ({states})")
        time.sleep(2)
    if missing:
        say(f"{collection.name}: searchable after {time.monotonic() - began:.0f} s")
    return {document: key for key, (document, _) in there.items()}


def ask(api, collection, mode, names, threads):
    """The documents found for each query, best first, and the seconds that each answer took. None where the mode is not to be had."""

    def one(item):
        key, text = item
        body = {"query": text, "limit": DEPTH, "mode": mode, "filter": {"collection": collection.name}}
        answer, took = api.call("POST", "/search", body)
        ranked = {}
        for passage in answer["data"]:
            # A copy that the service left out stands where the one stands that it showed.
            for document in (passage["documentId"], *(copy["documentId"] for copy in passage.get("alsoIn") or [])):
                if document in names:
                    ranked.setdefault(names[document], len(ranked))
        return key, list(ranked), took

    items = list(collection.queries.items())
    try:
        for item in items[:3]:
            one(item)  # Not measured: connections are made and caches filled.
    except Refused as refused:
        if refused.code in (NO_MODEL, "embedding_model_unavailable"):
            say(f"{collection.name}: no {mode} search: {refused}")
            return None
        raise
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(one, items))
    return {key: ranked for key, ranked, _ in answers}, [took for _, _, took in answers]


def fuse(first, second):
    """Reciprocal rank fusion of two ranked lists."""
    scores = {}
    for ranked in (first, second):
        for rank, key in enumerate(ranked, 1):
            scores[key] = scores.get(key, 0) + 1 / (RRF_K + rank)
    return sorted(scores, key=lambda key: -scores[key])


def ndcg(ranked, judged, depth=10):
    gain = sum(judged.get(key, 0) / math.log2(rank + 1) for rank, key in enumerate(ranked[:depth], 1))
    best = sorted(judged.values(), reverse=True)[:depth]
    return gain / sum(score / math.log2(rank + 1) for rank, score in enumerate(best, 1))


def recall(ranked, judged, depth):
    return sum(key in judged for key in ranked[:depth]) / len(judged)


def quality(collection, found):
    def mean(measure):
        return sum(measure(found[key], collection.judged[key]) for key in found) / len(found)

    return {
        "nDCG@10": mean(ndcg),
        "recall@10": mean(lambda ranked, judged: recall(ranked, judged, 10)),
        "recall@50": mean(lambda ranked, judged: recall(ranked, judged, 50)),
    }


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(api, folder, options):
    collection = Collection(folder)
    if not collection.queries:
        raise SystemExit(f"{folder}: no query has a relevant document in the corpus")
    names = load(api, collection, options.threads, options.patience)
    found, rows = {}, {}
    for mode in MODES:
        answers = ask(api, collection, mode, names, options.ask_threads)
        if answers is None:
            continue
        found[mode], times = answers
        rows[mode] = quality(collection, found[mode])
        rows[mode].update({"p50 ms": percentile(times, 0.5) * 1e3, "p95 ms": percentile(times, 0.95) * 1e3})
    if "dense" in found:
        fused = {key: fuse(found["lexical"][key], found["dense"][key]) for key in collection.queries}
        rows["rrf"] = quality(collection, fused)
    order = [mode for mode in ("lexical", "dense", "rrf", "hybrid") if mode in rows]
    return {
        "collection": collection.name,
        "documents": len(collection.corpus),
        "queries": len(collection.queries),
        "modes": {mode: rows[mode] for mode in order},
    }


def table(results):
    columns = ("nDCG@10", "recall@10", "recall@50", "p50 ms", "p95 ms")
    yield "| collection | documents | queries | mode | " + " | ".join(columns) + " |"
    yield "|---|--:|--:|---|" + "--:|" * len(columns)
    for result in results:
        for mode, row in result["modes"].items():
            label = "rrf (computed here)" if mode == "rrf" else mode
            # What was computed here has no latency.
            cells = [f"{row[c]:.{1 if c.endswith('ms') else 4}f}" if c in row else "" for c in columns]
            yield f"| {result['collection']} | {result['documents']} | {result['queries']} | {label} | " + " | ".join(cells) + " |"


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--token", default=os.environ.get("LECTERN_TOKEN"), help="of a session (or LECTERN_TOKEN)")
    parser.add_argument("--email")
    parser.add_argument("--password")
    parser.add_argument("--threads", type=int, default=8, help="requests at once while documents are added (8)")
    parser.add_argument("--ask-threads", type=int, default=1, help="questions at once; more than one changes the latency (1)")
    parser.add_argument("--patience", type=int, default=900, help="seconds without progress before giving up (900)")
    parser.add_argument("--json", metavar="FILE", help="write the results there too")
    options = parser.parse_args()
    api = Api(options.url, options.token)
    if options.email and options.password:
        sign_in(api, options.email, options.password)
    if not api.token:
        parser.error("give --token, or --email and --password")
    results = []
    for folder in options.folders:
        results.append(measure(api, folder, options))
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")
    print("\n".join(table(results)))


if __name__ == "__main__":
    try:
        main()
    except (Refused, OSError) as error:
        raise SystemExit(f"beir.py: {error}") from None
