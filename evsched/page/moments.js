// Times come as milliseconds since the epoch and are shown in UTC, as the command line shows them.

const DAY = 86_400_000;
const UNITS = [[DAY, "d"], [3_600_000, "h"], [60_000, "m"], [1000, "s"]];

/** RFC 3339 in UTC, with milliseconds only where there are any. */
export function rfc3339(time) {
  const date = new Date(Number(time));
  return Number.isNaN(date.getTime()) ? `${time} ms` : date.toISOString().replace(".000Z", "Z");
}

/** The same with a space between day and time, as it is read most easily. */
export const shown = (time) => (time ? rfc3339(time).replace("T", " ") : "–");

/** The time of day alone. */
export const clock = (time) => rfc3339(time).slice(11, 19);

/** A length of time in its two largest units: "3m 20s". */
export function length(ms) {
  if (ms < 0) return `-${length(-ms)}`;
  if (ms < 1000) return `${ms} ms`;
  const parts = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(ms / size);
    if (count || parts.length) parts.push(count ? `${count}${unit}` : "");
    ms -= count * size;
    if (parts.length === 2) break;
  }
  return parts.filter(Boolean).join(" ");
}

/** Whether a text can be a moment for the API: a seq, a time, time before the end, start or end. */
export function isMoment(text) {
  return /^(\d{1,18}|start|end|latest|-\d+(\.\d+)?(ms|s|m|h|d)([\d.a-z]*))$/.test(text)
    || !Number.isNaN(Date.parse(text));
}
