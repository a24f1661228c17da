// SPDX-License-Identifier: BSD-2-Clause
// The flame graph, callers above callees. Only what is wider than a third of a pixel is drawn.
import { select } from "d3-selection";
import * as format from "./format.js";
import { makeTree } from "./tree.js";
import { state, onChange, choose, isLit, functionName, threadTitle, prepare, fitted, oncePerFrame, showTip, colors,
         FONT } from "./state.js";

const ROW = 19;
const LEAST = 0.35; // pixels

export function makeFlame() {
  const section = select("#flame"), scroll = section.select(".scroll").node();
  const canvas = section.select(".scroll canvas").node(), tall = section.select(".tall");
  const { head, flame } = state.data;
  let tree = makeTree(flame, -1, "time"), zoomed = 0, boxes = [];

  const threads = select("#flame-thread");
  threads.append("option").attr("value", -1).text(head.threads.length > 1 ? `all ${head.threads.length} threads merged` : "all threads");
  threads.selectAll("option.thread").data(head.threads).join("option").attr("class", "thread")
    .attr("value", (t, i) => i).text((t, i) => threadTitle(i) + (t.process ? ` (${t.process})` : ""));
  const value = select("#flame-value");
  threads.on("change", rebuild);
  value.on("change", rebuild);
  select("#flame-reset").on("click", () => zoom(0));

  function rebuild() {
    tree = makeTree(flame, Number(threads.property("value")), value.property("value"));
    zoom(0);
  }

  function pathOf(node) {
    const path = [];
    for (; node > 0; node = tree.parent[node]) path.unshift(node);
    return path;
  }

  function zoom(node) {
    zoomed = Math.max(0, node);
    const path = pathOf(zoomed).map((n) => functionName(tree.name[n]));
    select("#flame-path").text(path.join(" › ")).attr("title", path.join("\n"));
    scroll.scrollTop = 0;
    redraw();
  }

  function draw() {
    if (section.attr("hidden") !== null) return;
    const width = scroll.clientWidth, height = scroll.clientHeight, top = scroll.scrollTop;
    tall.style("height", Math.max(height, (tree.depths + 2) * ROW) + "px");
    const context = prepare(canvas, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    boxes = [];
    const ink = colors.themeColor("--on-color"), hit = colors.themeColor("--hit");
    for (const node of [0, ...pathOf(zoomed)])
      if (node !== zoomed) drawBox(context, { node, x: 0, width, y: tree.depth[node] * ROW - top }, ink, hit);
    const stack = [{ node: zoomed, x: 0, width, y: tree.depth[zoomed] * ROW - top }];
    while (stack.length) {
      const box = stack.pop();
      if (box.y > height) continue;
      if (box.y > -ROW) drawBox(context, box, ink, hit);
      let x = box.x;
      const scale = box.width / (tree.value[box.node] || 1);
      for (let i = tree.first[box.node]; i < tree.first[box.node + 1]; i++) {
        const node = tree.children[i], w = tree.value[node] * scale;
        if (w < LEAST) break; // the rest is smaller
        stack.push({ node, x, width: w, y: box.y + ROW });
        x += w;
      }
    }
  }

  function drawBox(context, box, ink, hit) {
    const name = tree.name[box.node], lit = name < 0 || isLit(name), above = tree.depth[box.node] < tree.depth[zoomed];
    boxes.push(box);
    context.globalAlpha = lit ? (above ? 0.55 : 1) : 0.18;
    context.fillStyle = name < 0 ? colors.themeColor("--line") : colors.functionColor(name);
    context.fillRect(box.x, box.y, Math.max(0.5, box.width - (box.width > 2 ? 0.6 : 0)), ROW - 1);
    if (name >= 0 && box.width > 3 && (name === state.chosen || (state.hits && lit))) {
      context.strokeStyle = name === state.chosen ? colors.themeColor("--ink") : hit;
      context.lineWidth = 1.4;
      context.strokeRect(box.x + 0.7, box.y + 0.7, box.width - 2, ROW - 2.4);
    }
    const text = name < 0 ? title() : functionName(name), label = fitted(text, box.width - 8);
    if (label) {
      context.globalAlpha = lit ? 1 : 0.5;
      context.fillStyle = name < 0 || !lit ? colors.themeColor("--ink") : ink;
      context.fillText(label, box.x + 4, box.y + ROW / 2);
    }
    context.globalAlpha = 1;
  }

  function title() {
    const thread = Number(threads.property("value"));
    return `${thread < 0 ? "all threads" : threadTitle(thread)}: ${format.time(tree.total[0])} in traced functions, ` +
      `${format.count(tree.allCalls[0])} calls`;
  }

  function boxAt(event) {
    const at = canvas.getBoundingClientRect(), x = event.clientX - at.left, y = event.clientY - at.top;
    for (let i = boxes.length - 1; i >= 0; i--) {
      const box = boxes[i];
      if (y >= box.y && y < box.y + ROW && x >= box.x && x < box.x + Math.max(1, box.width)) return box;
    }
    return null;
  }

  function describe(node) {
    const name = tree.name[node], f = state.data.functions[name];
    if (name < 0) return [title()];
    return [functionName(name), f ? f.module : "stacks that took too little to be in this file",
      `total ${format.time(tree.total[node])} (${format.percent(tree.total[node], tree.total[0])})`,
      `self ${format.time(tree.self[node])} (${format.percent(tree.self[node], tree.total[0])})`,
      `${format.count(tree.calls[node])} calls` +
        (tree.calls[node] ? `, ${format.time(tree.total[node] / tree.calls[node])} each` : "")];
  }

  select(canvas).on("mousemove", (event) => {
    const box = boxAt(event);
    canvas.style.cursor = box ? "pointer" : "";
    showTip(event, box && describe(box.node));
  }).on("mouseleave", (event) => showTip(event, null)).on("click", (event) => {
    const box = boxAt(event);
    if (!box) return;
    if (tree.name[box.node] >= 0) choose(tree.name[box.node]);
    zoom(box.node);
  });

  const redraw = oncePerFrame(draw);
  select(scroll).on("scroll", redraw);
  onChange(redraw);
  colors.onThemeChange(redraw);
  return {
    draw,
    whole: makeTree(flame, -1, "time"),
    key(event) {
      if (event.key === "Escape") zoom(0);
      else if (event.key === "Backspace") zoom(tree.parent[zoomed]);
      else return false;
      return true;
    },
  };
}
