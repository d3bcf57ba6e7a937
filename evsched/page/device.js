// What the device is like just now, as signals: a narrow window, printing, colours.

import { signal } from "./vendor/signals.js";

const query = matchMedia("(max-width: 720px)");
export const narrow = signal(query.matches);
query.addEventListener("change", () => { narrow.value = query.matches; });

/** True while the browser lays the page out for paper: tables then show every row they hold. */
export const printing = signal(false);
addEventListener("beforeprint", () => { printing.value = true; });
addEventListener("afterprint", () => { printing.value = false; });

const THEMES = ["auto", "light", "dark"];
const kept = () => {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null; // storage is switched off
  }
};

/** auto (as the system has it), light or dark. */
export const theme = signal(THEMES.includes(kept()) ? kept() : "auto");
document.documentElement.dataset.theme = theme.value;

export function nextTheme() {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
  document.documentElement.dataset.theme = theme.value;
  try {
    localStorage.setItem("theme", theme.value);
  } catch {
    // It holds until the page is closed.
  }
}

/** Colours of the style sheet for what is drawn on a canvas; they follow the theme. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "dim", "line", "panel", "used", "leaving", "pending", "guaranteed", "maximum",
    "bad", "accent", "free"];
  return Object.fromEntries(names.map((name) => [name, resolved(style, name)]));
}

// A canvas does not know light-dark(); the browser resolves it on an element.
const probe = document.createElement("span");
function resolved(style, name) {
  if (!probe.isConnected) document.documentElement.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color || style.getPropertyValue(`--${name}`);
}
