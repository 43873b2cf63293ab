/** What was spent and what is left; a limit, if one is wanted. */

import { call, get } from "./api.js";
import { byId, el, number, show } from "./dom.js";
import { complain, quiet } from "./notice.js";
import { onSetting, priceOf } from "./setting.js";

let setting = null;
let ledger = null;

/** The account under the promise of the chosen setting: others are never added to it. */
const account = () =>
  ledger.spent.find(({ notion, metric }) => notion === setting.guarantee.notion && metric === setting.guarantee.metric);

function spent() {
  const own = account();
  if (!own) return "Nothing is spent yet.";
  const searches = own.records === 1 ? "1 release" : `${number(own.records)} releases`;
  if (own.nats === null) return `Spent so far: without bound, in ${searches}.`;
  return `Spent so far: ${number(own.nats)} nats, in ${searches}.`;
}

function left() {
  const { total, per_text: each } = ledger.budget;
  const every = each === null ? "" : ` At most ${number(each)} nats for each query.`;
  if (total === null) return `${every ? "" : "No limit is set: everything is counted, nothing refused."}${every}`.trim();
  const rest = account()?.left ?? total;
  return `Left: ${number(rest)} of ${number(total)} nats.${every}`;
}

function bar() {
  const { total } = ledger.budget;
  if (!total) return null;
  return el("progress", { max: total, value: total - (account()?.left ?? total), "aria-label": "Budget spent" });
}

function field(id, label, value) {
  const box = { id, type: "number", min: 0, step: "any", value: value ?? "", placeholder: "no limit" };
  return el("div", {}, el("label", { for: id }, label), el("input", box));
}

const limit = (id) => (byId(id).value === "" ? null : byId(id).valueAsNumber);

async function save() {
  try {
    quiet();
    ledger = await call("PUT", "/v1/ledger/budget", { per_text: limit("limit-each"), total: limit("limit-total") });
    render();
  } catch (error) {
    complain(error);
  }
}

function render() {
  if (!ledger || !setting) return;
  const open = byId("limits")?.open ?? false;
  show(
    byId("budget"),
    el("p", {}, `${priceOf(setting)} ${spent()} ${left()}`),
    bar(),
    el(
      "details",
      { id: "limits", open },
      el("summary", {}, "Set a limit"),
      el(
        "div",
        { class: "fields" },
        field("limit-total", "In all, in nats", ledger.budget.total),
        field("limit-each", "For each query, in nats", ledger.budget.per_text),
      ),
      el("p", {}, el("button", { type: "button", id: "limit-save", onclick: save }, "Save the limit")),
    ),
  );
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
  onSetting((chosen) => {
    setting = chosen;
    render();
  });
}
