// Numbers: plots of what the inspector keeps.

import { getJson } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { count, duration, percent, plural, visible } from "../lib/format.js";
import { horizontalBars, scatterPlot, stackedBars } from "../lib/plots.js";
import { replaceQuery, routeUrl } from "../lib/router.js";
import { FILTERS, filterValues, subscribe } from "../lib/store.js";

const RELOAD_MILLISECONDS = 2000;
const FACETS = ["upstream_model", "upstream", "client", "key"];
const FACET_FILTERS = { upstream_model: "model" };

/** Create the view. */
export function numbersView(route) {
  const filters = { ...route.query };
  const cards = h("div", { class: "cards" });
  const facets = h("div", { class: "facets" });
  const element = h("div", { class: "scroll-area numbers", tabindex: "0", role: "region", "aria-label": "Numbers" }, h("div", { class: "numbers-head" }, h("h2", {}, "Numbers"), facets), cards);
  let timer = 0;

  async function load() {
    show(await getJson("numbers", filters));
    showFacets();
  }

  function showFacets() {
    replace(
      facets,
      FACETS.map((name) => {
        const filter = FACET_FILTERS[name] ?? name;
        const values = filterValues(filter);
        if (!values.length) return null;
        const select = h("select", { "aria-label": FILTERS[filter].label, onChange: () => { filters[name] = select.value; replaceQuery(filters); load(); } }, h("option", { value: "" }, `${FILTERS[filter].label}: all`), values.map(([value, number]) => h("option", { value, selected: filters[name] === value }, `${value} (${number})`)));
        return select;
      }),
    );
  }

  function show(numbers) {
    if (!numbers.exchanges) {
      replace(cards, h("div", { class: "empty" }, h("h3", {}, "Nothing to count yet"), h("p", {}, "Finished exchanges appear here.")));
      return;
    }
    const models = [...new Set([...numbers.requests.map((one) => one.name), ...numbers.first_byte.map((point) => point[2])])];
    const upstreams = numbers.errors.map((one) => one.name);
    const points = (list) => list.map(([time, value, name, id]) => ({ time, value, name, id }));
    const href = (id) => routeUrl(["exchanges", id, "reply"]);
    replace(
      cards,
      tiles(numbers),
      card("First byte", "Seconds to the first output", points(numbers.first_byte), (list) => scatterPlot("First byte", list, models, duration, href), models, (list) => pointTable(list, duration)),
      card("Speed", "Output tokens per second of streams", points(numbers.tokens_per_second), (list) => scatterPlot("Speed", list, models, (value) => `${Math.round(value)}/s`, href), models, (list) => pointTable(list, (value) => `${Math.round(value)}/s`)),
      card("Requests", `By model, per ${bucketName(numbers.bucket_seconds)}`, numbers.requests, (list) => stackedBars("Requests", list, models, numbers.start, numbers.bucket_seconds), models, seriesTable),
      card("Calls", `By model, per ${bucketName(numbers.bucket_seconds)}`, numbers.calls, (list) => stackedBars("Calls", list, models, numbers.start, numbers.bucket_seconds), models, seriesTable),
      card("Errors", `By upstream, per ${bucketName(numbers.bucket_seconds)}`, numbers.errors, (list) => stackedBars("Errors", list, upstreams, numbers.start, numbers.bucket_seconds), upstreams, seriesTable),
      card("Findings", "By kind and model", numbers.findings, (list) => horizontalBars(list, models), models, null),
    );
  }

  const unsubscribe = subscribe(() => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      load();
    }, RELOAD_MILLISECONDS);
  });
  load();

  return {
    element,
    update() {},
    stop() {
      clearTimeout(timer);
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

function card(title, about, list, plot, names, table) {
  const shown = names.slice(0, 8);
  return h(
    "section",
    { class: "card plot-card" },
    h("h3", {}, title, h("span", { class: "quiet" }, ` ${about}`)),
    list.length ? plot(list) : h("p", { class: "quiet none-yet" }, title === "Errors" || title === "Findings" ? "None." : "No data."),
    list.length && shown.length > 1 ? h("ul", { class: "legend" }, shown.map((name, index) => h("li", { class: `swatch series-${index % 8}`, title: name }, h("span", { class: "legend-name" }, visible(name))))) : null,
    list.length && table ? h("details", {}, h("summary", {}, "As a table"), table(list)) : null,
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
  if (seconds < 60) return plural(seconds, "second");
  if (seconds < 3600) return plural(seconds / 60, "minute");
  return seconds < 86_400 ? plural(seconds / 3600, "hour") : plural(seconds / 86_400, "day");
}
