// The page: frame, menu, keys; each view is a file of its own in views/, loaded when it is first seen.

import { html, render } from "./vendor/htm-preact.js";
import { useEffect, useState } from "./vendor/preact-hooks.js";
import { ask } from "./api.js";
import { nextTheme, theme } from "./device.js";
import { VIEWS, focus, follow, go, head, link, view } from "./focus.js";
import * as routes from "./routes.js";
import { Fault } from "./parts.js";
import { Badge } from "./badge.js";
import { Keys, shownKeys } from "./keys.js";
import { Player, Settler, TimeBar, timeKeys } from "./time-bar.js";

const POLL_MS = 1000;
const loaded = {};

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
        <${Badge} />
        <button type="button" onClick=${nextTheme} title="colours (t)">${theme.value}</button>
        <button type="button" onClick=${() => { shownKeys.value = true; }} title="keys (?)" aria-label="keys">?</button>
      </span>
    </header>
    <${TimeBar} /><${Player} /><${Settler} />
    <${Fault} error=${fault} />
    <main id="main" tabindex="-1"><${View} name=${view.value} /></main>
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

// The end of the log, asked for again and again while the page is looked at.
function useHead() {
  const [fault, setFault] = useState(null);
  useEffect(() => {
    let owed = 0;
    let over = false;
    const look = async () => {
      clearTimeout(owed);
      try {
        const { seq, time, ...facts } = await ask(routes.log());
        if (head.value?.seq !== seq || head.value.fault !== facts.fault) head.value = { seq, time, ...facts };
        setFault(facts.fault ? new Error(`the log cannot be read: ${facts.fault}`) : null);
      } catch (error) {
        setFault(new Error(`the server does not answer: ${error.message}`));
      }
      if (!over && !document.hidden) owed = setTimeout(look, POLL_MS);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      over = true;
      clearTimeout(owed);
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
