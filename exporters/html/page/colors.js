// SPDX-License-Identifier: BSD-2-Clause
// A hue for each module, those with most time first; functions of a module differ a little in shade, those of the only
// module more.

const HUES = [28, 207, 140, 268, 350, 52, 178, 318, 95, 232];
const dark = matchMedia("(prefers-color-scheme: dark)");
let functions = [], hues = new Map(), cache = [];
let spread = 0; // degrees of hue in which functions of a module differ
let ranks = []; // of functions by self time: consecutive ones get hues far from each other

function hash(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return (h ^ (h >>> 15)) >>> 0;
}

/** Returns the modules, the one with most self time first: [name, hue]. */
export function setFunctions(list) {
  const times = new Map();
  functions = list;
  for (const f of list) times.set(f.module, (times.get(f.module) || 0) + f.self);
  const modules = [...times.keys()].sort((a, b) => times.get(b) - times.get(a));
  hues = new Map(modules.map((name, i) => [name, i < HUES.length ? HUES[i] : hash(name) % 360]));
  ranks = new Uint32Array(list.length);
  [...list].sort((a, b) => b.self - a.self).forEach((f, rank) => (ranks[f.index] = rank));
  spread = { 1: 320, 2: 80, 3: 60 }[modules.length] || 30;
  cache = [];
  return [...hues];
}

dark.addEventListener("change", () => (cache = []));

export function moduleColor(module) {
  return `hsl(${hues.get(module) ?? 0} ${dark.matches ? "45% 58%" : "62% 66%"})`;
}

/** Hue in degrees, saturation and lightness from 0 to 1: a number 0xRRGGBB. */
function rgbOf(hue, saturation, lightness) {
  const strength = saturation * Math.min(lightness, 1 - lightness);
  const channel = (offset) => {
    const k = (offset + (hue + 720) / 30) % 12;
    return Math.round(255 * (lightness - strength * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return (channel(0) << 16) | (channel(8) << 8) | channel(4);
}

function makeColor(index) {
  const f = functions[index], step = (ranks[index] * 0.618034 + 0.5) % 1; // the golden ratio
  const hue = hues.get(f.module) + (step - 0.5) * spread, light = (dark.matches ? 52 : 64) + hash(f.name) % 13;
  return rgbOf(hue, dark.matches ? 0.42 : 0.64, light / 100);
}

/** Of the function with this index, 0xRRGGBB; beyond the last one, of what was added up. */
export function functionRgb(index) {
  if (index >= functions.length) return dark.matches ? 0x555b66 : 0xc9ced6;
  return (cache[index] ??= makeColor(index));
}

export function functionColor(index) {
  return "#" + functionRgb(index).toString(16).padStart(6, "0");
}

/** What the page's style says: "--ink" and so on. */
export function themeColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function onThemeChange(draw) {
  dark.addEventListener("change", draw);
}

/** Of a state in a thread's row of times on and off the CPU. */
export function stateColor(state) {
  if (state.startsWith("CPU ")) return themeColor("--running");
  if (state === "runnable") return themeColor("--runnable");
  return themeColor(state === "blocked" ? "--blocked" : "--asleep");
}
