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
  const badges = findingBadges(findings);
  if (!badges.length) return null;
  badges[0].title = badges.map((badge) => badge.title).join("\n");
  return badges[0];
}

/** Badges with the number of findings of each severity, the most severe first. */
export function findingBadges(findings) {
  return SEVERITIES.map((severity) => {
    const kinds = Object.entries(findings ?? {}).filter(([kind]) => severityOf(kind) === severity);
    if (!kinds.length) return null;
    const total = kinds.reduce((sum, [, number]) => sum + number, 0);
    const names = kinds.map(([kind, number]) => (number > 1 ? `${kind} × ${number}` : kind));
    return h("span", { class: `badge finding ${severity}`, title: `${severity}: ${names.join(", ")}` }, icon("flag"), total, h("span", { class: "visually-hidden" }, ` ${severity}`));
  }).filter(Boolean);
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
