"""OpenAI's SDK for Python: files and vector stores, from an upload to a search in it, and all away again."""

import openai
from checks import check, done

client = openai.OpenAI(max_retries=0)
HARBOUR = b"The zephyrine beacon of the harbour is lit at dusk."
CELLAR = b"Bicycles belong in the cellar of the lighthouse."


def uploaded(name, data):
    made = client.files.create(file=(name, data), purpose="assistants")
    check((made.filename, made.bytes, made.object) == (name, len(data), "file"), made)
    check(client.files.content(made.id).read() == data, "a file comes back as it was")
    return made.id


def found(store, query, filters=openai.omit):
    page = client.vector_stores.search(store, query=query, filters=filters, max_num_results=5)
    for hit in page.data:
        check(hit.content[0].text and hit.filename, hit)
    return {hit.file_id for hit in page.data}


def comparison(kind, key, value):
    return {"type": kind, "key": key, "value": value}


store = client.vector_stores.create(name="Lighthouse", metadata={"season": "spring"})
check(store.name == "Lighthouse" and store.metadata == {"season": "spring"}, store)
harbour, cellar = uploaded("harbour.txt", HARBOUR), uploaded("cellar.txt", CELLAR)

batch = client.vector_stores.file_batches.create_and_poll(
    store.id, files=[{"file_id": harbour, "attributes": {"kind": "sea", "year": 2026}}, {"file_id": cellar}]
)
check(batch.status == "completed" and batch.file_counts.completed == 2, batch)
listed = client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id)
check({file.id for file in listed} == {harbour, cellar}, "a batch knows its files")

third = client.vector_stores.files.upload_and_poll(
    vector_store_id=store.id, file=("attic.txt", b"The attic of the lighthouse is locked.")
)
check(third.status == "completed" and third.last_error is None, third)
changed = client.vector_stores.files.update(cellar, vector_store_id=store.id, attributes={"kind": "land", "year": 2024})
check(changed.attributes == {"kind": "land", "year": 2024}, changed)
client.files.wait_for_processing(cellar, poll_interval=0.2)
client.vector_stores.files.poll(cellar, vector_store_id=store.id)
text = client.vector_stores.files.content(cellar, vector_store_id=store.id).data
check("".join(part.text for part in text) == CELLAR.decode(), text)

check(found(store.id, "zephyrine beacon") >= {harbour}, "a search finds")
everything = "harbour beacon cellar bicycles attic lighthouse"
check(found(store.id, everything) == {harbour, cellar, third.id}, "without a filter")
check(found(store.id, everything, comparison("eq", "kind", "land")) == {cellar}, "eq")
recent = comparison("gte", "year", 2025)
check(found(store.id, everything, recent) == {harbour}, "gte")
both = {"type": "or", "filters": [recent, comparison("in", "kind", ["land"])]}
check(found(store.id, everything, both) == {harbour, cellar}, "or")
neither = {"type": "and", "filters": [recent, comparison("eq", "kind", "land")]}
check(found(store.id, everything, neither) == set(), "and")

store = client.vector_stores.retrieve(store.id)
check(store.status == "completed" and store.file_counts.total == 3, store)
check(client.vector_stores.update(store.id, name="Tower").name == "Tower", "a name can be changed")
check({file.id for file in client.vector_stores.files.list(store.id, limit=1)} >= {harbour}, "pages follow each other")
check(client.vector_stores.files.delete(third.id, vector_store_id=store.id).deleted, "a file is taken out")
check(client.vector_stores.retrieve(store.id).file_counts.total == 2, "it is taken out")
check(client.vector_stores.delete(store.id).deleted, "a vector store is deleted")
for gone in (harbour, cellar, third.id):
    check(client.files.delete(gone).deleted, "a file is deleted, wherever it was")
check(not {file.id for file in client.files.list()} & {harbour, cellar, third.id}, "nothing is left")
for ask in (lambda: client.vector_stores.retrieve(store.id), lambda: client.files.retrieve(harbour)):
    try:
        ask()
    except openai.NotFoundError:
        continue
    raise SystemExit("wrong: what is deleted is gone")
done()
