/** Elements with text, never with markup: what a stranger wrote cannot become part of the page. */

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

/** An element; children are nodes or strings, which become text. */
export const el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export const show = (node, ...children) =>
  node.replaceChildren(...children.flat().filter((child) => child != null && child !== false));

/** A list under a disclosure: there for those who want to know. */
export const folded = (title, items) =>
  items?.length
    ? el("details", {}, el("summary", {}, title), el("ul", {}, items.map((item) => el("li", {}, item))))
    : null;

/** A text with some of its parts marked; spans count Unicode characters, as the service does. */
export function marked(text, spans, describe) {
  const characters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const [start, end] of spans) {
    parts.push(characters.slice(at, start).join(""));
    parts.push(el("mark", describe ? { title: describe } : {}, characters.slice(start, end).join("")));
    at = end;
  }
  parts.push(characters.slice(at).join(""));
  return parts.filter((part) => part !== "");
}

/** A number as people write it. */
export const number = (value) =>
  value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 10 ? 2 : 1 });
