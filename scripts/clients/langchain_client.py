"""LangChain over both interfaces. Only Responses carry citations there."""

import os

from checks import AGENT, QUESTION, check, check_answer, check_place, done
from langchain_openai import ChatOpenAI

at = {"model": AGENT, "base_url": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}


def text_of(message):
    return "".join(block["text"] for block in message.content_blocks if block["type"] == "text")


def citations_of(message):
    blocks = [block for block in message.content_blocks if block["type"] == "text"]
    return [note for block in blocks for note in block.get("annotations", []) if note["type"] == "citation"]


chat = ChatOpenAI(**at, max_retries=0)
answer = chat.invoke([("system", "Answer in one sentence."), ("human", QUESTION)])
check_answer(answer.content)
# An agent without a model uses none.
check(answer.usage_metadata["total_tokens"] >= 0, answer.usage_metadata)
streamed = "".join(chunk.content for chunk in chat.stream(QUESTION))
check(streamed == answer.content, f"{streamed!r} is not {answer.content!r}")

responses = ChatOpenAI(**at, max_retries=0, use_responses_api=True, include=["file_search_call.results"])
whole = responses.invoke(QUESTION)
check_answer(text_of(whole))
parts = None
for chunk in responses.stream(QUESTION):
    parts = chunk if parts is None else parts + chunk
check(text_of(parts) == text_of(whole), "streamed or not, it says the same")
for message in (whole, parts):
    linked = [note for note in citations_of(message) if note.get("url")]
    check(linked, f"no citation has a link: {message.content_blocks}")
    for note in linked:
        check_place(text_of(message), note["start_index"], note["end_index"])
        check(note["url"].startswith("http") and note["title"], note)
done(answer=answer.content, citations=len(citations_of(whole)))
