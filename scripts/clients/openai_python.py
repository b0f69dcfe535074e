"""OpenAI's SDK for Python: models, chat completions, Responses, and what it makes of errors.

Where the service is, and the key, come from OPENAI_BASE_URL and OPENAI_API_KEY, which the SDK reads by itself.
"""

import os

import openai
from checks import AGENT, QUESTION, check, check_answer, check_place, done

client = openai.OpenAI(max_retries=0)
MESSAGES = [{"role": "user", "content": QUESTION}]


def models():
    listed = [model.id for model in client.models.list()]
    check(AGENT in listed, f"{AGENT} is not among {listed}")
    check(client.models.retrieve(AGENT).id == AGENT, "a model is found by its id")


def check_annotations(text, annotations):
    check(annotations, "there are annotations")
    for annotation in annotations:
        check(annotation.type == "url_citation", annotation)
        cited = annotation.url_citation
        check_place(text, cited.start_index, cited.end_index)
        check(cited.url.startswith("http") and cited.title, cited)
        check(annotation.lectern["n"] > 0, "what the SDK does not know is still there")
    return len(annotations)


def chat():
    completion = client.chat.completions.create(model=AGENT, messages=MESSAGES)
    choice = completion.choices[0]
    check_answer(choice.message.content)
    check(choice.finish_reason == "stop", choice)
    usage = completion.usage
    check(usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage)
    check_annotations(choice.message.content, choice.message.annotations)
    return choice.message.content


def streamed_chat(whole):
    chunks = list(
        client.chat.completions.create(
            model=AGENT, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
    )
    check({chunk.id for chunk in chunks} == {chunks[0].id}, "one answer has one id")
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    text = "".join(delta.content or "" for delta in deltas)
    check(text == whole, f"{text!r} is not {whole!r}")
    check(chunks[-1].usage.total_tokens >= 0 and not chunks[-1].choices, chunks[-1])
    lists = [delta.annotations for delta in deltas if getattr(delta, "annotations", None)]
    check(len(lists) == 1, "annotations come once")
    for annotation in lists[0]:
        cited = annotation["url_citation"]
        check_place(text, cited["start_index"], cited["end_index"])


def gathered_chat(whole):
    with client.chat.completions.stream(model=AGENT, messages=MESSAGES) as stream:
        message = stream.get_final_completion().choices[0].message
    check(message.content == whole, f"{message.content!r} is not {whole!r}")
    return check_annotations(message.content, message.annotations)


def check_response(response):
    check(response.status == "completed", response.status)
    text = response.output_text
    check_answer(text)
    kinds = [item.type for item in response.output]
    check(kinds[-1] == "message" and "file_search_call" in kinds, kinds)
    found = set()
    for annotation in response.output[-1].content[0].annotations:
        found.add(annotation.type)
        if annotation.type == "url_citation":
            check_place(text, annotation.start_index, annotation.end_index)
            check(annotation.url.startswith("http"), annotation)
        else:
            check(annotation.file_id and annotation.filename, annotation)
            check(text[annotation.index] == "[", annotation)
    check(found == {"url_citation", "file_citation"}, found)
    return text


def results_of(response):
    return [item.results for item in response.output if item.type == "file_search_call"]


def responses():
    plain = client.responses.create(model=AGENT, input=QUESTION)
    check_response(plain)
    check(not any(results_of(plain)), "results come when they are asked for")
    asked = [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
    response = client.responses.create(model=AGENT, input=asked, include=["file_search_call.results"])
    text = check_response(response)
    results = [result for results in results_of(response) for result in results]
    check(results and all(result.file_id and result.text for result in results), results)
    return text


def streamed_responses(whole):
    events = list(client.responses.create(model=AGENT, input=QUESTION, stream=True))
    types = [event.type for event in events]
    check(types[0] == "response.created" and types[-1] == "response.completed", types)
    numbers = [event.sequence_number for event in events]
    check(numbers == sorted(set(numbers)), numbers)
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    check(text == whole, f"{text!r} is not {whole!r}")
    check_response(events[-1].response)
    added = [event.annotation for event in events if event.type == "response.output_text.annotation.added"]
    final = events[-1].response.output[-1].content[0].annotations
    check(len(added) == len(final), f"{len(added)} annotations were added, {len(final)} are there")
    with client.responses.stream(model=AGENT, input=QUESTION) as stream:
        check(check_response(stream.get_final_response()) == whole, "the SDK's own stream says the same")


def history():
    turns = [
        {"role": "system", "content": "Answer in one sentence."},
        {"role": "user", "content": "Good morning."},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": "Good morning. What would you like to know?"},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    check_answer(client.chat.completions.create(model=AGENT, messages=turns).choices[0].message.content)


def refused(kind, status, ask):
    try:
        ask()
    except openai.APIStatusError as error:
        check(type(error) is kind and error.status_code == status, f"{type(error)}: {error}")
        check(error.request_id and error.message, "an error says which request it was, and what is wrong")
        return error
    raise SystemExit(f"wrong: this is refused with {status}")


def errors():
    stranger = client.with_options(api_key="sk-nobody")
    refused(openai.AuthenticationError, 401, stranger.models.list)
    unknown = refused(
        openai.NotFoundError,
        404,
        lambda: client.chat.completions.create(model="no such agent", messages=MESSAGES),
    )
    check(unknown.code == "model_not_found" and unknown.param == "model", unknown.body)
    refused(openai.NotFoundError, 404, lambda: client.models.retrieve("no such agent"))
    image = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    for wrong in [{"messages": []}, {"messages": MESSAGES, "n": 2}, {"messages": [{"role": "user", "content": image}]}]:
        error = refused(
            openai.BadRequestError, 400, lambda wrong=wrong: client.chat.completions.create(model=AGENT, **wrong)
        )
        check(error.type == "invalid_request_error" and error.param, error.body)
    refused(
        openai.BadRequestError,
        400,
        lambda: client.responses.create(model=AGENT, input=QUESTION, previous_response_id="resp_1"),
    )
    limited = client.with_options(api_key=os.environ["LECTERN_LIMITED_KEY"])
    limited.models.list()
    error = refused(openai.RateLimitError, 429, limited.models.list)
    check(int(error.response.headers["retry-after"]) > 0, error.response.headers)


models()
answer = chat()
streamed_chat(answer)
annotations = gathered_chat(answer)
streamed_responses(responses())
history()
errors()
done(answer=answer, annotations=annotations)
