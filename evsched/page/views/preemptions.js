// Who preempted whom, by which rule, in a window: a flow from the queues that gained to those that lost.

import { html } from "../vendor/htm-preact.js";
import { useMemo, useState } from "../vendor/preact-hooks.js";
import { useAnswer } from "../api.js";
import { behind, focus, go, head, seq } from "../focus.js";
import { shown } from "../moments.js";
import { At, Fault, Filter, Name, Nothing, selected } from "../parts.js";
import * as routes from "../routes.js";
import { Table } from "../table.js";

const MOST = 5000;
const LINE = 22;

/** Rows of an audit as objects by column. */
export const objects = (answer) => {
  const names = Object.keys(answer.columns);
  return answer.rows.map((row) => Object.fromEntries(row.map((value, index) => [names[index], value])));
};

export default function Preemptions() {
  const at = seq.value;
  const picked = selected(focus.value.sel);
  const queue = picked?.kind === "queue" ? picked.id : undefined;
  const from = /^\d+$/.test(focus.value.from ?? "") ? Number(focus.value.from) : 0;
  const { answer, error, current } = useAnswer(at === null ? null
    : routes.audit("who-preempted", { from, to: behind(at), limit: MOST }));
  const all = useMemo(() => (answer ? objects(answer) : []), [answer]);
  const q = focus.value.q?.toLowerCase();
  const rows = useMemo(() => all.filter((row) =>
    (!queue || within(row.queue, queue) || within(row.for_queue, queue))
    && (!q || JSON.stringify(row).toLowerCase().includes(q))), [all, queue, q]);
  return html`<section class=${current ? "" : "old"} aria-label="Preemptions" data-seq=${at}>
    <form class="form" onSubmit=${(event) => event.preventDefault()}>
      <${Window} from=${from} /><span>to event <b>${at}</b> of ${head.value.seq}</span>
      <${Filter} label="narrow" value=${focus.value.q} hint="a queue, an ask, a rule" />
      ${queue && html`<span>only ${queue} <button type="button" onClick=${() => go({ sel: undefined })}>all queues</button></span>`}
    </form>
    <${Fault} error=${error} />
    ${answer?.cut && html`<p class="fault" role="status">Only the first ${MOST} evictions of this window are shown: make it smaller.</p>`}
    ${answer && !rows.length && html`<${Nothing}>No allocation was evicted in this window.<//>`}
    ${rows.length > 0 && html`<${Flow} rows=${rows} /><${Loops} rows=${rows} />
      <h2>${rows.length} ${rows.length === 1 ? "eviction" : "evictions"}</h2>
      <${Table} label="Evictions" columns=${COLUMNS} rows=${rows} keyOf=${(row) => `${row.seq}/${row.allocation}`} height="50vh"
        onPick=${(row) => go({ view: "why", at: row.seq, sel: `allocation:${row.allocation}` })} />`}
  </section>`;
}

const within = (queue, of) => queue === of || queue?.startsWith(`${of}.`);

const COLUMNS = [
  { key: "seq", title: "event", num: true, width: "5.5rem", cell: (row) => html`<${At} seq=${row.seq} />`, sort: (row) => row.seq },
  { key: "time", title: "time", width: "13rem", wide: true, cell: (row) => shown(row.time) },
  { key: "allocation", title: "evicted", cell: (row) => html`<${Name} kind="allocation" id=${row.allocation} also=${{ view: "why", at: row.seq }} />`, sort: (row) => row.allocation },
  { key: "queue", title: "of queue", cell: (row) => row.queue, sort: (row) => row.queue },
  { key: "for", title: "for", cell: (row) => (row.for_ask ? html`<${Name} kind="ask" id=${row.for_ask} also=${{ view: "why", at: row.seq }} />` : html`<span class="dim">quota</span>`) },
  { key: "for_queue", title: "of queue", cell: (row) => row.for_queue, sort: (row) => row.for_queue },
  { key: "kind", title: "kind", width: "7rem", wide: true, cell: (row) => row.kind, sort: (row) => row.kind },
  { key: "reason", title: "by this rule", width: "minmax(9rem, 3fr)", wide: true, cell: (row) => row.reason },
];

function Window({ from }) {
  const [text, setText] = useState(null);
  const settle = () => {
    if (text !== null && /^\d{1,15}$/.test(text.trim())) go({ from: Number(text) });
    setText(null);
  };
  return html`<label class="choice">from event <input value=${text ?? from} inputmode="numeric" size="10"
    onInput=${(event) => setText(event.target.value)} onChange=${settle} onBlur=${settle} /></label>`;
}

/** Evictions by pair of queues: [{ gained, lost, count, kinds }], the largest first. */
export function pairs(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = `${row.for_queue}\n${row.queue}`;
    const one = found.get(key) ?? { gained: row.for_queue, lost: row.queue, count: 0, kinds: new Set() };
    one.count += 1;
    one.kinds.add(row.kind);
    found.set(key, one);
  }
  return [...found.values()].sort((a, b) => b.count - a.count || (a.gained + a.lost < b.gained + b.lost ? -1 : 1));
}

/** Whether a pair lies on a circle: what lost can be followed back to what gained. */
export function looped(all) {
  const next = new Map();
  for (const { gained, lost } of all) {
    if (gained !== lost) next.set(gained, [...(next.get(gained) ?? []), lost]);
  }
  const reaches = (from, to) => {
    const seen = new Set([from]);
    const open = [from];
    while (open.length) {
      for (const one of next.get(open.pop()) ?? []) {
        if (one === to) return true;
        if (!seen.has(one)) {
          seen.add(one);
          open.push(one);
        }
      }
    }
    return false;
  };
  return new Set(all.filter(({ gained, lost }) => gained !== lost && reaches(lost, gained)));
}

const SHOWN = 40;

function Flow({ rows }) {
  const all = useMemo(() => pairs(rows), [rows]);
  const drawn = all.slice(0, SHOWN);
  const loops = looped(all);
  const side = (name) => [...new Set(drawn.map((one) => one[name]))];
  const [left, right] = [side("gained"), side("lost")];
  const height = Math.max(left.length, right.length) * LINE + 30;
  const y = (list, name) => 34 + list.indexOf(name) * LINE;
  const most = all[0].count;
  return html`<h2>Who preempted whom</h2><div class="flow scroll"><svg viewBox=${`0 0 900 ${height}`} role="img"
      aria-label="Who preempted whom: the list below has the same">
    <text x="10" y="14" class="dim">made room for</text><text x="890" y="14" text-anchor="end" class="dim">evicted from</text>
    ${drawn.map((one) => {
      const [from, to] = [y(left, one.gained), y(right, one.lost)];
      return html`<path d=${`M300 ${from}C450 ${from} 450 ${to} 600 ${to}`} class=${`ribbon ${loops.has(one) ? "loop" : ""}`}
        stroke-width=${2 + 14 * (one.count / most)}><title>${`${one.gained} ← ${one.lost}: ${one.count} (${[...one.kinds].join(", ")})`}</title></path>`;
    })}
    ${left.map((name) => html`<text x="290" y=${y(left, name) + 4} text-anchor="end">${name}</text>`)}
    ${right.map((name) => html`<text x="610" y=${y(right, name) + 4}>${name}</text>`)}
  </svg></div>
  <table class="plain"><thead><tr><th>made room for</th><th>evicted from</th><th>kind</th><th class="num">evictions</th><th></th></tr></thead>
    <tbody>${drawn.map((one) => html`<tr><td>${one.gained}</td><td>${one.lost}</td><td>${[...one.kinds].join(", ")}</td><td class="num">${one.count}</td>
      <td>${loops.has(one) ? html`<span class="fault">part of a loop</span>` : one.gained === one.lost ? html`<span class="dim">within the queue, or its own quota</span>` : ""}</td></tr>`)}</tbody></table>
  ${all.length > SHOWN && html`<p class="dim">The ${SHOWN} largest of ${all.length} pairs.</p>`}`;
}

function Loops({ rows }) {
  const times = new Map();
  for (const { allocation } of rows) times.set(allocation, (times.get(allocation) ?? 0) + 1);
  const again = [...times].filter(([, count]) => count > 1);
  return again.length > 0 && html`<p class="fault">Evicted more than once in this window: ${again.slice(0, 10).map(([id, count]) =>
    html`<${Name} kind="allocation" id=${id} also=${{ view: "why" }} /> (${count} times) `)}</p>`;
}
