// Many files at once, and whole folders, each with its own progress. What breaks off is sent again by the key that it had, so that it
// is not added twice.

const AT_ONCE = 3;
const TRIES = 6;

const form = document.querySelector("[data-upload]");
const list = document.querySelector("[data-uploads]");
const said = document.querySelector("[data-uploads-said]");
const rows = list.querySelector("tbody");
const input = form.querySelector("#file");
const folder = form.querySelector("#folder");
const drop = form.querySelector(".drop");
const waiting = [];
let running = 0;
let added = 0;
let failed = 0;
let hidden = 0;

input.multiple = true;
form.querySelector('label[for="file"]').textContent = "Files: choose them, or drop them here";
form.querySelector("[data-folder]").hidden = false;

/** Of one choice of files alone: what somebody chooses anew is meant to be added, be it the same file once more. */
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The files of an input, with their paths from where they were chosen. */
function chosen(files) {
  return [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
}

/** Whether it is what systems leave in folders, which is nobody's document. What was chosen itself has no folder before it. */
function isHidden(path) {
  const [, ...inside] = path.split("/");
  return inside.some((name) => name.startsWith(".")) || /\/(Thumbs\.db|desktop\.ini)$/.test(path);
}

function add(files) {
  const collection = form.elements.collectionIds?.value ?? "";
  const choice = newKey();
  for (const [at, { file, path }] of files.entries()) {
    if (isHidden(path)) {
      hidden += 1;
      continue;
    }
    const row = rows.insertRow();
    const name = row.insertCell();
    name.dataset.label = "File";
    name.textContent = path;
    const state = row.insertCell();
    state.dataset.label = "State";
    state.textContent = "Waits";
    waiting.push({ file, collection, state, key: `${choice}-${at}` });
  }
  list.hidden = false;
  tell();
  while (running < AT_ONCE && waiting.length) next();
}

async function next() {
  const upload = waiting.shift();
  if (!upload) return;
  running += 1;
  await sendFile(upload);
  running -= 1;
  tell();
  next();
}

function tell() {
  const left = waiting.length + running;
  const parts = [`${added} added`];
  if (failed) parts.push(`${failed} failed`);
  if (left) parts.push(`${left} to go`);
  if (hidden) parts.push(`${hidden} hidden left out`);
  said.textContent = `${parts.join(", ")}.`;
  if (!left && added) {
    const link = said.appendChild(document.createElement("a"));
    link.href = new URL("../documents", location.href);
    link.textContent = "See how they are read";
    said.insertBefore(document.createTextNode(" "), link);
  }
}

async function sendFile(upload) {
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const { status, answer, wait } = await attemptOf(upload);
    if (status >= 200 && status < 300) {
      added += 1;
      upload.state.textContent = "";
      const link = upload.state.appendChild(document.createElement("a"));
      link.href = new URL(`../documents/${answer.data.id}`, location.href);
      link.textContent = "Added";
      return;
    }
    const isPassing = status === 0 || status === 408 || status === 429 || status === 503;
    if (!isPassing || attempt === TRIES) {
      failed += 1;
      showFailure(upload, answer?.error, status);
      return;
    }
    upload.state.textContent = status === 0 ? "The service cannot be reached; trying again" : "Waits for its turn";
    await new Promise((done) => setTimeout(done, 1000 * (wait || 2 ** attempt)));
  }
}

const SIGN_IN_ENDED = "Your sign-in has ended. Sign in again in another tab, and send it again here.";

/** Why a file was not taken. Where fields are wrong, or nobody is signed in, the message itself is for programs. */
function wordsOf(error, status) {
  if (status === 401) return SIGN_IN_ENDED;
  if (!error) return status ? `The service answers ${status}.` : "The service cannot be reached.";
  if (!error.fields?.length) return error.message;
  return error.fields.map(({ path, message }) => `${path === "file" ? "The file" : `Its ${path}`} ${message}.`).join(" ");
}

/** Whether a refusal is of the file itself, which is no better the next time; a sign-in or room can be had meanwhile. */
function isOfFile(status) {
  return status >= 400 && status < 500 && ![401, 403, 408, 409, 429].includes(status);
}

function showFailure(upload, error, status) {
  const word = document.createElement("span");
  word.className = "state bad";
  word.textContent = "Not added";
  upload.state.replaceChildren(word, ` ${wordsOf(error, status)} `);
  const hasFocus = document.activeElement === upload.state;
  // Among many files those stand first that somebody has to look after.
  rows.prepend(upload.state.parentElement);
  if (hasFocus) upload.state.focus();
  if (isOfFile(status)) return;
  const again = upload.state.appendChild(document.createElement("button"));
  again.type = "button";
  again.className = "small";
  again.textContent = "Send again";
  again.setAttribute("aria-label", `Send ${upload.file.name} again`);
  again.addEventListener("click", () => {
    failed -= 1;
    upload.state.textContent = "Waits";
    // The button is gone, and the focus stays where it was.
    upload.state.tabIndex = -1;
    upload.state.focus();
    waiting.push(upload);
    if (running < AT_ONCE) next();
  });
}

function attemptOf({ file, collection, state, key }) {
  return new Promise((done) => {
    const body = new FormData();
    if (collection) body.append("collectionIds", collection);
    body.append("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", form.dataset.upload);
    request.setRequestHeader("Idempotency-Key", key);
    const bar = document.createElement("progress");
    bar.setAttribute("aria-label", `Sending ${file.name}`);
    state.replaceChildren(bar);
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      bar.max = event.total;
      bar.value = event.loaded;
    });
    const end = () => {
      let answer;
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        answer = undefined;
      }
      done({ status: request.status, answer, wait: Number(request.getResponseHeader("Retry-After")) });
    };
    request.addEventListener("load", end);
    request.addEventListener("error", end);
    request.addEventListener("abort", end);
    request.send(body);
  });
}

/** All files of what was dropped, folders included. */
async function dropped(items) {
  const files = [];
  const walk = async (entry) => {
    if (entry.isFile) {
      const file = await new Promise((done, fail) => entry.file(done, fail));
      files.push({ file, path: entry.fullPath.replace(/^\//, "") });
    }
    if (!entry.isDirectory) return;
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, fail) => reader.readEntries(done, fail));
      if (!some.length) return;
      for (const child of some) await walk(child);
    }
  };
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  for (const entry of entries) await walk(entry);
  return files;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  add(chosen(input.files));
  input.value = "";
});
folder.addEventListener("change", () => {
  add(chosen(folder.files));
  folder.value = "";
});
drop.addEventListener("dragover", (event) => {
  event.preventDefault();
  drop.classList.add("over");
});
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", async (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  add(await dropped(event.dataTransfer.items));
});
addEventListener("beforeunload", (event) => {
  if (waiting.length + running) event.preventDefault();
});

// --- the name of what is at an address ---

const address = document.querySelector("#url");
const itsName = document.querySelector("#url-name");
let suggested = "";

/** What it may be called: where it is, as people read it. */
function nameOf(text) {
  if (!URL.canParse(text)) return "";
  const { protocol, host, pathname } = new URL(text);
  if (!/^https?:$/.test(protocol)) return "";
  const path = pathname.replace(/\/$/, "");
  try {
    return `${host}${decodeURI(path)}`;
  } catch {
    return `${host}${path}`;
  }
}

// Until somebody writes another.
address.addEventListener("input", () => {
  if (itsName.value !== suggested) return;
  suggested = nameOf(address.value);
  itsName.value = suggested;
});
