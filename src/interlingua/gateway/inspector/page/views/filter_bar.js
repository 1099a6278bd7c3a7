// Filters of a list: a text to search for, and a choice for each facet.

import { h, icon, replace } from "../lib/dom.js";
import { visible } from "../lib/format.js";
import { FILTERS, filterValues } from "../lib/store.js";

const SEARCH_DELAY = 300;

/**
 * Create selects for these filters. `getFilters()` returns the chosen values, `onChange(filters)` receives new ones.
 * Returns their `element`, and `refresh`.
 */
export function createFacets(names, getFilters, onChange) {
  const selects = names.map((name) => {
    const { label } = FILTERS[name];
    const select = h("select", { "aria-label": label, "data-filter": name, onChange: () => onChange({ ...getFilters(), [name]: select.value }) });
    return [name, label, select];
  });
  const shown = new Map();

  function refresh() {
    const filters = getFilters();
    for (const [name, label, select] of selects) {
      const value = filters[name] ?? "";
      const known = filterValues(name);
      const key = JSON.stringify([known, value]);
      if (shown.get(name) === key || select.matches(":focus")) continue; // its list may be open
      shown.set(name, key);
      const all = value && !known.some(([one]) => one === value) ? [[value, 0], ...known] : known;
      replace(select, h("option", { value: "" }, `${label}: all`), all.map(([one, number]) => h("option", { value: one, selected: one === value }, `${visible(one)} (${number})`)));
      select.classList.toggle("active", Boolean(value));
      select.hidden = !all.length;
    }
  }

  return { element: h("div", { class: "facets" }, selects.map(([, , select]) => select)), refresh };
}

/** Create the bar with the search field and all facets. `onSearch(text)` receives a new text. */
export function createFilterBar(getFilters, onChange, onSearch) {
  const search = h("input", { type: "search", placeholder: "Search requests and replies", "aria-label": "Search requests and replies", value: getFilters().text ?? "" });
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => onSearch(search.value.trim()), SEARCH_DELAY);
  });
  const facets = createFacets(Object.keys(FILTERS), getFilters, onChange);

  function setText(text) {
    clearTimeout(timer);
    search.value = text;
  }

  return {
    element: h("div", { class: "filter-bar", role: "search" }, h("label", { class: "search-field" }, icon("search"), search), facets.element),
    refresh: facets.refresh,
    setText,
    focus: () => search.focus(),
  };
}
