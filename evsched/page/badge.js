// Whether the log was verified last, and up to which event.

import { html } from "./vendor/htm-preact.js";
import { head } from "./focus.js";

/** The log that is looked at, and its term; the badge of a verification is that of the Audit view. */
export function Badge() {
  const log = head.value;
  if (!log) return null;
  return html`<span class="log" title=${`log ${log.log_id}, term ${log.term}, led by ${log.leader}`}>
    log ${log.log_id.slice(0, 8) || "empty"} · term ${log.term}</span>`;
}
