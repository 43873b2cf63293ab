/** How low the voice is: four of them, or in company, or a setting of one's own; what was measured of it. */

import { call, sentence, Trouble } from "./api.js";
import { byId, el, folded, number, show } from "./dom.js";
import { complain, quiet } from "./notice.js";

const DYNAMICS = ["ppp", "pp", "p", "mf", "tutti"];
const RELEASES = {
  once: "Once: all queries are read off one draw, and cost epsilon once.",
  independent: "Independent: each query is a draw of its own, and each costs epsilon.",
};
const FIELDS = ["mechanism", "epsilon", "n", "release"];

let voices = [];
let customized = null;
let asking = Promise.resolve();
let waiting = 0;
let unknown = new Trouble("No setting is known yet: nothing was sent.", "Wait until the voices are shown.");
const listeners = [];

/** Be told when the setting changes. */
export const onSetting = (listener) => listeners.push(listener);

const selected = () => voices.find(({ id }) => byId(`voice-${id}`).checked);

/** The setting as a request has it: one whose meaning stands beside it, or none at all. */
export async function currentSetting() {
  await asking;
  const voice = selected();
  if (voice) return { voice: voice.id };
  if (customized) return customized;
  throw unknown;
}

/** There is no setting to search with, and this is why. */
export function noSetting(why) {
  customized = null;
  unknown = why instanceof Trouble ? why : new Trouble("No setting is known: nothing was sent.", "Reload this page.");
}

const percent = (share) => `${Math.round(100 * share)} %`;

function loss(utility, baseline) {
  if (!utility || !baseline) return null;
  const lost = Math.round(100 * (1 - utility.value / baseline));
  return lost > 0 ? `−${lost} %` : "no loss";
}

/** Figures and sentences of what was measured; nothing where nothing was. */
function figures({ risk, utility, baseline, sentences }) {
  const rows = [
    [risk.query && `${Math.round(100 * risk.query.value)} in 100`, sentences.query],
    [risk.words && percent(risk.words.value), sentences.words],
    [loss(utility, baseline), sentences.utility],
  ].filter(([figure, sentence]) => figure && sentence);
  return rows.length
    ? el("dl", { class: "facts" }, rows.map(([figure, sentence]) => [el("dt", {}, figure), el("dd", {}, sentence)]).flat())
    : null;
}

function render(setting) {
  byId("voice-words").textContent = setting.line ?? "A setting of your own.";
  byId("release-words").textContent = RELEASES[setting.release];
  for (const name of FIELDS) byId(name).value = setting[name] ?? "";
  byId("epsilon").disabled = setting.epsilon === null;
  show(
    byId("meaning"),
    setting.warning && el("p", { class: "plain" }, setting.warning),
    figures(setting),
    setting.not_measured && el("p", { class: "hint" }, setting.not_measured),
    el("p", { class: "hint" }, `Promise: ${setting.guarantee.sentence}`),
    folded("What the promise does not cover", setting.guarantee.caveats),
  );
  for (const listener of listeners) listener(setting);
}

const details = ({ mechanism, epsilon, n, release }) => ({
  mechanism,
  n,
  release,
  ...(epsilon !== null && { epsilon }),
});

/** What the details say; another mechanism begins with its own epsilon and release. */
function read(changed) {
  const setting = { mechanism: byId("mechanism").value };
  if (byId("n").value) setting.n = byId("n").valueAsNumber;
  if (changed === "mechanism") return setting;
  if (byId("epsilon").value) setting.epsilon = byId("epsilon").valueAsNumber;
  return { ...setting, release: byId("release").value };
}

/** The details were changed: ask what is known of exactly this setting. */
async function describe(changed) {
  const voice = selected();
  if (voice) byId(`voice-${voice.id}`).checked = false;
  customized = null;
  const turn = (waiting += 1);
  try {
    quiet();
    const setting = await call("POST", "/v1/setting", read(changed));
    if (turn !== waiting || selected()) return;
    customized = details(setting);
    render(setting);
  } catch (error) {
    if (turn !== waiting || selected()) return;
    noSetting(error);
    show(byId("meaning"), el("p", { class: "plain" }, "This setting cannot be had: nothing is sent with it."));
    complain(error);
  }
}

/** Draw the control, with the default voice chosen. */
export function showVoices(described) {
  voices = described.voices;
  byId("voices").append(
    ...voices.map((voice, at) =>
      el(
        "label",
        { class: "voice" },
        el("input", {
          type: "radio",
          name: "voice",
          id: `voice-${voice.id}`,
          value: voice.id,
          checked: voice.id === described.default,
          onchange: () => render(voice),
        }),
        el("i", { "aria-hidden": "true" }),
        el("span", {}, voice.name),
        el("em", { "aria-hidden": "true" }, DYNAMICS[at]),
      ),
    ),
  );
  byId("voice-why").textContent = described.why_default;
  byId("own-queries").textContent = described.own_queries ? sentence(described.own_queries) : "";
  byId("own-queries").hidden = !described.own_queries;
  for (const name of FIELDS) byId(name).addEventListener("change", () => (asking = describe(name)));
  render(selected());
}

/** What one search with this setting costs, in words. */
export const priceOf = ({ cost, guarantee }) =>
  cost === null
    ? "Nothing bounds what a search gives away."
    : `A search costs ${number(cost)} nats${guarantee.metric ? ` per unit of ${guarantee.metric} distance` : ""}.`;
