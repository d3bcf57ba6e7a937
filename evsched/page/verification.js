// Whether the log, decided again, gives the same events: what the last verification found, and a new one.

import { html } from "./vendor/htm-preact.js";
import { useEffect } from "./vendor/preact-hooks.js";
import { signal } from "./vendor/signals.js";
import { pretty, useAnswer } from "./api.js";
import { useJob, Running } from "./jobs.js";
import { At, Fault } from "./parts.js";
import * as routes from "./routes.js";

/** What a verification found, in words. */
export function finding(answer) {
  if (answer.damage) return { good: false, text: "the log is damaged" };
  if (answer.difference) return { good: false, text: "decided again, the log differs" };
  return { good: true, text: "decided again, the log is the same" };
}

/** What the last verification of this server came to; null: there was none. */
export const verified = signal(null);

/** Learn once what the server knows. */
export function useVerified() {
  const { answer, error } = useAnswer(routes.verification());
  useEffect(() => {
    if (answer) verified.value = answer;
  }, [answer]);
  return { answer: verified.value, error };
}

export function Verification() {
  const { job, error, begin, cancel } = useJob();
  const { answer, error: unknown } = useVerified();
  useEffect(() => {
    if (job?.answer) verified.value = job.answer;
  }, [job]);
  const open = ["waiting", "running"].includes(job?.state);
  return html`<div class="form">
      ${answer ? html`<${Found} answer=${answer} />` : html`<span class="dim">This server has not verified the log yet.</span>`}
      <button type="button" disabled=${open} onClick=${() => begin(routes.verification(), {})}>Verify now</button>
    </div>
    <${Running} job=${job} cancel=${cancel} /><${Fault} error=${error ?? unknown} />`;
}

function Found({ answer }) {
  const { good, text } = finding(answer);
  const fault = answer.damage ?? answer.difference;
  return html`<span class=${good ? "good" : "fault"}><b>${good ? "verified" : "NOT verified"}</b>: ${text},
    ${" "}${answer.events} events in ${answer.frames} frames, head <code title=${answer.hash}>${answer.hash.slice(0, 16)}…</code></span>
    ${fault && html`<details><summary>where</summary>${fault.seq ? html`<${At} seq=${fault.seq} />` : ""}<pre class="raw" tabindex="0">${pretty(fault)}</pre></details>`}`;
}
