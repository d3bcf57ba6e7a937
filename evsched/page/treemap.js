// The queue tree as a treemap: the area of a leaf is the larger of what it is entitled to and what
// it uses and waits for; within it, what is used, leaving and waiting.

import { html } from "./vendor/htm-preact.js";
import { useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
import { exact } from "./amounts.js";
import { go } from "./focus.js";
import { entitled, lastName, limit, pending } from "./words.js";

const TITLE = 16;
const LEAST = 4;

const number = (amounts, resource) => Number(amounts?.[resource] ?? 0);

function weight(node, resource) {
  if (node.children.length) return node.children.reduce((sum, child) => sum + weight(child, resource), 0);
  const row = node.row;
  const wanted = number(row.usage, resource) + Number(pending(row, resource) ?? 0);
  return Math.max(wanted, number(entitled(row), resource), 1);
}

/** Lay boxes out in rows so that they are as square as can be (squarified treemap). */
export function laidOut(nodes, resource, box, found = []) {
  const sized = nodes.map((node) => ({ node, size: weight(node, resource) }));
  sized.sort((a, b) => b.size - a.size || (a.node.row.queue < b.node.row.queue ? -1 : 1));
  const total = sized.reduce((sum, one) => sum + one.size, 0);
  const scale = (box.width * box.height) / (total || 1);
  let { x, y, width, height } = box;
  let index = 0;
  while (index < sized.length && width > 0 && height > 0) {
    const side = Math.min(width, height);
    const row = [];
    let area = 0;
    let worst = Infinity;
    while (index < sized.length) {
      const next = sized[index].size * scale;
      const [large, small] = [Math.max(next, ...row), Math.min(next, ...row)];
      const whole = area + next;
      const ratio = Math.max((side * side * large) / (whole * whole), (whole * whole) / (side * side * small));
      if (ratio > worst) break;
      worst = ratio;
      area = whole;
      row.push(next);
      index += 1;
    }
    const thick = area / side;
    let along = 0;
    for (const [at, one] of row.entries()) {
      const long = one / thick;
      const place = width >= height
        ? { x, y: y + along, width: thick, height: long }
        : { x: x + along, y, width: long, height: thick };
      along += long;
      put(sized[index - row.length + at].node, place, resource, found);
    }
    if (width >= height) {
      x += thick;
      width -= thick;
    } else {
      y += thick;
      height -= thick;
    }
  }
  return found;
}

function put(node, place, resource, found) {
  if (place.width < LEAST || place.height < LEAST) return;
  found.push({ node, ...place });
  if (!node.children.length) return;
  const title = place.height > 3 * TITLE ? TITLE : 2;
  laidOut(node.children, resource, {
    x: place.x + 2, y: place.y + title, width: place.width - 4, height: place.height - title - 2,
  }, found);
}

/** @param tops the trees; @param resource whose amounts; @param picked the selected queue. */
export function Treemap({ tops, resource, picked }) {
  const ref = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const look = () => setSize({ width: ref.current.clientWidth, height: ref.current.clientHeight });
    look();
    const watch = new ResizeObserver(look);
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  const boxes = useMemo(
    () => (resource ? laidOut(tops, resource, { x: 0, y: 0, ...size }) : []), [tops, resource, size]);
  return html`<div class="treemap" ref=${ref}>
    <svg width=${size.width} height=${size.height} role="img"
      aria-label=${`Queues by ${resource}: the table beside has the same figures`}>
      <defs><pattern id="waiting" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="2" height="6" class="pending" /></pattern></defs>
      ${boxes.map((box) => html`<${Box} key=${box.node.row.queue} box=${box} resource=${resource}
        picked=${box.node.row.queue === picked} />`)}
    </svg>
  </div>`;
}

function Box({ box, resource, picked }) {
  const { node, x, y, width, height } = box;
  const { row } = node;
  const pick = () => go({ sel: `queue:${row.queue}` });
  const leaf = !node.children.length;
  const title = told(row, resource);
  const room = width > 40 && height > TITLE;
  const name = node.depth ? lastName(row.queue) : row.queue;
  return html`<g class=${`box ${leaf ? "leaf" : ""} ${picked ? "picked" : ""}`} onClick=${(event) => {
    event.stopPropagation();
    pick();
  }}>
    <title>${title}</title>
    <rect x=${x} y=${y} width=${width} height=${height} class="back" />
    ${leaf && html`<${Fill} ...${box} resource=${resource} />`}
    ${room && html`<text x=${x + 4} y=${y + 12}>${cut(name, width)}</text>`}
    ${leaf && room && height > 2.4 * TITLE && html`<text x=${x + 4} y=${y + 27} class="figure">
      ${cut(exact(resource, row.usage[resource] ?? 0), width)}</text>`}
  </g>`;
}

function Fill({ node, x, y, width, height, resource }) {
  const { row } = node;
  const whole = weight(node, resource);
  const used = number(row.usage, resource);
  const leaving = number(row.preempting, resource);
  const waits = Number(pending(row, resource) ?? 0);
  const due = number(entitled(row), resource);
  const most = limit(row, resource);
  const tall = (amount) => (height * Math.min(amount, whole)) / whole;
  const level = (amount) => y + height - tall(amount);
  return html`
    <rect x=${x} y=${level(used)} width=${width} height=${tall(used)}
      class=${most !== undefined && used > Number(most) ? "over" : "used"} />
    ${leaving > 0 && html`<rect x=${x} y=${level(used)} width=${width} height=${tall(leaving)} class="leaving" />`}
    ${waits > 0 && html`<rect x=${x} y=${level(used + waits)} width=${width} height=${tall(used + waits) - tall(used)}
      fill="url(#waiting)" />`}
    ${due > 0 && html`<path d=${`M${x} ${level(due)}h${width}`} class="due" />`}`;
}

function told(row, resource) {
  const part = (word, amount) => (amount === undefined ? "" : `, ${word} ${exact(resource, amount)}`);
  return `${row.queue}: ${resource} used ${exact(resource, row.usage[resource] ?? 0)}`
    + part("entitled to", entitled(row)[resource]) + part("at most", limit(row, resource))
    + part("leaving", row.preempting[resource]) + part("waiting", pending(row, resource));
}

function cut(text, width) {
  const room = Math.floor((width - 8) / 7);
  return text.length <= room ? text : room < 2 ? "" : `${text.slice(0, room - 1)}…`;
}
