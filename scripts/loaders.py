#!/usr/bin/env python3
"""How files are read: `scripts/loaders.py FOLDER… [--binary target/release/lectern] [--runs 3]`.

Reads every file below the folders as the service would (`lectern parse`) and prints a line for each: what became of it, how
long it took (the best of the runs, the start of the program included), its speed, and the memory of the largest process.
Beside a file `page.html` a file `page.gold.txt` may hold the words of its body: then the F1 of its words is printed, too. Where
`pdftotext` is installed, PDFs are also read with it, for comparison.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

TYPES = {".csv": "CSV", ".tsv": "CSV", ".xlsx": "CSV", ".pdf": "PDF", ".html": "URL", ".vtt": "VIDEO", ".srt": "VIDEO", ".ttml": "VIDEO"}


def run(command, runs):
    """Standard output, standard error, the best time in seconds, and the largest memory in MiB."""
    best, memory, out, err = float("inf"), 0, b"", b""
    for _ in range(runs):
        began = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = child.communicate()
        best = min(best, time.perf_counter() - began)
        memory = max(memory, peak_of_children())
    return out, err, best, memory


def peak_of_children():
    import resource

    # Kilobytes on Linux, bytes on macOS; of the largest process so far.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / unit


def words(text):
    return collections.Counter(re.findall(r"\w+", text.lower()))


def f1(found, gold):
    found, gold = words(found), words(gold)
    common = sum((found & gold).values())
    if not common:
        return 0.0
    precision, recall = common / sum(found.values()), common / sum(gold.values())
    return 2 * precision * recall / (precision + recall)


def outcome(out, err):
    if out:
        preview = json.loads(out)
        warnings = ",".join(f"{w['code']}×{w['count']}" for w in preview["warnings"])
        pages = f"{preview['pages']} p., " if preview["pages"] else ""
        return preview, f"{pages}{len(preview['text'])} chars, {len(preview['passages'])} passages {warnings}"
    said = re.findall(r"\b([a-z_]+): [A-Z]", err.decode(errors="replace"))
    return None, said[-1] if said else "?"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folders", nargs="+", type=pathlib.Path)
    arguments.add_argument("--binary", default="target/release/lectern")
    arguments.add_argument("--runs", type=int, default=3)
    given = arguments.parse_args()
    files = sorted(
        path
        for folder in given.folders
        for path in ([folder] if folder.is_file() else folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".gold.txt")
    )
    other = shutil.which("pdftotext")
    scores = []
    print(f"{'file':<28} {'ms':>7} {'MB/s':>7} {'p./s':>6} {'MiB':>5} {'F1':>6} {'pdftotext ms':>12}  outcome")
    for path in files:
        kind = TYPES.get(path.suffix.lower(), "TXT")
        out, err, seconds, memory = run([given.binary, "parse", "--type", kind, os.fspath(path)], given.runs)
        preview, said = outcome(out, err)
        speed = path.stat().st_size / seconds / 1e6
        pages = f"{preview['pages'] / seconds:.0f}" if preview and preview["pages"] else ""
        gold = path.with_name(path.stem + ".gold.txt")
        score = ""
        if gold.exists():
            scores.append(f1(preview["text"] if preview else "", gold.read_text()))
            score = f"{scores[-1]:.3f}"
        theirs = ""
        if other and path.suffix.lower() == ".pdf":
            _, _, their_seconds, _ = run([other, os.fspath(path), "-"], given.runs)
            theirs = f"{their_seconds * 1e3:.0f}"
        print(
            f"{path.name:<28} {seconds * 1e3:>7.0f} {speed:>7.2f} {pages:>6} {memory:>5.0f} {score:>6} {theirs:>12}  {said}"
        )
    if scores:
        print(f"\nF1 on average: {sum(scores) / len(scores):.3f} over {len(scores)} files")


if __name__ == "__main__":
    main()
