// Sessions: the turns of each agent and of its subagents, over time.

import { getJson } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { dateAndTime, duration, plural, visible } from "../lib/format.js";
import { currentRoute, navigate, routeUrl } from "../lib/router.js";
import { findExchange, isFailed, subscribe } from "../lib/store.js";
import { createScale } from "../lib/time_scale.js";
import { SEGMENT_NAMES, segmentBar, timeAxis } from "./waterfall.js";

const RELOAD_MILLISECONDS = 1500;
const MAX_LOADED_TURNS = 200;

/** Create the view. */
export function sessionsView(route) {
  const list = h("ul", { class: "session-list plain-list", tabindex: "0", "aria-label": "Sessions" });
  const detail = h("section", { class: "session-detail", "aria-label": "Session" });
  const element = h("div", { class: "sessions" }, h("section", { class: "session-pane", "aria-label": "List of sessions" }, h("h2", {}, "Sessions"), list), detail);
  const waterfalls = new Map();
  let sessions = [];
  let timer = 0;
  let isShortened = true;
  let openId = route.parts[1];

  async function load() {
    sessions = await getJson("sessions");
    showList();
    showSession();
  }

  function showList() {
    if (!sessions.length) {
      replace(list, h("li", { class: "empty" }, "No sessions yet."));
      return;
    }
    replace(list, sessions.map(sessionItem));
  }

  function sessionItem(session) {
    const turns = session.threads.flatMap((thread) => thread.turns);
    const failed = turns.filter((turn) => isFailed(findExchange(turn.id) ?? {})).length;
    return h(
      "li",
      {},
      h(
        "a",
        { href: routeUrl(["sessions", session.id]), class: "session-item", "aria-current": session.id === currentId() ? "true" : null },
        h("b", {}, visible(session.threads[0]?.title || session.id)),
        h("span", { class: "quiet" }, `${visible(session.client || "unknown client")} · ${plural(turns.length, "turn")}${session.threads.length > 1 ? ` · ${plural(session.threads.length - 1, "other conversation")}` : ""} · ${dateAndTime(Math.min(...turns.map((turn) => turn.started)))}`),
        failed ? h("span", { class: "pill bad" }, `${failed} failed`) : null,
      ),
    );
  }

  function currentId() {
    return openId ?? sessions[0]?.id;
  }

  async function showSession() {
    const session = sessions.find((one) => one.id === currentId());
    if (!session) {
      replace(detail, h("div", { class: "empty" }, h("h2", {}, "No session is chosen")));
      return;
    }
    const turns = session.threads.flatMap((thread) => thread.turns);
    const scale = createScale(turns.map((turn) => [turn.started, turn.started + (findExchange(turn.id)?.seconds ?? 0)]), isShortened);
    replace(
      detail,
      h("h2", {}, visible(session.threads[0]?.title || session.id)),
      h("p", { class: "quiet" }, h("code", {}, visible(session.id)), ` · ${duration(scale.end - scale.start)}`),
      scaleSwitch(),
      isShortened ? breakAxis(scale) : timeAxis(scale.end - scale.start),
      session.threads.map((thread, index) => threadLanes(thread, index, scale)),
      legend(),
    );
    for (const turn of turns.slice(0, MAX_LOADED_TURNS)) {
      if (!waterfalls.has(turn.id)) await loadWaterfall(turn.id);
      if (currentRoute().parts[0] !== "sessions") return;
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
    try {
      waterfalls.set(id, await getJson(`exchanges/${encodeURIComponent(id)}/waterfall`));
    } catch {
      waterfalls.set(id, { seconds: 0, segments: [] });
    }
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
    return h(
      "li",
      { class: "lane" },
      h("a", { href: routeUrl(["exchanges", turn.id, "reply"]), class: isFailed(one ?? {}) ? "bad" : "" }, `${number}`),
      h("span", { class: "lane-text", title: one?.title ?? "" }, one?.returned?.length ? `↳ ${visible(one.returned.join(", "))}` : visible(one?.title ?? turn.id)),
      h("span", { class: "lane-time" }, duration(one?.seconds)),
      h("div", { class: "lane-track", "data-turn": turn.id }, h("span", { class: "segment pending", style: { left: `${left}%`, width: `max(${width}%, 2px)` } })),
    );
  }

  function fillLane(turn, scale) {
    const track = detail.querySelector(`[data-turn="${CSS.escape(turn.id)}"]`);
    const waterfall = waterfalls.get(turn.id);
    if (!track || !waterfall?.segments.length) return;
    replace(track, waterfall.segments.map((one) => segmentBar(one, (seconds) => scale.position(turn.started + seconds))));
    track.setAttribute("role", "img");
    track.setAttribute("aria-label", waterfall.segments.map((one) => `${SEGMENT_NAMES[one.kind]} ${duration(one.end - one.start)}`).join(", "));
  }

  function legend() {
    return h("ul", { class: "legend" }, ["connect", "wait", "thinking", "text", "call", "gap", "other", "failed", "backoff"].map((kind) => h("li", { class: `swatch ${kind}` }, SEGMENT_NAMES[kind])));
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
    update(next) {
      openId = next.parts[1];
      if (!sessions.some((one) => one.id === openId) && openId) navigate(["sessions"]);
      showList();
      showSession();
    },
    stop() {
      clearTimeout(timer);
      unsubscribe();
    },
  };
}
