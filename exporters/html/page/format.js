// SPDX-License-Identifier: BSD-2-Clause
// Numbers and times as people read them.

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
let ticks = false;

/** The trace does not have its clock's frequency: times are ticks. */
export function useTicks() {
  ticks = true;
}

/** Four significant digits: "12.35 ms"; whole nanoseconds. */
export function time(ns) {
  if (ticks) return count(ns) + " ticks";
  for (const [factor, unit] of UNITS.slice(0, 3))
    if (ns >= 0.99995 * factor) return plain(ns / factor) + " " + unit;
  return Math.round(ns) + " ns";
}

function plain(value) {
  return value >= 1000 ? count(Math.round(value)) : value.toPrecision(4);
}

/** A position in time with the digits that tell it from one a @step away. */
export function position(ns, step) {
  if (ticks) return count(ns);
  const [factor, unit] = UNITS.find(([f]) => Math.abs(ns) >= f) || UNITS[3];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / factor) - 0.01));
  return (ns / factor).toFixed(Math.min(digits, 9)) + " " + unit;
}

export function count(n) {
  return n.toLocaleString("en-US");
}

export function percent(part, whole) {
  return whole ? (100 * part / whole).toFixed(part / whole < 0.1 ? 2 : 1) + " %" : "–";
}
