// Virtual list: of many rows with the same height, only those that are visible are in the document.

import { h } from "./dom.js";

const OVERSCAN = 12;

/**
 * Create a virtual list.
 *
 * `rowHeight`: pixels of a row. `renderRow(index)`: returns the element of a row. `label`: name for screen readers.
 * Returns its `element`, and functions to change it.
 */
export function createVirtualList({ rowHeight, renderRow, label, className = "" }) {
  const rows = new Map();
  const spacer = h("div", { class: "virtual-spacer", role: "presentation" });
  const element = h("div", { class: `virtual-list ${className}`, tabindex: "0", "aria-label": label, role: "rowgroup" }, spacer);
  let count = 0;
  let height = rowHeight;
  let isQueued = false;

  function render() {
    isQueued = false;
    const first = Math.max(Math.floor(element.scrollTop / height) - OVERSCAN, 0);
    const last = Math.min(Math.ceil((element.scrollTop + element.clientHeight) / height) + OVERSCAN, count);
    for (const [index, row] of rows) {
      if (index < first || index >= last) {
        row.remove();
        rows.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) {
      if (rows.has(index)) continue;
      const row = renderRow(index);
      row.style.setProperty("transform", `translateY(${index * height}px)`);
      row.style.setProperty("height", `${height}px`);
      rows.set(index, row);
      spacer.append(row);
    }
  }

  function queue() {
    if (isQueued) return;
    isQueued = true;
    requestAnimationFrame(render);
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
      height = pixels;
      this.setCount(count);
      this.refresh();
    },
    /** Draw all visible rows again. */
    refresh() {
      for (const row of rows.values()) row.remove();
      rows.clear();
      render();
    },
    /** Call a function with each row that is in the document, and its index. */
    eachRow(callback) {
      for (const [index, row] of rows) callback(row, index);
    },
    scrollToIndex(index, position = "nearest") {
      const top = index * height;
      const isVisible = top >= element.scrollTop && top + height <= element.scrollTop + element.clientHeight;
      if (position === "nearest" && isVisible) return;
      const offset = position === "nearest" && top < element.scrollTop ? 2 * height : element.clientHeight / 3;
      element.scrollTop = Math.max(top - offset, 0);
      render();
    },
    get count() {
      return count;
    },
    stop() {
      observer.disconnect();
    },
  };
}
