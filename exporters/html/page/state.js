// SPDX-License-Identifier: BSD-2-Clause
// What the views share: the data, the search, the chosen function, and helpers for drawing.
import * as colors from "./colors.js";

export const state = {
  data: null, // see data.js
  search: "",
  hits: null, // with a search: for each function whether it matches
  chosen: -1, // function
};

const listeners = new Set();

/** @listener is called after each change of the search or the chosen function. */
export function onChange(listener) {
  listeners.add(listener);
}

export function choose(index) {
  if (index >= state.data.functions.length) return;
  state.chosen = index;
  for (const listener of listeners) listener();
}

export function setSearch(text) {
  state.search = text.trim().toLowerCase();
  const words = state.search.split(/\s+/).filter(Boolean);
  state.hits = words.length ? state.data.functions.map((f) => words.every((word) => f.lower.includes(word))) : null;
  for (const listener of listeners) listener();
}

/** Whether to draw function @index in full color. */
export function isLit(index) {
  return !state.hits || state.hits[index];
}

export function functionName(index) {
  return index < state.data.functions.length ? state.data.functions[index].name : "(smaller stacks)";
}

export function threadTitle(index) {
  const t = state.data.head.threads[index];
  return (t.name || "thread") + " " + t.tid;
}

/** Fits a canvas to @width and @height CSS pixels on this screen, and returns its cleared context. */
export function prepare(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

export const FONT = "11px ui-monospace, 'DejaVu Sans Mono', monospace";
const CHARACTER = 6.65; // width in this font; measured texts are too slow for thousands of labels

/** Text outside of all brackets of these kinds. */
function outside(text, open, close) {
  let depth = 0, kept = "";
  for (const c of text) {
    if (c === close && depth) depth--;
    else if (c === open) depth++;
    else if (!depth) kept += c;
  }
  return depth ? text : kept;
}

const shorter = new Map();

/** A function's name in shorter and shorter forms: whole, without parameters, without its scope, without template arguments. */
function forms(name) {
  if (!shorter.has(name)) {
    const call = name.indexOf("(") > 0 ? outside(name, "(", ")").replace(/ (const|volatile|&|&&)$/, "") : name;
    const plain = call.includes("operator") ? call : outside(call, "<", ">").split(" ").pop();
    const last = call.slice(Math.max(0, call.lastIndexOf(plain.split("::").pop())));
    shorter.set(name, [name, call, last, plain.split("::").pop()].filter(Boolean));
  }
  return shorter.get(name);
}

/** @text in a form that fits into @width pixels in FONT, else cut; "" where that leaves too little. */
export function fitted(text, width) {
  const most = Math.floor(width / CHARACTER);
  if (text.length <= most) return text;
  if (most < 3) return "";
  const all = forms(text);
  return all.find((form) => form.length <= most) || all[all.length - 1].slice(0, most - 1) + "…";
}

/** Calls @draw once before the next frame, however often it is asked. */
export function oncePerFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

const tip = document.getElementById.bind(document, "tip");

/** Shows lines of text at the pointer, the first one bold; nothing without lines. */
export function showTip(event, lines) {
  const element = tip();
  element.hidden = !lines;
  if (!lines) return;
  element.replaceChildren(...lines.filter(Boolean).map((line, i) => {
    const item = document.createElement(i ? "div" : "b");
    item.textContent = line.length > 600 ? line.slice(0, 600) + "…" : line;
    return item;
  }));
  const box = element.getBoundingClientRect();
  element.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  element.style.top = (event.clientY + 18 + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 8)
                                                                      : event.clientY + 18) + "px";
}

export { colors };
