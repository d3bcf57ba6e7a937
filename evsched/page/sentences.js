// An event in a line: what it is about, and the rest of what it says.

import { list } from "./amounts.js";
import { rfc3339 } from "./moments.js";

const SUBJECTS = ["ask", "allocation", "application", "queue", "node"];
const AMOUNTS = new Set(["resources", "capacity", "target", "unmet"]);
const TIMES = new Set(["at", "until", "created"]);
const LEFT_OUT = new Set(["type", "seq", "cause", "due", "proposal", "configuration", "document", "input", ...SUBJECTS]);

/** What an event is about: [kind, id], the most particular first. */
export function subjects(event) {
  const found = SUBJECTS.filter((kind) => typeof event[kind] === "string" && event[kind]);
  return found.map((kind) => [kind, event[kind]]);
}

/** The other entries in a line. */
export function rest(event) {
  const parts = Object.entries(event).filter(([name, value]) => !LEFT_OUT.has(name) && value !== null && value !== "");
  return parts.map(([name, value]) => `${name.replaceAll("_", " ")} ${said(name, value)}`).join(", ");
}

function said(name, value) {
  if (name === "victims") return value.map((one) => one.id ?? one).join(", ");
  if (AMOUNTS.has(name)) return list(value);
  if (TIMES.has(name)) return rfc3339(value);
  if (Array.isArray(value)) return value.map((one) => (typeof one === "object" ? one.name ?? "…" : one)).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([key, one]) => `${key}=${one}`).join(", ");
  return String(value);
}
