/** The plane of risk and utility: where each measured setting lies, drawn and as a table. */

import { byId, el, number, show, svg } from "./dom.js";
import { onSetting } from "./setting.js";

const WIDTH = 620;
const HEIGHT = 340;
const EDGE = { left: 62, right: 28, top: 46, bottom: 54 };
const RISKS = {
  query: "your query named at the first guess",
  words: "your words recovered by the strongest attack",
};

let plane = null;
let setting = null;
let voices = [];
let risk = "query";

/** Whether a setting is that of a point: the service decides. */
const at = (setting, point) => setting?.point === point.id;
const percent = (share) => `${Math.round(100 * share)} %`;

/** The whole axis of risk: no wider than needed, so that settings can be told apart. */
const SCALES = [0.1, 0.2, 0.5, 1];
const scale = (points) => SCALES.find((end) => points.every((point) => point.risk[risk].value <= end)) ?? 1;

const across = (share) => EDGE.left + share * (WIDTH - EDGE.left - EDGE.right);
const up = (share) => HEIGHT - EDGE.bottom - share * (HEIGHT - EDGE.top - EDGE.bottom);

function axes(most, end) {
  const parts = [];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const x = across(share);
    const y = up(share);
    parts.push(
      svg("line", { class: "grid", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y, y2: y }),
      svg("text", { x: EDGE.left - 8, y: y + 4, "text-anchor": "end" }, (share * most).toFixed(2)),
      svg("text", { x, y: HEIGHT - EDGE.bottom + 18, "text-anchor": "middle" }, `${number(100 * share * end)} %`),
    );
  }
  parts.push(
    svg("line", { class: "axis", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: up(0), y2: up(0) }),
    svg("text", { x: across(0.5), y: HEIGHT - 10, "text-anchor": "middle" }, `Risk: ${RISKS[risk]} →`),
    svg("text", { x: 0, y: 16 }, "Found: nDCG@10 ↑"),
  );
  return parts;
}

/** Names stay inside the picture. */
const anchor = (x) => (x > WIDTH * 0.8 ? "end" : x < WIDTH * 0.2 ? "start" : "middle");

function drawn(measured, most, end) {
  const x = across(measured.risk[risk].value / end);
  const y = up(measured.utility.value / most);
  const voice = voices.find((voice) => at(voice, measured));
  const isSetting = at(setting, measured);
  const tell = () => {
    byId("plane-tip").textContent = measured.tooltip;
  };
  const kinds = [voice && "voice-point", isSetting && "chosen"].filter(Boolean).join(" ");
  const name = isSetting ? `${voice?.name ?? "your setting"} (chosen)` : voice?.name;
  return svg(
    "g",
    { class: kinds, tabindex: 0, role: "img", "aria-label": measured.tooltip, onfocus: tell, onmouseenter: tell },
    svg("title", {}, measured.tooltip),
    svg("circle", { cx: x, cy: y, r: isSetting ? 9 : 6 }),
    name && svg("text", { class: "name", x, y: y - 15, "text-anchor": anchor(x) }, name),
  );
}

function picture(points) {
  const most = Math.max(plane.baseline ?? 0, ...points.map(({ utility }) => utility.value)) || 1;
  const end = scale(points);
  const ordered = [...points].sort((a, b) => Number(at(setting, a)) - Number(at(setting, b)));
  return svg(
    "svg",
    { class: "plane", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Risk and utility of each setting" },
    axes(most, end),
    ordered.map((point) => drawn(point, most, end)),
  );
}

const range = (figure) => (figure ? `${percent(figure.value)} (${percent(figure.low)}–${percent(figure.high)})` : "not measured");

const row = (point) =>
  el(
    "tr",
    { "aria-current": at(setting, point) && "true" },
    el("th", { scope: "row" }, point.title),
    el("td", {}, range(point.risk.query)),
    el("td", {}, range(point.risk.words)),
    el("td", {}, point.utility ? point.utility.value.toFixed(3) : "not measured"),
  );

const table = () =>
  el(
    "details",
    {},
    el("summary", {}, "The same as a table"),
    el(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of all settings" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, ["Setting", "Query named first", "Words recovered", "nDCG@10"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, plane.points.map(row)),
      ),
    ),
  );

function kinds() {
  const options = Object.keys(RISKS).map((name) => el("option", { value: name, selected: name === risk }, RISKS[name]));
  const change = (event) => {
    risk = event.target.value;
    render();
    byId("plane-risk").focus();
  };
  return el("p", {}, el("label", { for: "plane-risk" }, "Risk shown: "), el("select", { id: "plane-risk", onchange: change }, options));
}

function render() {
  if (!plane) return;
  if (!plane.measured) {
    show(byId("plane"), el("p", { class: "hint" }, plane.not_measured));
    return;
  }
  const points = plane.points.filter((point) => point.utility && point.risk[risk]);
  const current = plane.points.find((point) => at(setting, point));
  show(
    byId("plane"),
    kinds(),
    el(
      "div",
      { class: "plane-picture" },
      points.length ? picture(points) : el("p", {}, "This risk was not measured."),
      el(
        "div",
        {},
        el("p", { id: "plane-tip" }, current ? current.tooltip : "The chosen setting was not measured. Point at another one, or go there with Tab."),
        el("p", { class: "hint" }, plane.measured.sentence),
      ),
    ),
    table(),
  );
}

export function showPlane(measured, described) {
  plane = measured;
  voices = described;
  render();
}

export function startPlane() {
  onSetting((changed) => {
    setting = changed;
    render();
  });
}
