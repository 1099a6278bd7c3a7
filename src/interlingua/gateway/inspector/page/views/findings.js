// Findings: their chip, the badge of an exchange, and their explanation.

import { h, icon } from "../lib/dom.js";
import { sentence } from "../lib/problem.js";
import { state } from "../lib/store.js";

const SEVERITIES = ["error", "warning", "info"]; // the most severe first

/** `error`: a part of the reply is lost. `warning`: the client or the model may notice it. `info`: harmless. */
export function severityOf(kind) {
  return state.info?.findings?.[kind]?.severity ?? "warning";
}

/** Kind of a finding in the colour of its severity. */
export function findingChip(kind) {
  return h("span", { class: `chip finding ${severityOf(kind)}`, title: severityOf(kind) }, kind);
}

/** Badge of an exchange: the number of its most severe findings. `findings`: numbers by kind. Returns null without any. */
export function findingBadge(findings) {
  const kinds = Object.entries(findings ?? {});
  const severity = SEVERITIES.find((one) => kinds.some(([kind]) => severityOf(kind) === one));
  if (!severity) return null;
  const total = (one) => kinds.filter(([kind]) => severityOf(kind) === one).reduce((sum, [, number]) => sum + number, 0);
  const lines = SEVERITIES.filter(total).map((one) => `${one}: ${kinds.filter(([kind]) => severityOf(kind) === one).map(([kind, number]) => (number > 1 ? `${kind} × ${number}` : kind)).join(", ")}`);
  return h("span", { class: `badge finding ${severity}`, title: lines.join("\n") }, icon("flag"), total(severity), h("span", { class: "visually-hidden" }, ` ${severity}`));
}

/** What a finding means, what to do about it, and the setting that changes it. */
export function findingHelp(kind) {
  const help = state.info?.findings?.[kind];
  if (!help) return null;
  return h(
    "p",
    { class: "finding-help" },
    `${sentence(`${help.irregularity}: ${help.correction}`)} `,
    help.advice ? [h("b", {}, "What to do: "), withCode(sentence(help.advice)), " "] : null,
    help.setting ? [h("b", {}, "Setting: "), h("code", {}, help.setting)] : null,
  );
}

/** Text in which back-ticks stand around code. */
function withCode(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}
