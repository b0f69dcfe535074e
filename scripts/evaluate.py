#!/usr/bin/env python3
"""Whether the numbers of a service's evaluations are those of an independent program, on collections in the form of BEIR.

    scripts/evaluate.py FOLDER... [--url http://127.0.0.1:8080] (--token TOKEN | --email E --password P)

Each folder (`corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`) becomes documents, a collection and an evaluation, whose cases come in as a
ZIP file. It is run in every way of searching; then every question is asked of `POST /search`, and what that finds is measured with
pytrec_eval (`pip install pytrec-eval-terrier`). Printed are both, and the time that the run took; the script fails when a number
differs by more than 1e-6.

The service should not limit requests while it is measured (LECTERN_RATE_LIMIT=off).
"""

import argparse
import concurrent.futures
import io
import sys
import time
import uuid
import zipfile

import beir
import pytrec_eval

NAMES = {
    "success_1": "hit@1",
    "success_5": "hit@5",
    "success_10": "hit@10",
    "recip_rank": "mrr",
    "ndcg_cut_10": "ndcg@10",
    "recall_10": "recall@10",
}
MEASURES = {"success.1,5,10", "recip_rank", "ndcg_cut.10", "recall.10"}
LINKED = 1000  # Documents that are put into a collection at a time.


def archive(collection):
    """The questions and judgements of a folder, as a ZIP file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("queries.jsonl", "qrels/test.tsv"):
            file.write(collection.folder / name, name)
    return packed.getvalue()


def imported(api, evaluation, packed):
    """Sends a file with cases."""
    boundary = uuid.uuid4().hex
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="cases.zip"\r\n\r\n'
    body = head.encode() + packed + f"\r\n--{boundary}--\r\n".encode()
    form = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    return api.data("POST", f"/evaluations/{evaluation}/import", body, form)


def ranked(api, found_in, judged, mode, item):
    """What a question finds, best first. A copy that is judged stands for the passage that shows it."""
    key, text = item
    hits = api.data("POST", "/search", {"query": text, "mode": mode, "limit": beir.DEPTH, "collectionIds": [found_in]})
    relevant, order = judged[key], []
    for hit in hits:
        same = [hit["documentId"], *(copy["documentId"] for copy in hit.get("alsoIn") or [])]
        answering = [one for one in same if one in relevant]
        one = next((one for one in answering if one not in order), (answering or same)[0])
        if one not in order:
            order.append(one)
    return key, {document: float(len(order) - at) for at, document in enumerate(order)}


def measure(api, folder, threads, patience):
    """Evaluates one folder both ways; true when the numbers agree."""
    collection = beir.Collection(folder)
    names = beir.load(api, collection, threads, patience)
    ids = {key: document for document, key in names.items()}
    found_in = api.data("POST", "/collections", {"name": collection.name})["id"]
    for at in range(0, len(names), LINKED):
        part = list(names)[at : at + LINKED]
        api.data("POST", f"/collections/{found_in}/documents", {"documentIds": part})
    evaluation = api.data("POST", "/evaluations", {"name": collection.name, "collectionIds": [found_in]})["id"]
    added = imported(api, evaluation, archive(collection))
    began = time.monotonic()
    run = api.data("POST", f"/evaluations/{evaluation}/runs", {})
    path = f"/evaluations/{evaluation}/runs/{run['id']}"
    while run["state"] in ("queued", "running"):
        time.sleep(0.2)
        run = api.data("GET", path)
    took = time.monotonic() - began
    modes = ", ".join(run["modes"])
    print(f"{collection.name}: {added['added']} cases ({added['skipped']} without a document here), {modes}: {run['state']} in {took:.1f} s")
    judged = {key: {ids[one]: int(grade) for one, grade in grades.items()} for key, grades in collection.judged.items()}
    same = True
    for mode in run["modes"]:
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            one = lambda item: ranked(api, found_in, judged, mode, item)
            rankings = dict(pool.map(one, collection.queries.items()))
        judgements = {key: judged[key] for key in collection.queries}
        theirs = pytrec_eval.RelevanceEvaluator(judgements, MEASURES).evaluate(rankings)
        for their_name, name in NAMES.items():
            value = sum(theirs.get(key, {}).get(their_name, 0.0) for key in judgements) / len(judgements)
            ours = run["metrics"]["retrieval"][mode][name]["value"]
            agrees = abs(ours - value) <= 1e-6
            same = same and agrees
            print(f"  {mode:<8} {name:<10} {ours:.6f} {value:.6f}{'' if agrees else '  DIFFERS'}")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--token")
    parser.add_argument("--email")
    parser.add_argument("--password")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--patience", type=int, default=120, help="seconds without progress before it is given up")
    arguments = parser.parse_args()
    api = beir.Api(arguments.url, arguments.token)
    if not arguments.token:
        if not (arguments.email and arguments.password):
            parser.error("give --token, or --email and --password")
        beir.sign_in(api, arguments.email, arguments.password)
    agree = [measure(api, folder, arguments.threads, arguments.patience) for folder in arguments.folders]
    sys.exit(0 if all(agree) else 1)


if __name__ == "__main__":
    main()
