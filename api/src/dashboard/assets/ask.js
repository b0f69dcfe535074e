// Asking: the answer as it comes, its sources beside it, and a word on whether it helped.

import { UNREACHABLE, copyText, localiseTimes, send, wordsOf, write } from "./app.js";

const talk = document.querySelector("[data-talk]");
const form = talk.querySelector("[data-ask]");
const log = talk.querySelector("[data-log]");
const status = talk.querySelector("[data-status]");
// The page of a trace shows an answer, and has no form.
const stop = form?.querySelector("[data-stop]");
const ask = form?.querySelector("button:not([type=button])");
const box = form?.elements.question;
const session = form?.elements.session;
/** The service tells the conversation again, by its name in the address of the page. */
const isTold = talk.dataset.told !== undefined;
const BROKEN_OFF = { message: "The connection broke off before the answer was complete. Ask again." };
let running;
/** What is said of a question that was lost with the page. */
let unanswered;

/** The events of a stream, as they come. */
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      if (name) yield { name, data: JSON.parse(data.join("\n")) };
    }
  }
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function say(text) {
  status.textContent = text;
}

/** Keeps what was asked in sight, with its answer below it, for as long as nobody scrolls. */
function follow(asked, turn) {
  let at = scrollY;
  let follows = true;
  return () => {
    follows &&= Math.abs(scrollY - at) < 2;
    if (!follows) return;
    // A long question leaves no room for what is said to it.
    const first = asked.offsetHeight > innerHeight / 2 ? turn : asked;
    first.scrollIntoView({ block: "start" });
    at = scrollY;
  };
}

// --- what stays when the page is loaded anew ---

/** What the tab keeps with this page, of this reader: another one in the same tab is shown nothing of it. */
function kept() {
  const { state } = history;
  return state?.reader === talk.dataset.reader && state.path === location.pathname ? state : {};
}

function keep(changes) {
  const { reader } = talk.dataset;
  try {
    history.replaceState({ ...kept(), ...changes, reader, path: location.pathname }, "");
  } catch {
    // More than a browser keeps: it is lost when the page is loaded anew, as it was before.
  }
}

/** Keeps what was asked until it is answered, and then what the service does not tell again. */
function keepAnswered() {
  keep(isTold ? { asked: undefined } : { asked: undefined, log: log.innerHTML, session: session.value });
}

/** Keeps what the tab alone tells again as it is shown now. While a question is without its answer, only those before it are told. */
function keepShown() {
  if (form && !isTold && !kept().asked) keepAnswered();
}

/** The fields of what goes with each question. */
const values = () => [...form.elements].filter(({ name }) => name.startsWith("values."));

/** A question as it is compared with another one. */
const plain = (text) => text.replaceAll("\r\n", "\n").trim();

/** Goes on with the conversation that the page was left in. */
function takeUp() {
  const before = kept();
  if (isTold) {
    const address = new URL(location.href);
    address.searchParams.set("session", session.value);
    history.replaceState(history.state, "", address);
  } else if (before.log && !log.querySelector(".turn")) {
    log.innerHTML = before.log;
    session.value = before.session;
    form.querySelector("[data-anew]").hidden = false;
  }
  const questions = log.querySelectorAll(".question");
  const last = questions[questions.length - 1];
  const isShown = plain(last?.textContent ?? "") === plain(before.asked ?? "");
  if (before.asked && (!isShown || last.nextElementSibling.querySelector("[data-failed]"))) {
    box.value = before.asked;
    for (const input of values()) input.value = before.values?.[input.name] ?? input.value;
    // Whoever comes back to the page is given the fields as they left them, this one emptied, when all has loaded.
    addEventListener("pageshow", () => running || (box.value ||= before.asked), { once: true });
  }
  if (before.asked && !isShown) {
    unanswered = element("p", "note", "The page was loaded anew before this was answered. Your question is below: ask it again.");
    log.append(unanswered);
  }
  if (questions.length > 1) last.scrollIntoView({ block: "start" });
}

async function run() {
  const question = box.value.trim();
  // The browser says which value is missing that goes with the question.
  if (!question || running || !form.reportValidity()) return;
  running = new AbortController();
  const body = new URLSearchParams(new FormData(form));
  log.querySelector("[data-hints]")?.remove();
  form.querySelector("[data-anew]").hidden = false;
  keep({ asked: question, values: Object.fromEntries(values().map(({ name, value }) => [name, value])) });
  unanswered?.remove();
  const asked = log.appendChild(element("div", "question", question));
  asked.dir = "auto";
  // It is not known here, and is not that of the page.
  asked.lang = "";
  const turn = log.appendChild(element("div", "turn"));
  const show = follow(asked, turn);
  const doing = turn.appendChild(element("p", "note"));
  const answer = turn.appendChild(element("div", "answer plain"));
  answer.dir = "auto";
  answer.lang = "";
  box.value = "";
  stop.hidden = false;
  ask.disabled = true;
  show();
  say("The question is being answered.");
  try {
    const accept = { Accept: "text/event-stream, application/json" };
    const sent = fetch(form.dataset.stream, { method: "POST", body, headers: accept, signal: running.signal });
    const response = await sent.catch(() => {
      throw { message: UNREACHABLE };
    });
    if (!response.ok || !response.headers.get("Content-Type").startsWith("text/event-stream")) throw await problemOf(response);
    let announced;
    for await (const { name, data } of eventsOf(response)) {
      if (data.text) doing.textContent = data.text;
      else if (name === "token") answer.append(data.delta);
      else if (name === "error") throw data;
      else if (name === "end") {
        announced = data.said;
        turn.innerHTML = data.html;
        localiseTimes(turn);
      }
      show();
    }
    if (!announced) throw BROKEN_OFF;
    say(announced);
    keepAnswered();
  } catch (error) {
    doing.remove();
    if (running.signal.aborted) {
      turn.append(element("p", "note", "Stopped."));
      say("Stopped.");
      keep({ asked: undefined });
    } else {
      const problem = turn.appendChild(element("div", "problem"));
      // What the browser itself says of a stream that breaks off is no help to whoever asked.
      const told = error instanceof Error ? BROKEN_OFF : error;
      const tell = (words) => write(problem.appendChild(element("p", "")), words);
      // What is wrong with each field stands right here.
      if (!told.fields?.length) tell(wordsOf(told) ?? "The question could not be answered. Ask again.");
      for (const { path, message } of told.fields ?? []) tell(`${labelOf(path)} ${message}`);
      if (!box.value) box.value = question;
      say(problem.textContent);
    }
  }
  running = undefined;
  stop.hidden = true;
  ask.disabled = false;
  show();
  // What is read next is the answer, which may be longer than the screen.
  if (document.activeElement === document.body || document.activeElement === stop) box.focus({ preventScroll: true });
}

/** What a field is called on the page; those that are not on it, as programs know them. */
function labelOf(name) {
  return form.elements.namedItem(name)?.labels?.[0]?.textContent ?? name;
}

async function problemOf(response) {
  try {
    return (await response.json()).error;
  } catch {
    return { message: `The service answers ${response.status}. Ask again.` };
  }
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
box?.addEventListener("keydown", (event) => {
  // The Enter that ends a conversion to kanji sends nothing. Safari tells it by the key's number alone.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  run();
});
stop?.addEventListener("click", () => running?.abort());
if (form) takeUp();
form?.querySelector("[data-anew]").addEventListener("click", (event) => {
  // A link to the page itself loads it anew, with what the tab keeps of it.
  if (!event.ctrlKey && !event.metaKey && !event.shiftKey) history.replaceState(null, "");
});

// --- sources ---

let opener;

function removeSource() {
  talk.querySelector(".source")?.remove();
  talk.classList.remove("with-source");
  opener?.setAttribute("aria-expanded", "false");
}

function closeSource() {
  removeSource();
  opener?.focus();
  opener = undefined;
}

async function openSource(link) {
  if (opener === link) {
    closeSource();
    return;
  }
  // The focus does not go back to the link before: the page would go there with it.
  removeSource();
  opener = link;
  link.setAttribute("aria-expanded", "true");
  const panel = element("aside", "source card");
  panel.setAttribute("aria-label", "The source");
  const close = element("button", "small", "Close");
  close.type = "button";
  close.addEventListener("click", closeSource);
  panel.append(close, element("p", "note", "Opening the source…"));
  talk.append(panel);
  talk.classList.add("with-source");
  close.focus();
  try {
    const response = await fetch(link.href);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const shown = page.querySelector("main");
    // Its links and pictures are named from its own folder.
    for (const [name, attribute] of [["a", "href"], ["img", "src"]]) {
      for (const named of shown.querySelectorAll(name)) {
        named.setAttribute(attribute, new URL(named.getAttribute(attribute), link.href));
      }
    }
    // The button has the focus here.
    for (const words of shown.querySelectorAll("[autofocus]")) words.autofocus = false;
    // The page as it looks comes first here, where people look for it.
    const picture = shown.querySelector("figure");
    if (picture) shown.querySelector(".text").before(picture);
    for (const heading of shown.querySelectorAll("h1")) {
      const smaller = element("h2", "", heading.textContent);
      smaller.dir = "auto";
      heading.replaceWith(smaller);
    }
    // The button stays where it is: it has the focus.
    panel.lastElementChild.remove();
    panel.append(...shown.childNodes);
    // In a long passage they may stand far down. A picture shows them itself.
    const marked = picture ? null : panel.querySelector("mark");
    if (marked) panel.scrollTop = marked.offsetTop - panel.clientHeight / 3;
    // Only now it is as high as it is. At once, as the focus went there: motion is too much for some people.
    if (panel.contains(document.activeElement)) panel.scrollIntoView({ block: "nearest" });
  } catch {
    panel.lastElementChild.textContent = "The source cannot be opened now. Try again.";
  }
}

talk.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-cite]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    openSource(link);
  }
  const hint = event.target.closest("[data-hint]");
  if (hint) {
    box.value = hint.textContent;
    run();
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const text = copy.closest("[data-answer]").querySelector("[data-copied]").value;
    const isCopied = await copyText(text);
    say(isCopied ? "The answer and its sources are copied." : "The browser did not let them be copied.");
    copy.textContent = isCopied ? "Copied" : "Not copied";
  }
});

talk.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && opener) closeSource();
});

// --- feedback ---

/** Whoever has said only yes or no can still say why, which is kept with it. */
function askWhy(feedback, { name, value }) {
  const more = feedback.querySelector("details");
  feedback.replaceChildren(more);
  feedback.classList.remove("row");
  const rating = feedback.appendChild(element("input"));
  Object.assign(rating, { type: "hidden", name, value });
  more.append(element("button", "small", "Send"));
  more.open = value === "-1";
  feedback.elements.text.required = true;
  feedback.dataset.rated = "";
}

talk.addEventListener("submit", async (event) => {
  const feedback = event.target.closest("[data-feedback]");
  if (!feedback) return;
  event.preventDefault();
  const sent = await send(feedback, event.submitter);
  if (!sent) return;
  const { error } = sent;
  feedback.querySelector(".wrong")?.remove();
  const text = error ? wordsOf(error) : "Thank you. Your feedback is kept with the answer.";
  const told = element("p", error ? "wrong" : "note", text);
  told.tabIndex = -1;
  if (error) {
    feedback.append(told);
  } else if (feedback.dataset.rated === undefined && !feedback.elements.text.value.trim()) {
    askWhy(feedback, event.submitter);
    feedback.prepend(told);
  } else {
    feedback.replaceWith(told);
  }
  if (!error) keepShown();
  told.focus();
  // Above the form for the next question, whole.
  if (feedback.isConnected) feedback.scrollIntoView({ block: "nearest" });
  say(text);
});
