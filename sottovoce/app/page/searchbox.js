/** The browser's own search box: a switch, the address for it, and what to do with that. */

import { call, get } from "./api.js";
import { byId } from "./dom.js";
import { complain } from "./notice.js";

const KEY = "sottovoce-search-box";
const TYPE = "application/opensearchdescription+xml";

// Firefox searches by a form, so that the query is in no address; Chromium refuses such engines.
const byForm = () => navigator.userAgent.includes("Firefox/");

/** Tell the browser of the engine: it looks for that when a page has loaded, so this comes first. */
export function linkSearchBox() {
  const href = sessionStorage.getItem(KEY);
  if (!href) return;
  const link = document.createElement("link");
  Object.assign(link, { rel: "search", type: TYPE, title: "sottovoce", href });
  document.head.append(link);
}

function render({ on, address, form, fragment }) {
  byId("box-on").checked = on;
  byId("box").hidden = !on;
  byId("box-address").value = on ? address : "";
  for (const item of document.querySelectorAll("[data-browser]")) {
    item.hidden = (item.dataset.browser === "firefox") !== byForm();
  }
  const href = on ? (byForm() ? form : fragment) : "";
  const changed = href !== (sessionStorage.getItem(KEY) ?? "");
  if (on) sessionStorage.setItem(KEY, href);
  else sessionStorage.removeItem(KEY);
  return changed;
}

async function change(event) {
  try {
    render(await call("PUT", "/v1/search-box", { on: event.target.checked }));
    for (const link of document.querySelectorAll('link[rel="search"]')) link.remove();
    linkSearchBox();
  } catch (error) {
    complain(error);
  }
}

async function copy() {
  byId("box-address").select();
  try {
    await navigator.clipboard.writeText(byId("box-address").value);
    byId("box-said").textContent = "Copied. It holds your key: give it to nobody.";
  } catch {
    byId("box-said").textContent = "It is selected: copy it.";
  }
}

/** Show how things stand; a page that did not know yet tells the browser now. */
export async function loadSearchBox() {
  if (render(await get("/v1/search-box"))) linkSearchBox();
}

export function startSearchBox() {
  byId("box-on").addEventListener("change", change);
  byId("box-copy").addEventListener("click", copy);
}
