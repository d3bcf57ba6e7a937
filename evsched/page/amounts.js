// Amounts as administrators write them. They come in base units, as whole numbers; numbers that a
// double cannot hold come as BigInt (see api.js), so nothing here rounds without saying so.

const MILLI = new Set(["vcore", "cpu"]);
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL = ["", "k", "M", "G", "T", "P", "E"];

// Kueue's amounts are named "flavor/resource".
const kind = (resource) => resource.slice(resource.lastIndexOf("/") + 1);

/** The exact amount, in the shortest form that a configuration would be read with. */
export function exact(resource, amount) {
  const whole = BigInt(amount);
  if (whole < 0n) return "-" + exact(resource, -whole);
  if (MILLI.has(kind(resource))) return whole % 1000n ? `${whole}m` : `${whole / 1000n}`;
  let best = String(whole);
  for (const [units, base] of [[DECIMAL, 1000n], [BINARY, 1024n]]) {
    let size = 1n;
    for (const unit of units) {
      if (whole && whole % size === 0n && `${whole / size}${unit}`.length < best.length) {
        best = `${whole / size}${unit}`;
      }
      size *= base;
    }
  }
  return best;
}

/** An amount for a narrow place: exact where that is short, else rounded and marked with "≈". */
export function short(resource, amount) {
  const found = exact(resource, amount);
  if (found.length <= 7) return found;
  if (MILLI.has(kind(resource))) return `≈${rounded(Number(amount) / 1000, 1000, DECIMAL)}`;
  return `≈${rounded(Number(amount), 1024, BINARY)}`;
}

function rounded(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base && unit < units.length - 1) {
    value /= base;
    unit += 1;
  }
  return `${value.toFixed(Math.abs(value) < 10 ? 2 : 1)}${units[unit]}`;
}

/** All amounts of a row in one line: "vcore 1500m, memory 4Gi"; a dash where there are none. */
export function list(amounts) {
  const found = Object.entries(amounts ?? {});
  return found.map(([name, amount]) => `${name} ${exact(name, amount)}`).join(", ") || "–";
}

/** The part of a whole as a fraction for drawing; 0 where the whole is nothing. */
export const part = (amount, whole) => (whole ? Number(amount ?? 0) / Number(whole) : 0);

/** Names of the resources in these amounts, vcore and memory first. */
export function resources(all) {
  const found = new Set(all.flatMap((amounts) => Object.keys(amounts ?? {})));
  const rank = (name) => ["vcore", "cpu", "memory"].indexOf(kind(name)) + 1 || 9;
  return [...found].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}
