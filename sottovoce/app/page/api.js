/** The only door of this page: the service it came from. Texts travel in bodies, never in a URL. */

const KEY = "sottovoce-token";

/** Take everything out of the address at once, so that it stays in no bookmark and on no screen. */
function takeFragment() {
  const { hash } = location;
  if (hash) history.replaceState(null, "", "/");
  const [opens, query] = hash.slice(1).split(/&q=(.*)/s);
  return { opens: new URLSearchParams(opens), query: decoded(query) };
}

/** What stands at the end of the address: browsers leave & and + in it as they were typed. */
function decoded(query) {
  try {
    return query && decodeURIComponent(query);
  } catch {
    return query;
  }
}

/** Open the session: by the token, or as the browser's search box does. The query, if it has one. */
export async function openSession() {
  const { opens, query } = takeFragment();
  const token = opens.get("token");
  if (token) sessionStorage.setItem(KEY, token);
  if (opens.has("key")) return askedByKey(opens.get("key"), query);
  if (opens.has("asked")) return askedByCode(opens.get("asked"));
  return null;
}

export const hasToken = () => Boolean(sessionStorage.getItem(KEY));

/** A query counts if it comes with the right key: any page can lead here with a query of its own. */
async function askedByKey(key, query) {
  const response = await fetch("/v1/search-box", {
    headers: { "X-Sottovoce-Token": key },
    cache: "no-store",
    credentials: "omit",
  }).catch((error) => {
    throw gone(error);
  });
  if (!response.ok) throw new Trouble("The key in this address is not valid: nothing was searched.", BOX);
  sessionStorage.setItem(KEY, key);
  return query;
}

async function askedByCode(code) {
  const response = await fetch(`/asked/${encodeURIComponent(code)}`, { cache: "no-store" }).catch((error) => {
    throw gone(error);
  });
  if (!response.ok) throw new Trouble("This search has been taken up already.", "Type it once more.");
  const { query, token } = await response.json();
  sessionStorage.setItem(KEY, token);
  return query;
}

/** What went wrong, in words, and what to do about it; it never holds what was typed. */
export class Trouble extends Error {
  constructor(what, todo = "", kind = "") {
    super(what);
    this.todo = todo;
    this.kind = kind;
  }
}

const BOX = "Open the page by the address that the terminal printed, and give your browser the new address of its search box.";
const OPEN = "Open the address that the terminal printed, with its token.";
const WAIT = "Nothing was sent. Wait a moment, then try again.";

/** What people read instead of the service's words, by kind or status. */
const WORDS = {
  401: ["The token is missing or wrong.", OPEN],
  403: ["The service refused this page.", OPEN],
  408: ["The service waited too long for this request.", "Try again."],
  413: ["That is too large for this page.", "Use the command for files: sottovoce sanitize."],
  421: ["The service does not answer to this address.", OPEN],
  429: ["Too many requests in a short time.", WAIT],
  full: ["The service is busy: its queue is full.", WAIT],
};

/** What to do, by the kind of failure. */
const TODO = {
  budget: "Choose a lower voice or fewer queries, or raise the limit under “Set a limit”.",
  company: "Choose the voice in which you asked it before, or ask something else.",
  engine: "See that the search engine runs and can be reached, then search again.",
  ledger: "Nothing was sent. See the terminal: sottovoce ledger check.",
  preview: "Press Preview again.",
  setup: "Do that in a terminal, then reload this page.",
  timeout: "Try again with fewer queries.",
};

/** A sentence as people write it. */
export const sentence = (text) => text[0].toUpperCase() + text.slice(1).replace(/\.?$/, ".");

/** Trouble out of what the service answered, which repeats nothing of a request. */
export function failed(answer, status) {
  const words = WORDS[answer?.kind] ?? WORDS[status];
  if (words) return new Trouble(...words, answer?.kind);
  const what = typeof answer?.error === "string" && answer.error ? answer.error : "the service failed";
  return new Trouble(sentence(what), TODO[answer?.kind] ?? "", answer?.kind);
}

async function refusal(response) {
  let answer = {};
  try {
    answer = await response.json();
  } catch {
    // No JSON: the status says enough.
  }
  return failed(answer, response.status);
}

async function send(method, path, body, { signal, accept = "application/json" } = {}) {
  const headers = { Accept: accept };
  const token = sessionStorage.getItem(KEY);
  if (token) headers["X-Sottovoce-Token"] = token;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    throw gone(error);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

function gone(error) {
  if (error.name === "AbortError") return error;
  return new Trouble(
    "The service on this machine does not answer.",
    "Look at the terminal: if it has stopped, start it again with sottovoce serve and open the new address.",
  );
}

export async function call(method, path, body, options) {
  const response = await send(method, path, body, options);
  return response.status === 204 ? null : response.json();
}

export const get = (path) => call("GET", path);

/** Post, and hand over each line of the answer as it comes. */
export async function stream(path, body, onEvent, signal) {
  const response = await send("POST", path, body, { signal, accept: "application/x-ndjson" });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (pending + (value ?? "")).split("\n");
      pending = done ? "" : lines.pop();
      for (const line of lines) if (line.trim()) onEvent(JSON.parse(line));
      if (done) return;
    }
  } catch (error) {
    throw error instanceof Trouble ? error : gone(error);
  }
}
