/** What was spent and what is left; a limit, if one is wanted. */

import { call, get, Trouble } from "./api.js";
import { byId, number } from "./dom.js";
import { complain, quiet } from "./notice.js";
import { onSetting, priceOf } from "./setting.js";

const LIMITS = { "limit-total": "total", "limit-each": "per_text" };

let setting = null;
let ledger = null;
let unsaved = false;

/** The account under the promise of the chosen setting: others are never added to it. */
const account = () =>
  ledger.spent.find((total) => ["notion", "metric", "space_sha256"].every((name) => total[name] === setting.account[name]));

function spent() {
  const total = account();
  if (!total) return "Nothing is spent yet.";
  const searches = total.records === 1 ? "1 release" : `${number(total.records)} releases`;
  if (total.nats === null) return `Spent so far: without bound, in ${searches}.`;
  return `Spent so far: ${number(total.nats)} nats, in ${searches}.`;
}

function left() {
  const { total, per_text: perText } = ledger.budget;
  const forQuery = perText === null ? "" : ` At most ${number(perText)} nats for each query.`;
  if (total === null) return forQuery.trim() || "No limit is set: everything is counted, nothing refused.";
  const rest = account()?.left ?? total;
  return `Left: ${number(rest)} of ${number(total)} nats.${forQuery}`;
}

/** What a field says; one that holds no number is not taken for one without a limit. */
function limit(id) {
  const { value, validity, valueAsNumber } = byId(id);
  if (!validity.valid) throw new Trouble("A limit is a number of nats from 0.", "Leave the field empty for no limit.");
  return value === "" ? null : valueAsNumber;
}

async function save() {
  try {
    quiet();
    ledger = await call("PUT", "/v1/ledger/budget", { per_text: limit("limit-each"), total: limit("limit-total") });
    unsaved = false;
    render();
  } catch (error) {
    complain(error);
  }
}

function render() {
  if (!ledger || !setting) return;
  const { total } = ledger.budget;
  byId("budget").hidden = false;
  byId("budget-words").textContent = `${priceOf(setting)} ${spent()} ${left()}`;
  byId("budget-bar").hidden = !total;
  if (total) {
    byId("budget-bar").max = total;
    byId("budget-bar").value = total - (account()?.left ?? total);
  }
  if (unsaved) return;
  for (const [id, name] of Object.entries(LIMITS)) byId(id).value = ledger.budget[name] ?? "";
}

/** Ask again how things stand. */
export async function showBudget() {
  try {
    ledger = await get("/v1/ledger");
    render();
  } catch (error) {
    complain(error);
  }
}

export function startLedger() {
  byId("limit-save").addEventListener("click", save);
  for (const id of Object.keys(LIMITS)) byId(id).addEventListener("input", () => (unsaved = true));
  onSetting((changed) => {
    setting = changed;
    render();
  });
}
