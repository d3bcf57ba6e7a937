// Long questions: a job is begun, looked at until it is over, and cancelled when the view is left.

import { html } from "./vendor/htm-preact.js";
import { useCallback, useEffect, useRef, useState } from "./vendor/preact-hooks.js";
import { ask } from "./api.js";
import * as routes from "./routes.js";

const POLL_MS = 300;
const OPEN = new Set(["waiting", "running"]);

/** A job of this view: `job` as the API says it stands (null: none was begun), `error`, `begin`, `cancel`. */
export function useJob() {
  const [job, setJob] = useState(null);
  const [error, setError] = useState(null);
  const running = useRef(null);
  const owed = useRef(0);

  const look = useCallback(async (id) => {
    try {
      const now = await ask(routes.job(id));
      if (running.current !== id) return;
      setJob(now);
      if (OPEN.has(now.state)) owed.current = setTimeout(() => look(id), POLL_MS);
      else running.current = null;
    } catch (failed) {
      setError(failed);
    }
  }, []);

  const cancel = useCallback(() => {
    clearTimeout(owed.current);
    const id = running.current;
    running.current = null;
    if (id) ask(routes.job(id), { method: "DELETE" }).then(setJob, setError);
  }, []);

  const begin = useCallback(async (path, body) => {
    cancel();
    setError(null);
    setJob(null);
    try {
      const begun = await ask(path, { method: "POST", body: JSON.stringify(body), type: "application/json" });
      running.current = begun.id;
      setJob(begun);
      look(begun.id);
    } catch (failed) {
      setError(failed);
    }
  }, []);

  useEffect(() => cancel, []);
  return { job, error, begin, cancel };
}

/** How far a job is, with a button that cancels it; nothing once it is over. */
export function Running({ job, cancel }) {
  if (!job || !OPEN.has(job.state)) {
    return job?.state === "failed" ? html`<p class="fault" role="alert">${job.reason}</p>` : null;
  }
  return html`<p role="status"><label>${job.state}: event ${job.seq} of ${job.end}
    <progress max=${job.end || 1} value=${job.seq}></progress></label>
    <button type="button" onClick=${cancel}>cancel</button></p>`;
}
