/** The second tab: text or a CSV file in, the same with other words out, side by side. */

import { failed, stream, Trouble } from "./api.js";
import { delimiterOf, header } from "./csv.js";
import { byId, el, marked, number, show } from "./dom.js";
import { promise } from "./mechanisms.js";
import { complain, quiet } from "./notice.js";

const LARGEST = 8_000_000;
const SHOWN = 200;

let file = null;
let result = null;
let working = null;
let mechanisms = [];

/** The mechanisms to choose from: each begins with its own epsilon, and says what is wrong with it. */
export function showChoices(all) {
  mechanisms = all;
  byId("s-mechanism").addEventListener("change", showChoice);
  showChoice();
}

function showChoice() {
  const { guarantee, parameters, warning } = mechanisms.find(({ name }) => name === byId("s-mechanism").value);
  const epsilon = parameters.find(({ name }) => name === "epsilon");
  byId("s-epsilon").value = epsilon?.default ?? "";
  byId("s-epsilon").disabled = !epsilon;
  byId("s-hint").textContent = epsilon
    ? `Smaller hides more. Each ${guarantee.scope === "text" ? "text" : "word"} costs anew each time it stands there.`
    : "This mechanism has none.";
  byId("s-warning").textContent = warning ?? "";
  byId("s-warning").hidden = !warning;
}

/** A file as text; bytes that are none would come out as other ones. */
async function textOf(upload) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await upload.arrayBuffer());
  } catch {
    throw new Trouble("That file cannot be read as UTF-8 text.", "Save it as “CSV UTF-8”, then choose it again.");
  }
}

async function choose(upload) {
  if (!upload) return;
  quiet();
  try {
    await read(upload);
  } catch (error) {
    backToText();
    complain(error);
  }
}

async function read(upload) {
  if (upload.size > LARGEST) {
    throw new Trouble("That file is too large for this page.", "Use the command: sottovoce sanitize.");
  }
  const text = await textOf(upload);
  file = { csv: text, delimiter: delimiterOf(text) };
  show(byId("column"), header(text, file.delimiter).map((name) => el("option", { value: name }, name)));
  byId("text").disabled = true;
  for (const id of ["column-field", "file-clear"]) byId(id).hidden = false;
  byId("file-words").textContent = `${number(Math.ceil(upload.size / 1024))} KiB read, on this machine.`;
}

function clearFile() {
  file = null;
  byId("file").value = "";
  byId("file-words").textContent = "";
  show(byId("column"));
  byId("text").disabled = false;
  for (const id of ["column-field", "file-clear"]) byId(id).hidden = true;
}

function backToText() {
  clearFile();
  byId("text").focus();
}

function request() {
  const settings = { mechanism: byId("s-mechanism").value };
  if (byId("s-epsilon").value) settings.epsilon = byId("s-epsilon").valueAsNumber;
  if (file !== null) return { ...file, column: byId("column").value, spreadsheet: byId("s-spreadsheet").checked, ...settings };
  const typed = byId("text").value;
  if (!typed.trim()) throw new Trouble("There is nothing to sanitise yet.", "Paste a text, or choose a CSV file.");
  return { texts: typed.split("\n"), ...settings };
}

async function sanitize() {
  if (working) return;
  quiet();
  working = new AbortController();
  busy(true);
  try {
    const body = request();
    result = null;
    await stream("/v1/sanitize", body, tell, working.signal);
    if (!result) throw new Trouble("The service stopped in the middle.", "Look at the terminal, then try again.");
    render();
  } catch (error) {
    byId("s-outcome").hidden = true;
    byId("s-status").textContent = error.name === "AbortError" ? "Stopped." : "";
    complain(error);
  } finally {
    working = null;
    busy(false);
  }
}

function tell(event) {
  if (event.step === "failed") throw failed(event, event.status);
  if (event.step === "done") result = event.result;
  else byId("s-status").textContent = `Replacing words: ${number(event.done)} rows done …`;
}

function busy(now) {
  byId("s-go").setAttribute("aria-disabled", now);
  if (!now && document.activeElement === byId("s-stop")) byId("s-go").focus();
  byId("s-stop").hidden = !now;
  if (now) byId("s-status").textContent = "Replacing words …";
}

function render() {
  const rows = result.rows.slice(0, SHOWN);
  show(
    byId("s-rows"),
    rows.map((row) =>
      el(
        "tr",
        {},
        el("td", {}, marked(row.original, row.changed_from, "replaced")),
        el("td", {}, marked(row.sanitized, row.changed, "changed")),
      ),
    ),
  );
  const { report } = result;
  byId("s-status").textContent = "Done. Nothing left this machine.";
  byId("s-report").textContent = report.words
    ? `${number(report.words.changed)} of ${number(report.words.all)} words changed.`
    : `${number(report.texts.rewritten)} of ${number(report.texts.all)} texts rewritten.`;
  byId("s-promise").textContent = `Promise: ${promise(report.guarantee)}`;
  const hidden = result.rows.length - rows.length;
  byId("s-more").textContent = hidden ? `${number(hidden)} more rows are in the download.` : "";
  byId("s-outcome").hidden = false;
}

/** Take everything off the page that was typed, read or came of it. */
export function forgetTexts() {
  working?.abort();
  result = null;
  clearFile();
  byId("text").value = "";
  byId("s-outcome").hidden = true;
  show(byId("s-rows"));
}

function download() {
  const text = result.csv ?? result.rows.map((row) => row.sanitized).join("\n");
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  el("a", { href: address, download: result.csv === null ? "sanitised.txt" : "sanitised.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function startSanitize() {
  byId("file").addEventListener("change", (event) => choose(event.target.files[0]));
  byId("file-clear").addEventListener("click", backToText);
  byId("s-go").addEventListener("click", sanitize);
  byId("s-stop").addEventListener("click", () => working?.abort());
  byId("s-download").addEventListener("click", download);
  const drop = byId("drop");
  for (const kind of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop") choose(event.dataTransfer.files[0]);
    });
  }
}
