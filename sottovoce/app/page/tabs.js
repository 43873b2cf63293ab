/** Tabs that work with arrows, and the switch between light and dark. */

import { byId } from "./dom.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];

function select(tab) {
  for (const other of tabs) {
    const selected = other === tab;
    other.setAttribute("aria-selected", selected);
    other.tabIndex = selected ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !selected;
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
  let theme = localStorage.getItem("sottovoce-theme");
  const apply = () => {
    const dark = theme ? theme === "dark" : system.matches;
    if (theme) document.documentElement.dataset.theme = theme;
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
    return dark;
  };
  apply();
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    theme = apply() ? "light" : "dark";
    localStorage.setItem("sottovoce-theme", theme);
    apply();
  });
}
