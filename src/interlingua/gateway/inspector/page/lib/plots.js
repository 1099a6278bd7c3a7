// Plots as SVG: points over time, stacked bars over time, and horizontal bars. Each has its numbers as a table, too.

import { h, svg } from "./dom.js";
import { timeOfDay } from "./format.js";

const WIDTH = 560;
const HEIGHT = 180;
const MARGIN = { left: 44, right: 8, top: 8, bottom: 22 };

/**
 * Points over time, under a `title`. `points`: [{time, value, name, id}]; `format` writes a value; `href(id)` is the link
 * of a point. Links are no stops of the Tab key, because there are thousands: the list of exchanges has them, too.
 */
export function scatterPlot(title, points, names, format, href) {
  const times = points.map((point) => point.time);
  const [from, to] = span(Math.min(...times), Math.max(...times));
  const top = niceTop(Math.max(...points.map((point) => point.value)));
  const x = (time) => MARGIN.left + ((time - from) / (to - from)) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (value) => HEIGHT - MARGIN.bottom - (value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const dots = points.map((point) =>
    svg("a", { href: href(point.id), tabindex: "-1", "aria-label": `${point.name}: ${format(point.value)} at ${timeOfDay(point.time)}` }, svg("circle", { class: `dot-series series-${names.indexOf(point.name) % 8}`, cx: x(point.time), cy: y(point.value), r: 3.2 }, svg("title", {}, `${point.name}: ${format(point.value)} at ${timeOfDay(point.time)}`))),
  );
  return figure(title, "group", [valueAxis(top, y, format), timeLabels(from, to, x), dots]);
}

/** Stacked bars over time, under a `title`. `series`: [{name, counts}]. */
export function stackedBars(title, series, names, start, seconds) {
  const bucketCount = Math.max(...series.map((one) => one.counts.length), 1);
  const totals = Array.from({ length: bucketCount }, (_, bucket) => series.reduce((sum, one) => sum + (one.counts[bucket] ?? 0), 0));
  const top = niceTop(Math.max(...totals));
  const inner = WIDTH - MARGIN.left - MARGIN.right;
  const width = Math.min(inner / bucketCount, 40);
  const x = (time) => MARGIN.left + ((time - start) / seconds) * width;
  const y = (value) => HEIGHT - MARGIN.bottom - (value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const bars = [];
  for (let bucket = 0; bucket < bucketCount; bucket += 1) {
    let below = 0;
    for (const one of series) {
      const number = one.counts[bucket] ?? 0;
      if (!number) continue;
      bars.push(
        svg("rect", { class: `series-${names.indexOf(one.name) % 8}`, x: MARGIN.left + bucket * width + 0.5, y: y(below + number), width: Math.max(width - 1, 1), height: Math.max(y(below) - y(below + number), 1) }, svg("title", {}, `${one.name}: ${number}, ${timeOfDay(start + bucket * seconds)}`)),
      );
      below += number;
    }
  }
  return figure(title, "img", [valueAxis(top, y, String), timeLabels(start, start + (inner / width) * seconds, x), bars]);
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
        h("span", { class: "bar-track" }, Object.entries(one.by_model).map(([model, number]) => h("span", { class: `series-${names.indexOf(model) % 8}`, style: { width: `${(100 * number) / most}%` }, title: `${model}: ${number}` }))),
        h("span", { class: "bar-total" }, one.total),
      ),
    ),
  );
}

function figure(title, role, children) {
  return svg("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role, "aria-label": title }, children);
}

function span(from, to) {
  return to > from ? [from, to] : [from - 0.5, to + 0.5];
}

function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-6)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((factor) => factor * power).find((top) => top >= value) ?? 10 * power;
}

function valueAxis(top, y, format) {
  return [0, 0.5, 1].map((part) => [
    svg("line", { class: "grid", x1: MARGIN.left, x2: WIDTH - MARGIN.right, y1: y(part * top), y2: y(part * top) }),
    isWhole(format, part * top) ? svg("text", { class: "tick", x: MARGIN.left - 6, y: y(part * top) + 3.5, "text-anchor": "end" }, format(part * top)) : null,
  ]);
}

/** Return whether a value of the axis can be written. Numbers of things have no fractions. */
function isWhole(format, value) {
  return format !== String || Number.isInteger(value);
}

function timeLabels(from, to, x) {
  return [0, 0.5, 1].map((part) =>
    svg("text", { class: "tick", x: Math.min(x(from + part * (to - from)), WIDTH - MARGIN.right), y: HEIGHT - 6, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, timeOfDay(from + part * (to - from))),
  );
}
