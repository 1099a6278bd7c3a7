// Numbers: plots of what the inspector keeps.

import { getJson } from "../lib/api.js";
import { h, update } from "../lib/dom.js";
import { count, duration, percent, plural, visible } from "../lib/format.js";
import { horizontalBars, legendNames, scatterPlot, stackedBars } from "../lib/plots.js";
import { whenReleased } from "../lib/pointer.js";
import { emptyBlock, problemBlock } from "../lib/problem.js";
import { replaceQuery, routeUrl } from "../lib/router.js";
import { subscribeSlowly } from "../lib/store.js";
import { createFacets } from "./filter_bar.js";

const RELOAD_MILLISECONDS = 2000;
const FACETS = ["model", "upstream", "client", "key"];

/** Create the view. */
export function numbersView(route) {
  let filters = route.query;
  const cards = h("div", { class: "cards" });
  const facets = createFacets(FACETS, () => filters, setFilters);
  const element = h("div", { class: "scroll-area numbers", tabindex: "0", role: "region", "aria-label": "Numbers" }, h("div", { class: "numbers-head" }, h("h2", {}, "Numbers"), facets.element), cards);

  function setFilters(next) {
    filters = next;
    replaceQuery(filters);
    load();
  }

  async function load() {
    const wanted = filters;
    try {
      const numbers = await getJson("numbers", wanted);
      whenReleased(() => wanted === filters && show(numbers));
    } catch (error) {
      if (!cards.childElementCount) update(cards, problemBlock("The numbers cannot be shown", error));
    }
  }

  function show(numbers) {
    facets.refresh();
    if (!numbers.exchanges) {
      update(cards, emptyBlock("Nothing to count yet", "Finished exchanges appear here."));
      return;
    }
    const { start, bucket_seconds: seconds } = numbers;
    const bucketCount = Math.max(...[...numbers.requests, ...numbers.errors].map((one) => one.counts.length), 1);
    const times = [start, start + bucketCount * seconds]; // of all plots, so that they can be compared
    const models = [...new Set([...numbers.requests.map((one) => one.name), ...numbers.first_byte.map((point) => point[2])])];
    const upstreams = numbers.errors.map((one) => one.name);
    const points = (list) => list.map(([time, value, name, id]) => ({ time, value, name, id }));
    const href = (id) => routeUrl(["exchanges", id, "reply"]);
    const rate = (value) => `${Math.round(value)}/s`;
    const per = `per ${bucketName(seconds)}`;
    update(
      cards,
      tiles(numbers),
      card("First byte", "Time to the first output", points(numbers.first_byte), (list) => scatterPlot("First byte", list, models, times, duration, href), models, (list) => pointTable(list, duration)),
      card("Speed", "Output tokens per second of streams", points(numbers.tokens_per_second), (list) => scatterPlot("Speed", list, models, times, rate, href), models, (list) => pointTable(list, rate)),
      card("Requests", `By model, ${per}`, numbers.requests, (list) => stackedBars("Requests", list, models, times, seconds), models, seriesTable),
      card("Calls", `By model, ${per}`, numbers.calls, (list) => stackedBars("Calls", list, models, times, seconds), models, seriesTable),
      card("Errors", `By upstream, ${per}`, numbers.errors, (list) => stackedBars("Errors", list, upstreams, times, seconds), upstreams, seriesTable),
      card("Findings", "By kind and model", numbers.findings, (list) => horizontalBars(list, models), models, null),
    );
  }

  const unsubscribe = subscribeSlowly(load, RELOAD_MILLISECONDS);
  load();

  return {
    element,
    update(next) {
      setFilters(next.query);
    },
    stop() {
      unsubscribe();
    },
  };
}

function tiles(numbers) {
  const facts = [
    ["exchanges", count(numbers.exchanges)],
    ["first byte, median", duration(numbers.first_byte_median)],
    ["first byte, 95 %", duration(numbers.first_byte_p95)],
    ["tokens per second, median", numbers.tokens_per_second_median === null ? "–" : count(Math.round(numbers.tokens_per_second_median))],
    ["input tokens", count(numbers.input_tokens)],
    ["from the cache", percent(numbers.cached_tokens, numbers.input_tokens)],
    ["output tokens", count(numbers.output_tokens)],
  ];
  return h("dl", { class: "tiles" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** One plot. `names`: all names of its kind, whose places give their colours; the legend has those of this plot. */
function card(title, about, list, plot, names, table) {
  const own = new Set(list.flatMap((one) => (one.by_model ? Object.keys(one.by_model) : [one.name])));
  const legend = legendNames(names).filter(([name]) => own.has(name) || name === "others");
  const none = title === "Errors" || title === "Findings" ? "None." : "No data.";
  const wasOpen = document.querySelector(`[data-table="${title}"]`)?.open;
  return h(
    "section",
    { class: "card plot-card" },
    h("h3", {}, title, h("span", { class: "quiet" }, ` ${about}`)),
    list.length ? plot(list) : h("p", { class: "quiet none-yet" }, none),
    legend.length > 1 ? h("ul", { class: "legend" }, legend.map(([name, colour]) => h("li", { class: `swatch ${colour}`, title: name }, h("span", { class: "legend-name" }, visible(name))))) : null,
    list.length && table ? h("details", { "data-table": title, open: wasOpen }, h("summary", {}, "As a table"), table(list)) : null,
  );
}

function pointTable(points, format) {
  const byName = new Map();
  for (const { name, value } of points) byName.set(name, [...(byName.get(name) ?? []), value]);
  const row = (name, values) => {
    const ordered = [...values].sort((a, b) => a - b);
    return h("tr", {}, h("th", { scope: "row" }, name), [ordered[0], ordered[Math.floor(ordered.length / 2)], ordered[ordered.length - 1]].map((value) => h("td", { class: "number" }, format(value))), h("td", { class: "number" }, count(values.length)));
  };
  return h("table", {}, h("thead", {}, h("tr", {}, ["Model", "Least", "Median", "Most", "Exchanges"].map((name, index) => h("th", { scope: "col", class: index ? "number" : null }, name)))), h("tbody", {}, [...byName].map(([name, values]) => row(name, values))));
}

function seriesTable(series) {
  return h("table", {}, h("thead", {}, h("tr", {}, ["Name", "Number"].map((name, index) => h("th", { scope: "col", class: index ? "number" : null }, name)))), h("tbody", {}, series.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name), h("td", { class: "number" }, count(one.counts.reduce((sum, number) => sum + number, 0)))))));
}

function bucketName(seconds) {
  const [size, name] = [[86_400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([one]) => seconds >= one);
  return seconds === size ? name : plural(seconds / size, name);
}
