// Keyboard shortcuts: one key each, outside of fields.

const scopes = [];

/** Add shortcuts: {key: [description, action]}. Returns a function that removes them. The last scope wins. */
export function addShortcuts(title, shortcuts) {
  const scope = { title, shortcuts };
  scopes.push(scope);
  return () => scopes.splice(scopes.indexOf(scope), 1);
}

/** Return all shortcuts for the help: [{title, rows: [[key, description]]}]. */
export function listShortcuts() {
  return scopes.map(({ title, shortcuts }) => ({
    title,
    rows: Object.entries(shortcuts).map(([key, [description]]) => [key, description]),
  }));
}

const KEY_NAMES = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", " ": "space", Escape: "Esc", Enter: "Enter" };

export function keyName(key) {
  return KEY_NAMES[key] ?? key;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const isField = event.target.closest?.("input, select, textarea, [contenteditable]");
  const isSlider = event.target.type === "range";
  if (isField && !isSlider && event.key === "Escape") event.target.blur(); // then the shortcuts work
  if (isField && !isSlider) return;
  if (isSlider && event.key.startsWith("Arrow")) return;
  const isOnControl = event.target.closest?.("button, a, summary, [role=tab]");
  if (isOnControl && (event.key === " " || event.key === "Enter")) return;
  if (document.querySelector("dialog[open]") && event.key !== "Escape" && event.key !== "?") return;
  for (const { shortcuts } of [...scopes].reverse()) {
    const entry = shortcuts[event.key];
    if (entry && entry[1](event) !== false) {
      event.preventDefault();
      return;
    }
  }
});
