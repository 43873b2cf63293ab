/** Asking: a preview, a search step by step, and then what could be read off it. */

import { call, failed, stream, Trouble } from "./api.js";
import { byId, el, show } from "./dom.js";
import { loadHistory } from "./history.js";
import { showBudget } from "./ledger.js";
import { complain, quiet } from "./notice.js";
import { showPreview, showResult } from "./results.js";
import { currentSetting } from "./setting.js";
import { ended, step } from "./steps.js";

let working = null;
let measuring = null;

function typed() {
  const query = byId("query").value.trim();
  if (query) return query;
  byId("query").focus();
  throw new Trouble("There is nothing to search for yet.", "Type what you are looking for.");
}

/** Run one piece of work at a time; Escape and Stop end it. */
async function alone(work) {
  if (working) return;
  quiet();
  measuring?.abort();
  working = new AbortController();
  busy(true);
  try {
    await work(working.signal);
  } catch (error) {
    if (error.name === "AbortError") ended("Stopped. What was drawn before that stays counted.");
    else {
      ended("");
      complain(error);
    }
  } finally {
    working = null;
    busy(false);
    await showBudget();
  }
}

/** Buttons stay where they are for the keyboard; while something runs they do nothing. */
function busy(now) {
  for (const id of ["go", "preview", "send"]) byId(id)?.setAttribute("aria-disabled", now);
  if (!now && document.activeElement === byId("stop")) byId("query").focus();
  byId("stop").hidden = !now;
}

const preview = (query, setting) =>
  alone(async (signal) => {
    query ??= typed();
    setting ??= await currentSetting();
    // What was drawn and paid for stays until something else is.
    step("obfuscating");
    const drawn = await call("POST", "/v1/preview", { query, ...setting }, { signal });
    showPreview(query, drawn, () => search(query, setting, drawn.preview));
    ended(`${drawn.variants.length} variants drawn. Nothing was sent.`);
    byId("send").focus();
  });

const search = (query, setting, drawn) =>
  alone(async (signal) => {
    query ??= typed();
    setting ??= await currentSetting();
    // What a preview shows stays, so that it can still be sent after a failure.
    if (!byId("send")) byId("outcome").hidden = true;
    step("obfuscating");
    let result = null;
    const body = { query, ...setting, ...(drawn && { preview: drawn }) };
    await stream("/v1/search", body, (event) => {
      if (event.step === "failed") throw failed(event, event.status);
      if (event.step === "done") result = event.result;
      else step(event.step, event.of ? `${event.done} of ${event.of}` : "");
    }, signal);
    if (!result) throw new Trouble("The service stopped in the middle.", "Look at the terminal, then search again.");
    showResult(result);
    if (drawn) byId("came-title").focus();
    ended(`Done: ${result.hits.length} hits shown.`);
    attack(result, setting);
    loadHistory().catch(complain);
  });

/** This query's own risk, beside whatever comes next; where it fails the result stands. */
async function attack(result, setting) {
  const place = byId("risk");
  const { signal } = (measuring = new AbortController());
  show(place, el("p", { class: "hint" }, "Attacking what was sent, here, to see what can be read off it …"));
  try {
    const body = { query: result.query, variants: result.sent, ...setting };
    const risk = await call("POST", "/v1/risk", body, { signal });
    show(place, el("p", {}, el("strong", {}, "For this very query: "), risk.sentence));
  } catch {
    show(place, el("p", { class: "hint" }, "What could be read off this query was not measured."));
  }
}

function stop() {
  measuring?.abort();
  working?.abort();
}

/** Search for what was typed elsewhere: into the browser's own search box. */
export function searchFor(query) {
  byId("query").value = query;
  search();
}

export function startSearch() {
  byId("go").addEventListener("click", () => search());
  byId("preview").addEventListener("click", () => preview());
  byId("stop").addEventListener("click", stop);
  byId("query").addEventListener("keydown", (event) => {
    if (event.key === "Enter") search();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") stop();
  });
}

/** Take everything off the page that was typed, or came of it. */
export function forgetSearch() {
  stop();
  byId("query").value = "";
  byId("outcome").hidden = true;
  for (const id of ["typed", "left", "came"]) show(byId(id));
}
