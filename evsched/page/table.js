// A table of any length: only the rows in sight are in the document.

import { html } from "./vendor/htm-preact.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
import { narrow, printing } from "./device.js";

const ROW = 26;
const WIDTH = "minmax(6rem, 1fr)";
const MARGIN = 8;
const PRINTED = 5000;

/**
 * @param columns [{ key, title, width, cell(row), num, wide, sort(row) }]; `width` in rem, or minmax(rem, fr);
 *   `wide` ones are left out of a narrow window; `sort` gives what the column is sorted by.
 * @param rows those that are here; @param total how many there are; @param more asks for further ones.
 * @param keyOf the key of a row; @param onPick what Enter or a click does; @param picked a key.
 */
export function Table({ label, columns, rows, total, more, keyOf, onPick, picked, height }) {
  const shown = narrow.value ? columns.filter((one) => !one.wide) : columns;
  const [order, setOrder] = useState(null);
  const sorted = useMemo(() => inOrder(rows, columns, order), [rows, order]);
  const view = useView(sorted.length);
  const [cursor, setCursor] = useState(-1);
  const template = shown.map((one) => one.width ?? WIDTH).join(" ");
  const least = shown.reduce((sum, one) => sum + Number.parseFloat(/[\d.]+(?=rem)/.exec(one.width ?? WIDTH)[0]), 0);
  const [first, end] = printing.value ? [0, Math.min(sorted.length, PRINTED)] : view.range;
  const left = (total ?? rows.length) - rows.length;
  useEffect(() => {
    if (left > 0 && more && end >= sorted.length - MARGIN) more();
  }, [end, left, more, sorted.length]);
  const id = (index) => `${label.replaceAll(/\W/g, "-")}-${index}`;
  const keys = (event) => {
    const to = moved(event.key, cursor, sorted.length, view.size);
    if (to !== null) {
      event.preventDefault();
      setCursor(to);
      view.show(to);
    } else if (event.key === "Enter" && sorted[cursor] && onPick) {
      onPick(sorted[cursor]);
    }
  };
  const body = [];
  for (let index = first; index < end; index += 1) {
    const row = sorted[index];
    const key = keyOf(row);
    body.push(html`<div role="row" id=${id(index)} key=${key} aria-rowindex=${index + 2}
        aria-selected=${key === picked} class=${index === cursor ? "cursor" : ""}
        style=${{ gridTemplateColumns: template }}
        onClick=${() => { setCursor(index); if (!getSelection()?.toString()) onPick?.(row); }}>
      ${shown.map((one) => html`<div role="gridcell" class=${one.num ? "num" : ""}>${one.cell(row)}</div>`)}
    </div>`);
  }
  return html`<div class="table" role="grid" aria-label=${label} aria-rowcount=${(total ?? rows.length) + 1}
      tabindex="0" ref=${view.ref} style=${{ maxHeight: printing.value ? "none" : height, "--least": `${least}rem` }}
      onKeyDown=${keys} aria-activedescendant=${cursor >= first && cursor < end ? id(cursor) : undefined}>
    <div role="row" class="head" aria-rowindex="1" style=${{ gridTemplateColumns: template }}>
      ${shown.map((one) => html`<${Header} column=${one} order=${order} setOrder=${setOrder} />`)}
    </div>
    <div class="rows" role="rowgroup" style=${{ height: `${sorted.length * ROW}px` }}>
      <div role="presentation" style=${{ transform: `translateY(${first * ROW}px)` }}>${body}</div>
    </div>
    ${left > 0 && html`<div class="left" role="row"><div role="gridcell">
      ${rows.length.toLocaleString("en")} of ${total.toLocaleString("en")} loaded
      ${more && html` <button type="button" tabindex="-1" onClick=${more}>load more</button>`}</div></div>`}
  </div>`;
}

function Header({ column, order, setOrder }) {
  const down = order?.key === column.key ? order.down : null;
  const sorted = down === null ? "none" : down ? "descending" : "ascending";
  const turn = () => setOrder(down === null ? { key: column.key, down: Boolean(column.num) }
    : down === Boolean(column.num) ? { key: column.key, down: !down } : null);
  return html`<div role="columnheader" class=${column.num ? "num" : ""} aria-sort=${sorted}>
    ${column.sort
      ? html`<button type="button" tabindex="-1" onClick=${turn} title=${column.hint}>${column.title}${
        down === null ? "" : down ? " ↓" : " ↑"}</button>`
      : html`<span title=${column.hint}>${column.title}</span>`}
  </div>`;
}

// Equal rows stay in the order of the API, which ends in an id.
function inOrder(rows, columns, order) {
  const column = order && columns.find((one) => one.key === order.key);
  if (!column) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [column.sort(a), column.sort(b)];
    return x < y ? -sign : x > y ? sign : 0;
  });
}

function moved(key, cursor, count, page) {
  const to = {
    ArrowDown: cursor + 1, ArrowUp: cursor - 1, PageDown: cursor + page, PageUp: cursor - page,
    Home: 0, End: count - 1,
  }[key];
  return to === undefined || !count ? null : Math.max(0, Math.min(count - 1, to));
}

function useView(count) {
  const ref = useRef(null);
  const [place, setPlace] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const box = ref.current;
    const look = () => setPlace((was) =>
      was.top === box.scrollTop && was.height === box.clientHeight
        ? was : { top: box.scrollTop, height: box.clientHeight });
    look();
    box.addEventListener("scroll", look, { passive: true });
    const watch = new ResizeObserver(look);
    watch.observe(box);
    return () => {
      box.removeEventListener("scroll", look);
      watch.disconnect();
    };
  }, []);
  const size = Math.ceil(place.height / ROW);
  const first = Math.max(0, Math.min(count - size, Math.floor(place.top / ROW)) - MARGIN);
  const show = (index) => {
    const box = ref.current;
    const top = index * ROW;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + 2 * ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * ROW - box.clientHeight;
  };
  return { ref, size, show, range: [first, Math.min(count, first + size + 2 * MARGIN)] };
}
