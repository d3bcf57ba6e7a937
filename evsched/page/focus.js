// The whole focus of the page stands in its address, so that every view is a link that stays right:
// what an address with `at` shows belongs to that event of the log, and never changes.

import { computed, signal } from "./vendor/signals.js";

/** Views in the order of the menu: name in the address, title, key. */
export const VIEWS = [
  ["now", "Now or then", "1"],
  ["timeline", "Timeline", "2"],
  ["why", "Why", "3"],
  ["preemptions", "Preemptions", "4"],
  ["difference", "Difference", "5"],
  ["log", "Log", "6"],
  ["audit", "Audit", "7"],
  ["whatif", "What if", "8"],
];

const read = () => Object.fromEntries(new URLSearchParams(location.search));

/** Everything in the address; `view`, `at` (a seq; absent: live), `sel`, `q` and what a view adds. */
export const focus = signal(read());

/** The end of the log as last heard: seq and time (ms); null before the first answer. */
export const head = signal(null);

export const view = computed(() => {
  const named = focus.value.view;
  return VIEWS.some(([name]) => name === named) ? named : "now";
});

/** Whether the page follows the end of the log. */
export const live = computed(() => focus.value.at === undefined);

/** The seq that is looked at; null until the end of the log is known. */
export const seq = computed(() => {
  if (!live.value && /^\d+$/.test(focus.value.at)) return Number(focus.value.at);
  return live.value && head.value ? head.value.seq : null;
});

/** The event behind a place, at which a window ends that has the place in it; undefined: there is none yet. */
export const behind = (at) => (at !== null && head.value && at < head.value.seq ? at + 1 : undefined);

/** The address of the focus with a change; undefined takes an entry out. */
export function link(change) {
  const entries = Object.entries({ ...focus.value, ...change });
  const kept = entries.filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(kept.map(([name, value]) => [name, String(value)]));
  return `${location.pathname}?${query}`;
}

let written = 0;
let owed = 0;

/** Change the focus. `replace`: no entry in the browser's history, as while dragging. */
export function go(change, replace = false) {
  const address = link(change);
  focus.value = Object.fromEntries(new URLSearchParams(address.slice(address.indexOf("?"))));
  clearTimeout(owed);
  if (!replace) {
    history.pushState(null, "", address);
  } else if (performance.now() - written > 250) {
    write();
  } else {
    // Browsers refuse more than some hundred changes of the address in half a minute.
    owed = setTimeout(write, 250);
  }
}

function write() {
  written = performance.now();
  history.replaceState(null, "", link({}));
}

addEventListener("popstate", () => {
  clearTimeout(owed);
  focus.value = read();
});

/** Follow a link of the page without loading it anew. */
export function follow(event) {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey) return;
  if (event.shiftKey || anchor.origin !== location.origin || anchor.hasAttribute("download")) return;
  if (anchor.pathname !== location.pathname || anchor.hash) return;
  event.preventDefault();
  history.pushState(null, "", anchor.href);
  focus.value = read();
}
