// Exports of an exchange: files to download, and a command to copy.

import { getExport } from "../lib/api.js";
import { h, icon, replace } from "../lib/dom.js";

const FORMATS = [
  ["html", "Page", "One HTML file with this exchange, to send to a colleague. No secrets, no network."],
  ["capture", "Capture", "The exchange as a file, for `interlingua inspect` and `translate --explain`."],
  ["cassette", "Cassette", "A recording that tests can replay offline."],
  ["fixture", "Fixture row", "The model's text and the reply, as a row for the fixtures of its dialect."],
  ["report", "Bug report", "Versions, findings and the upstream's messages in Markdown."],
];
const COMMANDS = [
  ["curl", "Copy curl to the gateway"],
  ["curl-upstream", "Copy curl to the upstream"],
];

/** Button with the menu of exports. `signal` ends its listeners. */
export function exportMenu(id, signal) {
  const status = h("p", { class: "export-status", role: "status" });
  const items = [
    ...FORMATS.map(([format, title, about]) => item(title, about, () => download(format))),
    ...COMMANDS.map(([format, title]) => item(title, "", () => copy(format))),
  ];
  const menu = h("div", { class: "menu", role: "group", "aria-label": "Export" }, items, status);
  const details = h(
    "details",
    { class: "export", onToggle: () => replace(status) },
    h("summary", { class: "button" }, icon("download"), "Export"),
    menu,
  );
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    details.querySelector("summary").focus();
    event.stopPropagation();
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (details.open && !details.contains(event.target)) details.open = false;
  }, { signal });

  async function download(format) {
    await report(async () => `Saved ${await getExport(id, format)}.`);
  }

  async function copy(format) {
    await report(async () => {
      const text = await getExport(id, format, {}, true);
      await navigator.clipboard.writeText(text.trim());
      return "Copied. Set API_KEY in the shell.";
    });
  }

  async function report(action) {
    replace(status, "…");
    try {
      replace(status, await action());
    } catch (error) {
      replace(status, h("span", { class: "bad" }, error.message, " ", error.hint ?? ""));
    }
  }

  return details;
}

function item(title, about, onClick) {
  return h("button", { type: "button", class: "menu-item", onClick }, h("b", {}, title), about ? h("span", {}, about) : null);
}
