// The list of exchanges: loaded once, then kept up to date by the server.

import { follow, getJson, isExported } from "./api.js";
import { whenReleased } from "./pointer.js";

const RECONNECT_MILLISECONDS = 2000;

const exchanges = new Map();
const listeners = new Set();
let sorted = null;

/**
 * `connection`: `loading`, `live`, `lost`, `denied` if the key is wrong, or `exported`. `problems`: files that cannot be
 * read. `version`: number of the last change.
 */
export const state = { info: null, connection: "loading", problems: [], version: 0 };

/** Call the function after each change of the list. Returns a function that stops it. */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Call the function after changes, but not more often than once in this time. Returns a function that stops it. */
export function subscribeSlowly(listener, milliseconds) {
  let timer = 0;
  const unsubscribe = subscribe(() => {
    timer ||= setTimeout(() => {
      timer = 0;
      listener();
    }, milliseconds);
  });
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
}

function notify() {
  sorted = null;
  whenReleased(tellListeners);
}

function tellListeners() {
  for (const listener of [...listeners]) listener();
}

/** Load the list, and follow its changes. */
export async function startStore() {
  state.info = await getJson("info");
  await loadList();
  if (!isExported) followChanges();
}

async function loadList() {
  const list = await getJson("exchanges");
  exchanges.clear();
  for (const one of list.exchanges) exchanges.set(one.id, one);
  state.version = list.version;
  state.problems = list.problems ?? [];
  state.connection = isExported ? "exported" : "live";
  notify();
}

/** Follow the changes for ever. After a lost connection the list is loaded anew: the gateway may be another one. */
async function followChanges() {
  for (;;) {
    try {
      if (state.connection === "lost") await loadList();
      await follow("changes", { version: state.version }, applyChanges);
    } catch (error) {
      if (error.status === 401) {
        setConnection("denied");
        return;
      }
    }
    setConnection("lost");
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MILLISECONDS));
  }
}

function applyChanges(change) {
  state.version = change.version;
  state.problems = change.problems ?? [];
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
