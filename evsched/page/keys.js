// What the keys do, as a dialog.

import { html } from "./vendor/htm-preact.js";
import { useEffect, useRef } from "./vendor/preact-hooks.js";
import { signal } from "./vendor/signals.js";
import { VIEWS } from "./focus.js";

export const shownKeys = signal(false);

const KEYS = [
  [", .", "previous, next event"], ["[ ]", "previous, next decision"], ["space", "play, pause"],
  ["l", "live: follow the end of the log"], ["m", "type a moment"], ["Home End", "start, end of the log"],
  ["/", "narrow the list"], ["↑ ↓ PgUp PgDn", "move in a list"], ["Enter", "look closer"],
  ["Esc", "let go"], ["t", "colours"],
  ...VIEWS.map(([, title, key]) => [key, title]),
];

export function Keys() {
  const ref = useRef(null);
  const open = shownKeys.value;
  useEffect(() => {
    if (open) ref.current.showModal();
  }, [open]);
  return html`<dialog ref=${ref} aria-label="Keys" onClose=${() => { shownKeys.value = false; }}>
    <h2>Keys</h2>
    <dl class="keys">${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
    <form method="dialog"><button>Close</button></form>
  </dialog>`;
}
