// Who looks at the page: a bearer token, where the server asks for one. It is kept for this tab alone, and
// never stands in an address.

import { html } from "./vendor/htm-preact.js";
import { signal } from "./vendor/signals.js";

const KEY = "evsched-token";

/** Why the server does not answer; null: it does. */
const refused = signal(null);
const token = signal(sessionStorage.getItem(KEY) ?? "");

/** Headers that say who asks; none where no token was given. */
export const signed = () => (token.value ? { Authorization: `Bearer ${token.value}` } : {});

/** Take note that the server asks who asks. */
export function refuse(reason) {
  refused.value = reason;
}

/** Whether a token is wanted before anything can be shown. */
export const locked = () => refused.value !== null;

// Everything is asked for anew in the new name, at the same address.
function use(given) {
  if (given) sessionStorage.setItem(KEY, given);
  else sessionStorage.removeItem(KEY);
  location.reload();
}

/** The entry for a token. */
export const Token = () => html`<form class="form token" onSubmit=${(event) => {
  event.preventDefault();
  use(new FormData(event.target).get("token").trim());
}}>
  <h2>This server asks who you are</h2>
  ${token.value && html`<p class="fault" role="alert">${refused.value}</p>`}
  <label class="choice">bearer token <input type="password" name="token" required autocomplete="off" size="48" /></label>
  <button type="submit">Go on</button>
  <p class="dim">The token is kept until this tab is closed.</p>
</form>`;

/** Lets go of the token; nothing where there is none. */
export const Leave = () => (token.value
  ? html`<button type="button" onClick=${() => use("")} title="let go of the token">sign out</button>` : null);
