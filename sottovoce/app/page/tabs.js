/** Tabs that work with arrows, and the switch between light and dark. */

import { byId } from "./dom.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];

function select(tab) {
  for (const each of tabs) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", chosen);
    each.tabIndex = chosen ? 0 : -1;
    byId(each.getAttribute("aria-controls")).hidden = !chosen;
  }
}

export function startTabs() {
  for (const [position, tab] of tabs.entries()) {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const to = {
        ArrowRight: (position + 1) % tabs.length,
        ArrowLeft: (position + tabs.length - 1) % tabs.length,
        Home: 0,
        End: tabs.length - 1,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      select(tabs[to]);
      tabs[to].focus();
    });
  }
}

export function startTheme() {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = localStorage.getItem("sottovoce-theme");
  const apply = () => {
    const dark = chosen ? chosen === "dark" : system.matches;
    if (chosen) document.documentElement.dataset.theme = chosen;
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
    return dark;
  };
  apply();
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    chosen = apply() ? "light" : "dark";
    localStorage.setItem("sottovoce-theme", chosen);
    apply();
  });
}
