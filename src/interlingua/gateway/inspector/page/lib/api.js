// Data from the server, or from the page itself if it was exported.

const KEY_NAME = "interlingua-inspector-key";
const embeddedElement = document.getElementById("embedded-data");
const embedded = embeddedElement ? JSON.parse(embeddedElement.textContent) : null;

/** True in a page that was exported: it has one exchange and no server. */
export const isExported = embedded !== null;

export class ApiError extends Error {
  constructor(message, hint, status) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

/** Take the key from the address of the page, so that it is not shown any longer. */
export function takeKeyFromAddress() {
  const match = /^#key=([\w-]+)$/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(KEY_NAME, match[1]);
  history.replaceState(null, "", `${location.pathname}#/exchanges`);
}

export function hasKey() {
  return sessionStorage.getItem(KEY_NAME) !== null;
}

export function setKey(key) {
  sessionStorage.setItem(KEY_NAME, key);
}

function headers() {
  const key = sessionStorage.getItem(KEY_NAME);
  return key ? { authorization: `Bearer ${key}` } : {};
}

async function request(path, query, signal) {
  const parameters = new URLSearchParams(Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== ""));
  const url = `api/${path}${parameters.size ? `?${parameters}` : ""}`;
  let response;
  try {
    response = await fetch(url, { headers: headers(), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached.", "Is the gateway still running?", 0);
  }
  if (response.ok && !response.headers.has("x-inspector-problem")) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(body.error ?? `status ${response.status}`, body.hint ?? "", response.status);
}

/** Get JSON. An exported page has its own data under the same names. */
export async function getJson(path, query, signal) {
  if (embedded) return fromPage(path);
  return (await request(path, query, signal)).json();
}

function fromPage(path) {
  const name = path === "info" || path === "exchanges" ? path : path.split("/")[2] ?? "detail";
  const value = embedded[name];
  if (value === undefined) throw new ApiError("This exported page does not have that.", "Open the capture itself.", 404);
  if (value?.error) throw new ApiError(value.error, value.hint, 400);
  return path === "exchanges" ? { version: 0, exchanges: value } : value;
}

/** Get lines of JSON as they arrive, and call `onLine` with each. */
export async function getLines(path, query, onLine, signal) {
  if (embedded) {
    for (const line of fromPage(path)) onLine(line);
    return;
  }
  const response = await request(path, query, signal);
  await readLines(response, (line) => line && onLine(JSON.parse(line)));
}

/** Get server-sent events until the connection ends, and call `onData` with the data of each. */
export async function follow(path, query, onData) {
  const response = await request(path, query);
  await readLines(response, (line) => line.startsWith("data: ") && onData(JSON.parse(line.slice(6))));
}

async function readLines(response, onLine) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) onLine(line);
  }
  if (rest) onLine(rest);
}

/** Download an export as a file; return its text if `asText`. */
export async function getExport(id, format, query, asText = false) {
  const response = await request(`exchanges/${encodeURIComponent(id)}/export/${format}`, query);
  if (asText) return response.text();
  const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "export";
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  return name;
}
