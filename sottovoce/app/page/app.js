/** Start: who opened the page, what the service has, and the three tabs. */

import { get, hasToken, openSession, sentence, Trouble } from "./api.js";
import { byId } from "./dom.js";
import { forgetHistory, loadHistory, startHistory } from "./history.js";
import { showBudget, startLedger } from "./ledger.js";
import { showMechanisms } from "./mechanisms.js";
import { complain } from "./notice.js";
import { showPlane, startPlane } from "./plane.js";
import { forgetTexts, showChoices, startSanitize } from "./sanitize.js";
import { forgetSearch, searchFor, startSearch } from "./search.js";
import { linkSearchBox, loadSearchBox, startSearchBox } from "./searchbox.js";
import { noSetting, showVoices } from "./setting.js";
import { startTabs, startTheme } from "./tabs.js";

const POLL = 500;

/** What the service has, once it has loaded it. */
async function loaded() {
  for (;;) {
    const health = await get("/health");
    if (health.status !== "loading") return health;
    byId("voice-words").textContent = "Loading …";
    await new Promise((later) => setTimeout(later, POLL));
  }
}

async function start() {
  startTheme();
  startTabs();
  const asked = await openSession();
  if (!hasToken()) {
    throw new Trouble("This page was opened without its token.", "Open the address that the terminal printed.");
  }
  for (const part of [startLedger, startPlane, startSearch, startHistory, startSanitize, startSearchBox]) part();
  const health = await loaded();
  const local = health.remote ? "" : ", which plays the stranger on this machine";
  byId("engine").textContent = health.engine + local;
  const { mechanisms, default: usual } = await get("/v1/mechanisms");
  showMechanisms(mechanisms, usual);
  showChoices(mechanisms);
  await loadHistory();
  await loadSearchBox();
  if (health.problems.length) {
    throw new Trouble(health.problems.map(sentence).join(" "), "Do that in a terminal, then start the service again.");
  }
  const described = await get("/v1/voices");
  showVoices(described);
  await showBudget();
  if (asked) searchFor(asked);
  showPlane(await get("/v1/plane"), described.voices);
}

// A new address in the same window changes the fragment alone: begin anew with what it holds.
addEventListener("hashchange", () => {
  if (/^#(token|key|asked)=/.test(location.hash)) location.reload();
});

// A browser that keeps pages for later must not keep what was typed, nor show half of it again.
addEventListener("pagehide", () => {
  for (const forget of [forgetSearch, forgetTexts, forgetHistory]) forget();
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

linkSearchBox();
start().catch((error) => {
  noSetting(error);
  complain(error);
});
