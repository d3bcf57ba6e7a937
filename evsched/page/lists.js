// The lists of a moment: nodes, applications, asks, allocations, timers, settings.

import { html } from "./vendor/htm-preact.js";
import { useMemo } from "./vendor/preact-hooks.js";
import { list } from "./amounts.js";
import { pretty } from "./api.js";
import { focus, go, seq } from "./focus.js";
import { length, shown } from "./moments.js";
import { useRows } from "./paging.js";
import { At, Fault, Nothing, selected } from "./parts.js";
import * as routes from "./routes.js";
import { Table } from "./table.js";

/** Rows of the first page, and where a list is narrowed: what is not loaded cannot be found. */
const PAGE = 250;
const NARROWED = 1000;

export const TABS = [
  ["overview", () => "Overview"], ["nodes", () => "Nodes"], ["applications", () => "Applications"],
  ["asks", (said) => said.asks], ["allocations", (said) => said.allocations], ["timers", () => "Timers"],
  ["config", () => "Configuration"],
];

const text = (key, title, more = {}) => ({
  key, title, cell: (row) => row[key] || html`<span class="dim">–</span>`, sort: (row) => row[key] ?? "", ...more,
});
const number = (key, title, more = {}) => ({
  key, title, num: true, width: "5.5rem", cell: (row) => row[key] ?? "–", sort: (row) => row[key] ?? -1, ...more,
});
const amounts = (key, title, more = {}) => ({ key, title, width: "minmax(8rem, 2fr)", cell: (row) => list(row[key]), ...more });
const time = (key, title, more = {}) => ({
  key, title, width: "13rem", cell: (row) => shown(row[key]), sort: (row) => row[key] ?? 0, ...more,
});
const name = (key, title) => text(key, title, { width: "minmax(8rem, 2fr)" });

function columnsOf(tab, said, now) {
  const age = (key, title) => ({
    key: `${key}-age`, title, num: true, width: "6rem", cell: (row) => length(now - row[key]), sort: (row) => now - row[key],
  });
  return {
    nodes: [name("node", "Node"), amounts("used", "used"), amounts("free", "free"), amounts("capacity", "capacity", { wide: true }),
      number("allocations", "running"), text("reserved_for", "reserved for", { cell: (row) => row.reserved_for.join(", ") || "–", sort: undefined, wide: true }),
      text("schedulable", "schedulable", { width: "6rem", cell: (row) => (row.schedulable ? "yes" : "no"), wide: true })],
    applications: [name("application", "Application"), text("queue", said.queue), text("user", "user", { wide: true }),
      number("asks", "waiting"), number("allocations", "running"), amounts("usage", "used"), time("created", "created", { wide: true }),
      time("paused_until", "paused until", { wide: true })],
    asks: [name("ask", said.ask), text("queue", said.queue), amounts("resources", "wants"), number("priority", "priority", { wide: true }),
      age("created", "waiting for"), text("failed", "why the last attempt failed", { width: "minmax(9rem, 4fr)", wide: true })],
    allocations: [name("allocation", said.allocation), text("queue", said.queue), text("node", "node"), amounts("resources", "uses"),
      number("priority", "priority", { wide: true }), age("bound", "running for"), time("eviction_requested", "evicted since", { wide: true }),
      text("victim_of", "for", { wide: true, cell: (row) => row.victim_of || row.quota_of || "–" })],
    timers: [name("timer", "Timer"), text("kind", "kind"), text("subject", "about"), time("due", "due"),
      { key: "left", title: "left", num: true, width: "6rem", cell: (row) => length(row.due - now) },
      number("cause", "armed by", { cell: (row) => html`<${At} seq=${row.cause} />` })],
    config: [text("setting", "Setting", { width: "minmax(10rem, 3fr)" }),
      { key: "value", title: "value", width: "minmax(8rem, 2fr)", cell: (row) => (typeof row.value === "string" ? row.value : pretty(row.value)) }],
  }[tab];
}

const KIND = { nodes: "node", applications: "application", asks: "ask", allocations: "allocation" };
const keyOf = (row) => String(Object.values(row)[0]);

/** The tabs of a family: Kueue knows no nodes. */
export const tabsOf = (said) => TABS.filter(([name]) => name !== "nodes" || !said.kueue);

/** A list of the moment, narrowed by `q` and, where it has queues, by a queue that is selected. */
export function List({ tab, said }) {
  const picked = selected(focus.value.sel);
  const below = picked?.kind === "queue" && ["applications", "asks", "allocations"].includes(tab) ? picked.id : null;
  const found = useRows(seq.value === null ? null : routes.rows(seq.value, tab, focus.value.q ? NARROWED : PAGE, { queue: below }));
  const q = focus.value.q?.toLowerCase();
  const rows = useMemo(() => (q ? found.rows.filter((row) => matches(row, q)) : found.rows), [found.rows, q]);
  const columns = useMemo(() => columnsOf(tab, said, found.time ?? 0), [tab, said, found.time]);
  const kind = KIND[tab];
  const narrowed = rows.length !== found.rows.length;
  return html`<div class=${found.current ? "" : "old"} data-list=${found.seq}><${Fault} error=${found.error} />
    ${below && html`<p class="dim">In ${below} and below it.</p>`}
    ${narrowed && html`<p class="dim">${rows.length} of ${found.rows.length} that are loaded
      ${found.total > found.rows.length ? `(of ${found.total})` : ""}</p>`}
    ${found.known && !rows.length && html`<${Nothing}>None at this moment${q ? " with this name" : ""}.<//>`}
    ${rows.length > 0 && html`<${Table} label=${tab} columns=${columns} rows=${rows}
      total=${narrowed ? rows.length : found.total} more=${found.more} keyOf=${keyOf} height="74vh"
      picked=${kind && picked?.kind === kind ? picked.id : undefined}
      onPick=${kind ? (row) => go({ sel: `${kind}:${keyOf(row)}` }) : undefined} />`}</div>`;
}

const matches = (row, q) => Object.values(row).some((value) =>
  (typeof value === "string" ? value : typeof value === "object" ? pretty(value) : "").toLowerCase().includes(q));
