// Long text of which a part is shown, and the rest on demand. Captured text may have millions of characters.

import { h, marked, replace } from "./dom.js";
import { count } from "./format.js";

/**
 * Block of text. `ranges` of it are marked: [{start, end, kind}]; `max` is the number of characters that are shown at
 * first. A mark that is further behind is shown with its context. `isTail`: show the end of the text instead.
 */
export function clampedText(text, { ranges = [], max, isTail = false, props = {} }) {
  const block = h("pre", props);
  const mark = ranges[0];
  let start = mark && mark.start > max / 2 ? mark.start - Math.floor(max / 4) : 0;
  if (isTail) start = Math.max(text.length - max, 0);
  const end = Math.min(text.length, start + max);
  const shifted = ranges.map(({ start: from, end: to, kind }) => ({ start: Math.max(from - start, 0), end: Math.min(to, end) - start, kind }));
  replace(block, start ? "… " : null, marked(text.slice(start, end), shifted), end < text.length ? "…" : null);
  if (start === 0 && end === text.length) return block;
  const button = h("button", { type: "button", class: "link-button", onClick: () => { replace(block, marked(text, ranges)); button.remove(); } }, `Show all ${count(text.length)} characters`);
  return [block, button];
}
