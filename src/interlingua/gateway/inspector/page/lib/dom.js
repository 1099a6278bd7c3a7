// Elements and text nodes. Captured text becomes text nodes only: nothing here parses HTML.

import { visible } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

/** Create an element. `props`: attributes; `class`; `on…` listeners; `style` as an object; properties of the element. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Create an SVG element. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  append(element, children);
  return element;
}

function setProp(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
  else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
  else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Append children: elements, texts, numbers, and lists of them. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replace all children of an element. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Replace all children of an element that changes while it is used. A link or button that had the focus keeps it. */
export function update(element, ...children) {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const { scrollTop } = element;
  replace(element, ...children);
  element.scrollTop = scrollTop;
  if (active === null || active === element || active.isConnected) return;
  const isSame = (one) => one.getAttribute("href") === active.getAttribute("href") && (one.hasAttribute("href") || one.textContent === active.textContent);
  [...element.querySelectorAll(active.tagName)].find(isSame)?.focus({ preventScroll: true });
}

/** Captured text with some of its ranges marked. `ranges`: [{start, end, kind}], which do not overlap. */
export function marked(text, ranges) {
  const nodes = [];
  let position = 0;
  for (const { start, end, kind } of [...ranges].sort((a, b) => a.start - b.start)) {
    if (start < position || end <= start) continue;
    nodes.push(visible(text.slice(position, start)), h("mark", { class: kind ? `mark ${kind}` : "mark" }, visible(text.slice(start, end))));
    position = end;
  }
  nodes.push(visible(text.slice(position)));
  return nodes.filter((node) => node !== "");
}

/** Icon of the built-in set, hidden from screen readers. */
export function icon(name) {
  const shapes = ICONS[name] ?? [];
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, shapes.map((d) => svg("path", { d })));
}

const ICONS = {
  play: ["M5 3.5v9l7-4.5z"],
  pause: ["M5 3.5v9M11 3.5v9"],
  up: ["M3.5 10 8 5.5 12.5 10"],
  back: ["M10 3.5 5.5 8l4.5 4.5"],
  forward: ["M6 3.5 10.5 8 6 12.5"],
  search: ["M7 2.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4M10.2 10.2 13.5 13.5"],
  close: ["M4 4l8 8M12 4l-8 8"],
  sun: ["M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9"],
  moon: ["M12.8 9.6A5.4 5.4 0 0 1 6.4 3.2a5.4 5.4 0 1 0 6.4 6.4z"],
  auto: ["M8 2.2a5.8 5.8 0 1 0 0 11.6A5.8 5.8 0 0 0 8 2.2M8 2.2v11.6"],
  download: ["M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13.2h10"],
  flag: ["M4 14V2.5M4 3h7.5l-1.8 2.7 1.8 2.8H4"],
  keys: ["M2 4.5h12v7H2zM4.5 7h.1M7 7h.1M9.5 7h.1M12 7h.1M5 9.5h6"],
};
