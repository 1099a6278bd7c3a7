// The reply as it stood at a moment: what the client had received, and what was held back.

/** Fold the steps of the messages up to `last`, inclusively. The parts of a reply with several choices are in their order. */
export function foldReply(messages, last) {
  const state = { parts: [], held: [], stop: null, usage: null, failure: null };
  for (let index = 0; index <= last && index < messages.length; index += 1) {
    state.held = [];
    for (const { event } of messages[index].steps) addStep(state, event);
  }
  state.parts.sort((a, b) => a.choice - b.choice);
  return state;
}

function addStep(state, step) {
  if (step.kind === "HeldBack") state.held.push(step);
  else if (step.kind === "EventSent" || step.kind === "Passed") addEvent(state, step.event, step.choice ?? 0);
}

function addEvent(state, event, choice) {
  const { parts } = state;
  const lastPart = () => parts.findLast((part) => part.choice === choice);
  const lastCall = () => parts.findLast((part) => part.choice === choice && part.kind === "call");
  switch (event.event) {
    case "TextDelta":
    case "ReasoningDelta":
    case "RefusalDelta": {
      const kind = { TextDelta: "text", ReasoningDelta: "thinking", RefusalDelta: "refusal" }[event.event];
      const last = lastPart();
      if (last?.kind === kind) last.text += event.text;
      else parts.push({ kind, choice, text: event.text });
      break;
    }
    case "CallStart":
      parts.push({ kind: "call", choice, name: event.name, id: event.id, text: "", isOpen: true, isComplete: false });
      break;
    case "ArgsDelta": {
      const call = lastCall();
      if (call) call.text += event.text;
      break;
    }
    case "CallEnd": {
      const call = lastCall();
      if (call) Object.assign(call, { isOpen: false, isComplete: event.complete });
      break;
    }
    case "Usage":
      state.usage = event;
      break;
    case "Stop":
      state.stop = event.reason;
      break;
    case "Failure":
      state.failure = event.message;
      break;
    default:
  }
}

/** Kind of a step for colours: thinking, text, call, marker, held, finding, failure, other. */
export function stepKind(step) {
  switch (step.kind) {
    case "MarkerSeen":
      return "marker";
    case "HeldBack":
      return "held";
    case "Released":
      return "text";
    case "FindingReported":
      return "finding";
    case "EventSent":
    case "Passed":
      return eventKind(step.event.event);
    default:
      return "other";
  }
}

function eventKind(name) {
  return (
    { TextDelta: "text", RefusalDelta: "text", ReasoningDelta: "thinking", Seal: "thinking", CallStart: "call", ArgsDelta: "call", CallEnd: "call", Failure: "failure" }[name] ?? "other"
  );
}

/** Kind of a message by its most telling step. */
export function messageKind(message) {
  const kinds = new Set(message.steps.map((step) => stepKind(step.event)));
  return ["failure", "finding", "call", "thinking", "text", "held", "marker"].find((kind) => kinds.has(kind)) ?? "other";
}

/** Text that a step carries; "" if it carries none. */
export function stepText(step) {
  if (step.kind === "HeldBack" || step.kind === "Released") return step.text;
  if (step.kind === "MarkerSeen") return step.marker;
  if (step.kind !== "EventSent" && step.kind !== "Passed") return "";
  return step.event.text ?? step.event.name ?? "";
}
