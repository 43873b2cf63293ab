/** Start: the token, what the service has, and the three tabs. */

import { get, sentence, takeToken, Trouble } from "./api.js";
import { byId } from "./dom.js";
import { loadHistory, startHistory } from "./history.js";
import { showBudget, startLedger } from "./ledger.js";
import { showMechanisms } from "./mechanisms.js";
import { complain } from "./notice.js";
import { showPlane, startPlane } from "./plane.js";
import { startSanitise } from "./sanitise.js";
import { startSearch } from "./search.js";
import { showVoices } from "./setting.js";
import { startTabs, startTheme } from "./tabs.js";

async function start() {
  startTheme();
  startTabs();
  if (!takeToken()) {
    throw new Trouble("This page was opened without its token.", "Open the address that the terminal printed.");
  }
  for (const part of [startLedger, startPlane, startSearch, startHistory, startSanitise]) part();
  const health = await get("/health");
  const here = health.remote ? "" : ", which plays the stranger on this machine";
  byId("engine").textContent = health.engine + here;
  const { mechanisms } = await get("/v1/mechanisms");
  showMechanisms(mechanisms);
  await loadHistory();
  if (health.problems.length) {
    throw new Trouble(health.problems.map(sentence).join(" "), "Do that in a terminal, then start the service again.");
  }
  const described = await get("/v1/voices");
  showVoices(described);
  await showBudget();
  showPlane(await get("/v1/plane"), described.voices);
}

// A new address in the same window changes the fragment alone: begin anew with its token.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) location.reload();
});

start().catch(complain);
