// The end of the log as it moves: a stream of the server, which says how the log stands now and whenever that
// has changed. It is read by fetch, as EventSource sends no token.

import { ask, sent } from "./api.js";
import * as routes from "./routes.js";

const FIRST_MS = 500;
const MOST_MS = 8000;
/** The server says at least every 15 s that it is there. */
const SILENT_MS = 40_000;
const UNKNOWN = 401;

/**
 * Follow the end of the log until the function that is returned is called. @param heard is given what is known of the
 * log, @param failed why nothing can be known now. Where no stream comes through, the log is asked after instead,
 * less and less often.
 */
export function followed(heard, failed) {
  const over = new AbortController();
  follow(heard, failed, over.signal);
  return () => over.abort();
}

async function follow(heard, failed, signal) {
  let wait = FIRST_MS;
  let last;
  while (!signal.aborted) {
    try {
      for await (const message of messages(last, signal)) {
        last = message.id;
        wait = FIRST_MS;
        heard(message.data);
      }
    } catch (error) {
      if (signal.aborted || error.status === UNKNOWN) return;
      await poll(heard, failed, signal);
    }
    // Many pages that lost one server do not come back in the same moment.
    await pause(wait * (0.5 + Math.random() / 2), signal);
    wait = Math.min(MOST_MS, wait * 2);
  }
}

async function poll(heard, failed, signal) {
  try {
    heard(await ask(routes.log(), { signal }));
  } catch (error) {
    if (!signal.aborted) failed(error);
  }
}

/** Yield the messages of the stream, { id, data }, until it ends; raises where it breaks, or falls silent. */
async function* messages(last, signal) {
  const silent = new AbortController();
  const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
  const response = await sent(routes.logStream(), { headers, signal: AbortSignal.any([signal, silent.signal]) });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const owed = setTimeout(() => silent.abort(), SILENT_MS);
    const { done, value } = await reader.read();
    clearTimeout(owed);
    if (done) return;
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const message = parsed(part);
      if (message) yield message;
    }
  }
}

/** A message of the stream; null where it is a comment. */
function parsed(part) {
  const lines = part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]);
  const found = Object.fromEntries(lines);
  return found.data ? { id: found.id, data: JSON.parse(found.data) } : null;
}

function pause(ms, signal) {
  return new Promise((done) => {
    const owed = setTimeout(done, ms);
    signal.addEventListener("abort", () => { clearTimeout(owed); done(); }, { once: true });
  });
}
