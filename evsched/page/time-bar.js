// The time bar: where in the log the page stands. The slider goes by events, so that idle stretches
// take no room; its strip is the darker the more events a second there were, with marks above it.

import { html } from "./vendor/htm-preact.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-hooks.js";
import { signal } from "./vendor/signals.js";
import { ask, timeOf, timed, useAnswer } from "./api.js";
import { colours, theme } from "./device.js";
import { focus, go, head, live, seq } from "./focus.js";
import { isMoment, length, rfc3339, shown } from "./moments.js";
import { decision } from "./steps.js";
import { rows, timeline } from "./routes.js";

const PLAY_MS = 700;
const LATE_MS = 150;

/** Whether the page walks from decision to decision by itself. */
export const playing = signal(false);
/** What is wrong with what was typed as a moment; empty: nothing. */
const refused = signal("");

/** Stand at an event, within the log. */
export function stand(to, replace = false) {
  go({ at: Math.max(0, Math.min(head.value.seq, to)) }, replace);
}

/** Go to the next (+1) or previous (-1) decision; tells whether there is one. */
export async function stepDecision(direction) {
  if (seq.value === null) return false;
  const found = await decision(seq.value, direction, head.value.seq);
  if (found !== null) stand(found, playing.value);
  return found !== null;
}

/** Follow the end of the log. */
export function follow() {
  playing.value = false;
  go({ at: undefined });
}

/** Turn what was typed into the place that it names: a seq, so that the address stays right. */
export async function settle(text) {
  refused.value = "";
  const typed = text.trim();
  if (["", "end", "latest", "live"].includes(typed)) return follow();
  if (typed === "start") return stand(0);
  if (/^\d{1,15}$/.test(typed) && Number(typed) <= head.value.seq) return stand(Number(typed));
  if (!isMoment(typed)) {
    refused.value = `moment ${typed}: expected a seq (1234), a time (2026-11-20T14:03:00Z) or time before the end (-15m)`;
    return undefined;
  }
  try {
    const found = await ask(rows(encodeURIComponent(typed.replace(" ", "T")), "timers", 1));
    return stand(found.seq);
  } catch (error) {
    refused.value = error.message;
    return undefined;
  }
}

export function TimeBar() {
  const end = head.value;
  if (!end) return html`<section class="bar" aria-label="Time"></section>`;
  const at = seq.value ?? end.seq;
  const time = useTime(at);
  return html`<section class="bar" aria-label="Time">
    <div class="steps">
      <${Step} title="previous decision ([)" act=${() => stepDecision(-1)}>«<//>
      <${Step} title="previous event (,)" act=${() => stand(at - 1)}>‹<//>
      <${Step} title="play or pause (space)" pressed=${playing.value} act=${togglePlay}>${playing.value ? "❚❚" : "▶"}<//>
      <${Step} title="next event (.)" act=${() => stand(at + 1)}>›<//>
      <${Step} title="next decision (])" act=${() => stepDecision(1)}>»<//>
    </div>
    <${Typed} at=${at} />
    <output class="place" aria-live="off">
      <b>${time === null ? "…" : shown(time)}</b>
      <span>${whereabouts(at, time, end)}</span>
    </output>
    <button type="button" class="live" aria-pressed=${live.value} title="follow the end of the log (l)"
      onClick=${() => (live.value ? stand(end.seq) : follow())}>live</button>
    <div class="track">
      <${Strip} end=${end.seq} />
      <input type="range" min="0" max=${end.seq} step="1" value=${at} aria-label="Place in the log"
        aria-valuetext=${`event ${at}, ${time ? rfc3339(time) : "before the first event"}`}
        onInput=${(event) => stand(Number(event.target.value), true)}
        onChange=${(event) => stand(Number(event.target.value))} />
    </div>
    ${refused.value && html`<p class="fault" role="alert">${refused.value}</p>`}
  </section>`;
}

function whereabouts(at, time, end) {
  if (live.value) return `event ${at}, the end of the log`;
  const before = time === null ? "" : `, ${length(end.time - time)} before the end`;
  return `event ${at} of ${end.seq}${at === end.seq ? "" : before}`;
}

const Step = ({ title, act, pressed, children }) => html`<button type="button" title=${title}
  aria-label=${title} aria-pressed=${pressed} onClick=${act}>${children}</button>`;

function Typed({ at }) {
  const [text, setText] = useState(null);
  return html`<form class="typed" onSubmit=${(event) => {
    event.preventDefault();
    settle(text ?? String(at));
    setText(null);
  }}>
    <input id="moment" aria-label="Moment: a seq, a time, or time before the end" value=${text ?? at}
      autocomplete="off" spellcheck=${false} onInput=${(event) => setText(event.target.value)}
      onFocus=${(event) => event.target.select()} onBlur=${() => setText(null)} />
  </form>`;
}

/** The time of a seq; that of the end is known, others come with whatever the view asks about them. */
function useTime(at) {
  const [late, setLate] = useState(null);
  const last = useRef(null);
  void timed.value; // an answer that comes may say it
  const known = head.value.seq === at ? head.value.time : timeOf(at);
  const wanted = at > 0 && !known;
  useEffect(() => {
    // No view may ask about this place at all: then the bar does.
    const owed = wanted ? setTimeout(() => setLate(at), LATE_MS) : 0;
    return () => clearTimeout(owed);
  }, [at, wanted]);
  useAnswer(wanted && late === at ? rows(at, "timers", 1) : null);
  if (at === 0) return null;
  last.current = known || last.current;
  return last.current;
}

/** Start or stop walking; at the end of the log there is nothing to walk to. */
export function togglePlay() {
  playing.value = !playing.value;
}

/** Walks while `playing`; one of it lies in the page. */
export function Player() {
  const on = playing.value;
  useEffect(() => {
    if (!on) return undefined;
    let owed = 0;
    const step = async () => {
      const went = await stepDecision(1);
      if (went) owed = setTimeout(step, PLAY_MS);
      else playing.value = false;
    };
    step();
    return () => clearTimeout(owed);
  }, [on]);
  return null;
}

function Strip({ end }) {
  const ref = useRef(null);
  const { answer } = useAnswer(end ? timeline({ end }) : null);
  const look = theme.value;
  useLayoutEffect(() => {
    const canvas = ref.current;
    const redraw = () => draw(canvas, answer, end);
    redraw();
    const watch = new ResizeObserver(redraw);
    watch.observe(canvas);
    return () => watch.disconnect();
  }, [answer, end, look]);
  return html`<canvas ref=${ref} class="strip" aria-hidden="true"></canvas>`;
}

function draw(canvas, answer, end) {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio];
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const paint = canvas.getContext("2d");
  paint.clearRect(0, 0, width, height);
  if (!answer || !end) return;
  const colour = colours();
  const x = (place) => (place / end) * width;
  const busy = answer.edges.slice(1).map((edge, index) => {
    const before = answer.edges[index];
    return (edge.seq - before.seq) / Math.max(1, edge.time - before.time);
  });
  const most = Math.log1p(Math.max(...busy, 0) * 1000) || 1;
  const evicted = Math.max(...answer.evictions, 1);
  for (const [index, rate] of busy.entries()) {
    const left = x(answer.edges[index].seq);
    const wide = Math.max(1, x(answer.edges[index + 1].seq) - left);
    paint.globalAlpha = 0.12 + 0.5 * (Math.log1p(rate * 1000) / most);
    paint.fillStyle = colour.dim;
    paint.fillRect(left, height * 0.45, wide, height * 0.55);
    if (answer.evictions[index]) {
      paint.globalAlpha = 1;
      paint.fillStyle = colour.leaving;
      const tall = height * 0.45 * (0.3 + 0.7 * (answer.evictions[index] / evicted));
      paint.fillRect(left, height * 0.45 - tall, Math.max(wide, 2 * ratio), tall);
    }
  }
  paint.globalAlpha = 1;
  for (const mark of answer.marks) {
    paint.fillStyle = mark.kind === "configuration" ? colour.accent : colour.guaranteed;
    paint.fillRect(x(mark.seq), 0, 2 * ratio, height);
  }
}

/** Keys of the time bar; true when one was meant. */
export function timeKeys(event) {
  const act = {
    "[": () => stepDecision(-1), "]": () => stepDecision(1),
    ",": () => stand(seq.value - 1), ".": () => stand(seq.value + 1),
    " ": togglePlay, l: follow, m: () => document.getElementById("moment").focus(),
    Home: () => stand(0), End: follow,
  }[event.key];
  if (!act || seq.value === null) return false;
  act();
  return true;
}

/** Bring an address whose `at` is no seq (a time, -15m) to the one that stays right. */
export function Settler() {
  const at = focus.value.at;
  const known = head.value !== null;
  useEffect(() => {
    if (known && at !== undefined && !(/^\d{1,15}$/.test(at) && Number(at) <= head.value.seq)) settle(at);
  }, [at, known]);
  return null;
}
