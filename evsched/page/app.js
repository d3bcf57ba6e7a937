// The page: frame, menu, keys; each view is a file of its own in views/, loaded when it is first seen.

import { html, render } from "./vendor/htm-preact.js";
import { useEffect, useState } from "./vendor/preact-hooks.js";
import { computed } from "./vendor/signals.js";
import { asking } from "./api.js";
import { nextTheme, theme } from "./device.js";
import { VIEWS, focus, follow, go, head, link, view } from "./focus.js";
import { followed } from "./live.js";
import { Fault } from "./parts.js";
import { Badge } from "./badge.js";
import { Keys, shownKeys } from "./keys.js";
import { Leave, Token, locked } from "./token.js";
import { Player, Settler, TimeBar, timeKeys } from "./time-bar.js";

const loaded = {};
/** As an attribute that changes by itself: nothing is drawn anew when a question begins or ends. */
const busy = computed(() => String(asking.value > 0));

function App() {
  const fault = useHead();
  return html`
    <header>
      <a class="skip" href="#main">to the view</a>
      <b class="brand">evsched</b>
      <nav aria-label="Views">${VIEWS.map(([name, title, key]) => html`
        <a href=${link({ view: name })} aria-current=${view.value === name ? "page" : undefined}
          title=${`key ${key}`}>${title}</a>`)}</nav>
      <span class="right">
        ${head.value && html`<${Badge} />`}
        <button type="button" onClick=${nextTheme} title="colours (t)">${theme.value}</button>
        <button type="button" onClick=${() => { shownKeys.value = true; }} title="keys (?)" aria-label="keys">?</button>
        <${Leave} />
      </span>
    </header>
    <${TimeBar} /><${Player} /><${Settler} />
    <${Fault} error=${fault} />
    <main id="main" tabindex="-1" aria-busy=${busy}>
      ${locked() ? html`<${Token} />` : html`<${View} name=${view.value} />`}</main>
    <${Keys} />`;
}

function View({ name }) {
  const [, redraw] = useState(0);
  useEffect(() => {
    document.title = `${VIEWS.find(([one]) => one === name)[1]} · evsched`;
    if (loaded[name]) return;
    import(`./views/${name}.js`).then((module) => {
      loaded[name] = module.default;
      redraw((count) => count + 1);
    });
  }, [name]);
  const Shown = loaded[name];
  if (!Shown || !head.value) return html`<p class="nothing">…</p>`;
  return html`<${Shown} key=${name} />`;
}

// The end of the log, followed while the page is looked at: a browser opens few streams to one server.
function useHead() {
  const [fault, setFault] = useState(null);
  useEffect(() => {
    let stop = () => {};
    const heard = ({ seq, time, ...facts }) => {
      if (head.value?.seq !== seq || head.value.fault !== facts.fault) head.value = { seq, time, ...facts };
      setFault(facts.fault ? new Error(`the log cannot be read: ${facts.fault}`) : null);
    };
    const failed = (error) => setFault(new Error(`the server does not answer: ${error.message}`));
    const look = () => {
      stop();
      stop = document.hidden ? () => {} : followed(heard, failed);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      stop();
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  return fault;
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inText = event.target.closest("input:not([type=range]), textarea, select, [contenteditable]");
  if (inText) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const named = VIEWS.find(([, , key]) => key === event.key);
  if (named) go({ view: named[0] });
  else if (event.key === "?") shownKeys.value = true;
  else if (event.key === "t") nextTheme();
  else if (event.key === "/") document.querySelector("main input[type=search]")?.focus();
  else if (event.key === "Escape" && focus.value.sel) go({ sel: undefined });
  else if (!ownKeys(event) && timeKeys(event)) event.preventDefault();
  if (event.key === "/") event.preventDefault();
}

// A list, a button and the slider have keys of their own.
function ownKeys(event) {
  const moves = event.target.closest("[role=grid], input[type=range]") && ["Home", "End"].includes(event.key);
  return moves || (event.key === " " && event.target.closest("button, a, summary"));
}

addEventListener("keydown", keys);
addEventListener("click", follow);
render(html`<${App} />`, document.getElementById("app"));
