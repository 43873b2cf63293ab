/** Side by side: what you typed, what left this machine, what came back. */

import { byId, el, folded, marked, number, show } from "./dom.js";
import { promise } from "./mechanisms.js";

const WORD = /[\p{L}\p{M}\p{N}]+/gu;

const fold = (word) => word.normalize("NFKC").toLowerCase();

/** Where words of the query stand in a variant, counted in Unicode characters. */
function wordsOfQuery(variant, query) {
  const queryWords = new Set(Array.from(query.matchAll(WORD), ([word]) => fold(word)));
  return Array.from(variant.matchAll(WORD))
    .filter(([word]) => queryWords.has(fold(word)))
    .map(({ 0: word, index }) => {
      const start = Array.from(variant.slice(0, index)).length;
      return [start, start + Array.from(word).length];
    });
}

const list = (variants, query) =>
  el(
    "ul",
    { class: "rows sent" },
    variants.map((variant) => el("li", {}, marked(variant, wordsOfQuery(variant, query), "a word of your query"))),
  );

/** What something cost, in words; null means that nothing bounds it. */
export const cost = (nats) => (nats === null ? "an unbounded part" : `${number(nats)} nats`);

function columns(query) {
  byId("outcome").hidden = false;
  show(byId("typed"), el("blockquote", {}, query));
}

/** In what company a query leaves, or left, and what that is worth. */
const inWords = (company) =>
  [
    el("p", { class: "plain" }, company.whether_sent),
    !company.is_text && el("p", {}, `The public query that stands for it: “${company.representative}”.`),
    el("p", {}, company.sentence),
  ].filter(Boolean);

/** The variants of a preview; nothing has been sent. */
export function showPreview(query, drawn, onSend) {
  columns(query);
  if (drawn.company) byId("typed").append(...inWords(drawn.company));
  byId("left-title").firstChild.textContent = "What would leave this machine ";
  byId("left-count").textContent = "not sent yet";
  show(
    byId("left"),
    el("p", {}, `Drawing these cost ${cost(drawn.spent)}. Sending them costs nothing more.`),
    drawn.recalled &&
      el("p", {}, drawn.company ? "The same queries were drawn and counted for it before." : "Each of its words was drawn and counted before, and has the same substitutes again."),
    drawn.worn_out && el("p", { class: "plain" }, drawn.worn_out),
    el("p", { class: "line" }, el("button", { type: "button", class: "main", id: "send", onclick: onSend }, "Send these")),
    el(
      "p",
      { class: "hint" },
      "Look, but do not pick: whoever draws until they like what they see tells by it what they do not want to be seen, and the promise no longer holds.",
    ),
    list(drawn.variants, query),
  );
  byId("came-count").textContent = "";
  show(byId("came"), el("p", { class: "hint" }, "Nothing yet: nothing was sent."));
}

function address(hit) {
  if (!/^https?:\/\//i.test(hit.doc_id) || !URL.canParse(hit.doc_id)) return null;
  const link = { href: hit.doc_id, rel: "noreferrer noopener", target: "_blank" };
  return el("small", {}, el("a", link, "Open"), ` ${new URL(hit.doc_id).host}: it will see that you come.`);
}

const shownHit = (hit, sent) =>
  el(
    "li",
    { class: "hit" },
    el("h4", {}, hit.title || hit.doc_id),
    hit.snippet && el("p", {}, hit.snippet),
    el("small", {}, `Found by ${hit.found_by.length} of ${sent} queries. `),
    address(hit),
  );

export function showResult(result) {
  columns(result.query);
  byId("typed").append(
    ...(result.company
      ? inWords(result.company)
      : [el("p", {}, `${result.said_aloud} of its ${result.words} words stand in what was sent, among the others.`)]),
    el("p", {}, `This search cost ${cost(result.spent)}.`),
    ...[
      result.worn_out,
      result.query_sent && !result.company &&
        (result.protected
          ? "Chance put the query itself among what was sent."
          : "No word of it could be replaced: it was sent as it is."),
      result.unknown.length > 0 &&
        `Not in the word space, so that a random word stood in: ${result.unknown.join(", ")}.`,
      result.kept.length > 0 && `Sent as they are: ${result.kept.join(", ")}.`,
      result.seeded && "Seeded: reproducible, for experiments only.",
    ]
      .filter(Boolean)
      .map((line) => el("p", { class: "plain" }, line)),
    el("div", { id: "risk", "aria-live": "polite" }),
    el("p", { class: "hint" }, `Promise: ${promise(result.guarantee)}`),
    folded("What the promise does not cover", result.guarantee.caveats) ?? "",
  );
  byId("left-title").firstChild.textContent = "What left this machine ";
  byId("left-count").textContent = `${result.sent.length} queries to ${result.engine}`;
  show(
    byId("left"),
    result.recalled &&
      el(
        "p",
        {},
        result.company
          ? "The same queries were drawn and counted for it before: however often they are sent, they tell no more than once."
          : "Each of its words was drawn and counted before, and has the same substitutes again: however often they are sent, they tell no more of it than once.",
      ),
    list(result.sent, result.query),
  );
  byId("came-count").textContent = `${number(result.pool)} documents`;
  show(
    byId("came"),
    result.problem && el("p", { class: "plain" }, result.problem),
    result.hits.length
      ? el("ol", { class: "hits" }, result.hits.map((hit) => shownHit(hit, result.sent.length)))
      : el("p", {}, "Nothing. Try a louder voice, more queries, or other words."),
  );
}
