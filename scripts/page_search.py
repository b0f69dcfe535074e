#!/usr/bin/env python3
"""How well a running service finds the exact page, measured on PDFs and questions whose answers stand on known pages.

    scripts/page_search.py FOLDER... [--url http://127.0.0.1:8080] (--token TOKEN | --email E --password P) [--rerank] [--json FILE]

A folder holds `pdfs/NAME.pdf` and `questions.jsonl`: {"question": ..., "expect": [{"document": NAME, "page": 7}, ...]} a line, pages
counted from 1. Its PDFs are uploaded into a collection of its name; run again, the script uploads only those that are not there yet. Then
every question is asked in each mode of `POST /search`, over all documents of the collection. A page counts at its best passage; a passage
that goes over two pages counts for both. Printed are nDCG@10, hit@1, hit@5 and hit@10, and the median latency as seen from here.

The service should not limit requests while it is measured (LECTERN_RATE_LIMIT=off). Needs Python 3.9 or later, and nothing else.
"""

import argparse
import json
import math
import pathlib
import statistics
import time
import uuid

import beir

MOST = 10  # Pages that are looked at.


def collection(api, name):
    """The id of the collection of this name, which is made when it is not there."""
    for known in api.data("GET", "/collections?limit=200"):
        if known["name"] == name:
            return known["id"]
    return api.data("POST", "/collections", {"name": name})["id"]


def upload(api, path, collection_id):
    """Uploads a PDF. Its name is that of its file, without the ending."""
    boundary = uuid.uuid4().hex
    parts = []
    for field, value in (("name", path.stem), ("collectionIds", json.dumps([collection_id]))):
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode())
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'
    body = b"".join(parts) + head.encode() + path.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
    api.data("POST", "/documents/upload", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})


def documents(api, collection_id):
    """The documents of a collection."""
    return [document for document in beir.documents(api) if collection_id in document["collectionIds"]]


def load(api, folder, patience):
    """Uploads what is missing, and waits until all of it can be searched."""
    found_in = collection(api, folder.name)
    there = {document["name"] for document in documents(api, found_in)}
    files = sorted((folder / "pdfs").glob("*.pdf"))
    began = time.monotonic()
    for path in files:
        if path.stem not in there:
            upload(api, path, found_in)
    last, quiet_since = None, time.monotonic()
    while True:
        states = [document["ingestion"]["status"] for document in documents(api, found_in)]
        waiting = sum(state not in ("SUCCEEDED", "FAILED", "CANCELED") for state in states)
        if not waiting:
            break
        if waiting != last:
            last, quiet_since = waiting, time.monotonic()
        elif time.monotonic() - quiet_since > patience:
            raise SystemExit(f"{folder.name}: nothing has become searchable for {patience} seconds")
        time.sleep(1)
    failed = sum(state != "SUCCEEDED" for state in states)
    beir.say(f"{folder.name}: {len(states)} documents, {failed} of them failed, after {time.monotonic() - began:.0f} s")
    return found_in


def pages(hits):
    """The pages of what was found, best first."""
    found = {}
    for hit in hits:
        place = hit["place"]
        first = place.get("page")
        for page in range(first or 0, (place.get("pageEnd") or first or 0) + 1):
            found.setdefault((hit["documentName"], page), len(found))
    return list(found)


def measures(ranked, expected):
    """nDCG@10, and whether something expected is among the first 1, 5 and 10."""
    gain = sum(1 / math.log2(rank + 2) for rank, page in enumerate(ranked[:MOST]) if page in expected)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(MOST, len(expected))))
    hit = [float(any(page in expected for page in ranked[:depth])) for depth in (1, 5, 10)]
    return [gain / ideal, *hit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--token")
    parser.add_argument("--email")
    parser.add_argument("--password")
    parser.add_argument("--rerank", action="store_true", help="ask for a better order, too")
    parser.add_argument("--patience", type=float, default=900)
    parser.add_argument("--json", type=pathlib.Path, help="keep the numbers, question by question")
    options = parser.parse_args()
    api = beir.Api(options.url, options.token)
    if not options.token:
        beir.sign_in(api, options.email, options.password)
    kept = {}
    print("| collection | questions | mode | nDCG@10 | hit@1 | hit@5 | hit@10 | ms |\n|---|--:|---|--:|--:|--:|--:|--:|")
    for folder in options.folders:
        found_in = load(api, folder, options.patience)
        asked = beir.lines(folder / "questions.jsonl")
        for mode in beir.MODES:
            values, took = [], []
            for line in asked:
                body = {"query": line["question"], "mode": mode, "limit": beir.DEPTH, "collectionIds": [found_in]}
                if options.rerank:
                    body["rerank"] = True
                try:
                    answer, seconds = api.call("POST", "/search", body)
                except beir.Refused as refused:
                    if refused.code == beir.NO_MODEL:
                        break
                    raise
                expected = {(expect["document"], expect["page"]) for expect in line["expect"]}
                values.append(measures(pages(answer["data"]), expected))
                took.append(seconds)
            if not values:
                continue
            kept[f"{folder.name} {mode}"] = values
            means = " | ".join(f"{statistics.mean(column):.3f}" for column in zip(*values))
            print(f"| {folder.name} | {len(values)} | {mode} | {means} | {statistics.median(took) * 1000:.1f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
