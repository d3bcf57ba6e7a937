// What another configuration would have changed: edited here, checked, and tried on the recorded past.

import { html } from "../vendor/htm-preact.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { exact } from "../amounts.js";
import { ask, useAnswer } from "../api.js";
import { focus, seq } from "../focus.js";
import { Running, useJob } from "../jobs.js";
import { clock, length, shown } from "../moments.js";
import { Fault, Name, Nothing } from "../parts.js";
import * as routes from "../routes.js";
import { Table } from "../table.js";

const CHECK_MS = 400;

export default function WhatIf() {
  const at = seq.value;
  const inForce = useAnswer(at === null ? null : routes.configuration(at));
  const [text, setText] = useState(null);
  const document = text ?? inForce.answer?.document ?? "";
  const { job, error, begin, cancel } = useJob();
  const { checked, failed } = useChecked(document);
  const from = /^\d+$/.test(focus.value.from ?? "") ? focus.value.from : undefined;
  const ready = checked?.valid && at !== null;
  return html`<section aria-label="What if">
    <p>A configuration is tried on what was recorded${from ? ` from event ${from}` : " since the last configuration"} up to event <b>${at}</b>.
      Nothing is written to the log.</p>
    <div class="two">
      <div><label class="choice" for="tried">configuration to try (queues.yaml, or manifests of Kueue)</label>
        <textarea id="tried" class="config" spellcheck=${false} value=${document}
          placeholder=${inForce.answer ? "The text of the configuration in force was not kept: paste one to try." : ""}
          onInput=${(event) => setText(event.target.value)}></textarea>
        <div class="form">
          <button type="button" disabled=${!ready} onClick=${() => begin(routes.whatIf(), { document, from, to: String(at) })}>Try it</button>
          ${text !== null && html`<button type="button" onClick=${() => setText(null)}>back to the one in force</button>`}
          <${Checked} checked=${checked} />
        </div></div>
      <div><${Fault} error=${inForce.error ?? failed ?? error} /><${Running} job=${job} cancel=${cancel} />
        ${job?.state === "done" && html`<${Answer} answer=${job.answer} />`}
        ${!job && html`<${Nothing}>What would have come out differently is shown here.<//>`}</div>
    </div>
  </section>`;
}

// The validator's marks, a moment after the last key.
function useChecked(document) {
  const [found, setFound] = useState({});
  useEffect(() => {
    if (!document.trim()) {
      setFound({});
      return undefined;
    }
    const abort = new AbortController();
    const owed = setTimeout(async () => {
      try {
        const type = "application/yaml";
        setFound({ checked: await ask(routes.checkConfiguration(), { method: "POST", body: document, type, signal: abort.signal }) });
      } catch (failed) {
        if (!abort.signal.aborted) setFound({ failed });
      }
    }, CHECK_MS);
    return () => {
      clearTimeout(owed);
      abort.abort();
    };
  }, [document]);
  return found;
}

function Checked({ checked }) {
  if (!checked) return null;
  const line = (one) => html`<li>${one.line ? `line ${one.line}: ` : ""}${one.path ? html`<code>${one.path}</code> ` : ""}${one.message}</li>`;
  return html`<div role="status">${checked.valid ? "valid" : ""}
    ${checked.faults.length > 0 && html`<ul class="fault">${checked.faults.map(line)}</ul>`}
    ${checked.warnings.length > 0 && html`<ul class="dim">${checked.warnings.map(line)}</ul>`}</div>`;
}

function Answer({ answer }) {
  if (answer.identical) return html`<p class="summary">Nothing would have been different: every event comes out again.</p><${Stretch} stretch=${answer.stretch} />`;
  return html`<${Stretch} stretch=${answer.stretch} /><p class="summary">${answer.changes.length} ${answer.changes.length === 1 ? "decision" : "decisions"} would have been different,
      the first one at event ${answer.first_difference}.</p>
    <p class="dim">How far to trust it: ${answer.steps} steps taken; ${answer.left_out} recorded inputs left out, as what they followed from
      did not happen; ${answer.confirmed} evictions supposed to take ${length(answer.eviction_ms)}; ${answer.moved} ends moved;
      ${" "}${answer.refused} inputs refused that were taken then.</p>
    <${Worlds} changes=${answer.changes} /><${Figures} answer=${answer} />
    <${Table} label="Decisions that differ" columns=${CHANGES} rows=${answer.changes} keyOf=${(one) => `${one.kind}/${one.subject}`} height="40vh" />`;
}

// From where to where the configuration was in force: one that was applied later takes its place.
function Stretch({ stretch }) {
  if (!stretch) return null;
  const until = stretch.last === null ? "to the end of what was taken" : `until event ${stretch.last}, ${shown(stretch.end)}, applied another`;
  return html`<p class="dim">The configuration was in force from event ${stretch.first}, ${shown(stretch.begin)}, ${until}.</p>`;
}

const placed = (one) => (one === null ? "–" : `${clock(one.time)}${one.node ? ` on ${one.node}` : ""}${one.ask ? ` for ${one.ask}` : ""}${one.queue ? ` for the quota of ${one.queue}` : ""}`);
const CHANGES = [
  { key: "subject", title: "about", cell: (one) => html`<${Name} kind="ask" id=${one.subject} also=${{ view: "why" }} />`, sort: (one) => one.subject },
  { key: "kind", title: "what", width: "6rem", cell: (one) => one.kind, sort: (one) => one.kind },
  { key: "recorded", title: "recorded", width: "minmax(7rem, 2fr)", cell: (one) => placed(one.recorded) },
  { key: "supposed", title: "supposed", width: "minmax(7rem, 2fr)", cell: (one) => placed(one.supposed) },
];

// Both worlds on one axis: what was decided in one of them, or at another time.
function Worlds({ changes }) {
  const times = changes.flatMap((one) => [one.recorded?.time, one.supposed?.time]).filter((time) => time !== undefined);
  const [first, last] = times.reduce(([low, high], time) => [Math.min(low, time), Math.max(high, time)], [Infinity, -Infinity]);
  const x = (time) => 90 + (700 * (time - first)) / Math.max(1, last - first);
  const lane = (name, y) => html`<text x="0" y=${y + 4}>${name}</text><path d=${`M85 ${y}h710`} class="axis" />
    ${changes.filter((one) => one[name]).map((one) => html`<circle cx=${x(one[name].time)} cy=${y} r="5" class=${one.kind}>
      <title>${`${one.subject}: ${one.kind} ${placed(one[name])}`}</title></circle>`)}`;
  return html`<div class="flow scroll"><svg viewBox="0 0 810 76" role="img"
    aria-label=${`Decisions that differ, ${shown(first)} to ${shown(last)}; the table below has them all`}>
    ${lane("recorded", 18)}${lane("supposed", 46)}
    <text x="90" y="72">${clock(first)}</text><text x="790" y="72" text-anchor="end">${clock(last)}</text></svg></div>`;
}

const unmet = (figures) => Object.entries(figures.unmet).map(([resource, sum]) => `${resource} ${exact(resource, BigInt(sum) / 1000n)} s`).join(", ") || "–";
const FIGURES = [["bound", (one) => one.bound], ["waited", (one) => length(one.waited_ms)], ["preemptions", (one) => one.preemptions],
  ["evicted", (one) => one.victims], ["guarantee unmet (amount × seconds)", unmet]];

const Figures = ({ answer }) => html`<div class="scroll"><table class="plain"><thead><tr><th>queue</th>${FIGURES.map(([name]) =>
    html`<th>${name}: recorded → supposed</th>`)}</tr></thead>
  <tbody>${Object.keys(answer.recorded).map((queue) => html`<tr><td><${Name} kind="queue" id=${queue} /></td>${FIGURES.map(([, get]) => {
    const [was, would] = [get(answer.recorded[queue]), get(answer.supposed[queue] ?? answer.recorded[queue])];
    return html`<td>${String(was) === String(would) ? was : html`${was} → <b>${would}</b>`}</td>`;
  })}</tr>`)}</tbody></table></div>`;
