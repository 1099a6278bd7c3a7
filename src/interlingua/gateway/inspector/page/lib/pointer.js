// Pointer: while a button is pressed, live changes wait, because a click needs the element on which it began.

let isPressed = false;
const waiting = new Set();

/** Call the function now, or as soon as no button is pressed. A function that waits already is called once. */
export function whenReleased(callback) {
  if (isPressed) waiting.add(callback);
  else callback();
}

function release() {
  isPressed = false;
  const callbacks = [...waiting];
  waiting.clear();
  setTimeout(() => callbacks.forEach((callback) => callback())); // the click comes first
}

document.addEventListener("pointerdown", () => { isPressed = true; }, true);
document.addEventListener("pointerup", release, true);
document.addEventListener("pointercancel", release, true);
document.addEventListener("pointermove", (event) => { if (isPressed && !event.buttons) release(); }, true);
