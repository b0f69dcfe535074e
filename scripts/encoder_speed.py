#!/usr/bin/env python3
"""Compares the local encoder's speed with sentence-transformers, one thread each, on the same texts and the same machine.

    python3 -m venv venv
    venv/bin/pip install torch --index-url https://download.pytorch.org/whl/cpu
    venv/bin/pip install sentence-transformers
    venv/bin/python scripts/encoder_speed.py MODEL_FOLDER

MODEL_FOLDER holds a model's published files (`lectern model pull` fetches one). The two take turns, so that whatever else the
machine does meets both; the best time of each counts, because everything else on a machine can only slow a program down.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Before any library reads them.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

REPOSITORY = Path(__file__).resolve().parent.parent
SENTENCE = "the harbour master records the arrival of every vessel, its cargo and the name of its captain in a book"
QUESTION = "When does the harbour master record the arrival of a vessel?"


def passages(tokenizer, count, tokens):
    """Texts of exactly so many tokens, those that the model adds counted."""
    texts = []
    for number in range(count):
        words = (f"section {number} : " + f"{SENTENCE} , ".lower() * 40).split()
        while len(tokenizer(" ".join(words))["input_ids"]) > tokens:
            words.pop()
        texts.append(" ".join(words))
    return texts


def ours(folder, texts_file):
    command = ["cargo", "bench", "--quiet", "-p", "lectern-embed", "--bench", "encoder", "--", str(folder), texts_file]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def timed(work):
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def theirs(model, texts):
    def encode(batch_size):
        return timed(lambda: model.encode(texts, batch_size=batch_size, show_progress_bar=False)) / len(texts)

    # Its best batch size counts.
    passage = min(encode(batch_size) for batch_size in (1, 4, 16, 32))
    question = min(timed(lambda: model.encode(QUESTION, show_progress_bar=False)) for _ in range(20))
    return passage, question


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=194)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    model = SentenceTransformer(str(arguments.folder.resolve()), device="cpu")
    texts = passages(model.tokenizer, arguments.texts, arguments.tokens)
    best = {"ours": [float("inf")] * 2, "theirs": [float("inf")] * 2}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(texts, file)
        file.flush()
        ours(arguments.folder.resolve(), file.name)  # builds it
        theirs(model, texts[:4])
        for _ in range(arguments.rounds):
            mine = ours(arguments.folder.resolve(), file.name)
            turn = {"ours": (mine["passage_ms"]["best"], mine["question_ms"]["best"]), "theirs": theirs(model, texts)}
            for side, times in turn.items():
                best[side] = [min(pair) for pair in zip(best[side], times)]

    load = os.getloadavg()[0]
    print(f"{arguments.texts} passages of {arguments.tokens} tokens, one thread each, load of the machine {load:.1f}")
    print(f"{'':24}{'passage':>12}{'question':>12}")
    print(f"{'Lectern':24}{best['ours'][0]:9.2f} ms{best['ours'][1]:9.2f} ms")
    name = f"torch {torch.__version__.split('+')[0]}"
    print(f"{'sentence-transformers':24}{best['theirs'][0]:9.2f} ms{best['theirs'][1]:9.2f} ms   ({name})")
    ratio = [theirs / ours for ours, theirs in zip(best["ours"], best["theirs"])]
    print(f"{'times as fast':24}{ratio[0]:12.2f}{ratio[1]:12.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
