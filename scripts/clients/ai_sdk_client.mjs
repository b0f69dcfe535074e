// The AI SDK with its provider for OpenAI, over both interfaces.

import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";
import { AGENT, QUESTION, check, checkAnswer, done } from "./checks.mjs";

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const system = "Answer in one sentence.";

function checkSources(sources) {
  const linked = sources.filter((source) => source.sourceType === "url");
  check(linked.length > 0, `no source has a link: ${JSON.stringify(sources)}`);
  for (const source of linked) check(source.url.startsWith("http") && source.title, source.url);
  return linked.length;
}

let sources = 0;
for (const model of [openai.chat(AGENT), openai.responses(AGENT)]) {
  const whole = await generateText({ model, system, prompt: QUESTION, maxRetries: 0 });
  checkAnswer(whole.text);
  check(whole.finishReason === "stop", whole.finishReason);
  sources += checkSources(whole.sources);

  const failures = [];
  const onError = ({ error }) => failures.push(error);
  const streaming = streamText({ model, system, prompt: QUESTION, maxRetries: 0, onError });
  let text = "";
  for await (const piece of streaming.textStream) text += piece;
  check(failures.length === 0, failures.join());
  check(text === whole.text, `${text} is not ${whole.text}`);
  checkSources(await streaming.sources);
  check((await streaming.usage).totalTokens === whole.usage.totalTokens, "usage is told");

  // Over Responses the first answer goes back as a reference to it: the SDK has the service store it, unless it is told not to.
  const asked = { role: "user", content: QUESTION };
  const messages = [asked, ...whole.response.messages, asked];
  const again = await generateText({ model, system, messages, maxRetries: 0 });
  checkAnswer(again.text);
  if (model.provider.endsWith(".responses")) {
    const sent = again.request.body;
    const references = (typeof sent === "string" ? JSON.parse(sent) : sent).input.filter((item) => item.type === "item_reference");
    check(references.length > 0, `no answer is referred to: ${JSON.stringify(sent)}`);
  }
}
done({ sources });
