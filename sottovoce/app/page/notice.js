/** Trouble, in plain words, with what to do. */

import { Trouble } from "./api.js";
import { byId, el, show } from "./dom.js";

const place = byId("notice");

export function complain(error) {
  if (error.name === "AbortError") return;
  const explained = error instanceof Trouble;
  show(
    place,
    el("p", {}, el("strong", {}, explained ? error.message : "This page has a fault.")),
    el("p", {}, explained ? error.todo : "Reload it; if that does not help, use the commands in the terminal."),
  );
  place.hidden = false;
  place.scrollIntoView({ block: "nearest" });
}

export function quiet() {
  place.hidden = true;
  show(place);
}
