// Exchanges: the list with its filters, and the exchange that is open beside it.

import { getJson } from "../lib/api.js";
import { h, icon, replace } from "../lib/dom.js";
import { count, dateAndTime, duration, isToday, plural, rem, timeOfDay, timeOfList, visible } from "../lib/format.js";
import { addShortcuts } from "../lib/keyboard.js";
import { whenReleased } from "../lib/pointer.js";
import { emptyBlock } from "../lib/problem.js";
import { currentRoute, navigate, replaceQuery, routeUrl } from "../lib/router.js";
import { FILTERS, allExchanges, filterExchanges, isFailed, state, subscribe } from "../lib/store.js";
import { createVirtualList } from "../lib/virtual_list.js";
import { exchangeView } from "./exchange.js";
import { durationBar, durationText, elapsed, modelOf, returnedChip, statusDot, statusPill, titleOf, tokenCell } from "./exchange_cells.js";
import { createFilterBar } from "./filter_bar.js";
import { findingBadge } from "./findings.js";

const ROW_HEIGHT = 2.25; // rem
const COMPACT_ROW_HEIGHT = 3.4;
const SEARCH_AGAIN_DELAY = 1000;
const HOLD_MILLISECONDS = 1500; // after the last movement of the pointer
const CLOCK_MILLISECONDS = 1000;
const NARROW = matchMedia("(max-width: 40rem)");
const COLUMNS = ["Time", "Status", "Client", "Request", "Model", "Calls", "Findings", "Tokens", "First byte", "Duration"];

/** Create the view. `update(route)` shows another exchange or other filters. */
export function exchangesView(route) {
  let filters = route.query;
  let found = null; // ids with the searched text
  let searchedVersion = 0;
  let searchTimer = 0;
  let searchProblem = null;
  let rows = [];
  let selected = -1;
  let longest = 1;
  let open = null; // view of the exchange that is shown
  let heldUntil = 0; // until then nothing changes, because the pointer moves
  let heldTimer = 0;
  let newAbove = 0; // rows that have come above those that are shown
  let isFollowing = true; // the newest rows are shown, unless the user has scrolled
  let isOwnScroll = false;
  let shownProblems = "";

  const list = createVirtualList({ rowHeight: rem(rowHeight(false)), renderRow, keyOf: (index) => rows[index].id, stateOf, label: "Exchanges", className: "exchange-rows" });
  const head = h("div", { class: "exchange-head", role: "row" }, COLUMNS.map((name) => h("span", { role: "columnheader", class: `c-${name.toLowerCase().replace(" ", "-")}` }, name)));
  const table = h("div", { class: "exchange-table", role: "table", "aria-label": "Exchanges" }, h("div", { role: "rowgroup" }, head), list.element);
  const empty = h("div", { hidden: true });
  const summary = h("p", { class: "list-summary", role: "status" });
  const newRows = h("button", { type: "button", class: "new-rows", hidden: true, onClick: scrollToTop });
  const problems = h("div", { class: "list-problems" });
  const filterBar = createFilterBar(() => filters, setFilters, setSearch);
  const listPane = h("section", { class: "list-pane", "aria-label": "List of exchanges" }, filterBar.element, problems, summary, newRows, table, empty);
  const detailPane = h("section", { class: "detail-pane", "aria-label": "Exchange" });
  const element = h("div", { class: "exchanges" }, listPane, detailPane);

  list.element.addEventListener("pointermove", () => { heldUntil = performance.now() + HOLD_MILLISECONDS; });
  list.element.addEventListener("scroll", onScroll, { passive: true });

  function setFilters(next) {
    filters = next;
    replaceQuery(filters);
    refresh();
  }

  async function setSearch(text) {
    filters = { ...filters, text };
    replaceQuery(filters);
    const version = state.version;
    searchProblem = null;
    let ids = null;
    try {
      ids = text ? new Set(await getJson("search", { text })) : null;
    } catch (error) {
      searchProblem = error;
    }
    if ((filters.text ?? "") !== text) return;
    found = ids;
    searchedVersion = version;
    refresh();
  }

  /** Search the exchanges that have changed since the last search. */
  async function searchAgain() {
    searchTimer = 0;
    const { text } = filters;
    const version = state.version;
    if (!found || version === searchedVersion) return;
    const ids = await getJson("search", { text, since: searchedVersion }).catch(() => []); // the next change brings it
    if (filters.text !== text || !found) return;
    searchedVersion = version;
    ids.forEach((id) => found.add(id));
    refresh();
  }

  /** Show the data of now, but not while the pointer moves, perhaps to a click. A list that is scrolled stays in place. */
  function refreshLive() {
    const wait = heldUntil - performance.now();
    if (wait > 0) {
      heldTimer ||= setTimeout(() => { heldTimer = 0; refreshLive(); }, wait);
      return;
    }
    const { firstVisible } = list;
    const anchor = rows[firstVisible]?.id;
    refresh();
    if (found && !searchTimer) searchTimer = setTimeout(searchAgain, SEARCH_AGAIN_DELAY);
    if (isFollowing && !list.element.matches(":has(:focus-visible)")) {
      if (firstVisible) scrollToTop();
      return;
    }
    const shift = rows.findIndex((one) => one.id === anchor) - firstVisible;
    if (shift <= 0) return;
    isOwnScroll = true;
    list.shift(shift);
    list.refresh();
    showNewAbove(newAbove + shift);
  }

  function onScroll() {
    if (!isOwnScroll) isFollowing = list.firstVisible === 0;
    isOwnScroll = false;
    if (list.firstVisible < newAbove) showNewAbove(list.firstVisible);
  }

  function scrollToTop() {
    list.element.scrollTop = 0;
    isFollowing = true;
    isOwnScroll = true;
    showNewAbove(0);
  }

  function showNewAbove(number) {
    newAbove = number;
    newRows.hidden = !number;
    replace(newRows, icon("up"), plural(number, "new exchange"));
  }

  function refresh() {
    const selectedId = rows[selected]?.id;
    rows = filterExchanges(filters, found);
    longest = usualDuration(rows);
    selected = rows.findIndex((one) => one.id === (openId() ?? selectedId));
    table.setAttribute("aria-rowcount", String(rows.length + 1));
    table.classList.toggle("with-dates", rows.length > 0 && !isToday(rows[rows.length - 1].time));
    list.setCount(rows.length);
    list.refresh();
    filterBar.refresh();
    showEmpty();
    showProblems();
    const total = allExchanges().length;
    replace(summary, searchProblem ? `The text was not searched: ${searchProblem.message}` : rows.length === total ? "" : `${count(rows.length)} of ${plural(total, "exchange")}`);
  }

  function showEmpty() {
    empty.hidden = rows.length > 0;
    table.hidden = rows.length === 0;
    if (rows.length) return;
    if (allExchanges().length) {
      replace(empty, emptyBlock("No exchange matches", h("button", { type: "button", onClick: clearFilters }, "Show all exchanges")));
    } else if (state.info?.is_live) {
      replace(empty, emptyBlock("Waiting for the first request", "Send one through the gateway: it appears here at once."));
    } else {
      replace(empty, emptyBlock("No captures yet", "Files that appear in the folder are shown here."));
    }
  }

  function showProblems() {
    const total = state.problems.length;
    const texts = state.problems.join("\n");
    if (texts === shownProblems) return;
    shownProblems = texts;
    replace(problems, total ? h("details", {}, h("summary", {}, `${plural(total, "file")} left out`), h("ul", {}, state.problems.map((problem) => h("li", {}, problem)))) : null);
  }

  function clearFilters() {
    found = null;
    filterBar.setText("");
    setFilters({});
  }

  function openId() {
    return currentRoute().parts[1];
  }

  function isCompact() {
    return NARROW.matches || element.classList.contains("with-detail");
  }

  // ── rows ──

  function renderRow(index) {
    const one = rows[index];
    const row = isCompact() ? compactRow(one) : wideRow(one);
    row.classList.toggle("selected", index === selected);
    row.classList.toggle("failed", isFailed(one));
    row.addEventListener("click", (event) => {
      if (!event.target.closest("a")) location.hash = exchangeUrl(one.id);
    });
    return row;
  }

  function stateOf(index) {
    const one = rows[index];
    return JSON.stringify([one, index === selected, one.id === openId(), isCompact(), longest, elapsed(one), currentRoute().parts[2]]);
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
      cell("time", h("time", { title: dateAndTime(one.time) }, timeOfList(one.time))),
      cell("status", statusPill(one)),
      cell("client", visible(one.client || "unknown")),
      cell("request", returnedChip(one), link(one, titleOf(one))),
      cell("model", h("span", { class: "mono", title: `${one.upstream_model || one.model} at ${one.upstream || "no upstream"}` }, modelOf(one))),
      cell("calls", one.calls ? h("span", { class: "badge call" }, one.calls) : h("span", { class: "none" }, "–")),
      cell("findings", findingBadge(one.findings) ?? h("span", { class: "none" }, "–")),
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
        h("time", { title: dateAndTime(one.time) }, openId() ? timeOfDay(one.time) : timeOfList(one.time)),
        h("span", { class: "mono" }, modelOf(one)),
        one.calls ? h("span", { class: "badge call" }, plural(one.calls, "call")) : null,
        findingBadge(one.findings),
        h("span", { class: "quiet" }, durationText(one)),
      ),
    );
  }

  // ── the open exchange ──

  function showDetail(parts, query) {
    const [, id, tab] = parts;
    element.classList.toggle("with-detail", Boolean(id));
    list.setRowHeight(rem(rowHeight(Boolean(id))));
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

  // The durations of open exchanges grow.
  const clock = setInterval(() => whenReleased(list.refresh), CLOCK_MILLISECONDS);

  function onWidth() {
    list.setRowHeight(rem(rowHeight(Boolean(openId()))));
    list.refresh();
  }

  NARROW.addEventListener("change", onWidth);
  const unsubscribe = subscribe(refreshLive);
  showDetail(route.parts, route.query);
  if (filters.text) setSearch(filters.text);
  refresh();
  list.scrollToIndex(Math.max(selected, 0), "start");

  return {
    element,
    update(next) {
      const { text } = filters;
      filters = filtersOf(next.query, filters, next.parts);
      if ((filters.text ?? "") !== (text ?? "")) {
        filterBar.setText(filters.text ?? "");
        setSearch(filters.text ?? "");
      }
      showDetail(next.parts, next.query);
      refresh();
    },
    stop() {
      unsubscribe();
      clearInterval(clock);
      clearTimeout(searchTimer);
      clearTimeout(heldTimer);
      NARROW.removeEventListener("change", onWidth);
      removeShortcuts();
      open?.stop();
      list.stop();
    },
  };
}

/** Height of a row in rem: a wide row has one line, a compact one two. */
function rowHeight(hasDetail) {
  return hasDetail || NARROW.matches ? COMPACT_ROW_HEIGHT : ROW_HEIGHT;
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
