// The page: its frame, the views by route, and what all views share.

import { ApiError, hasKey, isExported, setKey, takeKeyFromAddress } from "./lib/api.js";
import { h, icon, replace } from "./lib/dom.js";
import { plural } from "./lib/format.js";
import { addShortcuts } from "./lib/keyboard.js";
import { problemBlock, sentence } from "./lib/problem.js";
import { currentRoute, navigate, onRoute, routeUrl } from "./lib/router.js";
import { allExchanges, startStore, state, subscribe } from "./lib/store.js";
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
const lostBanner = h("div", { class: "banner", role: "alert", hidden: true });
const themes = themeButton();
const main = h("main", { id: "main", tabindex: "-1" });
let isStarted = false;
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
    lostBanner,
    main,
  ];
}

function skipToMain(event) {
  event.preventDefault();
  main.focus();
}

function showConnection() {
  const number = allExchanges().length;
  const texts = { loading: "loading…", live: plural(number, "exchange") };
  const isLive = state.connection === "live" && state.info?.is_live;
  connection.dataset.state = state.connection === "live" && !isLive ? "files" : state.connection;
  replace(connection, texts[state.connection], isLive ? h("span", { class: "visually-hidden" }, ", live") : null);
  const isLost = state.connection === "lost";
  if (lostBanner.hidden === isLost) replace(lostBanner, isLost ? [h("b", {}, "Connection lost."), " Is the gateway still running? The page tries again every two seconds."] : null);
  lostBanner.hidden = !isLost;
  if (state.connection === "denied" && !main.querySelector(".key-form")) showKeyForm("The key has changed.");
}

function showRoute(route) {
  if (!isStarted) return;
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
    showKeyForm(hasKey() ? "This key is wrong." : "", error.hint);
    return;
  }
  replace(main, problemBlock("The inspector cannot be shown", error), h("p", { class: "retry" }, h("button", { type: "button", onClick: start }, "Try again")));
}

/** Ask for the key. `problem`: what is wrong with the one that the page has. */
function showKeyForm(problem, hint = "") {
  current?.stop();
  current = null;
  isStarted = false;
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
    problem ? h("p", { class: "problem", role: "alert" }, problem) : null,
    h("p", {}, sentence(hint)),
    h("label", { for: "key" }, "Key"),
    field,
    h("button", { class: "primary", type: "submit" }, "Open"),
  );
  replace(main, form);
  field.focus();
}

async function start() {
  replace(main, h("p", { class: "loading quiet" }, "Loading…"));
  try {
    await startStore();
  } catch (error) {
    showError(error);
    return;
  }
  isStarted = true;
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
