// Ready audit questions: each row a link into the past, all of them as CSV; and what verify found last.

import { html } from "../vendor/htm-preact.js";
import { useMemo, useState } from "../vendor/preact-hooks.js";
import { list } from "../amounts.js";
import { pretty, useAnswer } from "../api.js";
import { behind, focus, go, link, seq } from "../focus.js";
import { rfc3339, shown } from "../moments.js";
import { At, Fault, Name, Nothing, csv, download } from "../parts.js";
import * as routes from "../routes.js";
import { Table } from "../table.js";
import { Verification } from "../verification.js";

const LIMIT = 1000;
const OPEN = 2n ** 62n;
const TIMES = /(^|_)time$|^(created|due|at|until|began|ended|started)$/;
const AMOUNTS = new Set(["usage", "pending", "guaranteed", "maximum", "resources", "target", "unmet"]);
const KINDS = { allocation: "allocation", ask: "ask", for_ask: "ask", queue: "queue", for_queue: "queue", node: "node", application: "application" };

export default function Audit() {
  const asked = useAnswer(routes.audits());
  const known = asked.answer ?? [];
  const question = known.find((one) => one.name === focus.value.ask) ?? known[0];
  return html`<section aria-label="Audit">
    <${Verification} />
    <${Fault} error=${asked.error} />
    <div class="questions" role="group" aria-label="Questions">${known.map((one) => html`<button type="button" title=${one.sentence}
      aria-pressed=${one === question} onClick=${() => go({ ask: one.name })}>${one.name.replaceAll("-", " ")}</button>`)}</div>
    ${question && html`<${Question} key=${question.name} question=${question} />`}
  </section>`;
}

function Question({ question }) {
  const takes = (name) => question.takes.includes(name);
  const { queue, of, from } = focus.value;
  const narrowed = {
    limit: LIMIT, queue: takes("queue") ? queue : undefined, of: takes("of") ? of : undefined,
    from: takes("from_seq") ? from : undefined, to: takes("to_seq") ? behind(seq.value) : undefined,
    at: takes("seq") ? seq.value : undefined,
  };
  const complete = !takes("of") || of;
  const { answer, error, current } = useAnswer(complete && seq.value !== null ? routes.audit(question.name, narrowed) : null);
  const names = Object.keys(answer?.columns ?? {});
  const rows = useMemo(() => (answer?.rows ?? []).map((cells, index) => ({ index, cells })), [answer]);
  return html`<h2>${question.sentence}</h2>
    <form class="form" onSubmit=${(event) => event.preventDefault()}>
      ${takes("queue") && html`<${Entry} name="queue" label="queue" value=${queue} />`}
      ${takes("of") && html`<${Entry} name="of" label="ask or allocation" value=${of} />`}
      ${takes("from_seq") && html`<${Entry} name="from" label="from event" value=${from} />`}
      <span class="dim">${takes("seq") || takes("to_seq") ? "up to the moment of the time bar" : "over the whole log"}</span>
      <button type="button" disabled=${!rows.length} onClick=${() => save(question.name, names, answer.rows)}>CSV</button>
    </form>
    <${Fault} error=${error} />
    ${answer?.cut && html`<p class="fault" role="status">Only the first ${LIMIT} rows: narrow the question.</p>`}
    ${answer && current && !rows.length && html`<${Nothing}>No row.<//>`}
    ${rows.length > 0 && html`<div class=${current ? "" : "old"}><${Table} label=${question.name} rows=${rows} height="64vh"
      keyOf=${(row) => String(row.index)} columns=${names.map((name, index) => column(name, index, answer.columns[name]))} /></div>`}`;
}

const Entry = ({ name, label, value }) => {
  const [text, setText] = useState(null);
  const settle = () => {
    if (text !== null && text !== (value ?? "")) go({ [name]: text.trim() || undefined });
    setText(null);
  };
  return html`<label class="choice">${label} <input value=${text ?? value ?? ""} spellcheck=${false}
    onInput=${(event) => setText(event.target.value)} onChange=${settle} onBlur=${settle} /></label>`;
};

function column(name, index, meaning) {
  return {
    key: name, title: name.replaceAll("_", " "), hint: meaning, num: /(^|_)(seq|ms|asks|victims|priority)$/.test(name),
    cell: ({ cells }) => cell(name, cells[index]), sort: ({ cells }) => cells[index] ?? "",
    width: TIMES.test(name) ? "13rem" : /^(reason|detail|message)$/.test(name) ? "minmax(12rem, 4fr)" : "minmax(6rem, 1fr)",
  };
}

function cell(name, value) {
  if (value === null || value === "") return html`<span class="dim">–</span>`;
  if (TIMES.test(name)) return BigInt(value) >= OPEN ? "still" : shown(value);
  if (name === "seq" || name === "since") return html`<${At} seq=${value} />`;
  if (AMOUNTS.has(name) && typeof value === "string" && value.startsWith("{")) return list(JSON.parse(value));
  if (KINDS[name]) return html`<${Name} kind=${KINDS[name]} id=${value} also=${["ask", "allocation"].includes(KINDS[name]) ? { view: "why" } : {}} />`;
  return typeof value === "object" ? pretty(value) : String(value);
}

// Times as people read them, and the address of each row's moment.
function save(name, names, rows) {
  const at = names.indexOf("seq");
  const header = at < 0 ? names : [...names, "link"];
  const cells = rows.map((row) => {
    const shownRow = row.map((value, index) => (TIMES.test(names[index]) && value !== null
      ? BigInt(value) >= OPEN ? "" : rfc3339(value) : value));
    return at < 0 ? shownRow : [...shownRow, new URL(link({ view: "now", at: row[at] }), location.href).href];
  });
  download(`${name}.csv`, csv(header, cells), "text/csv");
}
