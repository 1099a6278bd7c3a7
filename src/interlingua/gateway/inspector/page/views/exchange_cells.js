// Cells of exchanges in lists: status, title, findings, tokens, duration.

import { h } from "../lib/dom.js";
import { bytes, count, duration, short, visible } from "../lib/format.js";
import { isFailed, state, statusName } from "../lib/store.js";

/** The text of the user that a request is about. */
export function titleOf(one) {
  return visible(one.title || one.path || one.id);
}

/** The model that was asked. */
export function modelOf(one) {
  return visible(one.upstream_model || one.model || "–");
}

/** Names of the tools whose results a request returns. */
export function returnedChip(one) {
  const names = one.returned ?? [];
  if (!names.length) return null;
  const text = names.length > 1 ? `${names[0]} +${names.length - 1}` : names[0];
  return h("span", { class: "chip call", title: `returns the result of ${names.join(", ")}` }, `↳ ${visible(text)}`);
}

/** Status of an exchange as a small label. */
export function statusPill(one) {
  const name = statusName(one);
  const text = name === "ok" ? String(one.status || "ok") : name === "open" ? "open" : one.status >= 400 ? String(one.status) : name;
  return h("span", { class: `pill ${isFailed(one) ? "bad" : name === "open" ? "busy" : name === "ok" ? "good" : "plain"}`, title: one.error || name }, text);
}

/** Status of an exchange as a coloured dot. */
export function statusDot(one) {
  const kind = isFailed(one) ? "bad" : one.outcome === "open" ? "busy" : one.outcome === "ok" ? "good" : "plain";
  return h("span", { class: `dot ${kind}`, role: "img", "aria-label": statusName(one), title: one.error || statusName(one) });
}

/** Tokens in and out, and how many came from the cache. */
export function tokenCell(one) {
  const { input, output, cached, estimated } = one.tokens ?? {};
  if (input === undefined) return h("span", { class: "none", title: one.bytes_in ? `${bytes(one.bytes_in)} without a report of tokens` : null }, "–");
  const share = input ? Math.min(cached / input, 1) : 0;
  return h(
    "span",
    { class: "tokens", title: `${count(input)} in (${count(cached)} cached), ${count(output)} out${estimated ? ", estimated" : ""}` },
    h("span", {}, short(input), h("span", { class: "quiet" }, " → "), short(output)),
    share ? h("span", { class: "meter", role: "img", "aria-label": `${Math.round(100 * share)} % cached` }, h("span", { style: { width: `${100 * share}%` } })) : null,
  );
}

/** Duration of an exchange, and a bar of its wait and its stream. */
export function durationBar(one, longest) {
  if (one.seconds === null || one.seconds === undefined) return h("span", { class: "quiet" }, durationText(one));
  const scale = (seconds) => `${Math.min((100 * seconds) / longest, 100)}%`;
  return h(
    "span",
    { class: "duration" },
    h("span", { class: "duration-text" }, duration(one.seconds)),
    h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: "bar-wait", style: { width: scale(Math.min(one.first_byte ?? one.seconds, one.seconds)) } }), h("span", { class: "bar-stream", style: { width: scale(Math.max(one.seconds - (one.first_byte ?? one.seconds), 0)) } })),
  );
}

/** Seconds since the start of an exchange that is open in a running gateway; null for others. */
export function elapsed(one) {
  if (one.outcome !== "open" || !state.info?.is_live || state.connection !== "live") return null;
  return Math.max(Math.floor(Date.now() / 1000 - one.time), 0);
}

/** Duration of an exchange; of an open one, the time since its start. */
export function durationText(one) {
  const seconds = elapsed(one);
  return seconds === null ? duration(one.seconds) : `${duration(seconds)} …`;
}
