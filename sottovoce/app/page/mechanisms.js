/** The third tab: what each mechanism does, what it promises, what came of trying to refute it. */

import { sentence } from "./api.js";
import { byId, el, folded, number, show } from "./dom.js";

/** A guarantee in short; the long sentence comes with settings and mechanisms. */
export function promise({ notion, epsilon, metric, scope }) {
  if (notion === "none") return "no formal guarantee.";
  const budget = `epsilon ${number(epsilon)} for each ${scope === "text" ? "text" : "word"}`;
  if (notion === "metric") return `metric privacy, ${budget}, per unit of ${metric} distance.`;
  if (notion === "group") return `${budget}, inside a group of similar words; the group is released.`;
  return `local differential privacy, ${budget}.`;
}

const part = (title, ...content) => [el("h4", {}, title), ...content.map((text) => el("p", {}, text))];

const CLAIMS = { stated: "What it promises", published: "What the paper claims" };

const verdict = (word) => el("span", { class: word === "REFUTED" ? "verdict bad" : "verdict" }, word);

/** The verdict; where the paper claims more than is promised, one on each. */
function audited({ verdict: overall, meaning, claims, why, by, made }) {
  const several = claims.length > 1;
  return [
    el("h4", {}, "The audit"),
    el("p", {}, verdict(overall), `: ${meaning}.`),
    several && el("ul", {}, claims.map((claim) => el("li", {}, `${CLAIMS[claim.label]}: `, verdict(claim.verdict)))),
    why && el("p", {}, sentence(why)),
    by && el("p", { class: "hint" }, `Found by ${by}, ${made}.`),
  ];
}

const card = (mechanism) =>
  el(
    "article",
    { class: "card", "aria-labelledby": `card-${mechanism.name}` },
    el("h3", { id: `card-${mechanism.name}` }, mechanism.name),
    el("p", {}, sentence(mechanism.summary)),
    mechanism.warning && el("p", { class: "plain" }, mechanism.warning),
    part("What it promises", sentence(mechanism.guarantee.sentence)),
    folded("What that does not cover", mechanism.guarantee.caveats),
    mechanism.published && part("What the paper claims beyond that", sentence(mechanism.published.sentence)),
    audited(mechanism.audit),
    part("Paper", mechanism.paper),
    folded(
      "Parameters",
      mechanism.parameters.map(
        ({ name, default: value, help }) =>
          `${name}${value == null || value === "" ? "" : ` = ${value}`}: ${help || "see the paper"}`,
      ),
    ),
  );

/** The cards, and the choices of both other tabs. */
export function showMechanisms(all, usual) {
  show(byId("cards"), all.map(card));
  for (const id of ["mechanism", "s-mechanism"]) {
    show(byId(id), all.map(({ name }) => el("option", { value: name }, name)));
    byId(id).value = usual;
  }
}
