// Why an ask waits, or an allocation runs, has to go or was spared.

import { html } from "../vendor/htm-preact.js";
import { useState } from "../vendor/preact-hooks.js";
import { exact, list, part } from "../amounts.js";
import { useAnswer } from "../api.js";
import { focus, go, seq } from "../focus.js";
import { length, shown } from "../moments.js";
import { At, Fault, Name, Nothing, selected } from "../parts.js";
import * as routes from "../routes.js";

export default function Why() {
  const picked = selected(focus.value.sel);
  const subject = picked && ["ask", "allocation", "application", "queue", "node"].includes(picked.kind) ? picked.id : "";
  const { answer, error, current } = useAnswer(subject && seq.value !== null ? routes.explain(seq.value, subject) : null);
  const shownHere = answer && (current || answer.explanation.subject === subject);
  return html`<section class=${`why ${current || !subject ? "" : "old"}`} aria-label="Why" data-seq=${answer?.explanation.seq}>
    <${Search} subject=${subject} />
    <${Fault} error=${error} />
    ${!subject && html`<${Nothing}>Name an ask or allocation, or pick one in a list and follow “Why?”.<//>`}
    ${subject && shownHere && html`<${Answer} answer=${answer} />`}
  </section>`;
}

function Search({ subject }) {
  const [text, setText] = useState(null);
  return html`<form class="form" onSubmit=${(event) => {
    event.preventDefault();
    if (text?.trim()) go({ sel: `ask:${text.trim()}` });
    setText(null);
  }}>
    <label class="choice">ask or allocation
      <input type="search" value=${text ?? subject} onInput=${(event) => setText(event.target.value)} spellcheck=${false} /></label>
    <button>Why?</button>
  </form>`;
}

function Answer({ answer }) {
  const one = answer.explanation;
  return html`
    <h2>${one.subject} <small>${one.status} · after event <${At} seq=${one.seq} />, ${shown(one.time)}</small></h2>
    <p class="summary">${one.summary}</p>
    <${Life} history=${one.history} end=${one.time} status=${one.status} />
    <${Notes} title="What holds it" notes=${one.causes} />
    <${Notes} title="What would let it run" notes=${one.unblock} />
    <${Next} title="In the next step" what=${one.next} />${one.later?.time !== one.next?.time && html`<${Next} title="If no input comes" what=${one.later} />`}
    <${Ladder} levels=${one.levels} /><${Quotas} levels=${one.quotas} />
    <${Nodes} nodes=${one.nodes} /><${Flavors} flavors=${one.flavors} />
    <${Notes} title="Considered, and why not" notes=${one.passed_over} />
    <${Spared} spared=${answer.spared} />
    ${answer.decisions.map((decision) => html`<${Decision} key=${decision.seq} decision=${decision} />`)}
    <${History} history=${one.history} />`;
}

const Notes = ({ title, notes }) => notes?.length > 0 && html`<h3>${title}</h3>
  <ul>${notes.map((note) => html`<li><b>${note.subject}</b>: ${note.sentence} <code class="dim">${note.code}</code></li>`)}</ul>`;

const HAPPENS = {
  bound: (one) => `it is bound${one.node ? ` to ${one.node}` : ""}`, preempts: (one) => `it preempts ${one.victims.map((victim) => victim.id).join(", ")}`,
  nominated: (one) => `it is promised room on ${one.node}`, tried: () => "preemption is tried for it, in vain", waits: () => "nothing happens to it",
};
const Next = ({ title, what }) => what && html`<p><b>${title}</b>${what.time === null ? "" : html` (<time>${shown(what.time)}</time>)`}:
  ${" "}${HAPPENS[what.code]?.(what) ?? what.code}</p>`;

// The ladder: the request against every limit from the leaf to the root.
function Ladder({ levels }) {
  if (!levels?.length) return null;
  return html`<h3>Limits on its path</h3><ol class="ladder">${levels.map((level) => {
    const { queue, resource, limit, used, claimed, requested, guaranteed } = level;
    const sum = Number(used) + Number(claimed) + Number(requested);
    const whole = Math.max(Number(limit ?? 0), sum, Number(guaranteed ?? 0)) || 1;
    const wide = (amount) => ({ width: `${100 * part(amount, whole)}%` });
    return html`<li class=${level.binding ? "binding" : ""}>
      <${Name} kind="queue" id=${queue} also=${{ view: "now" }} /><span>${resource}</span>
      <span class="gauge" aria-hidden="true"><i class="used" style=${wide(used)}></i><i class="claimed" style=${wide(claimed)}></i>
        <i class="wants" style=${wide(requested)}></i>${limit !== null && html`<b style=${{ left: `${Math.min(99.5, 100 * part(limit, whole))}%` }}></b>`}</span>
      <span>${exact(resource, used)} used${Number(claimed) ? `, ${exact(resource, claimed)} promised` : ""}, wants ${exact(resource, requested)}${" "}
        of ${limit === null ? "no maximum" : `at most ${exact(resource, limit)}`}${level.binding ? ": does not fit" : ""}</span></li>`;
  })}</ol>`;
}

// The same for Kueue, by flavor.
const Quotas = ({ levels }) => levels?.length > 0 && html`<h3>Quota on its path</h3><div class="scroll"><table class="plain">
  <thead><tr><th>ClusterQueue or cohort</th><th>flavor</th><th>resource</th><th>requested</th><th>used</th><th>quota</th><th>borrowing limit</th><th>held by</th></tr></thead>
  <tbody>${levels.map((one) => html`<tr class=${one.binding ? "binding" : ""}><td><${Name} kind="queue" id=${one.queue} also=${{ view: "now" }} /></td>
    <td>${one.flavor}</td><td>${one.resource}</td><td>${exact(one.resource, one.requested)}</td><td>${exact(one.resource, one.used)}</td>
    <td>${exact(one.resource, one.quota)}</td><td>${one.borrowing_limit === null ? "–" : exact(one.resource, one.borrowing_limit)}</td>
    <td>${one.binding ? `${one.binding}, ${exact(one.resource, one.missing)} missing` : "–"}</td></tr>`)}</tbody></table></div>`;

const Nodes = ({ nodes }) => nodes?.length > 0 && html`<h3>Nodes that come nearest</h3><ul>${nodes.map((one) => html`<li>
  <${Name} kind="node" id=${one.node} also=${{ view: "now" }} />: ${Object.keys(one.lacking).length ? `lacks ${list(one.lacking)}` : "has room"}
  ${one.reserved_for.length ? `, reserved for ${one.reserved_for.join(", ")}` : ""}${one.schedulable ? "" : ", unschedulable"}</li>`)}</ul>`;

const Flavors = ({ flavors }) => flavors?.length > 0 && html`<h3>Flavors that were considered</h3><ul>${flavors.map((one) => html`<li>
  <b>${one.flavor}</b>${one.resources ? ` (${list(one.resources)})` : ""}: ${one.sentence ?? one.mode}</li>`)}</ul>`;

const Spared = ({ spared }) => spared?.length > 0 && html`<h3>Why it was spared</h3><ul>${spared.map((one) => html`<li>
  <${At} seq=${one.seq}>event ${one.seq}<//> for ${one.for_ask || one.for_queue}: ${one.sentence}</li>`)}</ul>`;

function Decision({ decision }) {
  return html`<h3>Decision at event <${At} seq=${decision.seq} /> <small class="dim">${shown(decision.time)}, ${decision.algorithm},
      decided again: ${decision.identical ? "the same" : "NOT the same"}</small></h3>
    <div class="scroll"><table class="plain"><thead><tr><th>evicted</th><th>queue</th><th>by this rule</th></tr></thead>
      <tbody>${decision.victims.map((one) => html`<tr><td><${Name} kind="allocation" id=${one.id} /></td><td>${one.queue}</td><td>${one.reason}</td></tr>`)}</tbody></table>
    <table class="plain"><thead><tr><th>queue</th><th>resource</th><th>before</th><th>after</th><th>guaranteed</th></tr></thead>
      <tbody>${decision.shares.map((one) => html`<tr><td>${one.queue}</td><td>${one.resource}</td><td>${exact(one.resource, one.before)}</td>
        <td>${exact(one.resource, one.after)}</td><td>${(one.guaranteed ?? one.quota ?? null) === null ? "–" : exact(one.resource, one.guaranteed ?? one.quota)}</td></tr>`)}</tbody></table></div>
    <${Notes} title="Spared in it" notes=${decision.passed_over} />`;
}

// Life as a bar: waiting, running, leaving, by the events that mention it.
function Life({ history, end, status }) {
  if (!history?.length) return null;
  const starts = { submitted: "waiting", restored: "running", bound: "running", admitted: "running", "eviction-requested": "leaving" };
  const spans = [];
  for (const one of history) {
    const what = starts[one.code];
    if (what) spans.push({ what, from: one.time });
  }
  if (!spans.length) return null;
  const last = status === "gone" ? history.at(-1).time : end;
  const whole = Math.max(1, last - spans[0].from);
  return html`<div class="life" role="img" aria-label=${spans.map((one) => `${one.what} since ${shown(one.from)}`).join(", ")}>
    ${spans.map((one, index) => {
      const until = spans[index + 1]?.from ?? last;
      return html`<span class=${one.what} style=${{ width: `${100 * part(until - one.from, whole)}%` }}
        title=${`${one.what} ${length(until - one.from)}`}>${one.what} ${length(until - one.from)}</span>`;
    })}</div>`;
}

const History = ({ history }) => history?.length > 0 && html`<h3>What the log says of it</h3><div class="scroll"><table class="plain">
  <thead><tr><th>event</th><th>time</th><th></th></tr></thead>
  <tbody>${history.map((one) => html`<tr><td><${At} seq=${one.seq} /></td><td>${shown(one.time)}</td><td>${one.text}</td></tr>`)}</tbody></table></div>`;
