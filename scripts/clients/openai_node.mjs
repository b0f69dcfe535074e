// OpenAI's SDK for JavaScript: models, chat completions, Responses, files and vector stores.
//
// Where the service is, and the key, come from OPENAI_BASE_URL and OPENAI_API_KEY, which the SDK reads by itself.

import OpenAI, { toFile } from "openai";
import { AGENT, QUESTION, check, checkAnswer, checkPlace, done } from "./checks.mjs";

const client = new OpenAI({ maxRetries: 0 });
const messages = [{ role: "user", content: QUESTION }];

function checkAnnotations(text, annotations) {
  check(annotations?.length > 0, "there are annotations");
  for (const { type, url_citation: cited, lectern } of annotations) {
    check(type === "url_citation" && cited.title && lectern.n > 0, type);
    checkPlace(text, cited.start_index, cited.end_index);
    check(cited.url.startsWith("http"), cited.url);
  }
  return annotations.length;
}

async function models() {
  const listed = [];
  for await (const model of client.models.list()) listed.push(model.id);
  check(listed.includes(AGENT), `${AGENT} is not among ${listed}`);
  check((await client.models.retrieve(AGENT)).id === AGENT, "a model is found by its id");
}

async function chat() {
  const completion = await client.chat.completions.create({ model: AGENT, messages });
  const { message, finish_reason: reason } = completion.choices[0];
  checkAnswer(message.content);
  check(reason === "stop" && completion.usage.total_tokens >= 0, reason);
  check(completion._request_id, "an answer says which request it was");
  checkAnnotations(message.content, message.annotations);
  return message.content;
}

async function streamedChat(whole) {
  const options = { stream: true, stream_options: { include_usage: true } };
  let [text, times, usage] = ["", 0, null];
  for await (const chunk of await client.chat.completions.create({ model: AGENT, messages, ...options })) {
    const delta = chunk.choices[0]?.delta;
    text += delta?.content ?? "";
    usage = chunk.usage ?? usage;
    if (delta?.annotations) {
      times += 1;
      checkAnnotations(text, delta.annotations);
    }
  }
  check(text === whole, `${text} is not ${whole}`);
  check(times === 1 && usage.total_tokens >= 0, "annotations come once, and usage at the end");
  const final = await client.chat.completions.stream({ model: AGENT, messages }).finalChatCompletion();
  check(final.choices[0].message.content === whole, "the SDK's own stream says the same");
  return checkAnnotations(whole, final.choices[0].message.annotations);
}

function checkResponse(response) {
  check(response.status === "completed", response.status);
  const text = response.output_text;
  checkAnswer(text);
  const found = new Set();
  for (const annotation of response.output.at(-1).content[0].annotations) {
    found.add(annotation.type);
    if (annotation.type === "url_citation") {
      checkPlace(text, annotation.start_index, annotation.end_index);
    } else {
      check(Array.from(text)[annotation.index] === "[", `${annotation.index} is no marker's place`);
    }
  }
  check(found.has("url_citation") && found.has("file_citation"), [...found].join());
  return text;
}

async function responses() {
  const include = ["file_search_call.results"];
  const response = await client.responses.create({ model: AGENT, input: QUESTION, include });
  const whole = checkResponse(response);
  const searches = response.output.filter((item) => item.type === "file_search_call");
  check(searches.some((search) => search.results.some((result) => result.text && result.file_id)), "results");
  let [text, first, last] = ["", null, null];
  for await (const event of await client.responses.create({ model: AGENT, input: QUESTION, stream: true })) {
    first ??= event;
    last = event;
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  check(first.type === "response.created" && last.type === "response.completed", `${first.type}, ${last.type}`);
  check(text === whole, `${text} is not ${whole}`);
  const final = await client.responses.stream({ model: AGENT, input: QUESTION }).finalResponse();
  check(checkResponse({ ...final, output_text: final.output_text }) === whole, "the SDK's own stream says the same");
}

async function files() {
  const store = await client.vectorStores.create({ name: "Lighthouse" });
  const upload = await toFile(Buffer.from("The zephyrine beacon is lit at dusk."), "beacon.txt");
  const file = await client.files.create({ file: upload, purpose: "assistants" });
  const other = await toFile(Buffer.from("The zephyrine lamp is blue."), "lamp.txt");
  const lamp = await client.vectorStores.files.uploadAndPoll(store.id, other);
  check(lamp.status === "completed", lamp.status);
  const batch = await client.vectorStores.fileBatches.createAndPoll(store.id, {
    file_ids: [file.id],
    attributes: { kind: "sea" },
  });
  check(batch.status === "completed" && batch.file_counts.completed === 1, batch.status);
  check((await (await client.files.content(file.id)).text()).includes("beacon"), "a file comes back");
  const found = async (filters) => {
    const page = await client.vectorStores.search(store.id, { query: "zephyrine", filters });
    return page.data.map((hit) => hit.file_id).sort().join();
  };
  check((await found()) === [file.id, lamp.id].sort().join(), "a search finds");
  check((await found({ type: "eq", key: "kind", value: "sea" })) === file.id, "a filter leaves one");
  check((await found({ type: "ne", key: "kind", value: "sea" })) === lamp.id, "and the other");
  check((await client.vectorStores.delete(store.id)).deleted, "a vector store is deleted");
  for (const id of [file.id, lamp.id]) check((await client.files.delete(id)).deleted, "a file is deleted");
}

async function refused(kind, ask) {
  const error = await ask().then(() => null, (error) => error);
  check(error instanceof kind, `${error} is no ${kind.name}`);
  check(error.requestID && error.message, "an error says which request it was");
}

async function errors() {
  const stranger = new OpenAI({ apiKey: "sk-nobody", maxRetries: 0 });
  await refused(OpenAI.AuthenticationError, () => stranger.models.list());
  const ask = (body) => () => client.chat.completions.create({ model: AGENT, messages, ...body });
  await refused(OpenAI.NotFoundError, ask({ model: "no such agent" }));
  await refused(OpenAI.BadRequestError, ask({ messages: [] }));
  await refused(OpenAI.BadRequestError, ask({ n: 2 }));
  const limited = new OpenAI({ apiKey: process.env.LECTERN_LIMITED_KEY, maxRetries: 0 });
  await limited.models.list();
  await refused(OpenAI.RateLimitError, () => limited.models.list());
}

await models();
const answer = await chat();
const annotations = await streamedChat(answer);
await responses();
await files();
await errors();
done({ answer, annotations });
