// One reply: upstream messages, steps and client frames side by side, linked, and as they stood at any moment.

import { ApiError, getLines } from "../lib/api.js";
import { brief, payload, pretty } from "../lib/chunks.js";
import { clampedText } from "../lib/clamped_text.js";
import { h, icon, marked, replace } from "../lib/dom.js";
import { apiName, count, duration, oneLine, plural, rem, visible } from "../lib/format.js";
import { addShortcuts } from "../lib/keyboard.js";
import { whenReleased } from "../lib/pointer.js";
import { problemBlock } from "../lib/problem.js";
import { routeUrl } from "../lib/router.js";
import { createVirtualList } from "../lib/virtual_list.js";
import { findingChip, findingHelp, severityOf } from "./findings.js";
import { foldReply, messageKind, stepKind, stepText } from "./reply_state.js";
import { densityPlot } from "./waterfall.js";

const LINE_HEIGHT = 1.5; // rem
const SPEEDS = [["0.25", "¼ ×"], ["1", "1 ×"], ["4", "4 ×"], ["16", "16 ×"], ["100", "100 ×"]];
const MAX_BRIEF_CHARS = 400;
const MAX_PART_CHARS = 20_000;
const MAX_SHOWN_SOURCES = 30;
const COLUMN_NAMES = ["upstream", "steps", "client"];

/** Create the tab. `query` may have the changes of “What if”. */
export function replyTab(id, query, getDetail) {
  let messages = [];
  let lines = []; // [message, line] of each row
  let firstLine = []; // first row of each message
  let users = new Map(); // steps that came from a message: number → [[message, step]]
  let isLoaded = false;
  let facts = {};
  let selection = null; // {column, message, index}
  let links = emptyLinks();
  let moment = -1; // index of the last message that has arrived
  let controller = new AbortController();
  let player = null;
  let changes = changesOf(query);
  const briefs = new Map();

  // ── elements ──

  const list = createVirtualList({ rowHeight: rem(LINE_HEIGHT), renderRow, label: "Messages, steps and frames", className: "timeline-rows" });
  const columns = COLUMN_NAMES.map((name, index) => h("span", { role: "columnheader", class: `t-${name}` }, ["From the upstream", "Steps", "To the client"][index]));
  const head = h("div", { class: "timeline-head", role: "row" }, h("span", { role: "columnheader", class: "t-time" }, "Time"), columns);
  const table = h("div", { class: "timeline", role: "table", "aria-label": "Timeline of the reply", "data-column": "steps" }, h("div", { role: "rowgroup" }, head), list.element);
  const columnSwitch = h("div", { class: "column-switch", role: "group", "aria-label": "Column" }, COLUMN_NAMES.map((name) => h("button", { type: "button", "aria-pressed": String(name === "steps"), onClick: () => showColumn(name) }, { upstream: "Upstream", steps: "Steps", client: "Client" }[name])));
  const findings = h("div", { class: "findings-area" });
  const slider = h("input", { type: "range", min: "0", max: "1000", value: "1000", step: "1", "aria-label": "Time in the reply" });
  const density = h("div", { class: "density-area" });
  const clock = h("output", { class: "clock" });
  const playButton = h("button", { class: "icon-button", type: "button", onClick: togglePlay });
  const speed = h("select", { "aria-label": "Speed" }, SPEEDS.map(([value, name]) => h("option", { value, selected: value === "1" }, name)));
  const nextFinding = h("button", { type: "button", class: "next-finding", onClick: () => jumpToFinding(1), title: "Next finding (f)", "aria-label": "Next finding" }, icon("flag"), h("span", { class: "label" }, "Next finding"));
  const transport = h("div", { class: "transport", role: "group", "aria-label": "Playback" }, playButton, speed, h("div", { class: "scrubber" }, density, slider), clock, nextFinding);
  const soFar = h("section", { class: "so-far", "aria-label": "The reply at this moment" });
  const selected = h("section", { class: "selection", "aria-label": "Selected", "aria-live": "polite" });
  const side = h("aside", { class: "reply-side", "aria-label": "Details" }, soFar, selected);
  const notice = h("div", { class: "notice", hidden: true });
  const body = h("div", { class: "reply-body" }, h("div", { class: "timeline-area" }, columnSwitch, table), side);
  const element = h("div", { class: "reply" }, notice, findings, transport, body);

  slider.addEventListener("input", () => setMoment(messageAt((Number(slider.value) / 1000) * total())));
  list.element.addEventListener("click", onClick);
  showPlayButton();

  // ── loading ──

  /** Load the reply, and show it as it arrives. One that is shown already stays until all of it is there. */
  async function load() {
    controller.abort();
    controller = new AbortController();
    const next = { messages: [], lines: [], firstLine: [], users: new Map() };
    const isShownEarly = !isLoaded;
    const { signal } = controller;
    try {
      await getLines(`exchanges/${encodeURIComponent(id)}/reply`, changes, (line) => {
        if (Array.isArray(line)) {
          addMessages(next, line);
          if (isShownEarly) {
            adopt(next);
            if (next.messages.length === line.length) showLoaded(true);
          }
        } else if (line.findings) {
          facts.dialect = line.dialect;
        } else facts = line;
      }, signal);
    } catch (error) {
      if (error.name !== "AbortError" && !isLoaded) showProblem(error);
      return;
    }
    whenReleased(() => !signal.aborted && showAll(next));
  }

  function showAll(next) {
    const wasAtEnd = !isLoaded || moment >= messages.length - 1;
    const wasAtBottom = isLoaded && list.isAtEnd;
    isLoaded = true;
    adopt(next);
    showNotice();
    showFindings();
    showLoaded(wasAtEnd);
    if (selection && messages[selection.message]) select(selection);
    else if (wasAtBottom) list.scrollToIndex(lines.length - 1);
    performance.mark("reply-loaded");
  }

  function adopt(next) {
    ({ messages, lines, firstLine, users } = next);
    briefs.clear();
    list.setCount(lines.length);
    table.setAttribute("aria-rowcount", String(lines.length + 1));
  }

  function addMessages(next, batch) {
    for (const message of batch) {
      const index = next.messages.length;
      next.messages.push(message);
      message.steps ??= [];
      message.frames ??= [];
      next.firstLine.push(next.lines.length);
      const height = Math.max(1, message.steps.length, message.frames.length);
      for (let line = 0; line < height; line += 1) next.lines.push([index, line]);
      message.steps.forEach((step, place) => {
        for (const [number] of step.sources) {
          if (!next.users.has(number)) next.users.set(number, []);
          next.users.get(number).push([index, place]);
        }
      });
    }
  }

  function showLoaded(isAtEnd) {
    if (isAtEnd) moment = messages.length - 1;
    replace(density, densityPlot(messages, total(), messageKind));
    list.refresh();
    showMoment();
  }

  function showProblem(error) {
    const isMissing = error instanceof ApiError && error.status !== 0;
    replace(element, problemBlock(isMissing ? "There is no reply to show" : "The reply cannot be shown", error));
  }

  function showNotice() {
    const names = Object.entries(changes);
    notice.hidden = !names.length;
    replace(notice, "What if: ", names.map(([name, value]) => h("span", { class: "pill plain" }, `${name}: ${value}`)), ` · dialect ${facts.dialect || "none"}`);
    columns[0].textContent = `From the upstream · ${apiName(facts.source)}`;
    columns[2].textContent = `To the client · ${apiName(facts.target)}`;
  }

  function total() {
    return Math.max(messages[messages.length - 1]?.at ?? 0, facts.seconds ?? 0, 0.001);
  }

  // ── rows ──

  function renderRow(position) {
    const [index, line] = lines[position];
    const message = messages[index];
    const row = h(
      "div",
      { class: `timeline-row${line === 0 ? " first" : ""}`, role: "row", "data-message": index, "data-line": line },
      h("span", { role: "cell", class: "t-time" }, line === 0 ? timeCell(message, index) : null),
      cell("upstream", index, line, line === 0 ? upstreamText(message, index) : null),
      cell("steps", index, line, message.steps[line] ? stepContent(message.steps[line]) : null),
      cell("client", index, line, message.frames[line] ? frameText(message, message.frames[line]) : line === 0 && !message.frames.length ? h("span", { class: "nothing" }, "nothing yet") : null),
    );
    markRow(row, index, line);
    return row;
  }

  function cell(column, index, line, content) {
    const isActive = content !== null && (column === "upstream" ? line === 0 : column === "steps" ? messages[index].steps[line] : messages[index].frames[line]);
    if (!isActive) return h("span", { role: "cell", class: `t-${column}` }, content);
    const place = column === "upstream" ? 0 : line;
    return h("span", { role: "cell", class: `t-${column} active`, "data-column": column, "data-index": place }, content);
  }

  function timeCell(message, index) {
    const gap = index ? message.at - messages[index - 1].at : 0;
    return [h("span", { class: "number" }, count(message.number)), h("span", { class: gap > 1 ? "at slow" : "at" }, duration(message.at))];
  }

  function briefOf(data, key) {
    if (!briefs.has(key)) briefs.set(key, oneLine(brief(data).slice(0, MAX_BRIEF_CHARS)));
    return briefs.get(key);
  }

  function upstreamText(message, index) {
    if (message.is_end) return h("span", { class: "nothing" }, "end of the stream, without a mark");
    return markedBrief(briefOf(message.data, `u${index}`), links.messages.get(message.number), message.data);
  }

  /** Brief text with the linked parts marked, where they can be found in it. */
  function markedBrief(text, ranges, data) {
    if (!ranges) return text;
    const found = [];
    for (const { start, end } of ranges) {
      if (!end) continue;
      const part = oneLine(data.slice(start, Math.min(end, start + MAX_BRIEF_CHARS)));
      const at = text.indexOf(part);
      if (at >= 0) found.push({ start: at, end: at + part.length });
    }
    return marked(text, found);
  }

  function stepContent(step) {
    const kind = stepKind(step.event);
    const text = stepText(step.event).slice(0, MAX_BRIEF_CHARS);
    const choice = step.event.choice ? h("span", { class: "quiet" }, `choice ${step.event.choice}`) : null;
    const isText = text && kind !== "marker" && kind !== "held";
    return [
      h("span", { class: `chip ${kind}${kind === "finding" ? ` ${severityOf(step.event.finding.kind)}` : ""}` }, stepLabel(step, kind)),
      choice,
      isText && step.event.kind !== "Released" && step.event.event?.event !== "CallStart" ? h("span", { class: "step-text" }, oneLine(text)) : h("span", { class: "step-words" }, oneLine(stepWords(step, kind).slice(0, MAX_BRIEF_CHARS))),
    ];
  }

  function stepLabel(step, kind) {
    const names = { EventSent: step.event.event?.event, Passed: step.event.event?.event };
    const name = names[step.event.kind];
    return { Begin: "start", Usage: "usage", Stop: "stop", CallStart: "call", ArgsDelta: "args", CallEnd: "end", Seal: "seal" }[name] ?? { DialectChosen: "dialect", Released: "text" }[step.event.kind] ?? { held: "held", failure: "error" }[kind] ?? kind;
  }

  /** The words of `translate --explain`, without what the label already says. */
  function stepWords(step, kind) {
    const words = step.words;
    if (kind === "marker") return step.event.marker;
    if (kind === "held") return words.replace(/^buffered: /, "");
    if (kind === "finding") return words.replace(/^finding /, "");
    return words.replace(/^(?:call opened|stop reason|usage|dialect|failed): /, "");
  }

  function frameText(message, frame) {
    const data = frame.data || message.data;
    return [message.is_unchanged && data === message.data ? h("span", { class: "unchanged-mark", title: "unchanged, byte for byte" }, "=") : null, briefOf(data, `f${data}`)];
  }

  // ── selection and links ──

  function emptyLinks() {
    return { messages: new Map(), steps: new Set(), frames: new Set() };
  }

  function onClick(event) {
    const target = event.target.closest(".active");
    if (!target) return;
    const row = target.closest(".timeline-row");
    select({ column: target.dataset.column, message: Number(row.dataset.message), index: Number(target.dataset.index) });
  }

  function select(next) {
    selection = next;
    links = findLinks(next);
    moment = next.message;
    list.refresh();
    showMoment(false);
    showSelected();
  }

  function findLinks({ column, message: index, index: place }) {
    const found = emptyLinks();
    const message = messages[index];
    if (column === "upstream") {
      for (const [at, step] of users.get(message.number) ?? []) addStep(found, at, step);
      if (!found.steps.size) message.frames.forEach((_, frame) => found.frames.add(`${index}:${frame}`));
      addRange(found, message.number, 0, 0);
    } else if (column === "steps") {
      addStep(found, index, place);
    } else {
      const carried = message.frames[place].steps ?? [];
      const steps = carried.length ? carried : message.steps.map((_, step) => step).filter((step) => isEvent(message.steps[step]));
      for (const step of steps) addStep(found, index, step, false);
      if (!steps.length) addRange(found, message.number, 0, 0);
      found.frames.add(`${index}:${place}`);
    }
    return found;
  }

  function isEvent(step) {
    return step.event.kind === "EventSent" || step.event.kind === "Passed";
  }

  function addStep(found, index, place, withFrames = true) {
    found.steps.add(`${index}:${place}`);
    for (const [number, start, end] of messages[index].steps[place].sources) addRange(found, number, start, end);
    if (!withFrames || !isEvent(messages[index].steps[place])) return;
    messages[index].frames.forEach((frame, at) => {
      if (!frame.steps?.length || frame.steps.includes(place)) found.frames.add(`${index}:${at}`);
    });
  }

  function addRange(found, number, start, end) {
    if (!found.messages.has(number)) found.messages.set(number, []);
    found.messages.get(number).push({ start, end });
  }

  function markRow(row, index, line) {
    const key = `${index}:${line}`;
    const { number } = messages[index];
    row.classList.toggle("later", index > moment);
    for (const element of row.querySelectorAll(".active")) {
      const column = element.dataset.column;
      const isLinked = column === "upstream" ? links.messages.has(number) : column === "steps" ? links.steps.has(key) : links.frames.has(key);
      const isChosen = selection?.column === column && selection.message === index && selection.index === (column === "upstream" ? 0 : line);
      element.classList.toggle("linked", isLinked);
      element.classList.toggle("chosen", isChosen);
      if (isChosen) element.setAttribute("aria-current", "true");
    }
  }

  /** Move the selection by rows, in its column, to the next cell that has something. */
  function moveSelection(step) {
    const column = selection?.column ?? "steps";
    let position = selection ? firstLine[selection.message] + selection.index : step > 0 ? -1 : lines.length;
    for (position += step; position >= 0 && position < lines.length; position += step) {
      const [index, line] = lines[position];
      const message = messages[index];
      const isThere = column === "upstream" ? line === 0 : column === "steps" ? message.steps[line] : message.frames[line];
      if (!isThere) continue;
      select({ column, message: index, index: column === "upstream" ? 0 : line });
      list.scrollToIndex(position);
      return;
    }
  }

  function moveColumn(step) {
    const column = COLUMN_NAMES[(COLUMN_NAMES.indexOf(selection?.column ?? "steps") + step + 3) % 3];
    const index = selection?.message ?? Math.max(moment, 0);
    const message = messages[index];
    if (!message) return;
    const size = { upstream: 1, steps: message.steps.length, client: message.frames.length }[column];
    showColumn(column);
    if (size) select({ column, message: index, index: 0 });
  }

  function showColumn(name) {
    table.dataset.column = name;
    [...columnSwitch.children].forEach((button, index) => button.setAttribute("aria-pressed", String(COLUMN_NAMES[index] === name)));
  }

  // ── the selected cell ──

  function showSelected() {
    if (!selection) return;
    const message = messages[selection.message];
    const { column, index } = selection;
    const titles = {
      upstream: () => `Message ${message.number} of the upstream`,
      steps: () => message.steps[index].words || "Step",
      client: () => `Frame to the client, for message ${message.number}`,
    };
    const contents = {
      upstream: () => upstreamDetails(message),
      steps: () => stepDetails(message.steps[index]),
      client: () => frameDetails(message, message.frames[index]),
    };
    replace(selected, h("h3", {}, titles[column]()), contents[column]());
  }

  function upstreamDetails(message) {
    const ranges = (users.get(message.number) ?? []).flatMap(([at, place]) => {
      const step = messages[at].steps[place];
      return step.sources.filter(([number, , end]) => number === message.number && end).map(([, start, end]) => ({ start, end, kind: stepKind(step.event) }));
    });
    const bytes = new TextEncoder().encode(message.data).length;
    return [
      h("p", { class: "quiet" }, message.is_end ? "The upstream closed the connection." : `Bytes ${count(message.offset ?? 0)} to ${count((message.offset ?? 0) + bytes)}, after ${duration(message.at)}.`),
      rawBlock(message.data, ranges),
      linkList(),
    ];
  }

  function stepDetails(step) {
    const { event } = step;
    const finding = event.kind === "FindingReported" ? event.finding : null;
    return [
      finding ? findingHelp(finding.kind) : null,
      event.kind === "HeldBack" ? h("p", {}, "The client has not received this text yet: ", h("b", {}, heldReason(step)), ".") : null,
      sourceList(step),
      h("details", {}, h("summary", {}, "Trace event"), clampedText(JSON.stringify(event, null, 2), { max: MAX_PART_CHARS, props: { class: "code" } })),
    ];
  }

  function heldReason(step) {
    return /\(([^()]*)\)$/.exec(step.words)?.[1] ?? step.words.replace(/^buffered: /, "");
  }

  function sourceList(step) {
    const shown = step.sources.slice(0, MAX_SHOWN_SOURCES);
    return h(
      "div",
      { class: "sources" },
      h("h4", {}, "Came from"),
      shown.map(([number, start, end]) => sourceItem(number, [{ start, end, kind: stepKind(step.event) }])),
      step.sources.length > shown.length ? h("p", { class: "quiet" }, `and ${plural(step.sources.length - shown.length, "more message", "more messages")}`) : null,
    );
  }

  function sourceItem(number, ranges) {
    const message = messages[number - 1];
    if (!message) return null;
    return h("div", { class: "source" }, h("button", { type: "button", class: "link-button", onClick: () => show("upstream", number - 1, 0) }, `message ${number}`), rawBlock(message.data, ranges.filter(({ end }) => end)));
  }

  function frameDetails(message, frame) {
    const data = frame.data || message.data;
    return [
      message.is_unchanged && data === message.data ? h("p", { class: "quiet" }, "Unchanged, byte for byte.") : null,
      clampedText(pretty(payload(data)) || data.trim(), { max: MAX_PART_CHARS, props: { class: "code" } }),
      h("h4", {}, "Came from"),
      [...links.messages].slice(0, MAX_SHOWN_SOURCES).map(([number, ranges]) => sourceItem(number, ranges)),
    ];
  }

  function linkList() {
    const steps = [...links.steps].slice(0, MAX_SHOWN_SOURCES).map((key) => key.split(":").map(Number));
    if (!steps.length) return null;
    return h(
      "div",
      { class: "sources" },
      h("h4", {}, "Became"),
      h("ul", { class: "plain-list" }, steps.map(([at, place]) => h("li", {}, h("button", { type: "button", class: "link-button", onClick: () => show("steps", at, place) }, h("span", { class: `chip ${stepKind(messages[at].steps[place].event)}` }, stepKind(messages[at].steps[place].event)), messages[at].steps[place].words)))),
    );
  }

  function show(column, message, index) {
    select({ column, message, index });
    list.scrollToIndex(firstLine[message] + index, "start");
  }

  // ── findings ──

  function showFindings() {
    const places = findingPlaces();
    findings.hidden = !places.length;
    nextFinding.hidden = !places.length;
    if (!places.length) return;
    const isOpen = findings.firstElementChild?.open ?? (places.length <= 3 && element.clientWidth > 700);
    replace(
      findings,
      h(
        "details",
        { class: "findings", open: isOpen },
        h("summary", {}, icon("flag"), `${plural(places.length, "finding")} in the reply`),
        h("ul", { class: "plain-list" }, places.map(([at, place]) => findingItem(at, place)), requestFindings(places.length)),
      ),
    );
  }

  /** Item with a link to the findings of the request; null if there are none. Those of the exchange are those of both. */
  function requestFindings(replyFindings) {
    const number = (getDetail()?.findings.length ?? 0) - replyFindings;
    if (number <= 0 || Object.keys(changes).length) return null;
    return h("li", {}, h("a", { href: routeUrl(["exchanges", id, "request"]) }, `${count(number)} more in the request`));
  }

  function findingPlaces() {
    return messages.flatMap((message, at) => message.steps.flatMap((step, place) => (step.event.kind === "FindingReported" ? [[at, place]] : [])));
  }

  function findingItem(at, place) {
    const { finding } = messages[at].steps[place].event;
    return h("li", {}, h("button", { type: "button", class: "finding-item", onClick: () => show("steps", at, place) }, findingChip(finding.kind), h("span", {}, finding.message)), findingHelp(finding.kind));
  }

  function jumpToFinding(step) {
    const places = findingPlaces();
    if (!places.length) return;
    const current = selection ? firstLine[selection.message] + selection.index : -1;
    const positions = places.map(([at, place]) => firstLine[at] + place);
    const next = step > 0 ? positions.findIndex((position) => position > current) : positions.findLastIndex((position) => position < current);
    const [at, place] = places[next >= 0 ? next : 0];
    show("steps", at, place);
  }

  // ── time ──

  function messageAt(seconds) {
    let low = 0;
    let high = messages.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (messages[middle].at <= seconds) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  function setMoment(index, seconds) {
    moment = Math.max(Math.min(index, messages.length - 1), -1);
    showMoment(true, seconds);
    if (moment >= 0) list.scrollToIndex(firstLine[moment]);
  }

  function showMoment(withRows = true, seconds) {
    const at = seconds ?? (moment >= messages.length - 1 ? total() : messages[moment]?.at ?? 0);
    slider.value = String(Math.round((at / total()) * 1000));
    slider.setAttribute("aria-valuetext", `${duration(at)}, message ${moment + 1} of ${messages.length}`);
    replace(clock, h("b", {}, duration(at)), h("span", { class: "quiet" }, ` of ${duration(total())} · ${count(moment + 1)} of ${plural(messages.length, "message")}`));
    if (withRows) list.eachRow((row) => markRow(row, Number(row.dataset.message), Number(row.dataset.line)));
    showSoFar();
  }

  function showSoFar() {
    const reply = foldReply(messages, moment);
    const isEnd = moment >= messages.length - 1;
    const end = [
      reply.stop ? h("p", { class: "ending" }, "Stopped: ", h("b", {}, reply.stop)) : null,
      reply.failure ? h("p", { class: "ending bad" }, "Failed: ", reply.failure) : null,
      reply.usage ? h("p", { class: "quiet" }, `${count(reply.usage.input)} tokens in, ${count(reply.usage.output)} out`) : null,
    ];
    const scroll = soFar.querySelector(".parts")?.scrollTop;
    replace(
      soFar,
      h("h3", {}, isEnd ? "The client's reply" : `The client's reply after ${duration(messages[moment]?.at ?? 0)}`),
      h("div", { class: "parts", tabindex: "0", role: "region", "aria-label": "Parts of the reply" }, reply.parts.length ? reply.parts.map((part) => partBlock(part, !isEnd)) : h("p", { class: "quiet" }, "Nothing has arrived."), reply.held.map(heldBlock), end),
    );
    const parts = soFar.querySelector(".parts");
    parts.scrollTop = player ? parts.scrollHeight : scroll ?? 0;
  }

  function heldBlock(held) {
    return h("div", { class: "part held" }, h("span", { class: "part-name" }, "held back"), h("pre", {}, visible(held.text) || "…"));
  }

  function togglePlay() {
    if (player) {
      stopPlaying();
      return;
    }
    if (moment >= messages.length - 1) moment = -1;
    let at = messages[moment]?.at ?? 0;
    let before = performance.now();
    let drawn = 0;
    const step = (now) => {
      at += ((now - before) / 1000) * Number(speed.value);
      before = now;
      if (now - drawn > 60) {
        drawn = now;
        setMoment(messageAt(at), Math.min(at, total()));
      }
      if (at < total()) {
        player = requestAnimationFrame(step);
        return;
      }
      stopPlaying();
      setMoment(messages.length - 1);
    };
    player = requestAnimationFrame(step);
    showPlayButton();
  }

  function stopPlaying() {
    cancelAnimationFrame(player);
    player = null;
    showPlayButton();
    showMoment();
  }

  function showPlayButton() {
    playButton.setAttribute("aria-label", player ? "Pause" : "Play the reply");
    playButton.title = player ? "Pause (space)" : "Play (space)";
    replace(playButton, icon(player ? "pause" : "play"));
  }

  const removeShortcuts = addShortcuts("Reply", {
    " ": ["Play or pause", togglePlay],
    ArrowDown: ["Next cell in the column", () => moveSelection(1)],
    ArrowUp: ["Previous cell in the column", () => moveSelection(-1)],
    ArrowRight: ["Column to the right", () => moveColumn(1)],
    ArrowLeft: ["Column to the left", () => moveColumn(-1)],
    f: ["Next finding", () => jumpToFinding(1)],
    F: ["Previous finding", () => jumpToFinding(-1)],
    Home: ["Start of the reply", () => setMoment(0)],
    End: ["End of the reply", () => setMoment(messages.length - 1)],
  });

  load();

  return {
    element,
    reload: load,
    refresh: showFindings,
    showQuery(next) {
      const wanted = changesOf(next);
      if (JSON.stringify(wanted) === JSON.stringify(changes)) return;
      changes = wanted;
      isLoaded = false;
      load();
    },
    stop() {
      controller.abort();
      stopPlaying();
      removeShortcuts();
      list.stop();
    },
  };
}

const CHANGE_NAMES = ["dialect", "target", "delivery", "arguments", "reasoning", "prefill", "tools"];

/** Changes of “What if” in the query of a route. */
function changesOf(query) {
  return Object.fromEntries(CHANGE_NAMES.filter((name) => query?.[`if-${name}`]).map((name) => [name, query[`if-${name}`]]));
}

/** Part of a reply: thinking, text or a call. `isTail`: of a long text, show the end. */
export function partBlock(part, isTail = false) {
  const isCall = part.kind === "call";
  const note = isCall && part.isOpen ? "open" : isCall && part.isComplete === false ? "incomplete" : "";
  return h(
    "div",
    { class: `part ${part.kind}` },
    h("span", { class: "part-name" }, isCall ? visible(part.name) : part.kind, part.choice ? h("span", { class: "quiet" }, `choice ${part.choice}`) : null, note ? h("span", { class: "pill bad" }, note) : null),
    clampedText(isCall ? pretty(part.text) || "(no arguments yet)" : part.text, { max: MAX_PART_CHARS, isTail }),
    isCall && part.id ? h("span", { class: "part-id mono" }, visible(part.id)) : null,
  );
}

function rawBlock(data, ranges) {
  const shown = ranges.filter(({ end }) => end <= data.length);
  return clampedText(data.trimEnd(), { ranges: shown, max: MAX_PART_CHARS, props: { class: "raw", tabindex: "0" } });
}
