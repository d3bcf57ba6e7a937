// Nodes as a heat grid: one cell a node, the darker the more of a resource is used.

import { html } from "./vendor/htm-preact.js";
import { useLayoutEffect, useRef, useState } from "./vendor/preact-hooks.js";
import { exact, part } from "./amounts.js";
import { colours, theme } from "./device.js";
import { go } from "./focus.js";

const GAP = 2;

/** Columns, and the side of a cell (px), so that all cells fill a width and at most a height. */
export function grid(count, width, height) {
  const side = Math.floor(Math.sqrt((width * height) / Math.max(1, count)));
  const cell = Math.max(5, Math.min(26, side));
  return { cell, columns: Math.max(1, Math.floor(width / cell)) };
}

/** @param loads the answer of `routes.loads`; @param picked the name of the selected node. */
export function Heat({ loads, picked, height = 220 }) {
  const ref = useRef(null);
  const [width, setWidth] = useState(0);
  const [under, setUnder] = useState(null);
  const { nodes } = loads;
  const { cell, columns } = grid(nodes.length, width || 1, height);
  const look = theme.value;
  useLayoutEffect(() => {
    const measure = () => setWidth(ref.current.parentElement.clientWidth);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(ref.current.parentElement);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => paint(ref.current, loads, { picked, cell, columns, width }),
    [loads, picked, cell, columns, width, look]);
  const at = (event) => {
    const box = ref.current.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / cell);
    const place = Math.floor((event.clientY - box.top) / cell) * columns + column;
    return column < columns && place < nodes.length ? place : null;
  };
  const pick = (place) => place !== null && go({ sel: `node:${nodes[place]}` });
  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = nodes.indexOf(picked);
    pick(Math.max(0, Math.min(nodes.length - 1, place < 0 ? 0 : place + step)));
  };
  return html`<div class="heat" data-seq=${loads.seq}>
    <canvas ref=${ref} role="img" tabindex="0" aria-label=${summary(loads)} onKeyDown=${keys}
      onClick=${(event) => pick(at(event))} onMouseMove=${(event) => setUnder(at(event))}
      onMouseLeave=${() => setUnder(null)}></canvas>
    <p class="under">${under !== null && under < nodes.length ? told(loads, under) : summary(loads)}</p>
  </div>`;
}

function summary({ nodes, resource, used, capacity, unschedulable, reserved }) {
  const full = used.filter((amount, place) => part(amount, capacity[place]) >= 0.9).length;
  return `${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}: ${full} with 90 % or more of ${resource} used`
    + `${reserved.length ? `, ${reserved.length} reserved` : ""}`
    + `${unschedulable.length ? `, ${unschedulable.length} unschedulable` : ""}`;
}

function told({ nodes, resource, used, capacity, allocations, reserved, unschedulable }, place) {
  return `${nodes[place]}: ${resource} ${exact(resource, used[place])} of ${exact(resource, capacity[place])} used, `
    + `${allocations[place]} running${reserved.includes(place) ? ", reserved" : ""}`
    + `${unschedulable.includes(place) ? ", unschedulable" : ""}`;
}

function paint(canvas, loads, { picked, cell, columns, width }) {
  const { nodes, used, capacity } = loads;
  const [reserved, closed] = [new Set(loads.reserved), new Set(loads.unschedulable)];
  const ratio = devicePixelRatio || 1;
  const rows = Math.ceil(nodes.length / columns);
  canvas.width = width * ratio;
  canvas.height = Math.max(1, rows * cell * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${rows * cell}px`;
  const brush = canvas.getContext("2d");
  brush.scale(ratio, ratio);
  const colour = colours();
  for (let index = 0; index < nodes.length; index += 1) {
    const x = (index % columns) * cell;
    const y = Math.floor(index / columns) * cell;
    const side = cell - GAP;
    const full = Math.min(1, part(used[index], capacity[index]));
    brush.globalAlpha = 1;
    brush.fillStyle = colour.free;
    brush.fillRect(x, y, side, side);
    brush.globalAlpha = full === 0 ? 0 : 0.15 + 0.85 * full;
    brush.fillStyle = colour.used;
    brush.fillRect(x, y, side, side);
    brush.globalAlpha = 1;
    if (reserved.has(index)) {
      brush.fillStyle = colour.leaving;
      brush.fillRect(x, y, side, Math.max(2, side / 5));
    }
    if (closed.has(index)) {
      brush.strokeStyle = colour.bad;
      brush.lineWidth = 1.5;
      brush.beginPath();
      brush.moveTo(x, y);
      brush.lineTo(x + side, y + side);
      brush.stroke();
    }
    if (nodes[index] === picked) {
      brush.strokeStyle = colour.ink;
      brush.lineWidth = 2;
      brush.strokeRect(x, y, side, side);
    }
  }
}
