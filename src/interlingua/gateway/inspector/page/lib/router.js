// The address of a view: its path and its query, behind the `#` of the page.

const listeners = [];

/** Return the current route: `parts` of its path, and its `query`. */
export function currentRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return {
    parts: path.split("/").filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
}

export function routeUrl(parts, query = {}) {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${parts.map(encodeURIComponent).join("/")}${parameters.size ? `?${parameters}` : ""}`;
}

export function navigate(parts, query) {
  location.hash = routeUrl(parts, query);
}

/** Change the query without a new entry in the history, and without a new view. */
export function replaceQuery(query) {
  history.replaceState(null, "", routeUrl(currentRoute().parts, query));
}

export function onRoute(listener) {
  listeners.push(listener);
}

window.addEventListener("hashchange", () => listeners.forEach((listener) => listener(currentRoute())));
