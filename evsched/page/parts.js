// Small parts that views share.

import { html } from "./vendor/htm-preact.js";
import { exact, short } from "./amounts.js";
import { go, link } from "./focus.js";

/** A link that changes the focus. */
export const To = ({ change, children, ...rest }) => html`<a href=${link(change)} ...${rest}>${children}</a>`;

/** A link to the state right after an event. */
export const At = ({ seq, children }) =>
  html`<${To} change=${{ at: seq }} title=${`the state after event ${seq}`}>${children ?? seq}<//>`;

/** A link to what has a name: a queue, node, ask, allocation or application. */
export const Name = ({ kind, id, also }) =>
  html`<${To} change=${{ sel: `${kind}:${id}`, ...also }} class="name">${id}<//>`;

/** What is selected: kind and id; null when nothing is. */
export function selected(sel) {
  const cut = (sel ?? "").indexOf(":");
  return cut < 0 ? null : { kind: sel.slice(0, cut), id: sel.slice(cut + 1) };
}

/** An amount in a narrow place, exact where the pointer rests. */
export const Amount = ({ resource, amount }) =>
  amount === undefined || amount === null
    ? html`<span class="dim">–</span>`
    : html`<span title=${`${exact(resource, amount)} (${amount})`}>${short(resource, amount)}</span>`;

/** What went wrong, with the place at fault where the API names one. */
export const Fault = ({ error }) => {
  if (!error) return null;
  const place = error.document?.place;
  const where = place && Object.values(place).filter(Boolean).join(" ");
  return html`<p class="fault" role="alert">${error.message}${where && html` <small>(${where})</small>`}</p>`;
};

/** A line where a view would be empty. */
export const Nothing = ({ children }) => html`<p class="nothing">${children}</p>`;

/** A choice among few words. */
export const Choice = ({ label, name, value, options }) => html`
  <label class="choice">${label}
    <select value=${value} onChange=${(event) => go({ [name]: event.target.value })}>
      ${options.map((one) => html`<option value=${one} selected=${one === value}>${one}</option>`)}
    </select>
  </label>`;

/** A text entry of the address; the view is narrowed as it is typed. */
export const Filter = ({ label, name = "q", value, hint }) => html`
  <label class="choice">${label}
    <input type="search" value=${value ?? ""} placeholder=${hint} autocomplete="off" spellcheck=${false}
      onInput=${(event) => go({ [name]: event.target.value || undefined }, true)} />
  </label>`;

/** Offer a text as a file. */
export function download(name, text, type) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob([text], { type }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

/** Rows as CSV (RFC 4180); what a spreadsheet would take for a formula is kept a text. */
export function csv(header, rows) {
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [header, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
