// Numbers, times and names as a reader wants them.

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dayFormat = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
const numberFormat = new Intl.NumberFormat("en");

/** Time of day of a moment in seconds since 1970. */
export function timeOfDay(seconds) {
  return seconds ? timeFormat.format(seconds * 1000) : "–";
}

export function isToday(seconds) {
  return new Date(seconds * 1000).toDateString() === new Date().toDateString();
}

/** Time of day, and the date if it is not today's. */
export function timeOfList(seconds) {
  if (!seconds || isToday(seconds)) return timeOfDay(seconds);
  return `${dayFormat.format(seconds * 1000)} ${timeOfDay(seconds)}`;
}

export function dateAndTime(seconds) {
  return seconds ? dateFormat.format(seconds * 1000) : "unknown time";
}

/** Duration with three significant digits: 4.2 ms, 340 ms, 1.24 s, 2 min 5 s. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0 s";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function count(number) {
  return number === null || number === undefined ? "–" : numberFormat.format(number);
}

/** Large number in a few characters: 950, 1.2k, 34k, 1.5M. */
export function short(number) {
  if (number === null || number === undefined) return "–";
  if (number < 1000) return String(number);
  if (number < 10_000) return `${(number / 1000).toFixed(1)}k`;
  if (number < 1_000_000) return `${Math.round(number / 1000)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

export function bytes(number) {
  if (number < 1024) return `${number} B`;
  if (number < 1024 * 1024) return `${(number / 1024).toFixed(number < 10_240 ? 1 : 0)} KiB`;
  return `${(number / 1024 / 1024).toFixed(1)} MiB`;
}

export function plural(number, noun, nouns = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : nouns}`;
}

export function percent(part, whole) {
  return whole ? `${Math.round((100 * part) / whole)} %` : "–";
}

const API_NAMES = {
  "openai-chat": "Chat Completions",
  "anthropic-messages": "Messages",
  "openai-responses": "Responses",
};

/** Name of an API that a reader knows. */
export function apiName(wire) {
  return API_NAMES[wire] ?? wire;
}

/** Text with line breaks and tabs made visible, for one line. */
export function oneLine(text) {
  return visible(text.replace(/\r?\n/g, "⏎").replace(/\t/g, "⇥"));
}

// Control characters, marks that change the direction of the text after them, and characters without a width. Emoji and
// some scripts need the joiners (200c, 200d).
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g;

/** Text without characters that could make it look like another: they are shown by their number. */
export function visible(text) {
  return text.replace(INVISIBLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Pixels of a length in units of the font size of the page. */
export function rem(number) {
  return Math.round(number * parseFloat(getComputedStyle(document.documentElement).fontSize));
}
