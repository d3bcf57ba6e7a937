// Questions to the API. An answer at a seq never changes, so it is kept and never asked for again.

import { useEffect, useRef, useState } from "./vendor/preact-hooks.js";
import { signal } from "./vendor/signals.js";
import { refuse, signed } from "./token.js";

const KEPT = 400;
const LINES = "application/x-ndjson";
const UNKNOWN = 401;
const TIMES = 10_000;
const kept = new Map();
const times = new Map();

/** How many questions are under way. */
export const asking = signal(0);

/** What the API refused or failed at, as RFC 9457 has it. */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `the server answered ${status}`);
    this.status = status;
    this.document = document;
  }
}

/** Parse JSON; whole numbers that a double cannot hold become BigInt. */
export function parse(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, context) => {
    const long = typeof value === "number" && !Number.isSafeInteger(value);
    return long && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;
  });
}

/** Show JSON for people, BigInt as the number that it is. */
export function pretty(value) {
  const marked = JSON.stringify(
    value, (_key, one) => (typeof one === "bigint" ? `\u0000${one}\u0000` : one), 2);
  return (marked ?? "").replace(/"\\u0000(-?\d+)\\u0000"/g, "$1");
}

/** Ask and return the answer; raises Problem. `type`: of the body, where there is one; the rest is fetch's. */
export async function ask(path, { type, ...options } = {}) {
  const found = options.method ? undefined : kept.get(path);
  if (found !== undefined) return found;
  const headers = { Accept: `application/json, ${LINES}`, ...(type && { "Content-Type": type }) };
  asking.value += 1;
  try {
    const response = await sent(path, { ...options, headers });
    return read(path, response, await response.text());
  } finally {
    asking.value -= 1;
  }
}

/** Send a request in the name of whoever looks at the page; raises Problem where it is refused. */
export async function sent(path, { headers, ...options } = {}) {
  const response = await fetch(path, { ...options, headers: { ...headers, ...signed() } });
  if (response.ok) return response;
  const refused = new Problem(response.status, problem(await response.text()));
  if (response.status === UNKNOWN) refuse(refused.message);
  throw refused;
}

function read(path, response, text) {
  if ((response.headers.get("content-type") ?? "").startsWith(LINES)) {
    // Events between two seqs never change, though a stream cannot say so.
    const lines = text.split("\n").filter(Boolean).map(parse);
    if (path.includes("until=")) keep(path, lines);
    return lines;
  }
  const answer = parse(text);
  if (Number.isInteger(answer?.seq) && Number.isInteger(answer.time)) note(answer);
  if ((response.headers.get("cache-control") ?? "").includes("immutable")) keep(path, answer);
  return answer;
}

/** The last answer that said at which time its seq was: drawn anew by whoever shows times. */
export const timed = signal(null);

/** The time of a seq (ms) as any answer so far said it; undefined: none did. */
export const timeOf = (seq) => times.get(seq);

function note({ seq, time }) {
  if (times.size > TIMES) times.clear();
  times.set(seq, time);
  timed.value = seq;
}

function problem(text) {
  try {
    return JSON.parse(text);
  } catch {
    return { title: text.slice(0, 200) };
  }
}

function keep(path, answer) {
  kept.set(path, answer);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
}

// One question at a time, and of those that come meanwhile only the last: while the time bar is
// dragged something is drawn after every answer. Aborting for each new place could starve it.
class Slot {
  constructor(changed) {
    this.changed = changed;
    this.shown = { path: null, answer: null, error: null };
    this.wanted = null;
    this.asking = null;
  }

  want(path) {
    if (path === this.wanted) return;
    this.wanted = path;
    if (path === null) this.stop();
    else if (!this.asking) this.load();
  }

  async load() {
    const path = this.wanted;
    const abort = new AbortController();
    this.asking = abort;
    try {
      this.show(path, await ask(path, { signal: abort.signal }), null);
    } catch (error) {
      if (abort.signal.aborted) return;
      if (path === this.wanted) this.show(path, this.shown.answer, error);
    }
    this.asking = null;
    if (this.wanted !== null && this.wanted !== path) this.load();
  }

  show(path, answer, error) {
    this.shown = { path, answer, error };
    this.changed();
  }

  stop() {
    this.asking?.abort();
    this.asking = null;
    this.wanted = null;
  }
}

/**
 * The answer of a path in a component: `answer` (the last one until the next is there), `error`,
 * and `current`: whether it is that of the path. null asks nothing.
 */
export function useAnswer(path) {
  const [, redraw] = useState(0);
  const held = useRef(null);
  held.current ??= new Slot(() => redraw((count) => count + 1));
  const slot = held.current;
  useEffect(() => () => slot.stop(), [slot]);
  useEffect(() => slot.want(path), [slot, path]);
  const known = path !== null ? kept.get(path) : undefined;
  if (known !== undefined) return { path, answer: known, error: null, current: true };
  return { ...slot.shown, current: slot.shown.path === path };
}
