// What scripts add to every page: forms that keep what was written, lists that follow what changes, and times as the reader has them.

const JSON_TYPE = "application/json";

document.documentElement.classList.add("scripted");

/** What is said where a browser would say it in words of its own. */
export const UNREACHABLE = "The service cannot be reached. What you wrote is still here; try again.";

/** The forms that are on their way. */
const sending = new WeakSet();

/**
 * Sends a form, and gives the answer as JSON. Never throws: what fails is told in `error`. Nothing is sent, and nothing given, while the
 * form is on its way.
 */
export async function send(form, submitter) {
  if (sending.has(form)) return undefined;
  sending.add(form);
  form.setAttribute("aria-busy", "true");
  const sent = await sendNow(form, submitter);
  sending.delete(form);
  form.removeAttribute("aria-busy");
  return sent;
}

async function sendNow(form, submitter) {
  const filled = new FormData(form, submitter);
  // A file goes as it is; what was written, as a browser sends it.
  const body = form.enctype === "multipart/form-data" ? filled : new URLSearchParams(filled);
  try {
    const response = await fetch(form.action, { method: "POST", body, headers: { Accept: JSON_TYPE } });
    const isJson = (response.headers.get("Content-Type") ?? "").startsWith(JSON_TYPE);
    const answer = isJson ? await response.json() : {};
    if (response.ok) return { answer, url: response.url };
    return { error: answer.error ?? { message: "That did not work. Try again." }, data: answer.data, url: response.url };
  } catch {
    return { error: { message: UNREACHABLE } };
  }
}

/** What is said of a failure: its own message is for programs where it names fields, which stand below here. */
export function wordsOf(error) {
  return error.fields?.length ? "Some fields need another value; see below." : error.message;
}

/** Writes words into an element. What stands between backticks is code. */
export function write(element, words) {
  for (const [at, piece] of words.split(/`([^`]*)`/).entries()) {
    if (at % 2) element.appendChild(document.createElement("code")).textContent = piece;
    else element.append(piece);
  }
}

/** The inputs of a field, those that are hidden only where it has no other. */
function inputsOf(form, path) {
  const all = [...form.elements].filter((input) => input.name.split(":")[0] === path);
  const visible = all.filter((input) => input.type !== "hidden");
  return visible.length ? visible : all;
}

/** What stands in a field, to tell whether it is still the same. */
function standingIn(form, path) {
  return JSON.stringify(inputsOf(form, path).map(({ checked, value }) => [checked, value]));
}

/** Writes into a field what it holds elsewhere, of which people know a choice by its name. */
function fillIn(form, { path, text }, name) {
  const inputs = inputsOf(form, path);
  // Numbers that the form only passes on have an input when there is one.
  if (!inputs.length) {
    const input = form.appendChild(document.createElement("input"));
    Object.assign(input, { type: "hidden", name: `${path}:number`, value: text });
  }
  for (const input of inputs) {
    if (input.type === "radio" || input.name.endsWith(":list")) input.checked = text.split("\n").includes(input.value);
    else if (input.type === "checkbox") input.checked = text === "yes";
    else {
      const isOffered = !input.options || [...input.options].some((option) => option.value === text);
      if (!isOffered) input.add(new Option(name, text));
      input.value = text;
    }
  }
}

function inputOf(form, name) {
  return [...form.elements].find((input) => input.type !== "hidden" && input.name.split(":")[0] === name);
}

/** What stands in a field with an item a line, as the service counts it. */
function itemsOf(input) {
  return input.value.split("\n").map((line) => line.trim()).filter(Boolean);
}

/**
 * Of what was changed meanwhile: lets whoever wrote something save it on top of that, or look at it beside. On top of it, what they
 * have not touched stays what it is now.
 */
function offerBoth(form, box, { seen, current, changed }) {
  for (const { label, now, kept } of changed) {
    const told = box.appendChild(document.createElement("p"));
    told.dir = "auto";
    if (kept) told.textContent = now ? `${label} stays as it is now: ${now}` : `${label} stays empty, as it is now.`;
    else told.textContent = now ? `${label} is now: ${now}` : `${label} is empty now.`;
  }
  const staying = changed.filter(({ kept }) => kept).map(({ kept, now }) => ({ kept, now, before: standingIn(form, kept.path) }));
  const row = box.appendChild(document.createElement("p"));
  row.className = "row";
  const save = row.appendChild(document.createElement("button"));
  Object.assign(save, { type: "button", textContent: "Save what I wrote on top of it" });
  save.addEventListener("click", () => {
    for (const { kept, now, before } of staying) {
      // What was written there since is meant.
      if (standingIn(form, kept.path) === before) fillIn(form, kept, now);
    }
    form.elements.seen.value = seen;
    form.requestSubmit();
  });
  const look = row.appendChild(document.createElement("a"));
  // Beside this page, which has what was written.
  Object.assign(look, { href: current, target: "_blank", rel: "noopener", className: "button" });
  look.textContent = "Look at what is there now";
}

/** Shows what is wrong with a form, at its head and at each input. */
function showProblem(form, error, changed) {
  clearProblem(form);
  // What was done before is not said beside what has failed since. What is shown once stands in other elements, and stays.
  document.querySelector('main > p.notice[role="status"]')?.remove();
  const box = document.createElement("div");
  box.className = "problem";
  box.setAttribute("role", "alert");
  const said = box.appendChild(document.createElement("p"));
  write(said, wordsOf(error));
  if (changed) offerBoth(form, box, changed);
  let first;
  for (const { path, message } of error.fields ?? []) {
    const [list, at] = path.split(/\.(\d+)(?:\.|$)/);
    const [whole, ...inner] = path.split(".");
    const own = inputOf(form, path) ?? inputOf(form, list);
    // What stands inside of what one field has as a whole, such as a key of its JSON.
    const input = own ?? inputOf(form, whole);
    if (!input) {
      write(box.appendChild(document.createElement("p")), `${path} ${message}`);
      continue;
    }
    first ??= input;
    const item = /:(given-)?lines$/.test(input.name) && at ? itemsOf(input)[at] : undefined;
    const told = own ? message : `\`${inner.join(".")}\` ${message}`;
    const words = item ? `“${item}” ${message}` : told;
    if (input.hasAttribute("aria-errormessage")) {
      const before = document.getElementById(input.getAttribute("aria-errormessage"));
      before.append(document.createElement("br"));
      write(before, words);
      continue;
    }
    const wrong = document.createElement("p");
    wrong.className = "wrong";
    wrong.id = `${input.id || list}-wrong`;
    write(wrong, words);
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-errormessage", wrong.id);
    (input.closest(".check") ?? input).after(wrong);
    const folded = input.closest("details");
    if (folded) folded.open = true;
  }
  form.prepend(box);
  if (first) first.focus();
  else {
    box.tabIndex = -1;
    box.focus();
  }
}

function clearProblem(form) {
  for (const old of form.querySelectorAll(".problem, .wrong")) old.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-errormessage");
  }
}

/** Whether a form that does something with what is selected has nothing to do it with. */
function isUnselected(form) {
  const selected = 'input[name="ids:list"]:checked, input[name="all:boolean"]:checked';
  return Boolean(form?.matches("[data-bulk]")) && !form.querySelector(selected);
}

/** What a button asks: its own question, or how many of the list are meant. */
function questionOf({ dataset, form, value }) {
  if (!dataset.confirmAll) return value;
  const { confirm: some, confirmOne: one, confirmAll: all } = dataset;
  if (form.querySelector('input[name="all:boolean"]').checked) {
    return all.replace("#", () => document.querySelector("[data-total]").textContent);
  }
  const count = form.querySelectorAll('input[name="ids:list"]:checked').length;
  return count === 1 ? one : some.replace("#", count);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-confirm]");
  if (!button || isUnselected(button.form)) return;
  if (!confirm(questionOf(button))) return event.preventDefault();
  // Forms without it lead to a page that asks.
  const { form } = button;
  if (form.querySelector('input[name="confirmed"]')) return;
  const confirmed = form.appendChild(document.createElement("input"));
  Object.assign(confirmed, { type: "hidden", name: "confirmed", value: "yes" });
});

document.addEventListener("submit", (event) => {
  if (!isUnselected(event.target)) return;
  event.preventDefault();
  showProblem(event.target, { message: "Select at least one document, or all that match." });
});

document.addEventListener("submit", async (event) => {
  const form = event.target;
  // What shows a page and changes nothing is sent by the browser itself.
  if (!form.matches("[data-form]") || event.defaultPrevented || event.submitter?.hasAttribute("formaction")) return;
  event.preventDefault();
  const sent = await send(form, event.submitter);
  if (!sent) return;
  const { answer, url, error, data } = sent;
  if (error?.code === "changed_meanwhile") showProblem(form, error, { ...data, current: new URL(data.current, url) });
  else if (error) showProblem(form, error);
  // It is answered with a page that shows something once: sent again under its nonce it makes nothing more, and the browser opens it.
  else if (!answer.next) form.submit();
  else {
    const next = new URL(answer.next, url);
    location.assign(next);
    // Only the hash differs: nothing would be loaded.
    if (next.href.split("#")[0] === location.href.split("#")[0]) location.reload();
  }
});

// --- what changes by itself ---

/** What the service said last of each part that is marked as live. */
const shown = new WeakMap();

/** What finds an element again where it was written anew; nothing for one without a name, a value or an address. */
function sameAs(element) {
  const named = ["id", "value", "href"].find((attribute) => element.getAttribute(attribute));
  return named && `${element.localName}[${named}="${CSS.escape(element.getAttribute(named))}"]`;
}

/** Takes over what has changed of the parts that are marked as live, without losing what is selected, open or in focus. */
function takeOver(fresh) {
  let busy = false;
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (!other) continue;
    busy ||= Number(other.dataset.live) < 5;
    if (shown.get(part) === other.innerHTML) continue;
    const active = part.contains(document.activeElement) ? document.activeElement : null;
    if (active?.matches("input:not([type=checkbox]), textarea, select")) continue;
    const checked = [...part.querySelectorAll("input:checked")].map((input) => input.value);
    const open = [...part.querySelectorAll("details[open]")].map(sameAs).filter(Boolean);
    shown.set(part, other.innerHTML);
    const same = active && sameAs(active);
    part.innerHTML = other.innerHTML;
    for (const details of open.flatMap((css) => [...part.querySelectorAll(css)])) details.open = true;
    for (const input of part.querySelectorAll("input[type=checkbox]")) {
      if (checked.includes(input.value)) input.checked = true;
    }
    // Whoever has scrolled on meanwhile stays where they are.
    if (active) ((same && part.querySelector(same)) || document.getElementById("main")).focus({ preventScroll: true });
    localiseTimes(part);
  }
  return busy ? 2 : 5;
}

/** Opens the page anew, by GET: a reload would send the form again that it may be the answer to. */
function openAnew() {
  location.replace(location.href.split("#")[0]);
}

async function follow() {
  const parts = [...document.querySelectorAll("[data-live]")];
  if (!parts.length) return;
  let seconds = Math.min(...parts.map((part) => Number(part.dataset.live)));
  for (;;) {
    await new Promise((done) => setTimeout(done, seconds * 1000));
    if (document.hidden) {
      await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
    }
    try {
      const response = await fetch(location.href, { headers: { Accept: "text/html" } });
      // What is said there is said once: asked for again, this page may be another workspace's already.
      if (response.redirected) return location.replace(response.url);
      if (response.status === 404) return openAnew();
      if (!response.ok) throw new Error(response.statusText);
      seconds = takeOver(new DOMParser().parseFromString(await response.text(), "text/html"));
    } catch {
      // Away for now: asked again, and less often.
      seconds = Math.min(seconds * 2, 60);
    }
  }
}

export function localiseTimes(part) {
  const minute = { dateStyle: "medium", timeStyle: "short" };
  for (const time of part.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.textContent = at.toLocaleString(document.documentElement.lang, time.dataset.day ? { dateStyle: "medium" } : minute);
    time.title = time.dateTime;
  }
}

// --- small things ---

/** Puts a text where it is pasted from, and tells whether that worked. The focus stays where it is. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS, and in some frames, browsers have no other way.
    const focused = document.activeElement;
    const area = document.body.appendChild(document.createElement("textarea"));
    area.className = "hidden-text";
    area.value = text;
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return isCopied;
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy-field]");
  if (!button) return;
  const field = button.parentElement.querySelector("input");
  const said = button.parentElement.querySelector('[role="status"]');
  // So that it is said again, too.
  said.textContent = "";
  if (await copyText(field.value)) {
    said.textContent = "Copied.";
    return;
  }
  said.textContent = "The browser did not let it be copied. It is selected: copy it yourself.";
  field.select();
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-select-all]")) return;
  for (const input of event.target.form.querySelectorAll('input[name="ids:list"]')) input.checked = event.target.checked;
});

const menu = document.querySelector(".menu");
if (menu) {
  const narrow = matchMedia("(max-width: 56rem)");
  const fit = () => (menu.open = !narrow.matches);
  narrow.addEventListener("change", fit);
  fit();
}

const continues = document.querySelector("[data-continues]");
if (continues) continues.submit();

/** Where an invitation waits while the browser is at a provider: it is a secret, so no address that a server sees names it. */
const INVITATION = "invitation";

document.addEventListener("click", (event) => {
  const isInvited = location.hash.startsWith("#/invitations/");
  if (isInvited && event.target.closest?.("[data-provider]")) sessionStorage.setItem(INVITATION, location.hash);
});

/** Why the provider of OpenID Connect signed nobody in, by the words in the address: the text is never the address's own. */
const SIGN_IN_PROBLEMS = {
  oidc_refused: "The provider did not let you in.",
  oidc_state: "That took too long, or began in another browser. Try again.",
  oidc_token: "What the provider answered cannot be believed. Try again, and tell the operator if it goes on.",
  oidc_unverified_email: "The provider has not verified your e-mail address.",
  oidc_email_taken: "The account with your e-mail address belongs to somebody else at the provider. Ask the operator.",
  oidc_away: "The provider cannot be reached now. Try again later.",
  sign_up_closed: "There is no account here for you. Ask the operator to make one.",
  unavailable: "The service is busy, or something that it needs is away. Try again later.",
  storage_full: "The service has no room left. Ask the operator.",
  outcome_unknown: "It is not known whether that worked. Try again.",
  conflict: "The same was done elsewhere at this moment. Try again.",
  internal: "Something broke in the service. Try again, and tell the operator if it goes on.",
};
const STILL_SIGNED_IN = "You are signed in as before.";

/** Says in a box why a sign-in did not work. */
function tellSignInProblem(box, code, more = "") {
  const words = Object.hasOwn(SIGN_IN_PROBLEMS, code) ? SIGN_IN_PROBLEMS[code] : "Signing in did not work. Try again.";
  box.firstElementChild.textContent = `${words} ${more}`.trim();
  box.hidden = false;
}

/** The box on a page of somebody who is signed in, which has none by itself. */
function signedInBox(main) {
  const box = document.createElement("div");
  box.className = "problem";
  box.setAttribute("role", "alert");
  box.dataset.signInProblem = "";
  box.append(document.createElement("p"));
  main.prepend(box);
  return box;
}

/** Says what an invitation is to, before it is accepted. */
async function tellInvitation(form) {
  const look = form.querySelector("[data-look]").formAction;
  try {
    const response = await fetch(look, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const told = page.querySelector("[data-invited]") ?? page.querySelector("main > p");
    const box = document.querySelector("[data-invited]");
    box.replaceChildren(...told.childNodes);
    localiseTimes(box);
    const named = page.querySelector("form button.main");
    if (response.ok && named) form.querySelector("button.main").textContent = named.textContent;
  } catch {
    // It can be accepted all the same.
  }
}

/** Says to those who are to sign in first that they are where their invitation led. */
function sayInvited() {
  if (document.getElementById("invited")) return;
  const told = document.createElement("p");
  Object.assign(told, { id: "invited", className: "notice neutral" });
  told.textContent = "You are invited to a workspace. Once you are signed in, you see to which, and can join it.";
  document.querySelector("main h1").after(told);
}

/** Links that other services give out name what they lead to behind `#/`, which no server and no log sees. */
function openHash() {
  const [path, query] = location.hash.slice(1).split("?");
  const named = new URLSearchParams(query);
  const [, kind, secret] = path.split("/");
  const root = new URL(document.querySelector('link[rel="stylesheet"]').href.replace(/assets\/style\.css$/, ""));
  if (kind === "invitations" && secret) {
    const input = document.querySelector("[data-invitation]");
    if (input) {
      input.value = decodeURIComponent(secret);
      sessionStorage.removeItem(INVITATION);
      tellInvitation(input.form);
    } else if (!document.querySelector('input[name="password"], [data-sign-in-code]')) {
      location.assign(new URL(`invitations${location.hash}`, root));
    } else {
      sayInvited();
      for (const next of document.querySelectorAll('input[name="next"]')) next.value = `invitations${location.hash}`;
      // Behind the hash there too: it is a secret, and would stand in logs as a part of the query.
      for (const link of document.querySelectorAll('main a[href*="?next="]')) link.hash = location.hash;
    }
  } else if (kind === "sign-in" && secret) {
    const form = document.querySelector("[data-sign-in-code]");
    // Home, of whoever was signed in already.
    if (!form) return location.replace(new URL(`sign-in${location.hash}`, root));
    form.elements.code.value = secret;
    const invitation = sessionStorage.getItem(INVITATION);
    sessionStorage.removeItem(INVITATION);
    form.elements.next.value = invitation ? `invitations${invitation}` : (named.get("return") ?? "").replace(/^\//, "");
    history.replaceState(null, "", location.pathname);
    form.submit();
  } else if (kind === "sign-in" && named.has("error")) {
    const box = document.querySelector("[data-sign-in-problem]");
    // Of those who are signed in, who stay where they are.
    const main = document.getElementById("main");
    if (main) return tellSignInProblem(box ?? signedInBox(main), named.get("error"), STILL_SIGNED_IN);
    if (!box) return location.replace(new URL(`sign-in${location.hash}`, root));
    tellSignInProblem(box, named.get("error"));
    // Whoever was invited is so still, and may try again or sign in otherwise.
    const invitation = sessionStorage.getItem(INVITATION);
    if (!invitation) return;
    history.replaceState(null, "", invitation);
    openHash();
  }
}

openHash();
addEventListener("hashchange", openHash);
// Before anything of them is written otherwise.
for (const part of document.querySelectorAll("[data-live]")) shown.set(part, part.innerHTML);
localiseTimes(document);
follow();

/** The colour that a published page was given, with the text on it in whichever of black and white can be read. */
const accent = document.querySelector("[data-accent]")?.dataset.accent;
if (accent) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = parseInt(accent.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  // Buttons alone: links on the page's own ground stay as they can be read.
  document.documentElement.style.setProperty("--button", accent);
  document.documentElement.style.setProperty("--on-button", light > 0.179 ? "#000000" : "#ffffff");
}
