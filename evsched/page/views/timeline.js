// The timeline: a density strip with marks, and a lane for each leaf queue. A click goes there, a drag
// with shift compares two moments.

import { html } from "../vendor/htm-preact.js";
import { useEffect, useLayoutEffect, useRef } from "../vendor/preact-hooks.js";
import uPlot from "../vendor/uplot.js";
import { resources, short } from "../amounts.js";
import { useAnswer } from "../api.js";
import { colours, theme } from "../device.js";
import { focus, go, head, live, seq } from "../focus.js";
import { clock, length, rfc3339, shown } from "../moments.js";
import { At, Choice, Fault, Name, Nothing, selected } from "../parts.js";
import * as routes from "../routes.js";

const IDLE_MS = 60_000;

export default function Timeline() {
  const { scale = "events", sel, to } = focus.value;
  const picked = selected(sel);
  const lanes = picked?.kind === "queue" ? picked.id : "*";
  const end = /^\d+$/.test(to ?? "") ? Math.min(Number(to), head.value.seq) : head.value.seq;
  const start = /^\d+$/.test(focus.value.from ?? "") ? Math.min(Number(focus.value.from), end) : 0;
  const { answer, error, current } = useAnswer(routes.timeline({ start, end, lanes, scale }));
  const found = answer ? resourcesOf(answer.lanes) : [];
  const resource = found.includes(focus.value.res) ? focus.value.res : found[0];
  return html`<section class=${current ? "" : "old"} aria-label="Timeline">
    <link rel="stylesheet" href="vendor/uplot.css" />
    <div class="tools">
      <${Choice} label="scale" name="scale" value=${scale} options=${["events", "time"]} />
      ${resource && html`<${Choice} label="resource" name="res" value=${resource} options=${found} />`}
      ${lanes !== "*" && html`<span>only ${lanes} <button type="button" onClick=${() => go({ sel: undefined })}>all queues</button></span>`}
      ${(start > 0 || end < head.value.seq) && html`<button type="button" onClick=${() => go({ from: undefined, to: undefined })}>the whole log</button>`}
      <span class="dim">click: go there · shift-drag: compare two moments · alt-drag: look closer</span>
    </div>
    <${Fault} error=${error} />
    ${answer && answer.edges.length < 2 && html`<${Nothing}>There is nothing in this stretch.<//>`}
    ${answer && answer.edges.length > 1 && html`
      <p class="dim line">${shown(answer.edges[0].time)} to ${shown(answer.edges.at(-1).time)}, ${length(answer.edges.at(-1).time - answer.edges[0].time)},
        events ${start + 1} to ${end}. ${scale === "events" ? "Idle stretches take no room." : ""}</p>
      <${Density} answer=${answer} scale=${scale} />
      ${answer.lanes.map((lane) => html`<${Lane} key=${lane.queue} lane=${lane} answer=${answer} resource=${resource} scale=${scale} />`)}
      <p class="legend" aria-hidden="true"><i class="used"></i>used <i class="pending"></i>waiting
        <i class="due"></i>guaranteed <i class="limit"></i>max</p>
      ${answer.cut && html`<p class="dim">There are more queues or marks than are drawn: pick a queue, or look closer.</p>`}
      <${Idle} edges=${answer.edges} /><${Marks} marks=${answer.marks} />`}
  </section>`;
}

// Kueue's workloads wait without a flavor: what is used is told by flavor, and comes first.
function resourcesOf(lanes) {
  const used = resources(lanes.map((lane) => lane.used));
  return used.length ? used : resources(lanes.map((lane) => lane.pending));
}

const along = (scale) => (edge) => (scale === "events" ? edge.seq : edge.time);

/** The last event by a place of the axis. */
function seqAt(answer, scale, fraction) {
  const place = along(scale);
  const [first, last] = [place(answer.edges[0]), place(answer.edges.at(-1))];
  const wanted = first + Math.max(0, Math.min(1, fraction)) * (last - first);
  if (scale === "events") return Math.round(wanted);
  return answer.edges.filter((edge) => edge.time <= wanted).at(-1).seq;
}

// What a drag over a strip or lane means; used by both.
function useDrag(ref, answer, scale) {
  useEffect(() => {
    const box = ref.current;
    let began = null;
    const at = (event) => {
      const { left, width } = box.getBoundingClientRect();
      return seqAt(answer, scale, (event.clientX - left) / width);
    };
    const down = (event) => {
      began = { seq: at(event), x: event.clientX };
      box.setPointerCapture(event.pointerId);
    };
    const up = (event) => {
      if (!began) return;
      const [one, other] = [began.seq, at(event)].sort((a, b) => a - b);
      const dragged = Math.abs(event.clientX - began.x) > 5;
      began = null;
      if (dragged && event.shiftKey) go({ view: "difference", from: one, at: other });
      else if (dragged && event.altKey) go({ from: one, to: other });
      else go({ at: other });
    };
    box.addEventListener("pointerdown", down);
    box.addEventListener("pointerup", up);
    return () => {
      box.removeEventListener("pointerdown", down);
      box.removeEventListener("pointerup", up);
    };
  }, [answer, scale]);
}

function Density({ answer, scale }) {
  const ref = useRef(null);
  const look = theme.value;
  const at = live.value ? null : seq.value;
  useDrag(ref, answer, scale);
  useLayoutEffect(() => {
    const redraw = () => paint(ref.current, answer, scale, at);
    redraw();
    const watch = new ResizeObserver(redraw);
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, [answer, scale, at, look]);
  const evicted = answer.evictions.reduce((sum, one) => sum + one, 0);
  const refused = answer.refusals.reduce((sum, one) => sum + one, 0);
  return html`<div class="density"><span class="dim">${evicted} evicted, ${refused} refused</span>
    <canvas ref=${ref} role="img" aria-label=${`${evicted} evictions and ${refused} refused proposals in this stretch; the marks are listed below`}></canvas></div>`;
}

function paint(canvas, answer, scale, at) {
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  const { width, height } = canvas;
  const brush = canvas.getContext("2d");
  const colour = colours();
  const place = along(scale);
  const [first, last] = [place(answer.edges[0]), place(answer.edges.at(-1))];
  const x = (value) => ((value - first) / Math.max(1, last - first)) * width;
  const top = (counts) => Math.max(...counts, 1);
  const events = answer.edges.slice(1).map((edge, index) => {
    const before = answer.edges[index];
    return scale === "events" ? (edge.seq - before.seq) / Math.max(1, edge.time - before.time) : edge.seq - before.seq;
  });
  for (const [counts, hue, share, from] of [[events, colour.dim, 0.45, 1], [answer.evictions, colour.leaving, 0.5, 0.5], [answer.refusals, colour.bad, 0.3, 0.3]]) {
    brush.fillStyle = hue;
    const most = top(counts);
    for (const [index, count] of counts.entries()) {
      if (!count) continue;
      const left = x(place(answer.edges[index]));
      const wide = Math.max(2 * ratio, x(place(answer.edges[index + 1])) - left - ratio);
      const tall = height * share * (0.15 + (0.85 * Math.log1p(count)) / Math.log1p(most));
      brush.fillRect(left, height * from - tall, wide, tall);
    }
  }
  for (const mark of answer.marks) {
    brush.fillStyle = mark.kind === "configuration" ? colour.accent : colour.guaranteed;
    brush.fillRect(x(scale === "events" ? mark.seq : mark.time), 0, 2 * ratio, height);
  }
  if (at !== null) {
    const edge = answer.edges.filter((one) => one.seq <= at).at(-1);
    brush.fillStyle = colour.ink;
    if (edge) brush.fillRect(x(scale === "events" ? at : edge.time), 0, 1.5 * ratio, height);
  }
}

function Lane({ lane, answer, resource, scale }) {
  const ref = useRef(null);
  const look = theme.value;
  useDrag(ref, answer, scale);
  useLayoutEffect(() => {
    const box = ref.current;
    const plot = new uPlot(options(box.clientWidth, scale), series(lane, answer, resource, scale), box);
    const watch = new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: 64 }));
    watch.observe(box);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [lane, answer, resource, scale, look]);
  const used = lane.used[resource] ?? [0];
  const most = used.reduce((one, other) => (other > one ? other : one), 0);
  return html`<div class="lane"><span><${Name} kind="queue" id=${lane.queue} /><br />
      <small class="dim">at most ${short(resource ?? "", most)} used</small></span>
    <div class="chart" ref=${ref} role="img" aria-label=${`${lane.queue}: at most ${short(resource ?? "", most)} ${resource ?? ""} used`}></div></div>`;
}

function series(lane, answer, resource, scale) {
  const place = along(scale);
  const none = answer.edges.map(() => 0);
  const used = (lane.used[resource] ?? none).map(Number);
  const waits = (lane.pending[resource] ?? lane.pending[resource?.split("/").at(-1)] ?? none).map(Number);
  const limits = answer.edges.map((edge) => lane.limits.filter((one) => one.seq <= edge.seq).at(-1));
  const line = (name) => limits.map((one) => (one?.[name]?.[resource] === undefined ? null : Number(one[name][resource])));
  const x = answer.edges.map((edge) => (scale === "events" ? edge.seq : edge.time / 1000));
  return [x, used.map((one, index) => one + waits[index]), used, line("guaranteed"), line("maximum")];
}

function options(width, scale) {
  const colour = colours();
  const stepped = uPlot.paths.stepped({ align: 1 });
  const thin = (stroke, dash) => ({ stroke, width: 1.5, dash, paths: stepped, points: { show: false } });
  return {
    width, height: 64, padding: [4, 0, 0, 0], legend: { show: false }, cursor: { drag: { x: false, y: false }, sync: { key: "lanes" }, y: false },
    scales: { x: { time: scale === "time" }, y: { range: (_plot, _low, high) => [0, high || 1] } },
    axes: [{ show: false }, { show: false }],
    series: [{}, { fill: `color-mix(in srgb, ${colour.pending} 35%, transparent)`, stroke: colour.pending, width: 1, paths: stepped, points: { show: false } },
      { fill: `color-mix(in srgb, ${colour.used} 70%, transparent)`, stroke: colour.used, width: 1, paths: stepped, points: { show: false } },
      thin(colour.guaranteed), thin(colour.bad, [4, 3])],
  };
}

// Where the clock went on and nothing happened: what the scale by events leaves out.
function Idle({ edges }) {
  const gaps = edges.slice(1).map((edge, index) => ({ from: edges[index], ms: edge.time - edges[index].time, few: edge.seq - edges[index].seq }))
    .filter((gap) => gap.ms >= IDLE_MS && gap.few < 10).sort((a, b) => b.ms - a.ms).slice(0, 5);
  return gaps.length > 0 && html`<p class="dim">Idle longest: ${gaps.map((gap) =>
    html`${length(gap.ms)} after <${At} seq=${gap.from.seq}>${clock(gap.from.time)}<//>; `)}</p>`;
}

const Marks = ({ marks }) => marks.length > 0 && html`<h2>Marks</h2><div class="scroll"><table class="plain">
  <thead><tr><th>event</th><th>time</th><th>what</th></tr></thead>
  <tbody>${marks.map((mark) => html`<tr><td><${At} seq=${mark.seq} /></td><td>${rfc3339(mark.time)}</td>
    <td>${mark.kind === "configuration" ? `configuration applied ${mark.what}` : html`quota preemption ${mark.what}: <${Name} kind="queue" id=${mark.queue} />`}</td></tr>`)}</tbody></table></div>`;
