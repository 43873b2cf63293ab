/** The third tab: what each mechanism does, what it promises, what came of trying to refute it. */

import { sentence } from "./api.js";
import { byId, el, folded, number, show } from "./dom.js";

/** A guarantee in short; the long sentence comes with settings and mechanisms. */
export function promise({ notion, epsilon, metric, scope }) {
  if (notion === "none") return "no formal guarantee.";
  const each = `epsilon ${number(epsilon)} for each ${scope === "text" ? "text" : "word"}`;
  if (notion === "metric") return `metric privacy, ${each}, per unit of ${metric} distance.`;
  if (notion === "group") return `${each}, inside a group of similar words; the group is released.`;
  return `local differential privacy, ${each}.`;
}

const part = (title, ...content) => [el("h4", {}, title), ...content.map((each) => el("p", {}, each))];

const CLAIMS = { stated: "What it promises", published: "What the paper claims" };

const verdict = (word) => el("span", { class: word === "REFUTED" ? "verdict bad" : "verdict" }, word);

/** The verdict; where the paper claims more than is promised, one on each. */
function audited({ verdict: overall, meaning, claims, why, by, made }) {
  const each = claims.length > 1;
  return [
    el("h4", {}, "The audit"),
    el("p", {}, verdict(overall), `: ${meaning}.`),
    each && el("ul", {}, claims.map((one) => el("li", {}, `${CLAIMS[one.label]}: `, verdict(one.verdict)))),
    why && el("p", {}, sentence(why)),
    by && el("p", { class: "hint" }, `Found by ${by}, ${made}.`),
  ];
}

const card = (each) =>
  el(
    "article",
    { class: "card", "aria-labelledby": `card-${each.name}` },
    el("h3", { id: `card-${each.name}` }, each.name),
    el("p", {}, sentence(each.summary)),
    each.warning && el("p", { class: "plain" }, each.warning),
    part("What it promises", sentence(each.guarantee.sentence)),
    folded("What that does not cover", each.guarantee.caveats),
    each.published && part("What the paper claims beyond that", sentence(each.published.sentence)),
    audited(each.audit),
    part("Paper", each.paper),
    folded(
      "Parameters",
      each.parameters.map(
        ({ name, default: value, help }) =>
          `${name}${value == null || value === "" ? "" : ` = ${value}`}: ${help || "see the paper"}`,
      ),
    ),
  );

/** The cards, and the choices of both other tabs. */
export function showMechanisms(all) {
  show(byId("cards"), all.map(card));
  for (const id of ["mechanism", "s-mechanism"]) {
    show(byId(id), all.map(({ name }) => el("option", { value: name }, name)));
    byId(id).value = "cmp";
  }
}
