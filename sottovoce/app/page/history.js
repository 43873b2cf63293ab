/** Past searches: on this machine, off until switched on, gone when wiped. */

import { call, get } from "./api.js";
import { byId, el, show } from "./dom.js";
import { complain } from "./notice.js";

function again(query) {
  byId("query").value = query;
  byId("query").focus();
}

const row = (entry) =>
  el(
    "li",
    {},
    el("button", { type: "button", onclick: () => again(entry.query) }, entry.query),
    el("small", { class: "hint" }, `${new Date(entry.time).toLocaleString()}, ${entry.mechanism}`),
  );

function render({ on, searches }) {
  byId("history-on").checked = on;
  byId("history-wipe").hidden = !on;
  byId("history-words").textContent = on
    ? searches.length
      ? "Kept in a file that only you can read."
      : "Nothing is kept yet."
    : "Off: your searches are written down nowhere. Switching it off again wipes what was kept.";
  show(byId("history"), on ? searches.map(row) : []);
}

async function change(method, body) {
  try {
    render(await call(method, "/v1/history", body));
  } catch (error) {
    complain(error);
  }
}

/** Show what is kept; where it cannot be read it can still be wiped. */
export async function loadHistory() {
  try {
    render(await get("/v1/history"));
  } catch (error) {
    if (error.kind === "token") throw error;
    forgetHistory();
    byId("history-on").checked = true;
    byId("history-wipe").hidden = false;
    byId("history-words").textContent = `${error.message} ${error.todo ?? ""}`;
  }
}

export const forgetHistory = () => show(byId("history"));

export function startHistory() {
  byId("history-on").addEventListener("change", (event) => change("PUT", { on: event.target.checked }));
  byId("history-wipe").addEventListener("click", () => change("DELETE"));
}
