// One exchange: its head, its waterfall and its tabs.

import { getJson, isExported } from "../lib/api.js";
import { h, icon, replace, update } from "../lib/dom.js";
import { apiName, count, dateAndTime, duration, plural, visible } from "../lib/format.js";
import { addShortcuts } from "../lib/keyboard.js";
import { whenReleased } from "../lib/pointer.js";
import { emptyBlock, problemBlock, sentence } from "../lib/problem.js";
import { navigate, routeUrl } from "../lib/router.js";
import { findExchange, subscribe } from "../lib/store.js";
import { cacheTab } from "./cache.js";
import { exportMenu } from "./export.js";
import { findingBadges } from "./findings.js";
import { replyTab } from "./reply.js";
import { requestTab } from "./request.js";
import { waterfallStrip } from "./waterfall.js";
import { whatIfTab } from "./what_if.js";

const TABS = {
  reply: { title: "Reply", create: replyTab },
  request: { title: "Request", create: requestTab },
  cache: { title: "Prompt cache", create: cacheTab },
  "what-if": { title: "What if", create: whatIfTab },
  attempts: { title: "Attempts", create: attemptsTab },
};
const REFRESH_MILLISECONDS = 1000;
const WATERFALL_DELAY = 250;

/** Create the view of an exchange. `onClose` goes back to the list. */
export function exchangeView(id, tab, query, onClose) {
  const head = h("header", { class: "exchange-head-area" });
  const waterfall = h("div", { class: "waterfall-area" });
  const tabList = h("div", { class: "tabs", role: "tablist", "aria-label": "Views of the exchange" });
  const panel = h("div", { class: "tab-panel", role: "tabpanel", id: "tab-panel", tabindex: "-1" });
  const element = h("article", { class: "exchange" }, head, tabList, panel);
  const controller = new AbortController();
  const exports = isExported ? null : exportMenu(id, controller.signal);
  let detail = null;
  let shown = null; // {name, refresh, stop}
  let selected = []; // name and query of the tab
  let isGone = false; // not in the list any more, and so it could not be shown
  let isStale = false;
  let timer = 0;

  for (const [name, { title }] of Object.entries(TABS)) {
    if (isExported && name === "what-if") continue;
    tabList.append(
      h("a", { role: "tab", id: `tab-${name}`, href: routeUrl(["exchanges", id, name]), "aria-controls": "tab-panel", "data-tab": name }, title),
    );
  }
  tabList.addEventListener("keydown", moveTab);

  function moveTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...tabList.querySelectorAll("[role=tab]")];
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
    event.preventDefault();
  }

  async function load() {
    try {
      detail = await getJson(`exchanges/${encodeURIComponent(id)}`, {}, controller.signal);
    } catch (error) {
      if (error.name !== "AbortError") showError(error);
      return;
    }
    if (!shown) {
      showTab(...selected);
    }
    whenReleased(() => {
      showHead();
      shown?.refresh?.(detail);
    });
    // The waterfall needs the whole reply: what is visible first comes first.
    setTimeout(loadWaterfall, waterfall.childElementCount ? 0 : WATERFALL_DELAY);
  }

  async function loadWaterfall() {
    try {
      replace(waterfall, waterfallStrip(await getJson(`exchanges/${encodeURIComponent(id)}/waterfall`, {}, controller.signal)));
    } catch {
      replace(waterfall);
    }
  }

  function showError(error) {
    isGone = !findExchange(id);
    shown?.stop?.();
    shown = null;
    replace(head, backButton());
    replace(panel, problemBlock("This exchange cannot be shown", error));
  }

  function backButton() {
    return isExported ? null : h("button", { class: "icon-button back-button", type: "button", "aria-label": "Back to the list", title: "Back (Esc)", onClick: onClose }, icon("back"));
  }

  function showHead() {
    const one = detail.summary;
    update(
      head,
      h(
        "div",
        { class: "title-row" },
        backButton(),
        h("h2", { title: one.title }, visible(one.title || one.path || one.id)),
        turnLinks(),
        exports,
      ),
      routeLine(one),
      factsLine(one),
      waterfall,
    );
  }

  function turnLinks() {
    if (detail.turns < 2 || isExported) return null;
    const link = (target, name, label) =>
      target
        ? h("a", { class: "icon-button", href: routeUrl(["exchanges", target, selected[0]]), "aria-label": label, title: label }, icon(name))
        : h("span", { class: "icon-button disabled", "aria-hidden": "true" }, icon(name));
    return h(
      "span",
      { class: "turn-links" },
      link(detail.previous, "back", "Previous turn ([)"),
      h("span", { class: "quiet" }, `turn ${detail.turn} of ${detail.turns}`),
      link(detail.next, "forward", "Next turn (])"),
    );
  }

  function routeLine(one) {
    const arrow = h("span", { class: "arrow", "aria-hidden": "true" }, "→");
    return h(
      "p",
      { class: "route-line" },
      h("span", { class: "hop" }, h("b", {}, visible(one.client || "client")), h("span", {}, apiName(one.wire))),
      arrow,
      h("span", { class: "hop" }, h("b", {}, "gateway"), h("span", {}, one.dialect ? `dialect ${one.dialect}` : "")),
      arrow.cloneNode(true),
      h("span", { class: "hop" }, h("b", {}, one.upstream || "no upstream"), h("span", {}, one.upstream_wire ? apiName(one.upstream_wire) : "")),
      arrow.cloneNode(true),
      h("span", { class: "hop" }, h("b", { class: "mono" }, visible(one.upstream_model || one.model || "no model"))),
      h("time", { class: "route-time" }, dateAndTime(one.time)),
    );
  }

  function factsLine(one) {
    const tokens = one.tokens ?? {}, badges = findingBadges(one.findings);
    const facts = [
      ["outcome", detail.outcome, one.outcome !== "ok" && one.outcome !== "open" ? "bad" : ""],
      ["stopped", one.stop_reason, ""],
      ["calls", one.calls ? count(one.calls) : "", ""],
      ["tokens", tokens.input === undefined ? "" : `${count(tokens.input)} in · ${count(tokens.cached ?? 0)} cached · ${count(tokens.output)} out${tokens.estimated ? " (estimated)" : ""}`, ""],
      ["first byte", one.first_byte === undefined || one.first_byte === null ? "" : duration(one.first_byte), ""],
      ["duration", one.seconds === undefined || one.seconds === null ? "open" : duration(one.seconds), ""],
      ["attempts", one.attempts > 1 ? count(one.attempts) : "", "bad"],
      ["findings", badges.length ? badges : "", ""],
      ["key", one.key ?? "", ""],
    ].filter(([, value]) => value);
    return h("dl", { class: "facts" }, facts.map(([name, value, kind]) => h("div", { class: kind }, h("dt", {}, name), h("dd", {}, value))));
  }

  function showTab(name, query) {
    const tab = TABS[name] ? name : "reply";
    selected = [tab, query];
    for (const link of tabList.querySelectorAll("[role=tab]")) {
      const isSelected = link.dataset.tab === tab;
      link.setAttribute("aria-selected", String(isSelected));
      link.tabIndex = isSelected ? 0 : -1;
      if (isSelected) link.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    panel.setAttribute("aria-labelledby", `tab-${tab}`);
    if (shown?.name === tab) {
      shown.showQuery?.(query);
      return;
    }
    shown?.stop?.();
    shown = { name: tab, ...TABS[tab].create(id, query, () => detail) };
    replace(panel, shown.element);
    if (detail) shown.refresh?.(detail);
    if (detail) showHead();
  }

  // An open exchange grows: it is loaded again, but not more than once per second.
  const unsubscribe = subscribe(() => {
    const one = findExchange(id);
    const isBack = one && isGone; // its file was moved, or was being written
    const isChanged = one && detail && (one.outcome !== detail.summary.outcome || one.bytes_in !== detail.summary.bytes_in);
    if (!(isChanged || isBack) || isStale) return;
    isStale = true;
    timer = setTimeout(() => {
      isStale = false;
      load().then(() => shown?.reload?.());
    }, REFRESH_MILLISECONDS);
  });

  const removeShortcuts = addShortcuts("One exchange", {
    "[": ["Previous turn", () => (detail?.previous ? navigate(["exchanges", detail.previous, selected[0]]) : false)],
    "]": ["Next turn", () => (detail?.next ? navigate(["exchanges", detail.next, selected[0]]) : false)],
    1: ["Reply", () => navigate(["exchanges", id, "reply"])],
    2: ["Request", () => navigate(["exchanges", id, "request"])],
    3: ["Prompt cache", () => navigate(["exchanges", id, "cache"])],
    4: ["What if", () => navigate(["exchanges", id, "what-if"])],
  });

  showTab(tab, query);
  load();

  return {
    id,
    element,
    showTab,
    stop() {
      controller.abort();
      clearTimeout(timer);
      unsubscribe();
      removeShortcuts();
      shown?.stop?.();
    },
  };
}

/** Tab with the attempts at upstreams and the headers of their responses. */
function attemptsTab() {
  const element = h("div", { class: "scroll-area attempts", tabindex: "0", role: "region", "aria-label": "Attempts" });
  return {
    element,
    refresh(detail) {
      if (!detail.attempts.length) {
        replace(element, emptyBlock("No request was sent to an upstream", sentence(detail.summary.error ?? "")));
        return;
      }
      replace(element, h("p", { class: "quiet" }, plural(detail.attempts.length, "attempt")), detail.attempts.map((one, index) => attemptCard(one, index + 1)));
    },
  };
}

function attemptCard(one, number) {
  const facts = [
    ["URL", one.url],
    ["model", one.model],
    ["profile", one.profile],
    ["dialect", one.dialect],
    ["sent after", duration(one.at)],
    ["connection", one.connect_seconds === undefined || one.connect_seconds === null ? "an open one was used" : `opened in ${duration(one.connect_seconds)}`],
  ].filter(([, value]) => value);
  const headers = Object.entries(one.headers ?? {});
  return h(
    "section",
    { class: "card" },
    h("h3", {}, `${number}. ${one.upstream || "upstream"} `, h("span", { class: `pill ${one.status >= 400 || !one.status ? "bad" : "good"}` }, one.status || "no response")),
    h("dl", { class: "pairs" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", { class: "mono" }, value)])),
    headers.length
      ? h("details", {}, h("summary", {}, `${plural(headers.length, "header")} of the response`), h("dl", { class: "pairs" }, headers.map(([name, value]) => [h("dt", { class: "mono" }, name), h("dd", { class: "mono" }, value)])))
      : null,
  );
}
