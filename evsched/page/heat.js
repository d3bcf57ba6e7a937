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

/** @param nodes the rows; @param total how many nodes there are; @param picked the selected one. */
export function Heat({ nodes, resource, picked, height = 220 }) {
  const ref = useRef(null);
  const [width, setWidth] = useState(0);
  const [under, setUnder] = useState(null);
  const { cell, columns } = grid(nodes.length, width || 1, height);
  const look = theme.value;
  useLayoutEffect(() => {
    const measure = () => setWidth(ref.current.parentElement.clientWidth);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(ref.current.parentElement);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => paint(ref.current, nodes, { resource, picked, cell, columns, width }),
    [nodes, resource, picked, cell, columns, width, look]);
  const at = (event) => {
    const box = ref.current.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / cell);
    const row = Math.floor((event.clientY - box.top) / cell);
    return column < columns ? nodes[row * columns + column] : undefined;
  };
  const pick = (node) => node && go({ sel: `node:${node.node}` });
  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = nodes.findIndex((one) => one.node === picked);
    pick(nodes[Math.max(0, Math.min(nodes.length - 1, place < 0 ? 0 : place + step))]);
  };
  return html`<div class="heat">
    <canvas ref=${ref} role="img" tabindex="0" aria-label=${summary(nodes, resource)} onKeyDown=${keys}
      onClick=${(event) => pick(at(event))} onMouseMove=${(event) => setUnder(at(event) ?? null)}
      onMouseLeave=${() => setUnder(null)}></canvas>
    <p class="under">${under ? told(under, resource) : summary(nodes, resource)}</p>
  </div>`;
}

function summary(nodes, resource) {
  const full = nodes.filter((node) => part(node.used[resource], node.capacity[resource]) >= 0.9).length;
  const closed = nodes.filter((node) => !node.schedulable).length;
  const kept = nodes.filter((node) => node.reserved_for.length).length;
  return `${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}: ${full} with 90 % or more of ${resource} used`
    + `${kept ? `, ${kept} reserved` : ""}${closed ? `, ${closed} unschedulable` : ""}`;
}

function told(node, resource) {
  const used = exact(resource, node.used[resource] ?? 0);
  return `${node.node}: ${resource} ${used} of ${exact(resource, node.capacity[resource] ?? 0)} used, `
    + `${node.allocations} running${node.reserved_for.length ? `, reserved for ${node.reserved_for.join(", ")}` : ""}`
    + `${node.schedulable ? "" : ", unschedulable"}`;
}

function paint(canvas, nodes, { resource, picked, cell, columns, width }) {
  const ratio = devicePixelRatio || 1;
  const rows = Math.ceil(nodes.length / columns);
  canvas.width = width * ratio;
  canvas.height = Math.max(1, rows * cell * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${rows * cell}px`;
  const brush = canvas.getContext("2d");
  brush.scale(ratio, ratio);
  const colour = colours();
  for (const [index, node] of nodes.entries()) {
    const x = (index % columns) * cell;
    const y = Math.floor(index / columns) * cell;
    const side = cell - GAP;
    const full = Math.min(1, part(node.used[resource], node.capacity[resource]));
    brush.globalAlpha = 1;
    brush.fillStyle = colour.free;
    brush.fillRect(x, y, side, side);
    brush.globalAlpha = full === 0 ? 0 : 0.15 + 0.85 * full;
    brush.fillStyle = colour.used;
    brush.fillRect(x, y, side, side);
    brush.globalAlpha = 1;
    if (node.reserved_for.length) {
      brush.fillStyle = colour.leaving;
      brush.fillRect(x, y, side, Math.max(2, side / 5));
    }
    if (!node.schedulable) {
      brush.strokeStyle = colour.bad;
      brush.lineWidth = 1.5;
      brush.beginPath();
      brush.moveTo(x, y);
      brush.lineTo(x + side, y + side);
      brush.stroke();
    }
    if (node.node === picked) {
      brush.strokeStyle = colour.ink;
      brush.lineWidth = 2;
      brush.strokeRect(x, y, side, side);
    }
  }
}
