"""What the clients of Python have in common: where the service is, and what a citation has to be."""

import json
import os
import re

AGENT = os.environ["LECTERN_AGENT"]
QUESTION = os.environ["LECTERN_QUESTION"]
# Words that stand in the document, and so in the answer.
FACT = os.environ["LECTERN_FACT"]

MARKER = re.compile(r"\[[0-9]+(, ?[0-9]+)*\]")


def check(holds, what):
    """Unlike `assert`, also where Python runs with -O."""
    if not holds:
        raise SystemExit(f"wrong: {what}")


def check_answer(text):
    check(FACT in text, f"the answer does not say {FACT!r}: {text!r}")
    check(MARKER.search(text), f"the answer cites nothing: {text!r}")


def check_place(text, start, end):
    """Python counts code points, as the service does."""
    check(MARKER.fullmatch(text[start:end]), f"{start}..{end} is no marker but {text[start:end]!r} of {text!r}")


def done(**facts):
    print(json.dumps({"ok": True, **facts}))
