// The page: its frame, the views by route, and what all views share.

import { ApiError, getJson, isExported, setKey, takeKeyFromAddress } from "./lib/api.js";
import { h, icon, replace } from "./lib/dom.js";
import { plural } from "./lib/format.js";
import { addShortcuts } from "./lib/keyboard.js";
import { currentRoute, navigate, onRoute, routeUrl } from "./lib/router.js";
import { allExchanges, loadExchanges, state, subscribe } from "./lib/store.js";
import { applyTheme, switchTheme, themeButton } from "./lib/theme.js";
import { exchangesView } from "./views/exchanges.js";
import { showHelp } from "./views/help.js";
import { numbersView } from "./views/numbers.js";
import { sessionsView } from "./views/sessions.js";

const VIEWS = {
  exchanges: { title: "Exchanges", view: exchangesView },
  sessions: { title: "Sessions", view: sessionsView },
  numbers: { title: "Numbers", view: numbersView },
};

const connection = h("span", { class: "connection", role: "status" });
const themes = themeButton();
const main = h("main", { id: "main", tabindex: "-1" });
let current = null; // {name, update, stop} of the view that is shown

function frame() {
  const links = Object.entries(VIEWS).map(([name, { title }]) =>
    h("a", { href: routeUrl([name]), "data-view": name }, title),
  );
  return [
    h("a", { class: "skip-link", href: "#main", onClick: skipToMain }, "Skip to the content"),
    h(
      "header",
      { class: "top-bar" },
      h("h1", { class: "brand" }, h("span", { class: "brand-mark", "aria-hidden": "true" }), "Interlingua ", h("span", { class: "brand-part" }, "inspector")),
      isExported ? h("span", { class: "top-note" }, "exported exchange") : h("nav", { "aria-label": "Views" }, links),
      h("span", { class: "spacer" }),
      connection,
      h("button", { class: "icon-button", type: "button", "aria-label": "Help and shortcuts", title: "Help (?)", onClick: showHelp }, icon("keys")),
      themes,
    ),
    main,
  ];
}

function skipToMain(event) {
  event.preventDefault();
  main.focus();
}

function showConnection() {
  const number = allExchanges().length;
  const texts = { loading: "loading…", live: plural(number, "exchange"), lost: "connection lost", exported: "" };
  const isLive = state.connection === "live" && state.info?.is_live;
  connection.dataset.state = state.connection === "live" && !isLive ? "files" : state.connection;
  replace(connection, texts[state.connection], isLive ? h("span", { class: "visually-hidden" }, ", live") : null);
}

function showRoute(route) {
  const name = VIEWS[route.parts[0]] ? route.parts[0] : "exchanges";
  for (const link of document.querySelectorAll("nav a[data-view]")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (current?.name === name) {
    current.update(route);
    return;
  }
  current?.stop();
  const { view } = VIEWS[name];
  const shown = view(route);
  current = { name, ...shown };
  replace(main, shown.element);
}

function showError(error) {
  if (error instanceof ApiError && error.status === 401) {
    showKeyForm(error);
    return;
  }
  replace(main, h("div", { class: "empty" }, h("h2", {}, error.message), h("p", {}, error.hint ?? "")));
}

function showKeyForm(error) {
  const field = h("input", { type: "password", id: "key", autocomplete: "off", required: true });
  const form = h(
    "form",
    {
      class: "key-form",
      onSubmit: (event) => {
        event.preventDefault();
        setKey(field.value.trim());
        start();
      },
    },
    h("h2", {}, "This inspector needs a key"),
    h("p", {}, error.hint),
    h("label", { for: "key" }, "Key"),
    field,
    h("button", { class: "primary", type: "submit" }, "Open"),
  );
  replace(main, form);
  field.focus();
}

async function start() {
  replace(main, h("div", { class: "empty" }, h("p", {}, "Loading…")));
  try {
    await getJson("info");
    await loadExchanges();
  } catch (error) {
    showError(error);
    return;
  }
  current = null;
  if (isExported && currentRoute().parts.length < 2) history.replaceState(null, "", routeUrl(["exchanges", allExchanges()[0].id, "reply"]));
  showRoute(currentRoute());
}

function goTo(name) {
  return () => navigate([name]);
}

takeKeyFromAddress();
applyTheme();
document.body.classList.toggle("exported", isExported);
replace(document.getElementById("app"), frame());
subscribe(showConnection);
onRoute(showRoute);
addShortcuts("Everywhere", {
  "?": ["Show this help", showHelp],
  e: ["Exchanges", goTo("exchanges")],
  s: ["Sessions", goTo("sessions")],
  n: ["Numbers", goTo("numbers")],
  t: ["Switch between light and dark", () => { switchTheme(); themes.refresh(); }],
});
start();
