// Plots as SVG: points over time, stacked bars over time, and horizontal bars. Each has its numbers as a table, too.

import { h, svg } from "./dom.js";
import { timeOfDay } from "./format.js";

const WIDTH = 560;
const HEIGHT = 180;
const MARGIN = { left: 52, right: 8, top: 8, bottom: 22 };

const MAX_POINTS = 2000;
const MAX_BAR_WIDTH = 40;
const SERIES_COUNT = 8;

/** Class with the colour of a name. All names but the first ones have the last colour. */
export function seriesClass(names, name) {
  const index = names.indexOf(name);
  return `series-${index < 0 ? SERIES_COUNT - 1 : Math.min(index, SERIES_COUNT - 1)}`;
}

/** Names for a legend, with their classes. */
export function legendNames(names) {
  const shown = names.length > SERIES_COUNT ? [...names.slice(0, SERIES_COUNT - 1), "others"] : names;
  return shown.map((name, index) => [name, `series-${index}`]);
}

/**
 * Points over time, the newest ones, under a `title`. `points`: [{time, value, name, id}]; `times`: start and end of the
 * axis; `format` writes a value; `href(id)` is the link of a point. Links are no stops of the Tab key, because there are
 * thousands: the list of exchanges has them, too.
 */
export function scatterPlot(title, points, names, [from, to], format, href) {
  const shown = points.slice(-MAX_POINTS);
  const top = niceTop(Math.max(...shown.map((point) => point.value)), DECIMAL_STEPS);
  const x = (time) => MARGIN.left + ((time - from) / (to - from)) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value) => HEIGHT - MARGIN.bottom - (value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const dots = shown.map((point) =>
    svg("a", { href: href(point.id), tabindex: "-1", "aria-label": `${point.name}: ${format(point.value)} at ${timeOfDay(point.time)}` }, svg("circle", { class: `dot-series ${seriesClass(names, point.name)}`, cx: x(point.time), cy: y(point.value), r: 3.2 }, svg("title", {}, `${point.name}: ${format(point.value)} at ${timeOfDay(point.time)}`))),
  );
  return figure(title, "group", [valueAxis(top, y, format), timeLabels(from, to, x), dots]);
}

/** Stacked bars over time, under a `title`. `series`: [{name, counts}]; `seconds`: of one bar. */
export function stackedBars(title, series, names, [from, to], seconds) {
  const bucketCount = Math.round((to - from) / seconds);
  const totals = Array.from({ length: bucketCount }, (_, bucket) => series.reduce((sum, one) => sum + (one.counts[bucket] ?? 0), 0));
  const top = niceTop(Math.max(...totals), EVEN_STEPS);
  const inner = WIDTH - MARGIN.left - MARGIN.right;
  const width = Math.min(inner / bucketCount, MAX_BAR_WIDTH);
  const x = (time) => MARGIN.left + ((time - from) / (to - from)) * inner;
  const y = (value) => HEIGHT - MARGIN.bottom - (value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const bars = [];
  for (let bucket = 0; bucket < bucketCount; bucket += 1) {
    let below = 0;
    for (const one of series) {
      const number = one.counts[bucket] ?? 0;
      if (!number) continue;
      const left = x(from + (bucket + 0.5) * seconds) - width / 2;
      bars.push(
        svg("rect", { class: seriesClass(names, one.name), x: left + 0.5, y: y(below + number), width: Math.max(width - 1, 1), height: Math.max(y(below) - y(below + number), 1) }, svg("title", {}, `${one.name}: ${number}, ${timeOfDay(from + bucket * seconds)}`)),
      );
      below += number;
    }
  }
  return figure(title, "img", [valueAxis(top, y, String), timeLabels(from, to, x), bars]);
}

/** Horizontal bars. `counts`: [{name, total, by_model}]. */
export function horizontalBars(counts, names) {
  const most = Math.max(...counts.map((one) => one.total), 1);
  return h(
    "ul",
    { class: "bar-list plain-list" },
    counts.map((one) =>
      h(
        "li",
        {},
        h("span", { class: "bar-name" }, one.name),
        h("span", { class: "bar-track" }, Object.entries(one.by_model).map(([model, number]) => h("span", { class: seriesClass(names, model), style: { width: `${(100 * number) / most}%` }, title: `${model}: ${number}` }))),
        h("span", { class: "bar-total" }, one.total),
      ),
    ),
  );
}

function figure(title, role, children) {
  return svg("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role, "aria-label": title }, children);
}

const DECIMAL_STEPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
const EVEN_STEPS = [2, 4, 6, 8, 10]; // half of it is a whole number

/** The end of an axis: the smallest round number that is not below the value. */
function niceTop(value, steps) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, steps === EVEN_STEPS ? 1 : 1e-6)));
  return steps.map((factor) => factor * power).find((top) => top >= value) ?? 10 * power;
}

function valueAxis(top, y, format) {
  return [0, 0.5, 1].map((part) => [
    svg("line", { class: "grid", x1: MARGIN.left, x2: WIDTH - MARGIN.right, y1: y(part * top), y2: y(part * top) }),
    svg("text", { class: "tick", x: MARGIN.left - 6, y: y(part * top) + 3.5, "text-anchor": "end" }, format(part * top)),
  ]);
}

function timeLabels(from, to, x) {
  return [0, 0.5, 1].map((part) =>
    svg("text", { class: "tick", x: Math.min(x(from + part * (to - from)), WIDTH - MARGIN.right), y: HEIGHT - 6, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, timeOfDay(from + part * (to - from))),
  );
}
