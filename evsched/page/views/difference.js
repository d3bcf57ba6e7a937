// What is different between two moments; "since when?" on a cell looks for the event that brought it.

import { html } from "../vendor/htm-preact.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { exact } from "../amounts.js";
import { ask, pretty, useAnswer } from "../api.js";
import { focus, go, seq } from "../focus.js";
import { rfc3339, shown } from "../moments.js";
import { At, Fault, Filter, Nothing } from "../parts.js";
import * as routes from "../routes.js";

const AMOUNTS = new Set(["resources", "capacity", "used", "free", "guaranteed", "maximum", "nominal", "quota",
  "borrowing_limit", "lending_limit", "usage", "pending", "preempting"]);
const TIMES = new Set(["created", "bound", "eviction_requested", "due", "paused_until"]);
const KINDS = { queues: "queue", nodes: "node", apps: "application", asks: "ask", allocations: "allocation", timers: "timer", config: "setting" };
const SHOWN = 300;
const BACK = 100;

/** The earlier moment: what the address says, or a little before the later one. */
const earlier = (at) => (/^\d+$/.test(focus.value.from ?? "") ? Number(focus.value.from) : Math.max(0, at - BACK));

export default function Difference() {
  const at = seq.value;
  const from = at === null ? null : Math.min(earlier(at), at);
  const { answer, error, current } = useAnswer(at === null ? null : routes.diff(from, at));
  const q = focus.value.q?.toLowerCase();
  const changes = (answer?.changes ?? []).filter((one) => !q || `${KINDS[one.kind]} ${one.key}`.toLowerCase().includes(q));
  return html`<section class=${current ? "" : "old"} aria-label="Difference" data-seq=${answer?.to_seq}>
    <form class="form" onSubmit=${(event) => event.preventDefault()}>
      <${Earlier} from=${from} at=${at} />
      <span>to event <b>${at}</b> (the time bar)</span>
      <${Filter} label="narrow" value=${focus.value.q} hint="a queue, a name" />
    </form>
    <${Fault} error=${error} />
    ${answer && html`<p>${shown(answer.from_time)} to ${shown(answer.to_time)}: ${count(answer.changes, "came")} came,${" "}
      ${count(answer.changes, "went")} went, ${count(answer.changes, "changed")} changed.</p>`}
    ${answer && !changes.length && html`<${Nothing}>Nothing is different.<//>`}
    ${changes.slice(0, SHOWN).map((one) => html`<${Change} key=${`${one.kind}/${one.key}`} change=${one} from=${from} />`)}
    ${changes.length > SHOWN && html`<p class="dim">The first ${SHOWN} of ${changes.length}; narrow them by a name.</p>`}
  </section>`;
}

const count = (changes, what) => changes.filter((one) => one.what === what).length;

function Earlier({ from, at }) {
  const [text, setText] = useState(null);
  const settle = () => {
    if (text !== null && /^\d{1,15}$/.test(text.trim())) go({ from: Math.min(Number(text), at) });
    setText(null);
  };
  return html`<label class="choice">from event
    <input value=${text ?? from} inputmode="numeric" size="10" onInput=${(event) => setText(event.target.value)}
      onChange=${settle} onBlur=${settle} /></label>`;
}

function Change({ change, from }) {
  const fields = Object.entries(change.fields);
  return html`<details class=${`change ${change.what}`} open=${change.what === "changed"}>
    <summary><span class="what">${change.what}</span> <span class="dim">${KINDS[change.kind]}</span> <b>${change.key}</b></summary>
    <div class="scroll"><table><tbody>${fields.map(([name, [before, after]]) => html`<tr>
      <td>${name.replaceAll("_", " ")}</td><td><del>${value(name, before)}</del></td><td>→</td><td><ins>${value(name, after)}</ins></td>
      <td>${expressions(change, name, after).map((one) => html`<${SinceWhen} key=${one} expression=${one} from=${from} />`)}</td></tr>`)}</tbody></table></div>
  </details>`;
}

function value(name, one) {
  if (one === null || one === "" || one === undefined) return "–";
  if (AMOUNTS.has(name)) return Object.entries(one).map(([resource, amount]) => `${resource} ${exact(resource, amount)}`).join(", ") || "–";
  if (TIMES.has(name)) return rfc3339(one);
  return typeof one === "object" ? pretty(one) : String(one);
}

// What a cell says, in the language of bisect; nothing where that has no words for it.
const OF_QUEUE = { usage: "usage", pending: "pending", preempting: "preempting", guaranteed: "guaranteed", maximum: "max" };
const OF_NODE = { capacity: "capacity", used: "used", free: "free" };
export function expressions({ kind, key, what }, name, after) {
  if (/[^\w./:~@-]/.test(key) || what === "went") return [];
  const words = { queues: [`queue ${key}`, OF_QUEUE], nodes: [`node ${key}`, OF_NODE] }[kind];
  if (!words) return [];
  if (name === "pending_asks" || name === "allocations") return [`${words[0]} ${name} == ${after}`];
  if (!words[1][name] || !after) return [];
  return Object.entries(after).map(([resource, amount]) => `${words[0]} ${words[1][name]}.${resource} == ${exact(resource, amount)}`);
}

function SinceWhen({ expression, from }) {
  const [found, setFound] = useState(null);
  const [asking, setAsking] = useState(null);
  useEffect(() => () => asking?.abort(), [asking]);
  const look = async () => {
    const abort = new AbortController();
    setAsking(abort);
    try {
      const { first } = await ask(routes.bisect(expression, from), { signal: abort.signal });
      setFound(first ? { seq: first.seq, type: first.event?.type } : { none: true });
    } catch (error) {
      if (!abort.signal.aborted) setFound({ error });
    }
    setAsking(null);
  };
  if (found?.error) return html`<${Fault} error=${found.error} />`;
  if (found?.none) return html`<span class="dim">since before</span>`;
  if (found) return html`<span title=${expression}>since <${At} seq=${found.seq} /> ${found.type}</span>`;
  return html`<button type="button" title=${`the first event after which: ${expression}`} disabled=${asking !== null} onClick=${look}>since when?</button>`;
}
