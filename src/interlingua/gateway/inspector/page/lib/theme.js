// Light and dark: as the system has it, or as the user chose.

import { h, icon, replace } from "./dom.js";

const NAME = "interlingua-inspector-theme";
const ORDER = ["auto", "light", "dark"];
const ICON_NAMES = { auto: "auto", light: "sun", dark: "moon" };
const LABELS = { auto: "as the system", light: "light", dark: "dark" };

function chosen() {
  try {
    return ORDER.includes(localStorage.getItem(NAME)) ? localStorage.getItem(NAME) : "auto";
  } catch {
    return "auto"; // an exported file may have no storage
  }
}

export function applyTheme() {
  document.documentElement.dataset.theme = chosen();
}

/** Choose the next theme. */
export function switchTheme() {
  const next = ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length];
  try {
    localStorage.setItem(NAME, next);
  } catch {
    // it lasts as long as the page
  }
  document.documentElement.dataset.theme = next;
  return next;
}

/** Button that switches between the themes. */
export function themeButton() {
  const button = h("button", { class: "icon-button", type: "button", onClick: () => show(switchTheme()) });
  function show(theme) {
    button.setAttribute("aria-label", `Theme: ${LABELS[theme]}. Switch`);
    button.title = `Theme: ${LABELS[theme]} (t)`;
    replace(button, icon(ICON_NAMES[theme]));
  }
  show(chosen());
  button.refresh = () => show(document.documentElement.dataset.theme);
  return button;
}
