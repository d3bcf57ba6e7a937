// What the last verification of the log found, with the hash of its head.

import { html } from "./vendor/htm-preact.js";
import { useAnswer } from "./api.js";
import { pretty } from "./api.js";
import * as routes from "./routes.js";

export function Verification() {
  const { answer, error } = useAnswer(routes.verification());
  if (error || !answer) return html`<p class="dim">No verification is known. <code>evsched verify</code> takes the recorded steps again and compares.</p>`;
  const good = answer.identical ?? answer.holds ?? answer.differences === 0;
  return html`<details class="change"><summary><b class=${good ? "" : "fault"}>${good ? "verified" : "verification"}</b>
    ${answer.head ? html` head <code>${String(answer.head).slice(0, 16)}…</code>` : ""}</summary><pre class="raw" tabindex="0">${pretty(answer)}</pre></details>`;
}
