// The list of exchanges: loaded once, then kept up to date by the server.

import { follow, getJson, isExported } from "./api.js";

const exchanges = new Map();
const listeners = new Set();
let version = 0;
let sorted = null;

export const state = { info: null, connection: "loading", error: null };

/** Call the function after each change of the list. Returns a function that stops it. */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify() {
  sorted = null;
  for (const listener of [...listeners]) listener();
}

/** Load the list, and follow its changes. */
export async function loadExchanges() {
  state.info = await getJson("info");
  const list = await getJson("exchanges");
  version = list.version;
  for (const one of list.exchanges) exchanges.set(one.id, one);
  state.connection = isExported ? "exported" : "live";
  notify();
  if (!isExported) follow("changes", () => ({ version }), applyChanges, setConnection, new AbortController().signal);
}

function applyChanges(change) {
  version = change.version;
  for (const one of change.changed) exchanges.set(one.id, one);
  for (const id of change.removed) exchanges.delete(id);
  notify();
}

function setConnection(connection) {
  if (state.connection === connection) return;
  state.connection = connection;
  notify();
}

/** All exchanges, the newest first. */
export function allExchanges() {
  sorted ??= [...exchanges.values()].sort((a, b) => b.time - a.time);
  return sorted;
}

export function findExchange(id) {
  return exchanges.get(id);
}

export const FILTERS = {
  client: { label: "Client", values: (one) => [one.client] },
  model: { label: "Model", values: (one) => [one.upstream_model || one.model] },
  upstream: { label: "Upstream", values: (one) => [one.upstream] },
  key: { label: "Key", values: (one) => [one.key] },
  status: { label: "Status", values: (one) => [statusName(one)] },
  finding: { label: "Finding", values: (one) => Object.keys(one.findings ?? {}) },
};

/** Name of the status of an exchange for filters: open, ok, or what went wrong. */
export function statusName(one) {
  if (one.outcome === "open") return "open";
  if (one.outcome === "ok") return "ok";
  return one.outcome || "unknown";
}

export function isFailed(one) {
  return !["ok", "open", "client-left"].includes(one.outcome ?? "");
}

/** Exchanges that match the filters. `found`: ids with the searched text; null if there is none. */
export function filterExchanges(filters, found) {
  const tests = Object.entries(FILTERS).filter(([name]) => filters[name]);
  if (!tests.length && !found) return allExchanges();
  return allExchanges().filter(
    (one) => (!found || found.has(one.id)) && tests.every(([name, { values }]) => values(one).includes(filters[name])),
  );
}

/** Values of a filter with the number of exchanges, the most frequent first. */
export function filterValues(name) {
  const counts = new Map();
  for (const one of allExchanges()) {
    for (const value of FILTERS[name].values(one)) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}
