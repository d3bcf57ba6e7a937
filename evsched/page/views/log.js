// The log: events up to the moment of the time bar, the newest last; live where the page is live.

import { html } from "../vendor/htm-preact.js";
import { useMemo, useState } from "../vendor/preact-hooks.js";
import { pretty, useAnswer } from "../api.js";
import { focus, go, seq } from "../focus.js";
import { shown } from "../moments.js";
import { At, Fault, Filter, Name, Nothing } from "../parts.js";
import * as routes from "../routes.js";
import { rest, subjects } from "../sentences.js";
import { decides } from "../steps.js";
import { Table } from "../table.js";

const WINDOW = 500;

export default function Log() {
  const at = seq.value;
  const [size, setSize] = useState(WINDOW);
  const after = Math.max(0, (at ?? 0) - size);
  const { answer, error, current } = useAnswer(at ? routes.events(after, at) : null);
  const found = useMemo(() => (answer ?? []).map((one) => ({ ...one, text: JSON.stringify(one.event, whole).toLowerCase() })).reverse(), [answer]);
  const { q, type } = focus.value;
  const rows = useMemo(() => found.filter(({ event, text }) =>
    (!q || text.includes(q.toLowerCase())) && (!type || (type === "decisions" ? decides(event) : event.type === type))), [found, q, type]);
  const types = useMemo(() => [...new Set(found.map(({ event }) => event.type))].sort(), [found]);
  const open = rows.find(({ event }) => String(event.seq) === focus.value.event);
  return html`<section class=${current || !at ? "" : "old"} aria-label="Log" data-seq=${at}>
    <div class="tools">
      <${Filter} label="containing" value=${q} hint="an id, a queue, a word" />
      <label class="choice">type <select value=${type ?? ""} onChange=${(event) => go({ type: event.target.value })}>
        <option value="">all</option><option value="decisions" selected=${type === "decisions"}>decisions</option>
        ${types.map((one) => html`<option value=${one} selected=${one === type}>${one}</option>`)}</select></label>
      <span class="dim">${rows.length} of the ${found.length} events up to ${at}, the newest first</span>
      ${after > 0 && html`<button type="button" onClick=${() => setSize(size * 4)}>further back</button>`}
    </div>
    <${Fault} error=${error} />
    ${at === 0 && html`<${Nothing}>Before the first event there is nothing.<//>`}
    <div class="split"><div class="wide">${rows.length > 0
      ? html`<${Table} label="Events" columns=${COLUMNS} rows=${rows} keyOf=${({ event }) => String(event.seq)} height="76vh"
          picked=${focus.value.event} onPick=${({ event }) => go({ event: event.seq }, true)} />`
      : at > 0 && answer && html`<${Nothing}>No such event among these.<//>`}</div>
    ${open && html`<aside class="detail" aria-label=${`event ${open.event.seq}`}>
      <button type="button" class="close" aria-label="let go" onClick=${() => go({ event: undefined }, true)}>×</button>
      <h2>event ${open.event.seq} <small>${open.event.type}</small></h2>
      <p><${At} seq=${open.event.seq}>the state after it<//> · <${At} seq=${open.event.seq - 1}>before it<//>
        ${open.event.cause > 0 && html` · caused by <a href="#" onClick=${(event) => { event.preventDefault(); go({ event: open.event.cause }, true); }}>${open.event.cause}</a>`}</p>
      <pre class="raw" tabindex="0">${pretty(open.event)}</pre></aside>`}</div>
  </section>`;
}

const whole = (_key, value) => (typeof value === "bigint" ? String(value) : value);

const COLUMNS = [
  { key: "seq", title: "event", num: true, width: "5.5rem", cell: ({ event }) => html`<${At} seq=${event.seq} />` },
  { key: "time", title: "time", width: "13rem", wide: true, cell: ({ time }) => shown(time) },
  { key: "type", title: "type", width: "15rem", cell: ({ event }) => (decides(event) ? html`<b>${event.type}</b>` : event.type) },
  { key: "about", title: "about", width: "minmax(8rem, 2fr)", cell: ({ event }) => subjects(event).slice(0, 2).map(([kind, id]) => html`<${Name} kind=${kind} id=${id} /> `) },
  { key: "rest", title: "", width: "minmax(8rem, 4fr)", wide: true, cell: ({ event }) => html`<span class="dim">${rest(event)}</span>` },
];
