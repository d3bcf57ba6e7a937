// Which log is looked at, and whether it was verified last.

import { html } from "./vendor/htm-preact.js";
import { head } from "./focus.js";
import { To } from "./parts.js";
import { finding, useVerified } from "./verification.js";

export function Badge() {
  const { answer } = useVerified();
  const log = head.value;
  if (!log) return null;
  const found = answer && finding(answer);
  return html`<span class="log" title=${`log ${log.log_id}, term ${log.term}, led by ${log.leader}`}>
      log ${log.log_id.slice(0, 8) || "empty"} · term ${log.term}</span>
    <${To} change=${{ view: "audit" }} class=${`badge ${found ? (found.good ? "good" : "fault") : ""}`}
      title=${found ? `${found.text}; head ${answer.hash}` : "not verified by this server yet"}>
      ${found ? (found.good ? "verified" : "differs") : "not verified"}<//>`;
}
