// Sessions: the turns of each agent and of its subagents, over time.

import { getJson } from "../lib/api.js";
import { h, replace, update } from "../lib/dom.js";
import { count, dateAndTime, duration, plural, visible } from "../lib/format.js";
import { whenReleased } from "../lib/pointer.js";
import { emptyBlock, problemBlock } from "../lib/problem.js";
import { routeUrl } from "../lib/router.js";
import { findExchange, isFailed, subscribeSlowly } from "../lib/store.js";
import { createScale } from "../lib/time_scale.js";
import { statusPill } from "./exchange_cells.js";
import { findingBadge } from "./findings.js";
import { SEGMENT_NAMES, segmentBar, timeAxis } from "./waterfall.js";

const RELOAD_MILLISECONDS = 1500;
const MAX_LOADED_TURNS = 200;

/** Create the view. */
export function sessionsView(route) {
  const list = h("ul", { class: "session-list plain-list", tabindex: "0", "aria-label": "Sessions" });
  const detail = h("section", { class: "session-detail", "aria-label": "Session" });
  const element = h("div", { class: "sessions" }, h("section", { class: "session-pane", "aria-label": "List of sessions" }, h("h2", {}, "Sessions"), list), detail);
  const waterfalls = new Map(); // by exchange: {waterfall, isFinal}
  let sessions = [];
  let drawing = 0; // number of the last drawing of a session
  let isShortened = true;
  let openId = route.parts[1];

  async function load() {
    try {
      sessions = await getJson("sessions");
    } catch (error) {
      if (!sessions.length) replace(detail, problemBlock("The sessions cannot be shown", error));
      return;
    }
    whenReleased(show);
  }

  function show() {
    update(list, sessions.map(sessionItem));
    showSession();
  }

  function sessionItem(session) {
    const turns = session.threads.flatMap((thread) => thread.turns);
    const failed = turns.filter((turn) => hasFailed(findExchange(turn.id))).length;
    return h(
      "li",
      {},
      h(
        "a",
        { href: routeUrl(["sessions", session.id]), class: "session-item", "aria-current": session.id === currentId() ? "true" : null },
        h("b", {}, visible(session.threads[0]?.title || session.id)),
        h("span", { class: "quiet" }, `${visible(session.client || "unknown client")} · ${plural(turns.length, "turn")}${session.threads.length > 1 ? ` · ${plural(session.threads.length - 1, "other conversation")}` : ""} · ${dateAndTime(Math.min(...turns.map((turn) => turn.started)))}`),
        failed ? h("span", { class: "pill bad" }, `${count(failed)} failed`) : null,
      ),
    );
  }

  function currentId() {
    return openId ?? sessions[0]?.id;
  }

  async function showSession() {
    const session = sessions.find((one) => one.id === currentId());
    if (!session) {
      replace(detail, sessions.length ? emptyBlock("This session is not here", "It may have been dropped, or its gateway was restarted.") : emptyBlock("No sessions yet", "The turns of an agent appear here together."));
      return;
    }
    const turns = session.threads.flatMap((thread) => thread.turns);
    const intervals = turns.map((turn) => [turn.started, turn.started + (findExchange(turn.id)?.seconds ?? 0)]);
    const shortened = createScale(intervals, true);
    const scale = isShortened ? shortened : createScale(intervals, false);
    update(
      detail,
      h("h2", {}, visible(session.threads[0]?.title || session.id)),
      h("p", { class: "quiet" }, h("code", {}, visible(session.id)), ` · ${plural(turns.length, "turn")} in ${duration(scale.end - scale.start)}`),
      shortened.breaks.length ? scaleSwitch() : null,
      h("div", { class: "lane-axis" }, scale.breaks.length ? breakAxis(scale) : timeAxis(scale.end - scale.start)),
      session.threads.map((thread, index) => threadLanes(thread, index, scale)),
      legend(),
    );
    for (const turn of turns) fillLane(turn, scale);
    drawing += 1;
    const own = drawing;
    for (const turn of turns.slice(0, MAX_LOADED_TURNS)) {
      if (waterfalls.get(turn.id)?.isFinal) continue;
      await loadWaterfall(turn.id);
      if (own !== drawing) return;
      fillLane(turn, scale);
    }
  }

  function scaleSwitch() {
    const choices = [[true, "Idle time shortened"], [false, "To scale"]];
    return h("div", { class: "segmented", role: "group", "aria-label": "Time" }, choices.map(([value, title]) => h("button", { type: "button", "aria-pressed": String(value === isShortened), onClick: () => { isShortened = value; showSession(); } }, title)));
  }

  /** Axis with the idle times that are shortened. */
  function breakAxis(scale) {
    return h("div", { class: "time-axis breaks" }, scale.breaks.map((one) => h("span", { style: { left: `${50 * (one.start + one.end)}%` }, title: "idle" }, `⋯ ${duration(one.seconds)}`)));
  }

  async function loadWaterfall(id) {
    const isFinal = findExchange(id)?.outcome !== "open";
    const waterfall = await getJson(`exchanges/${encodeURIComponent(id)}/waterfall`).catch(() => null); // it is gone
    if (waterfall) waterfalls.set(id, { waterfall, isFinal });
  }

  function threadLanes(thread, index, scale) {
    return h(
      "section",
      { class: "thread" },
      h("h3", {}, index ? h("span", { class: "pill plain" }, "subagent or side task") : h("span", { class: "pill good" }, "agent"), " ", visible(thread.title || "conversation")),
      h("ol", { class: "lanes" }, thread.turns.map((turn, number) => lane(turn, number + 1, scale))),
    );
  }

  function lane(turn, number, scale) {
    const one = findExchange(turn.id);
    const left = 100 * scale.position(turn.started);
    const width = 100 * scale.position(turn.started + (one?.seconds ?? 0)) - left;
    const href = routeUrl(["exchanges", turn.id, "reply"]);
    const text = one?.returned?.length ? `↳ ${one.returned.join(", ")}` : one?.title || turn.id;
    return h(
      "li",
      { class: "lane", onClick: (event) => { if (!event.target.closest("a")) location.hash = href; } },
      h("span", { class: "lane-number" }, number),
      h("a", { href, class: "lane-text", title: visible(one?.title ?? "") }, visible(text)),
      h("span", { class: "lane-flags" }, hasFailed(one) ? statusPill(one) : null, findingBadge(one?.findings)),
      h("span", { class: "lane-time" }, duration(one?.seconds)),
      h("div", { class: "lane-track", "data-turn": turn.id }, h("span", { class: "segment pending", style: { left: `${left}%`, width: `max(${width}%, 2px)` } })),
    );
  }

  function fillLane(turn, scale) {
    const track = detail.querySelector(`[data-turn="${CSS.escape(turn.id)}"]`);
    const waterfall = waterfalls.get(turn.id)?.waterfall;
    if (!track || !waterfall?.segments.length) return;
    replace(track, waterfall.segments.map((one) => segmentBar(one, (seconds) => scale.position(turn.started + seconds))));
    track.setAttribute("role", "img");
    track.setAttribute("aria-label", waterfall.segments.map((one) => `${SEGMENT_NAMES[one.kind]} ${duration(one.end - one.start)}`).join(", "));
  }

  function legend() {
    return h("ul", { class: "legend" }, Object.entries(SEGMENT_NAMES).map(([kind, name]) => h("li", { class: `swatch ${kind}` }, name)));
  }

  const unsubscribe = subscribeSlowly(load, RELOAD_MILLISECONDS);
  load();

  return {
    element,
    update(next) {
      openId = next.parts[1];
      show();
    },
    stop() {
      drawing += 1;
      unsubscribe();
    },
  };
}

/** Return whether an exchange has failed. One that is not in the list yet has not. */
function hasFailed(one) {
  return one !== undefined && isFailed(one);
}
