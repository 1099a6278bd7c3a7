// Prompt cache: where each turn parts from the turn before, what that costs, and who changed it.

import { getJson, isExported } from "../lib/api.js";
import { h, marked, replace } from "../lib/dom.js";
import { count, percent, plural } from "../lib/format.js";
import { problemBlock } from "../lib/problem.js";
import { routeUrl } from "../lib/router.js";

const PART_NAMES = {
  settings: "a setting",
  tools: "the tools",
  system: "the system prompt",
  messages: "the conversation",
  routing: "a setting that chooses the cache",
  "cache marks": "a mark for the cache",
};

/** Create the tab. */
export function cacheTab(id) {
  const element = h("div", { class: "scroll-area cache", tabindex: "0", role: "region", "aria-label": "Prompt cache" }, h("p", { class: "quiet" }, "Loading…"));

  async function load() {
    const path = `exchanges/${encodeURIComponent(id)}`;
    try {
      const turn = await getJson(`${path}/cache`);
      replace(element, verdict(turn), turn.report?.prefix_break ? breakDetails(turn.report.prefix_break) : null);
    } catch (error) {
      replace(element, problemBlock("The prompt cache cannot be shown", error));
      return;
    }
    if (!isExported) loadTurns(`${path}/thread-cache`);
  }

  /** Compare all turns. In a long conversation, that takes seconds. */
  async function loadTurns(path) {
    const waiting = h("p", { class: "quiet", role: "status" }, "Comparing the turns of this conversation…");
    element.append(waiting);
    try {
      const turns = await getJson(path);
      waiting.replaceWith(...(turns.length > 1 ? [turnChart(turns, id)] : []));
    } catch (error) {
      waiting.replaceWith(problemBlock("The turns of this conversation cannot be compared", error));
    }
  }

  load();
  return { element };
}

function verdict(turn) {
  const { report } = turn;
  const reported = turn.cached_tokens === undefined || turn.cached_tokens === null ? "The upstream reported no usage." : `The upstream reported ${plural(turn.cached_tokens, "cached token")} of ${count(turn.input_tokens)} (${percent(turn.cached_tokens, turn.input_tokens)}).`;
  if (turn.problem) return h("section", { class: "card" }, h("h3", {}, "This turn cannot be compared"), h("p", {}, turn.problem));
  if (!report) return h("section", { class: "card" }, h("h3", {}, "First turn of the conversation"), h("p", {}, "There is nothing to reuse yet. ", reported));
  const { prefix_break: broken } = report;
  return h(
    "section",
    { class: `card verdict ${broken ? "broken" : "whole"}` },
    h("h3", {}, broken ? `The prompt parts from the turn before in ${PART_NAMES[broken.part]}` : "The prompt continues that of the turn before"),
    h(
      "p",
      {},
      broken
        ? ["About ", h("b", {}, plural(broken.lost_tokens, "token")), ` of ${count(report.previous_tokens)} have to be read again. `]
        : ["All ", h("b", {}, plural(report.previous_tokens, "token")), " of it can come from the cache. "],
      reported,
    ),
    shareBar(report),
  );
}

function shareBar(report) {
  const lost = Math.max(report.previous_tokens - report.shared_tokens, 0);
  const fresh = Math.max(report.total_tokens - report.previous_tokens, 0);
  const whole = Math.max(report.shared_tokens + lost + fresh, 1);
  const parts = [
    ["shared", report.shared_tokens, "can be reused"],
    ["lost", lost, "read again"],
    ["fresh", fresh, "new in this turn"],
  ];
  return [
    h("div", { class: "share-bar", role: "img", "aria-label": parts.map(([, tokens, name]) => `${tokens} tokens ${name}`).join(", ") }, parts.map(([kind, tokens]) => h("span", { class: `share ${kind}`, style: { width: `${(100 * tokens) / whole}%` } }))),
    h("ul", { class: "legend" }, parts.map(([kind, tokens, name]) => h("li", { class: `swatch share-${kind}` }, `${name}: ≈ ${count(tokens)}`))),
  ];
}

function breakDetails(broken) {
  const { difference } = broken;
  const isClient = broken.author === "client";
  return h(
    "section",
    { class: "card" },
    h("h3", {}, "First difference"),
    h(
      "dl",
      { class: "pairs" },
      h("dt", {}, "place"),
      h("dd", {}, h("code", {}, broken.path), difference.offset === undefined || difference.offset === null ? null : `, character ${count(difference.offset)}`),
      h("dt", {}, "kind"),
      h("dd", {}, difference.kind),
      h("dt", {}, "changed by"),
      h("dd", {}, h("span", { class: `pill ${isClient ? "plain" : "bad"}` }, isClient ? "the client" : "the gateway"), ` ${broken.reason}`),
      broken.hint ? [h("dt", {}, "what to do"), h("dd", {}, broken.hint)] : null,
    ),
    h("div", { class: "before-after" }, snippet("turn before", difference, difference.before ?? "", "removed"), snippet("this turn", difference, difference.after ?? "", "added")),
  );
}

/** Text around the difference, with the first different character marked. */
function snippet(title, difference, text, kind) {
  const other = kind === "removed" ? difference.after ?? "" : difference.before ?? "";
  let start = 0;
  let end = text.length;
  if (difference.offset !== undefined && difference.offset !== null) {
    while (start < end && text[start] === other[start]) start += 1;
    const shift = other.length - text.length;
    while (end > start && end + shift > start && text[end - 1] === other[end + shift - 1]) end -= 1;
  }
  const content = text ? marked(text, [{ start, end: Math.max(end, Math.min(start + 1, text.length)), kind }]) : h("span", { class: "absent" }, "nothing");
  return h("figure", {}, h("figcaption", {}, title), h("pre", { class: "code" }, content));
}

/** Bars of all turns of the conversation; each is a link to its turn. */
function turnChart(turns, id) {
  const most = Math.max(...turns.map((turn) => Math.max(turn.report?.total_tokens ?? 0, turn.input_tokens ?? 0)), 1);
  const bar = (kind, tokens) => h("span", { class: `share ${kind}`, style: { width: `${(100 * tokens) / most}%` } });
  return h(
    "section",
    { class: "card" },
    h("h3", {}, "Turns of this conversation"),
    h(
      "table",
      { class: "turn-table" },
      h("thead", {}, h("tr", {}, ["Turn", "Prompt", "Read again", "First difference", "By", "Cached, reported"].map((name) => h("th", { scope: "col", class: ["Read again", "Cached, reported"].includes(name) ? "number" : null }, name)))),
      h(
        "tbody",
        {},
        turns.map((turn, index) => {
          const { report } = turn;
          const broken = report?.prefix_break;
          const total = report?.total_tokens ?? turn.input_tokens ?? 0;
          const shared = report?.shared_tokens ?? 0;
          const lost = broken?.lost_tokens ?? 0;
          return h(
            "tr",
            { class: turn.id === id ? "selected" : "" },
            h("th", { scope: "row" }, h("a", { href: routeUrl(["exchanges", turn.id, "cache"]), "aria-current": turn.id === id ? "true" : null }, `${index + 1}`)),
            h("td", {}, h("span", { class: "share-bar small" }, bar("shared", shared), bar("lost", lost), bar("fresh", Math.max(total - shared - lost, 0)))),
            h("td", { class: "number" }, lost ? `≈ ${count(lost)}` : "–"),
            h("td", {}, broken ? h("code", {}, broken.path) : "–"),
            h("td", {}, broken ? broken.author : "–"),
            h("td", { class: "number" }, turn.cached_tokens === undefined || turn.cached_tokens === null ? "–" : `${count(turn.cached_tokens)} (${percent(turn.cached_tokens, turn.input_tokens)})`),
          );
        }),
      ),
    ),
  );
}
