// One request: what the client sent and what the upstream got, entry by entry, with the reason of each change.

import { getJson } from "../lib/api.js";
import { pretty } from "../lib/chunks.js";
import { clampedText } from "../lib/clamped_text.js";
import { h, replace } from "../lib/dom.js";
import { apiName, count, percent, plural, visible } from "../lib/format.js";
import { problemBlock } from "../lib/problem.js";
import { findingChip } from "./findings.js";

const SECTIONS = [
  ["setting", "Settings"],
  ["tool", "Tools"],
  ["system", "System prompt"],
  ["message", "Conversation"],
];
const CLAMP_CHARS = 600;
const MAX_RAW_CHARS = 200_000;
const IMAGE_URL = /^data:image\/[\w.+-]+;base64,(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/; // others are shown as text

/** Create the tab. */
export function requestTab(id) {
  const element = h("div", { class: "scroll-area request", tabindex: "0", role: "region", "aria-label": "Request" }, h("p", { class: "quiet" }, "Loading…"));
  let changes = null;
  let mode = "changes";

  async function load() {
    try {
      changes = await getJson(`exchanges/${encodeURIComponent(id)}/request`);
    } catch (error) {
      replace(element, problemBlock("There is no request to show", error));
      return;
    }
    if (!changes.rows.some((row) => row.change !== "same")) mode = "all";
    show();
  }

  function show() {
    const modes = [["changes", "Changes"], ["all", "Everything"], ["raw", "JSON"]];
    replace(
      element,
      h("div", { class: "segmented", role: "group", "aria-label": "Show" }, modes.map(([name, title]) => h("button", { type: "button", "aria-pressed": String(name === mode), onClick: () => { mode = name; show(); } }, title))),
      changes.problem ? h("p", { class: "problem" }, changes.problem) : null,
      mode === "raw" ? rawBodies(changes) : [tokenBars(changes), generalFindings(changes), SECTIONS.map(([part, title]) => section(part, title))],
    );
  }

  function section(part, title) {
    const rows = changes.rows.filter((row) => (row.client ?? row.upstream).part === part);
    const changed = rows.filter((row) => row.change !== "same");
    const shown = mode === "all" ? rows : changed;
    if (!rows.length) return null;
    return h(
      "section",
      { class: "request-section" },
      h("h3", {}, title, h("span", { class: "quiet" }, ` ${plural(rows.length, "entry", "entries")}, ${changed.length ? `${count(changed.length)} changed` : "none changed"}`)),
      shown.length
        ? h(
            "div",
            { class: "pairs-table", role: "table", "aria-label": title },
            h("div", { role: "row", class: "pairs-head" }, h("span", { role: "columnheader" }, `Client · ${apiName(changes.client_wire)}`), h("span", { role: "columnheader" }, changes.upstream_wire ? `Upstream · ${apiName(changes.upstream_wire)}` : "Upstream · nothing was sent")),
            shown.map(pairRow),
          )
        : null,
    );
  }

  load();
  return { element, reload: load };
}

function pairRow(row) {
  // One column is too narrow for both: there, each cell has its own heading, and an entry that is the same is shown once.
  const clientSide = row.change === "same" ? "Client and upstream" : "Client";
  return h(
    "div",
    { class: `pair ${row.change}`, role: "row" },
    h("div", { role: "cell", class: "pair-side", "data-side": clientSide }, row.client ? entryBlock(row.client, row, "client") : h("span", { class: "absent" }, "not in the client's request")),
    h("div", { role: "cell", class: "pair-side", "data-side": "Upstream" }, row.upstream ? entryBlock(row.upstream, row, "upstream") : h("span", { class: "absent" }, row.change === "removed" ? "removed" : "not sent"), row.change === "same" ? null : reasons(row)),
  );
}

function entryBlock(entry, row, side) {
  const title = entry.label || { text: entry.role, thinking: "thinking", result: "tool result", image: "image", document: "document", "cache mark": "cache mark" }[entry.kind] || entry.kind;
  return h(
    "div",
    { class: `entry ${entry.kind}` },
    h(
      "div",
      { class: "entry-head" },
      h("span", { class: `chip ${chipKind(entry)}` }, entry.kind === "text" ? entry.role || "text" : entry.kind),
      h("b", {}, visible(title)),
      entry.id ? h("code", { class: row.fields?.includes("id") ? "changed-field" : "" }, entry.id) : null,
      entry.is_error ? h("span", { class: "pill bad" }, "error") : null,
      entry.note ? h("span", { class: row.fields?.includes("note") ? "changed-field" : "quiet" }, entry.note) : null,
      entry.tokens ? h("span", { class: "tokens-note" }, `≈ ${plural(entry.tokens, "token")}`) : null,
    ),
    side === "client" && row.client_path && row.client_path !== entry.label ? h("code", { class: "path" }, row.client_path) : null,
    entryContent(entry, row, side),
  );
}

function chipKind(entry) {
  return { thinking: "thinking", call: "call", result: "call", tool: "call", text: "text", "cache mark": "marker" }[entry.kind] ?? "other";
}

function entryContent(entry, row) {
  if (entry.kind === "image" && IMAGE_URL.test(entry.text ?? "")) {
    return h("img", { src: entry.text, alt: "Image in the conversation", class: "entry-image", loading: "lazy" });
  }
  const text = entry.kind === "call" ? pretty(entry.text ?? "") : entry.text ?? "";
  if (!text) return null;
  const isChanged = row.fields?.includes("text") && entry.kind !== "call";
  const ranges = isChanged ? [{ start: row.equal_start ?? 0, end: text.length - (row.equal_end ?? 0), kind: "changed" }] : [];
  return clampedText(text, { ranges, max: CLAMP_CHARS, props: { class: "entry-text" } });
}

function reasons(row) {
  return h(
    "ul",
    { class: "reasons" },
    (row.reasons ?? []).map((reason) =>
      h("li", {}, h("span", { class: "pill plain" }, reason.step), " ", reason.words, reason.finding ? [" ", findingChip(reason.finding)] : null),
    ),
  );
}

function generalFindings(changes) {
  if (!changes.findings.length) return null;
  return h(
    "section",
    { class: "request-section" },
    h("h3", {}, "Findings about the whole request"),
    h("ul", { class: "plain-list" }, changes.findings.map((finding) => h("li", {}, findingChip(finding.kind), " ", finding.message))),
  );
}

/** Bars of the tokens by part, for both sides. */
function tokenBars(changes) {
  const sides = [["Client", changes.client_tokens], ["Upstream", changes.upstream_tokens]].filter(([, parts]) => parts.length);
  if (!sides.length) return null;
  const most = Math.max(...sides.map(([, parts]) => parts.reduce((sum, part) => sum + part.tokens, 0)), 1);
  const names = [...new Set(sides.flatMap(([, parts]) => parts.map((part) => part.name)))];
  return h(
    "section",
    { class: "request-section" },
    h("h3", {}, "Tokens by part", h("span", { class: "quiet" }, changes.reported_tokens ? ` estimated; the upstream counted ${count(changes.reported_tokens)}` : " estimated")),
    sides.map(([title, parts]) => {
      const total = parts.reduce((sum, part) => sum + part.tokens, 0);
      return h(
        "div",
        { class: "token-bar-row" },
        h("span", { class: "token-bar-name" }, title),
        h("div", { class: "token-bar", role: "img", "aria-label": parts.map((part) => `${part.name} ${part.tokens}`).join(", ") }, parts.map((part) => h("span", { class: `series-${names.indexOf(part.name) % 8}`, style: { width: `${(100 * part.tokens) / most}%` }, title: `${part.name}: ${count(part.tokens)} tokens` }))),
        h("span", { class: "token-bar-total" }, count(total)),
      );
    }),
    h("ul", { class: "legend" }, names.map((name, index) => h("li", { class: `swatch series-${index % 8}` }, name, h("span", { class: "quiet" }, ` ${tokenCounts(sides, name)}`)))),
  );
}

function tokenCounts(sides, name) {
  return sides
    .map(([, parts]) => {
      const part = parts.find((one) => one.name === name);
      const total = parts.reduce((sum, one) => sum + one.tokens, 0);
      return part ? `${count(part.tokens)} (${percent(part.tokens, total)})` : "0";
    })
    .join(" → ");
}

function rawBodies(changes) {
  const bodies = [
    ["Client", changes.client_body ?? "", changes.client_headers ?? {}],
    ["Upstream", changes.upstream_body ?? "", changes.upstream_headers ?? {}],
  ];
  return h("div", { class: "raw-bodies" }, bodies.map(([title, body, headers]) => h("section", {}, h("h3", {}, title), headerList(headers), rawBody(body))));
}

function headerList(headers) {
  const names = Object.entries(headers);
  if (!names.length) return null;
  return h("details", {}, h("summary", {}, plural(names.length, "header")), h("dl", { class: "pairs" }, names.map(([name, value]) => [h("dt", { class: "mono" }, name), h("dd", { class: "mono" }, visible(value))])));
}

function rawBody(body) {
  if (!body) return h("p", { class: "quiet" }, "Nothing was sent.");
  return clampedText(pretty(body), { max: MAX_RAW_CHARS, props: { class: "code", tabindex: "0" } });
}
