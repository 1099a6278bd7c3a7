// Virtual list: of many rows with the same height, only those that are visible are in the document.

import { h } from "./dom.js";

const OVERSCAN = 12;

/**
 * Create a virtual list.
 *
 * `rowHeight`: pixels of a row. `renderRow(index)`: returns the element of a row. `label`: name for screen readers.
 * `keyOf(index)`, `stateOf(index)`: identity of a row and what it shows, as texts. A row whose state has not changed keeps
 * its element, so that a focus and a click on it are not lost. Without them, `refresh` draws all rows anew.
 * Returns its `element`, and functions to change it.
 */
export function createVirtualList({ rowHeight, renderRow, label, className = "", keyOf = String, stateOf = () => null }) {
  const rows = new Map(); // by index: {row, key, state}
  const spacer = h("div", { class: "virtual-spacer", role: "presentation" });
  const element = h("div", { class: `virtual-list ${className}`, tabindex: "0", "aria-label": label, role: "rowgroup" }, spacer);
  let count = 0;
  let height = rowHeight;
  let isQueued = false;

  /** Draw the rows that are visible and not in the document yet. `known`: rows that can be used again, by their keys. */
  function render(known = new Map()) {
    isQueued = false;
    const first = Math.max(Math.floor(element.scrollTop / height) - OVERSCAN, 0);
    const last = Math.min(Math.ceil((element.scrollTop + element.clientHeight) / height) + OVERSCAN, count);
    for (const [index, { row }] of rows) {
      if (index >= first && index < last) continue;
      row.remove();
      rows.delete(index);
    }
    for (let index = first; index < last; index += 1) {
      if (!rows.has(index)) rows.set(index, place(index, known));
    }
    for (const { row } of known.values()) row.remove();
    putInOrder(first, last);
  }

  function place(index, known) {
    const key = keyOf(index);
    const state = stateOf(index);
    const old = known.get(key);
    known.delete(key);
    let row = old?.row;
    if (!old || state === null || old.state !== state) {
      const hadFocus = row?.contains(document.activeElement);
      row = renderRow(index);
      old?.row.replaceWith(row);
      if (hadFocus) row.querySelector("a, button")?.focus({ preventScroll: true });
    }
    row.setAttribute("aria-rowindex", String(index + 2)); // the head is the first row
    row.style.setProperty("transform", `translateY(${index * height}px)`);
    row.style.setProperty("height", `${height}px`);
    return { row, key, state };
  }

  /** Put the rows into the document in their order, which is that of the Tab key. An element that moves loses its focus. */
  function putInOrder(first, last) {
    let next = spacer.firstChild;
    for (let index = first; index < last; index += 1) {
      const { row } = rows.get(index);
      if (row === next) next = next.nextSibling;
      else spacer.insertBefore(row, next);
    }
  }

  function queue() {
    if (isQueued) return;
    isQueued = true;
    requestAnimationFrame(() => render());
  }

  element.addEventListener("scroll", queue, { passive: true });
  const observer = new ResizeObserver(queue);
  observer.observe(element);

  return {
    element,
    /** Set the number of rows. Rows that are shown stay as they are. */
    setCount(number) {
      count = number;
      spacer.style.setProperty("height", `${count * height}px`);
      queue();
    },
    setRowHeight(pixels) {
      if (pixels === height) return;
      const first = element.scrollTop / height;
      height = pixels;
      this.setCount(count);
      element.scrollTop = first * height;
      this.refresh();
    },
    /** Draw the visible rows again, after the data has changed. */
    refresh() {
      const known = new Map([...rows.values()].map((one) => [one.key, one]));
      rows.clear();
      render(known);
    },
    /** Call a function with each row that is in the document, and its index. */
    eachRow(callback) {
      for (const [index, { row }] of rows) callback(row, index);
    },
    /** Index of the first row that is visible. */
    get firstVisible() {
      return Math.floor(element.scrollTop / height);
    },
    get isAtEnd() {
      return element.scrollTop + element.clientHeight >= count * height - 2;
    },
    /** Scroll by a number of rows. */
    shift(number) {
      element.scrollTop += number * height;
    },
    scrollToIndex(index, position = "nearest") {
      const top = index * height;
      const isVisible = top >= element.scrollTop && top + height <= element.scrollTop + element.clientHeight;
      if (position === "nearest" && isVisible) return;
      const offset = position === "nearest" && top < element.scrollTop ? 2 * height : element.clientHeight / 3;
      element.scrollTop = Math.max(top - offset, 0);
      render();
    },
    stop() {
      observer.disconnect();
    },
  };
}
