// SPDX-License-Identifier: BSD-2-Clause
// The panel of the chosen function: its numbers, the histogram of its calls' durations, who calls it, whom it calls.
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import * as format from "./format.js";
import { neighbours } from "./tree.js";
import { state, onChange, choose, functionName, fitted, showTip, colors } from "./state.js";

const WIDTH = 306, HEIGHT = 150, TOP = 22, BOTTOM = 18;
const NAME = 150; // pixels of a caller's or callee's name
const SHOWN = 8; // callers, callees

/** The least duration, ns, that bucket @i holds: see exporters/html/functions.h. */
export function bucketStart(i) {
  return i < 4 ? i : (4 + i % 4) * 2 ** (Math.floor(i / 4) - 1);
}

/** "5 ms" */
function mark(ns) {
  return format.time(ns).replace(/\.0+(?= )/, "");
}

/** Where @ns is on the axis of buckets. */
function bucketPosition(ns) {
  if (ns < 4) return ns;
  const octave = Math.floor(Math.log2(ns));
  return 4 * (octave - 1) + (ns / 2 ** octave - 1) * 4;
}

function drawHistogram(panel, f) {
  const from = Math.max(0, f.first - 1), to = f.first + f.buckets.length + 1;
  const x = scaleLinear([from, to], [0, WIDTH]), most = Math.max(...f.buckets);
  const y = scaleLinear([0, most], [HEIGHT - BOTTOM, TOP]);
  const svg = panel.append("svg").attr("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const bar = Math.max(1, x(from + 1) - 1);
  svg.selectAll("rect").data(f.buckets).join("rect").attr("x", (n, i) => x(f.first + i)).attr("width", bar)
    .attr("y", (n) => (n ? Math.min(y(n), HEIGHT - BOTTOM - 1.5) : HEIGHT - BOTTOM))
    .attr("height", (n) => (n ? Math.max(1.5, HEIGHT - BOTTOM - y(n)) : 0));
  svg.append("line").attr("x2", WIDTH).attr("y1", HEIGHT - BOTTOM).attr("y2", HEIGHT - BOTTOM);
  const used = [];
  for (const digit of [1, 3, 2, 5])
    for (let e = 0; e < 13; e++) {
      const at = x(bucketPosition(digit * 10 ** e));
      if (at < 10 || at > WIDTH - 14 || used.some((other) => Math.abs(at - other) < 44)) continue;
      svg.append("text").attr("x", at).attr("y", HEIGHT - 4).attr("text-anchor", "middle").text(mark(digit * 10 ** e));
      used.push(at);
    }
  drawPercentiles(svg, f, x);
  svg.selectAll("rect").on("mousemove", function (event, n) {
    const i = f.first + svg.selectAll("rect").nodes().indexOf(this);
    showTip(event, [`${format.count(n)} calls (${format.percent(n, f.count)})`,
                    `${format.time(bucketStart(i))} to ${format.time(bucketStart(i + 1))}`]);
    select(this).classed("hover", true);
  }).on("mouseleave", function (event) {
    showTip(event, null);
    select(this).classed("hover", false);
  });
}

/** Those that are close together have one label. */
function drawPercentiles(svg, f, x) {
  const marks = [];
  for (const key of ["p50", "p90", "p99"]) {
    const at = x(bucketPosition(f[key])), last = marks[marks.length - 1];
    if (last && at - last.at < 6 * last.text.length + 6) last.text += " " + key;
    else marks.push({ at, text: key });
    svg.append("line").attr("class", "mark").attr("x1", at).attr("x2", at).attr("y1", 2).attr("y2", HEIGHT - BOTTOM);
  }
  const room = ({ at, text }) => at + 6 * text.length < WIDTH;
  svg.selectAll("text.mark").data(marks).join("text").attr("class", "mark").attr("y", 9)
    .attr("x", (m) => (room(m) ? m.at + 3 : m.at - 3)).attr("text-anchor", (m) => (room(m) ? "start" : "end")).text((m) => m.text);
}

function drawNumbers(panel, f) {
  const { head } = state.data;
  const rows = [["calls", format.count(f.count)], ["total", format.time(f.total)],
    ["self", `${format.time(f.self)}  (${format.percent(f.self, head.self_ns)} of all)`]];
  if (head.sched) rows.push(["off CPU", format.time(f.off)], ["waiting for a CPU", format.time(f.wait)]);
  if (f.buckets.length)
    rows.push(["min / max", `${format.time(f.min)} / ${format.time(f.max)}`],
              ["p50", format.time(f.p50)], ["p90 / p99", `${format.time(f.p90)} / ${format.time(f.p99)}`]);
  if (f.open) rows.push(["open at the end", format.count(f.open)]);
  if (f.no_exit) rows.push(["without recorded exit", format.count(f.no_exit)]);
  if (f.all_calls > f.count) rows.push(["calls counted", `${format.count(f.all_calls)}: a sample was recorded`]);
  const lines = panel.append("table").attr("class", "numbers").selectAll("tr").data(rows).join("tr");
  lines.append("td").text((row) => row[0]);
  lines.append("td").text((row) => row[1]);
}

function drawNeighbours(panel, title, list) {
  panel.append("h3").text(title);
  if (!list.length) panel.append("p").text("none that was traced");
  const lines = panel.append("table").selectAll("tr").data(list.slice(0, SHOWN)).join("tr");
  const name = lines.append("td").attr("title", ([index]) => (index < 0 ? null : functionName(index)));
  name.filter(([index]) => index >= 0).attr("class", "link").on("click", (event, [index]) => choose(index))
    .append("i").style("background", ([index]) => colors.functionColor(index));
  name.append("span").text(([index]) => (index < 0 ? "(outermost)" : fitted(functionName(index), NAME)));
  lines.append("td").text(([, calls]) => format.count(calls) + " ×");
  lines.append("td").text(([, , ns]) => format.time(ns));
  if (list.length > SHOWN) panel.append("p").text(`and ${list.length - SHOWN} more`);
}

/** @tree: of all threads; @showSlowest: shows the slowest call of a function in the timeline. */
export function makeDetails(tree, showSlowest) {
  const panel = select("#details");

  function draw() {
    const f = state.data.functions[state.chosen];
    panel.selectAll("*").remove();
    if (!f) {
      panel.append("p").text("Choose a function: its histogram, callers and callees are shown here.");
      return;
    }
    panel.append("h2").text(f.name);
    panel.append("p").text(f.module);
    drawNumbers(panel, f);
    if (f.buckets.length) {
      const button = panel.append("p").append("button").text("Show its slowest call in the timeline");
      button.on("click", () => showSlowest(f.index) || button.attr("disabled", "").text("its calls are all merged with others"));
    }
    panel.append("h3").text("How long its calls take");
    if (f.buckets.length) drawHistogram(panel, f);
    else panel.append("p").text("no call with a recorded end");
    const { callers, callees } = neighbours(tree, f.index);
    drawNeighbours(panel, "Called by", callers);
    drawNeighbours(panel, "Calls", callees);
  }

  let drawn = -2;
  onChange(() => {
    if (drawn !== state.chosen) draw();
    drawn = state.chosen;
  });
  colors.onThemeChange(draw);
  draw();
}
