// What a view shows instead of its content: nothing yet, or what went wrong.

import { h } from "./dom.js";

/** Title and text in the middle of an empty view. */
export function emptyBlock(title, ...content) {
  return h("div", { class: "empty" }, h("h2", {}, title), content.map((one) => (typeof one === "string" ? h("p", {}, one) : one)));
}

/** Block for an error of the server. Its hint begins with a small letter, because the command line prints it so. */
export function problemBlock(title, error) {
  return emptyBlock(title, sentence(error.message), sentence(error.hint ?? ""));
}

/** Text with a capital letter at its start and a full stop at its end. */
export function sentence(text) {
  if (!text) return "";
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");
}
