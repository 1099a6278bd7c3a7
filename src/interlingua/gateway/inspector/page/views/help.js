// Help: what the page shows, and all keyboard shortcuts.

import { h, icon } from "../lib/dom.js";
import { keyName, listShortcuts } from "../lib/keyboard.js";

/** Open the help, or close it if it is open. */
export function showHelp() {
  const open = document.querySelector("dialog.help");
  if (open) {
    open.close();
    return;
  }
  const dialog = h("dialog", { class: "help", "aria-labelledby": "help-title", onClose: () => dialog.remove() });
  dialog.append(
    h(
      "header",
      {},
      h("h2", { id: "help-title" }, "Inspector"),
      h("button", { class: "icon-button", type: "button", "aria-label": "Close", onClick: () => dialog.close() }, icon("close")),
    ),
    h(
      "p",
      {},
      "An exchange is one request of a client and its reply. Open one to see what the model sent, what the client got, ",
      "and each step between them. Text that is held back, markers and findings are shown where they happen.",
    ),
    ...listShortcuts().map(({ title, rows }) =>
      h(
        "section",
        {},
        h("h3", {}, title),
        h("dl", { class: "shortcuts" }, rows.map(([key, description]) => [h("dt", {}, h("kbd", {}, keyName(key))), h("dd", {}, description)])),
      ),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}
