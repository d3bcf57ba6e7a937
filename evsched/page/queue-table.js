// The queue tree as a table: for one resource what is guaranteed, used, leaving, pending, at most.

import { html } from "./vendor/htm-preact.js";
import { useMemo } from "./vendor/preact-hooks.js";
import { part } from "./amounts.js";
import { go } from "./focus.js";
import { Amount } from "./parts.js";
import { Table } from "./table.js";
import { entitled, flat, lastName, limit, pending } from "./words.js";

export function QueueTable({ tops, resource, said, picked }) {
  const rows = useMemo(() => flat(tops), [tops]);
  const of = (get) => ({
    num: true, width: "minmax(4.5rem, .8fr)",
    cell: ({ row }) => html`<${Amount} resource=${resource} amount=${get(row)} />`,
    sort: ({ row }) => Number(get(row) ?? -1),
  });
  const columns = [
    { key: "queue", title: said.queue, width: "minmax(9rem, 3fr)", cell: (node) => html`<${QueueName} node=${node} />` },
    { key: "bar", title: "", width: "minmax(5rem, 2fr)", wide: true, cell: ({ row }) => html`<${Bar} row=${row} resource=${resource} />` },
    { key: "guaranteed", title: said.entitled, ...of((row) => entitled(row)[resource]) },
    { key: "used", title: "used", ...of((row) => row.usage[resource] ?? 0) },
    { key: "leaving", title: "leaving", wide: true, ...of((row) => row.preempting[resource]) },
    { key: "pending", title: "pending", ...of((row) => pending(row, resource)) },
    { key: "max", title: said.limit, ...of((row) => (said.kueue ? row.borrowing_limit?.[resource] : limit(row, resource))) },
    { key: "asks", title: "waiting", num: true, width: "5rem", sort: ({ row }) => row.pending_asks, cell: ({ row }) => row.pending_asks },
  ];
  if (said.kueue && rows.some(({ row }) => row.share !== undefined)) {
    columns.push({ key: "share", title: "share", num: true, width: "5rem", sort: ({ row }) => Number(row.share ?? -1), cell: ({ row }) => String(row.share ?? "–") });
  }
  return html`<${Table} label=${said.queues} columns=${columns} rows=${rows} keyOf=${({ row }) => row.queue}
    picked=${picked} onPick=${({ row }) => go({ sel: `queue:${row.queue}` })} height="60vh" />`;
}

const QueueName = ({ node: { row, depth } }) => html`<span class="queue" title=${row.queue}
  style=${{ paddingLeft: `${depth * 14}px` }}>${depth ? lastName(row.queue) : row.queue}
  ${row.draining && html` <em>draining</em>`}${row.dynamic && html` <em>dynamic</em>`}</span>`;

// The bar's whole is the maximum, or what is there to be shown where there is none.
function Bar({ row, resource }) {
  const used = Number(row.usage[resource] ?? 0);
  const leaving = Number(row.preempting[resource] ?? 0);
  const due = Number(entitled(row)[resource] ?? 0);
  const waits = Number(pending(row, resource) ?? 0);
  const whole = Math.max(Number(limit(row, resource) ?? 0), used + waits, due) || 1;
  const wide = (amount) => ({ width: `${100 * part(amount, whole)}%` });
  return html`<span class="meter" aria-hidden="true">
    <i class="used" style=${wide(used - leaving)}></i><i class="leaving" style=${wide(leaving)}></i><i class="pending"
      style=${wide(waits)}></i>${due > 0 && html`<b style=${{ left: `${100 * part(due, whole)}%` }}></b>`}</span>`;
}
