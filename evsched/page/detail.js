// What is selected, beside the view: its row at the moment, and where to go on from it.

import { html } from "./vendor/htm-preact.js";
import { exact } from "./amounts.js";
import { pretty, useAnswer } from "./api.js";
import { focus, go, seq } from "./focus.js";
import * as routes from "./routes.js";
import { shown } from "./moments.js";
import { Fault, To, selected } from "./parts.js";

const VIEW_OF = { queue: "queues", node: "nodes", application: "applications", ask: "asks", allocation: "allocations" };
const TIMES = new Set(["created", "bound", "eviction_requested", "due", "paused_until"]);
const AMOUNTS = new Set(["resources", "capacity", "used", "free", "guaranteed", "maximum", "nominal", "quota",
  "borrowing_limit", "lending_limit", "usage", "pending", "preempting"]);
const TITLES = { usage: "used", maximum: "max", preempting: "leaving", eviction_requested: "evicted since", victim_of: "evicted for" };

export function Detail({ rows }) {
  const picked = selected(focus.value.sel);
  const known = picked?.kind === "queue" ? rows.find((row) => row.queue === picked.id) : undefined;
  const view = picked && VIEW_OF[picked.kind];
  const path = view && !known && seq.value !== null
    ? routes.row(seq.value, view, picked.id) : null;
  const asked = useAnswer(path);
  if (!view) return null;
  const row = known ?? (asked.current ? asked.answer?.rows[0] : undefined);
  return html`<aside class="detail" aria-label=${`${picked.kind} ${picked.id}`}>
    <button type="button" class="close" aria-label="let go" title="let go (Esc)" onClick=${() => go({ sel: undefined })}>×</button>
    <h2><small>${picked.kind}</small> ${picked.id}</h2>
    ${asked.error && (asked.error.status === 404
      ? html`<p class="nothing">Not there at this moment.</p>` : html`<${Fault} error=${asked.error} />`)}
    ${row && html`<dl>${Object.entries(row).slice(1).map(([key, value]) => html`<${Entry} key=${key} name=${key} value=${value} />`)}</dl>`}
    <${Onward} picked=${picked} />
  </aside>`;
}

function Entry({ name, value }) {
  const title = TITLES[name] ?? name.replaceAll("_", " ");
  if (AMOUNTS.has(name) && value) {
    const found = Object.entries(value);
    return html`<dt>${title}</dt><dd>${found.length ? found.map(([resource, amount]) =>
      html`<div>${resource} <b>${exact(resource, amount)}</b></div>`) : "–"}</dd>`;
  }
  return html`<dt>${title}</dt><dd>${plain(name, value)}</dd>`;
}

function plain(name, value) {
  if (value === null || value === "") return "–";
  if (TIMES.has(name)) return shown(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.join(", ") || "–";
  if (typeof value === "object") {
    return Object.entries(value).map(([key, one]) => html`<div>${key} <b>${String(one)}</b></div>`);
  }
  if (["queue", "node", "application"].includes(name)) {
    return html`<${To} change=${{ sel: `${name}:${value}` }}>${value}<//>`;
  }
  return typeof value === "string" ? value : pretty(value);
}

function Onward({ picked }) {
  const in_queue = picked.kind === "queue";
  const asked = ["ask", "allocation"].includes(picked.kind);
  return html`<p class="onward">
    ${asked && html`<${To} change=${{ view: "why" }}>Why?<//> `}
    ${in_queue && html`<${To} change=${{ view: "now", tab: "asks" }}>What waits here<//>
      <${To} change=${{ view: "now", tab: "allocations" }}>What runs here<//>
      <${To} change=${{ view: "timeline" }}>Timeline<//>
      <${To} change=${{ view: "preemptions" }}>Preemptions<//> `}
    <${To} change=${{ view: "log", q: picked.id }}>In the log<//>
  </p>`;
}
