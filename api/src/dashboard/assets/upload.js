// Many files at once, and whole folders, each with its own progress. A file that was sent before is not added twice, so that
// whatever was interrupted is simply sent again.

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

input.multiple = true;
form.querySelector('label[for="file"]').textContent = "Files: choose them, or drop them here";
form.querySelector("[data-folder]").hidden = false;

/** The same for the same file, so that the service knows it again. */
function keyOf(file, collection) {
  const name = encodeURIComponent(file.webkitRelativePath || file.name).slice(-150);
  return `${name}:${file.size}:${file.lastModified}:${collection}`;
}

function add(files) {
  const collection = form.elements.collectionIds?.value ?? "";
  for (const file of files) {
    // What systems leave in folders is nobody's document.
    if (/(^|\/)(\.|Thumbs\.db$|desktop\.ini$)/.test(file.webkitRelativePath || file.name)) continue;
    const row = rows.insertRow();
    row.insertCell().textContent = file.webkitRelativePath || file.name;
    const state = row.insertCell();
    state.textContent = "Waits";
    waiting.push({ file, collection, state });
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

function showFailure(upload, error, status) {
  const fields = (error?.fields ?? []).map(({ path, message }) => `${path} ${message}`);
  const message = [error?.message ?? (status ? `The service answers ${status}.` : "The service cannot be reached."), ...fields];
  upload.state.textContent = `${message.join(" ")} `;
  const again = upload.state.appendChild(document.createElement("button"));
  again.type = "button";
  again.className = "small";
  again.textContent = "Send again";
  again.setAttribute("aria-label", `Send ${upload.file.name} again`);
  again.addEventListener("click", () => {
    failed -= 1;
    upload.state.textContent = "Waits";
    waiting.push(upload);
    if (running < AT_ONCE) next();
  });
}

function attemptOf({ file, collection, state }) {
  return new Promise((done) => {
    const body = new FormData();
    if (collection) body.append("collectionIds", collection);
    body.append("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", form.dataset.upload);
    request.setRequestHeader("Idempotency-Key", keyOf(file, collection));
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
    if (entry.isFile) files.push(await new Promise((done, fail) => entry.file(done, fail)));
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
  add(input.files);
  input.value = "";
});
folder.addEventListener("change", () => {
  add(folder.files);
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
