// Waterfall: the segments of one exchange, or of the turns of a session, over time.

import { h, svg } from "../lib/dom.js";
import { duration } from "../lib/format.js";

export const SEGMENT_NAMES = {
  prepare: "prepare",
  connect: "connect",
  wait: "wait for the first byte",
  failed: "failed attempt",
  backoff: "wait before the next attempt",
  thinking: "thinking",
  text: "text",
  call: "call",
  gap: "gap without data",
  other: "no content",
};

/** Names in the segments, where there is little room. */
const SHORT_NAMES = { backoff: "pause", failed: "failed", gap: "gap", other: "no content" };

/** Strip of one exchange, with a list of its segments for screen readers. */
export function waterfallStrip(waterfall) {
  const total = Math.max(waterfall.seconds, ...waterfall.segments.map((one) => one.end), 0.001);
  const bars = waterfall.segments.map((one) => segmentBar(one, (seconds) => seconds / total));
  return h(
    "div",
    { class: "waterfall" },
    h("div", { class: "waterfall-strip", role: "img", "aria-label": describe(waterfall) }, bars),
    timeAxis(total),
    h("ul", { class: "legend" }, kindsOf(waterfall.segments).map((kind) => h("li", { class: `swatch ${kind}` }, SEGMENT_NAMES[kind], " ", h("span", { class: "quiet" }, duration(sumOf(waterfall.segments, kind)))))),
  );
}

/** Bar of one segment. `place` returns where a time is, between 0 and 1. */
export function segmentBar(one, place) {
  const left = 100 * place(one.start);
  const width = 100 * place(one.end) - left;
  const label = one.label && one.kind !== "connect" && one.kind !== "wait" && one.kind !== "prepare" ? `${SEGMENT_NAMES[one.kind]}: ${one.label}` : SEGMENT_NAMES[one.kind];
  return h("span", {
    class: `segment ${one.kind}`,
    title: `${label} · ${duration(one.end - one.start)} (from ${duration(one.start)})`,
    style: { left: `${left}%`, width: `max(${width}%, 1px)` },
  }, width > 7 ? h("span", { class: "segment-label" }, one.kind === "call" ? one.label || "call" : SHORT_NAMES[one.kind] ?? one.kind) : null);
}

function kindsOf(segments) {
  return [...new Set(segments.map((one) => one.kind))];
}

function sumOf(segments, kind) {
  return segments.filter((one) => one.kind === kind).reduce((sum, one) => sum + one.end - one.start, 0);
}

function describe(waterfall) {
  const parts = kindsOf(waterfall.segments).map((kind) => `${SEGMENT_NAMES[kind]} ${duration(sumOf(waterfall.segments, kind))}`);
  return `Waterfall of ${duration(waterfall.seconds)}: ${parts.join(", ")}`;
}

/** Axis with about five round times. */
export function timeAxis(total) {
  const step = niceStep(total / 5);
  const ticks = [];
  for (let at = 0; at <= total + step / 1000; at += step) ticks.push(at);
  return h(
    "div",
    { class: "time-axis", "aria-hidden": "true" },
    ticks.map((at) => h("span", { style: { left: `${(100 * at) / total}%` } }, duration(at))),
  );
}

export function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-6)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? power;
}

/** Histogram of the messages of a reply over time, by what they carry, behind the scrubber. */
export function densityPlot(messages, total, kindOf) {
  const width = 600;
  const height = 28;
  const bins = 150;
  const counts = Array.from({ length: bins }, () => new Map());
  for (const message of messages) {
    const bin = Math.min(Math.floor((message.at / total) * bins), bins - 1);
    const kind = kindOf(message);
    counts[bin].set(kind, (counts[bin].get(kind) ?? 0) + 1);
  }
  const highest = Math.max(...counts.map((bin) => [...bin.values()].reduce((a, b) => a + b, 0)), 1);
  const bars = counts.flatMap((bin, index) => {
    let y = height;
    return [...bin].map(([kind, number]) => {
      const size = Math.max((Math.sqrt(number) / Math.sqrt(highest)) * height, 1.5);
      y -= size;
      return svg("rect", { class: `bar-${kind}`, x: (index * width) / bins, y, width: width / bins - 0.6, height: size });
    });
  });
  return svg("svg", { class: "density", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, bars);
}
