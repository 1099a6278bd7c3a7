// What if: the reply translated with another dialect, other options or for another API, beside the recorded one.

import { getJson } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { apiName, plural } from "../lib/format.js";
import { problemBlock } from "../lib/problem.js";
import { currentRoute, replaceQuery, routeUrl } from "../lib/router.js";
import { state } from "../lib/store.js";
import { findingChip } from "./findings.js";
import { partBlock } from "./reply.js";

const AS_RECORDED = "as recorded";

/** Create the tab. */
export function whatIfTab(id, query) {
  const results = h("div", { class: "results", "aria-live": "polite" });
  const fields = choices().map(([name, label, options]) => createField(name, label, options, query[`if-${name}`] ?? ""));
  const prefill = h("input", { type: "text", id: "if-prefill", value: query["if-prefill"] ?? "", placeholder: "<think>", spellcheck: "false" });
  const open = h("a", { class: "button", href: "#" }, "Open its timeline");
  const form = h(
    "form",
    { class: "what-if-form", onSubmit: (event) => event.preventDefault(), onChange: run },
    fields.map(({ element }) => element),
    h("div", { class: "field" }, h("label", { for: "if-prefill" }, "Prefill: end of the prompt"), prefill),
    h("div", { class: "field actions" }, open, h("button", { type: "reset", onClick: () => setTimeout(run) }, "Reset")),
  );
  const element = h("div", { class: "scroll-area what-if", tabindex: "0", role: "region", "aria-label": "What if" }, h("p", { class: "quiet" }, "Translate this capture again with the installed version, and with other settings."), form, results);
  let number = 0;

  function changes() {
    const chosen = Object.fromEntries(fields.map(({ name, select }) => [name, select.value]).filter(([, value]) => value));
    return prefill.value ? { ...chosen, prefill: prefill.value } : chosen;
  }

  async function run() {
    const wanted = changes();
    const query = Object.fromEntries(Object.entries(wanted).map(([name, value]) => [`if-${name}`, value]));
    if (currentRoute().parts[2] === "what-if") replaceQuery(query);
    open.href = routeUrl(["exchanges", id, "reply"], query);
    number += 1;
    const own = number;
    try {
      const result = await getJson(`exchanges/${encodeURIComponent(id)}/what-if`, wanted);
      if (own === number) show(result, Object.keys(wanted).length > 0);
    } catch (error) {
      if (own === number) replace(results, problemBlock("This cannot be translated", error));
    }
  }

  function show(result, isChanged) {
    const sides = [
      ["As the client received it", result.recorded, result.recorded],
      [`With the installed version, ${state.info?.version}`, result.unchanged, result.recorded],
      ...(isChanged ? [["With the changes", result.changed, result.unchanged]] : []),
    ];
    replace(results, sides.map(([title, outcome, base]) => outcomeColumn(title, outcome, base)));
  }

  run();
  return { element };
}

function choices() {
  const { dialects = [], wires = [] } = state.info ?? {};
  return [
    ["dialect", "Dialect", [["auto", "auto: by the model"], ["detect", "detect: by the text"], ...dialects.map((name) => [name, name])]],
    ["target", "API of the client", wires.map((wire) => [wire, apiName(wire)])],
    ["delivery", "Delivery of calls", [["stream", "stream"], ["whole", "whole"]]],
    ["arguments", "Arguments", [["repair", "repair"], ["exact", "exact"]]],
    ["reasoning", "Thinking", [["keep", "keep"], ["as_content", "as content"], ["drop", "drop"]]],
    ["tools", "Tools", [["unknown", "as if they were unknown"], ["none", "as if none was offered"]]],
  ];
}

function createField(name, label, options, value) {
  const select = h("select", { id: `if-${name}` }, h("option", { value: "" }, AS_RECORDED), options.map(([option, title]) => h("option", { value: option, selected: option === value }, title)));
  return { name, select, element: h("div", { class: "field" }, h("label", { for: `if-${name}` }, label), select) };
}

function outcomeColumn(title, outcome, base) {
  const isSame = JSON.stringify(comparable(outcome)) === JSON.stringify(comparable(base));
  const note = outcome === base ? null : h("span", { class: `pill ${isSame ? "good" : "bad"}` }, isSame ? "same reply" : "different");
  return h(
    "section",
    { class: "outcome" },
    h("h3", {}, title, " ", note),
    h("p", { class: "quiet" }, `${apiName(outcome.wire)} · ${outcome.dialect || "no dialect"} · ${plural(outcome.frames ?? 0, "frame")} · stopped: ${outcome.stop_reason || "not at all"}`),
    outcome.problem ? h("p", { class: "problem" }, outcome.problem) : null,
    outcome.failure ? h("p", { class: "problem" }, outcome.failure) : null,
    h("div", { class: "parts" }, outcome.parts.map((part, index) => partWithChange(part, base.parts[index], outcome === base)), base.parts.length > outcome.parts.length ? h("p", { class: "absent" }, `${plural(base.parts.length - outcome.parts.length, "part")} less`) : null),
    outcome.findings?.length ? h("ul", { class: "plain-list" }, outcome.findings.map((finding) => h("li", {}, findingChip(finding.kind), " ", finding.message))) : null,
  );
}

/** What two replies are compared by: not their ids, which are made anew. */
function comparable(outcome) {
  return [outcome.parts.map(({ kind, text, name, complete }) => [kind, text, name, complete]), outcome.stop_reason, outcome.failure ?? ""];
}

function partWithChange(part, base, isBase) {
  const block = partBlock({ kind: part.kind === "reasoning" ? "thinking" : part.kind, text: part.text, name: part.name, id: part.id, isComplete: part.complete !== false });
  if (!isBase && (base?.kind !== part.kind || base?.text !== part.text || base?.name !== part.name)) block.classList.add("different");
  return block;
}
