/** What is being done right now, for the eye and for the ear. */

import { byId, el, show } from "./dom.js";

const NAMES = {
  obfuscating: "Altering your words",
  sending: "Sending",
  reranking: "Sorting what came back, here",
};
const ORDER = Object.keys(NAMES);

const say = (text) => {
  byId("said").textContent = text;
};

/** Show the steps with one of them under way. */
export function step(name, detail = "") {
  const at = ORDER.indexOf(name);
  if (at < 0) return;
  byId("steps").hidden = false;
  show(
    byId("steps"),
    ORDER.map((name, position) =>
      el(
        "li",
        { class: position < at ? "done" : position === at ? "now" : "", "aria-current": position === at && "step" },
        NAMES[name] + (position === at && detail ? ` ${detail}` : ""),
      ),
    ),
  );
  if (byId("said").dataset.step !== name) say(`${NAMES[name]} …`);
  byId("said").dataset.step = name;
}

/** All steps are over: say what came of them. */
export function ended(text) {
  byId("steps").hidden = true;
  delete byId("said").dataset.step;
  say(text);
}
