"""LlamaIndex, by its class for services that speak as OpenAI's does, over both interfaces."""

import os

from checks import AGENT, QUESTION, check, check_answer, check_place, done
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses

at = {"model": AGENT, "api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
messages = [ChatMessage(role="system", content="Answer in one sentence."), ChatMessage(role="user", content=QUESTION)]

chat = OpenAILike(**at, is_chat_model=True, max_retries=0)
answer = chat.chat(messages).message.content
check_answer(answer)
streamed = "".join(part.delta or "" for part in chat.stream_chat(messages))
check(streamed == answer, f"{streamed!r} is not {answer!r}")
check_answer(chat.complete(QUESTION).text)

responses = OpenAILikeResponses(**at, max_retries=0)
whole = responses.chat(messages)
text = whole.message.content
check_answer(text)
linked = [note for note in whole.additional_kwargs["annotations"] if note.type == "url_citation"]
check(linked, "no citation has a link")
for note in linked:
    check_place(text, note.start_index, note.end_index)
done(answer=answer, citations=len(linked))
