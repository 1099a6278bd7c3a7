// Messages of a stream as a reader sees them: without the envelope that every chunk repeats.

const MAX_INDENTED_CHARS = 200_000;
const MAX_INDENT = 40;
const ENVELOPE = new Set(["id", "object", "created", "model", "provider", "system_fingerprint", "service_tier", "choices"]);

/** Data of a server-sent event, or of a whole reply. */
export function payload(data) {
  if (!/^(?:data|event|id|retry|:)/m.test(data.slice(0, 64)) || data.startsWith("{")) return data.trim();
  return data
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trimStart())
    .join("\n");
}

/** JSON of a message; null if it has none. */
function parsePayload(data) {
  const text = payload(data);
  if (!text.startsWith("{") && !text.startsWith("[")) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A message on one line: its essential fields as JSON, or its text. Events of named types begin with their name. */
export function brief(data) {
  const value = parsePayload(data);
  if (value === null) return payload(data) || data.trim().replace(/\s*\n\s*/g, " ");
  if (typeof value.type === "string" && !Array.isArray(value.choices)) return `${value.type} ${namedEvent(value)}`.trim();
  return JSON.stringify(essential(value));
}

/** The fields of an event besides its name. Of a delta, only what it adds. */
function namedEvent({ type, sequence_number: _, index, output_index: __, content_index: ___, item_id: ____, ...fields }) {
  const rest = withoutEmpty(fields);
  if (rest.delta && typeof rest.delta === "object") {
    const { type: deltaType, ...delta } = rest.delta;
    rest.delta = delta;
  }
  const names = Object.keys(rest);
  if (names.length === 1 && names[0] === "delta") return JSON.stringify(rest.delta);
  return names.length ? JSON.stringify(rest) : "";
}

function essential(chunk) {
  if (typeof chunk !== "object" || Array.isArray(chunk)) return chunk;
  if (!Array.isArray(chunk.choices)) return withoutEmpty(chunk);
  const extra = Object.fromEntries(Object.entries(withoutEmpty(chunk)).filter(([key]) => !ENVELOPE.has(key)));
  const choices = chunk.choices.map(essentialChoice);
  if (choices.length !== 1) return choices.length ? { choices, ...extra } : extra;
  return { ...choices[0], ...extra };
}

function essentialChoice(choice) {
  if (typeof choice?.delta !== "object" || choice.delta === null) return choice;
  const { delta, index, ...rest } = choice;
  return { ...withoutEmpty(delta), ...withoutEmpty(rest), ...(index ? { index } : {}) };
}

function withoutEmpty(fields) {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== "" && !(typeof value === "object" && !Object.keys(value).length)),
  );
}

/**
 * JSON with indents; the text itself if it is no JSON, or very long. Numbers, escapes and repeated keys stay as they are:
 * the text is not written anew.
 */
export function pretty(text) {
  if (text.length > MAX_INDENTED_CHARS) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let depth = 0;
  const newLine = () => `\n${"  ".repeat(Math.min(depth, MAX_INDENT))}`;
  return tokens
    .map((token, index) => {
      const before = tokens[index - 1];
      if (token === "}" || token === "]") {
        depth -= 1;
        return before === "{" || before === "[" ? token : newLine() + token;
      }
      const start = before === "{" || before === "[" || before === "," ? newLine() : before === ":" ? " " : "";
      if (token === "{" || token === "[") depth += 1;
      return start + token;
    })
    .join("");
}
