// Exchanges: the list with its filters, and the exchange that is open beside it.

import { getJson } from "../lib/api.js";
import { h, icon, replace } from "../lib/dom.js";
import { bytes, count, dateAndTime, duration, plural, rem, short, timeOfDay, visible } from "../lib/format.js";
import { addShortcuts } from "../lib/keyboard.js";
import { currentRoute, navigate, replaceQuery, routeUrl } from "../lib/router.js";
import { FILTERS, allExchanges, filterExchanges, filterValues, isFailed, state, statusName, subscribe } from "../lib/store.js";
import { createVirtualList } from "../lib/virtual_list.js";
import { exchangeView } from "./exchange.js";

const ROW_HEIGHT = 2.25; // rem
const COMPACT_ROW_HEIGHT = 3.4;
const SEARCH_DELAY = 300;
const COLUMNS = ["Time", "Status", "Client", "Request", "Model", "Calls", "Findings", "Tokens", "First byte", "Duration"];

/** Create the view. `update(route)` shows another exchange or other filters. */
export function exchangesView(route) {
  let filters = route.query;
  let found = null; // ids with the searched text
  let rows = [];
  let selected = -1;
  let longest = 1;
  let open = null; // view of the exchange that is shown

  const list = createVirtualList({ rowHeight: rem(ROW_HEIGHT), renderRow, label: "Exchanges", className: "exchange-rows" });
  const head = h("div", { class: "exchange-head", role: "row" }, COLUMNS.map((name) => h("span", { role: "columnheader", class: `c-${name.toLowerCase().replace(" ", "-")}` }, name)));
  const table = h("div", { class: "exchange-table", role: "table", "aria-label": "Exchanges" }, h("div", { role: "rowgroup" }, head), list.element);
  const empty = h("div", { class: "empty", hidden: true });
  const summary = h("p", { class: "list-summary", role: "status" });
  const filterBar = createFilterBar(() => filters, setFilters, setSearch);
  const listPane = h("section", { class: "list-pane", "aria-label": "List of exchanges" }, filterBar.element, summary, table, empty);
  const detailPane = h("section", { class: "detail-pane", "aria-label": "Exchange" });
  const element = h("div", { class: "exchanges" }, listPane, detailPane);

  function setFilters(next) {
    filters = next;
    replaceQuery(filters);
    refresh();
  }

  async function setSearch(text) {
    filters = { ...filters, text };
    replaceQuery(filters);
    found = text ? new Set(await getJson("search", { text })) : null;
    if ((filters.text ?? "") === text) refresh();
  }

  function refresh() {
    const selectedId = rows[selected]?.id;
    rows = filterExchanges(filters, found);
    longest = usualDuration(rows);
    selected = rows.findIndex((one) => one.id === (openId() ?? selectedId));
    table.setAttribute("aria-rowcount", String(rows.length + 1));
    list.setCount(rows.length);
    list.refresh();
    filterBar.refresh();
    showEmpty();
    const total = allExchanges().length;
    replace(summary, rows.length === total ? "" : `${count(rows.length)} of ${plural(total, "exchange")}`);
  }

  function showEmpty() {
    empty.hidden = rows.length > 0;
    table.hidden = rows.length === 0;
    if (rows.length) return;
    if (allExchanges().length) {
      replace(empty, h("h2", {}, "No exchange matches"), h("button", { type: "button", onClick: clearFilters }, "Show all exchanges"));
    } else if (state.info?.is_live) {
      replace(empty, h("h2", {}, "Waiting for the first request"), h("p", {}, "Send one through the gateway: it appears here at once."));
    } else {
      const problems = (state.info?.problems ?? []).slice(0, 5).map((problem) => h("li", {}, problem));
      replace(empty, h("h2", {}, "No captures yet"), h("p", {}, "Files that appear in the folder are shown here."), problems.length ? h("ul", {}, problems) : null);
    }
  }

  function clearFilters() {
    found = null;
    setFilters({});
  }

  function openId() {
    return currentRoute().parts[1];
  }

  // ── rows ──

  function renderRow(index) {
    const one = rows[index];
    const isCompact = element.classList.contains("with-detail");
    const row = isCompact ? compactRow(one) : wideRow(one);
    row.setAttribute("aria-rowindex", String(index + 2));
    row.classList.toggle("selected", index === selected);
    row.classList.toggle("failed", isFailed(one));
    row.addEventListener("click", (event) => {
      if (!event.target.closest("a")) openExchange(index);
    });
    return row;
  }

  function link(one, ...children) {
    const isOpen = one.id === openId();
    return h("a", { href: exchangeUrl(one.id), "aria-current": isOpen ? "true" : null }, ...children);
  }

  function exchangeUrl(id) {
    return routeUrl(["exchanges", id, currentRoute().parts[2] ?? "reply"], filters);
  }

  function wideRow(one) {
    const cell = (name, ...children) => h("span", { role: "cell", class: `c-${name}` }, ...children);
    return h(
      "div",
      { class: "exchange-row", role: "row" },
      cell("time", h("time", { title: dateAndTime(one.time) }, timeOfDay(one.time))),
      cell("status", statusPill(one)),
      cell("client", visible(one.client || "unknown")),
      cell("request", returnedChip(one), link(one, titleOf(one))),
      cell("model", h("span", { class: "mono", title: `${one.upstream_model || one.model} at ${one.upstream || "no upstream"}` }, modelOf(one))),
      cell("calls", one.calls ? h("span", { class: "badge call" }, one.calls) : h("span", { class: "none" }, "–")),
      cell("findings", findingBadge(one)),
      cell("tokens", tokenCell(one)),
      cell("first-byte", duration(one.first_byte)),
      cell("duration", durationBar(one, longest)),
    );
  }

  function compactRow(one) {
    return h(
      "div",
      { class: "exchange-row compact", role: "row" },
      h("span", { role: "cell", class: "c-request" }, statusDot(one), returnedChip(one), link(one, titleOf(one))),
      h(
        "span",
        { role: "cell", class: "c-facts" },
        h("time", {}, timeOfDay(one.time)),
        h("span", { class: "mono" }, modelOf(one)),
        one.calls ? h("span", { class: "badge call" }, plural(one.calls, "call")) : null,
        Object.keys(one.findings ?? {}).length ? findingBadge(one) : null,
        h("span", { class: "quiet" }, duration(one.seconds)),
      ),
    );
  }

  // ── the open exchange ──

  function showDetail(parts, query) {
    const [, id, tab] = parts;
    element.classList.toggle("with-detail", Boolean(id));
    list.setRowHeight(rem(id ? COMPACT_ROW_HEIGHT : ROW_HEIGHT));
    if (!id) {
      open?.stop();
      open = null;
      replace(detailPane);
      return;
    }
    if (open?.id === id) {
      open.showTab(tab, query);
    } else {
      open?.stop();
      open = exchangeView(id, tab, query, () => navigate(["exchanges"], filters));
      replace(detailPane, open.element);
    }
  }

  function openExchange(index) {
    const one = rows[index];
    if (one) location.hash = exchangeUrl(one.id);
  }

  function move(step) {
    if (!rows.length) return;
    selected = Math.min(Math.max(selected + step, 0), rows.length - 1);
    list.scrollToIndex(selected);
    if (openId()) openExchange(selected);
    else list.refresh();
  }

  const removeShortcuts = addShortcuts("List of exchanges", {
    j: ["Next exchange", () => move(1)],
    k: ["Previous exchange", () => move(-1)],
    Enter: ["Open the selected exchange", () => (openId() ? false : openExchange(selected))],
    "/": ["Search", () => filterBar.focus()],
    Escape: ["Close the exchange", () => (openId() ? navigate(["exchanges"], filters) : false)],
  });

  const unsubscribe = subscribe(refresh);
  showDetail(route.parts, route.query);
  if (filters.text) setSearch(filters.text);
  refresh();
  list.scrollToIndex(Math.max(selected, 0), "start");

  return {
    element,
    update(next) {
      const { text, ...kept } = next.query;
      if (next.parts.length < 2 || Object.keys(kept).length) filters = filtersOf(next.query, filters, next.parts);
      showDetail(next.parts, next.query);
      refresh();
    },
    stop() {
      unsubscribe();
      removeShortcuts();
      open?.stop();
      list.stop();
    },
  };
}

/** Duration that fills the bar of a row: that of a slow exchange, but not of the slowest one. */
function usualDuration(rows) {
  const durations = rows.slice(0, 500).map((one) => one.seconds ?? 0).sort((a, b) => a - b);
  return Math.max(durations[Math.floor(durations.length * 0.85)] ?? 0, 0.001);
}

/** Filters in a query. Views of an exchange have other names in it, too. */
function filtersOf(query, filters, parts) {
  const names = [...Object.keys(FILTERS), "text"];
  const own = Object.fromEntries(Object.entries(query).filter(([name]) => names.includes(name)));
  return parts.length < 2 || Object.keys(own).length ? own : filters;
}

/** Status of an exchange as a small label. */
export function statusPill(one) {
  const name = statusName(one);
  const text = name === "ok" ? String(one.status || "ok") : name === "open" ? "open" : one.status >= 400 ? String(one.status) : name;
  return h("span", { class: `pill ${isFailed(one) ? "bad" : name === "open" ? "busy" : name === "ok" ? "good" : "plain"}`, title: one.error || name }, text);
}

function statusDot(one) {
  const kind = isFailed(one) ? "bad" : one.outcome === "open" ? "busy" : one.outcome === "ok" ? "good" : "plain";
  return h("span", { class: `dot ${kind}`, role: "img", "aria-label": statusName(one), title: one.error || statusName(one) });
}

function findingBadge(one) {
  const kinds = Object.entries(one.findings ?? {});
  const total = kinds.reduce((sum, [, number]) => sum + number, 0);
  if (!total) return h("span", { class: "none" }, "–");
  return h("span", { class: "badge finding", title: kinds.map(([kind, number]) => `${kind}${number > 1 ? ` × ${number}` : ""}`).join(", ") }, icon("flag"), total);
}

function tokenCell(one) {
  const { input, output, cached, estimated } = one.tokens ?? {};
  if (input === undefined) return h("span", { class: "none" }, one.bytes_in ? bytes(one.bytes_in) : "–");
  const share = input ? Math.min(cached / input, 1) : 0;
  return h(
    "span",
    { class: "tokens", title: `${count(input)} in (${count(cached)} cached), ${count(output)} out${estimated ? ", estimated" : ""}` },
    h("span", {}, short(input), h("span", { class: "quiet" }, " → "), short(output)),
    h("span", { class: "meter", role: "img", "aria-label": `${Math.round(100 * share)} % cached` }, h("span", { style: { width: `${100 * share}%` } })),
  );
}

function durationBar(one, longest) {
  if (one.seconds === null || one.seconds === undefined) return h("span", { class: "quiet" }, "…");
  const scale = (seconds) => `${Math.min((100 * seconds) / longest, 100)}%`;
  return h(
    "span",
    { class: "duration" },
    h("span", { class: "duration-text" }, duration(one.seconds)),
    h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: "bar-wait", style: { width: scale(Math.min(one.first_byte ?? one.seconds, one.seconds)) } }), h("span", { class: "bar-stream", style: { width: scale(Math.max(one.seconds - (one.first_byte ?? one.seconds), 0)) } })),
  );
}

/** Filters of the list: a text, and a choice for each facet. */
function createFilterBar(getFilters, setFilters, setSearch) {
  const search = h("input", { type: "search", placeholder: "Search requests and replies", "aria-label": "Search requests and replies", value: getFilters().text ?? "" });
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => setSearch(search.value.trim()), SEARCH_DELAY);
  });
  const selects = Object.entries(FILTERS).map(([name, { label }]) => {
    const select = h("select", { "aria-label": label, "data-filter": name, onChange: () => setFilters({ ...getFilters(), [name]: select.value }) });
    return [name, label, select];
  });
  const facets = h("div", { class: "facets" }, selects.map(([, , select]) => select));
  const element = h("div", { class: "filter-bar", role: "search" }, h("label", { class: "search-field" }, icon("search"), search), facets);
  let shown = "";

  function refresh() {
    const filters = getFilters();
    const options = selects.map(([name]) => filterValues(name));
    const key = JSON.stringify([options, filters]);
    if (key === shown) return;
    shown = key;
    selects.forEach(([name, label, select], index) => {
      const value = filters[name] ?? "";
      const known = options[index];
      const all = value && !known.some(([one]) => one === value) ? [[value, 0], ...known] : known;
      replace(select, h("option", { value: "" }, `${label}: all`), all.map(([one, number]) => h("option", { value: one, selected: one === value }, `${one} (${number})`)));
      select.classList.toggle("active", Boolean(value));
      select.hidden = !all.length;
    });
  }

  return { element, refresh, focus: () => search.focus() };
}

/** The text of the user that a request is about. */
export function titleOf(one) {
  return visible(one.title || one.path || one.id);
}

function modelOf(one) {
  return visible(one.upstream_model || one.model || "–");
}

/** Names of the tools whose results a request returns. */
export function returnedChip(one) {
  const names = one.returned ?? [];
  if (!names.length) return null;
  const text = names.length > 1 ? `${names[0]} +${names.length - 1}` : names[0];
  return h("span", { class: "chip call", title: `returns the result of ${names.join(", ")}` }, `↳ ${visible(text)}`);
}
