// SPDX-License-Identifier: BSD-2-Clause
// The timeline: threads above each other, in each its states, marks, gaps, and calls by depth.
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom as makeZoom, zoomIdentity } from "d3-zoom";
import * as format from "./format.js";
import { drawRow, sliceAt } from "./timeline_row.js";
import { state, onChange, choose, threadTitle, prepare, fitted, oncePerFrame, showTip, colors, FONT } from "./state.js";

const GUTTER = 150, AXIS = 24, GAP = 8;
const KINDS = ["calls", "sched", "marks", "gaps"];
const HEIGHTS = { calls: 18, sched: 7, marks: 9, gaps: 9 };
const ENDS = ["", "left by a tail jump", "its exit was not recorded: it ends at the event that proves it",
              "still open at the end of the recording"];

/** Threads with their rows, in the order of the file; those of calls by depth, below the others. */
function groupThreads(rows) {
  const threads = [];
  for (const row of rows) {
    row.name = KINDS[row.kind];
    row.height = HEIGHTS[row.name];
    (threads[row.thread] ||= { index: row.thread, rows: [], folded: false }).rows.push(row);
  }
  const list = threads.filter(Boolean);
  for (const t of list) t.rows.sort((a, b) => (b.kind || 9) - (a.kind || 9) || a.depth - b.depth);
  for (const t of list) t.rows.sort((a, b) => (a.kind === 0) - (b.kind === 0));
  return list;
}

export function makeTimeline() {
  const section = select("#timeline"), scroll = section.select(".scroll").node();
  const canvas = section.select(".scroll canvas").node(), axis = section.select(".axis").node();
  const { head, rows } = state.data, threads = groupThreads(rows), duration = Math.max(1, head.duration_ns);
  let transform = zoomIdentity, plotWidth = 1;

  function layout() {
    let y = 4;
    for (const t of threads) {
      t.y = y;
      for (const row of t.rows) {
        row.y = y;
        if (!t.folded || row.kind !== 0 || row.depth === 0) y += row.height;
      }
      y = Math.max(y, t.y + 17) + GAP;
      t.end = y;
    }
    select(scroll).select(".tall").style("height", y + "px");
  }

  const range = () => {
    const x = transform.rescaleX(scaleLinear([0, duration], [0, plotWidth]));
    return { from: x.invert(0), to: x.invert(plotWidth), x };
  };

  function draw() {
    if (section.attr("hidden") !== null) return;
    const width = scroll.clientWidth, height = scroll.clientHeight, top = scroll.scrollTop;
    if (plotWidth !== width - GUTTER) fit(width - GUTTER, height);
    const context = prepare(canvas, width, height), { from, to, x } = range();
    context.font = FONT;
    context.textBaseline = "middle";
    drawAxis(x, width);
    context.strokeStyle = colors.themeColor("--line");
    context.beginPath();
    for (const tick of x.ticks(plotWidth / 120)) {
      context.moveTo(GUTTER + x(tick), 0);
      context.lineTo(GUTTER + x(tick), height);
    }
    context.stroke();
    const view = { context, from, scale: plotWidth / (to - from), left: GUTTER, width: plotWidth };
    for (const t of threads) {
      if (t.end < top || t.y > top + height) continue;
      context.save();
      context.beginPath();
      context.rect(GUTTER, 0, plotWidth, height);
      context.clip();
      for (const row of t.rows)
        if (isShown(t, row) && row.y + row.height > top && row.y < top + height) drawRow(view, row, row.y - top);
      context.restore();
      drawName(context, t, top);
    }
    select("#timeline-range").text(`${format.time(to - from)} from ${format.position(Math.max(0, from), (to - from) / 1000)}`);
  }

  const isShown = (t, row) => !t.folded || row.kind !== 0 || row.depth === 0;

  function drawName(context, t, top) {
    const info = head.threads[t.index], y = Math.max(t.y - top, Math.min(0, t.end - top - 40));
    context.fillStyle = colors.themeColor("--ink");
    context.fillText((t.folded ? "▸ " : "▾ ") + fitted(threadTitle(t.index), GUTTER - 28), 8, y + 8);
    context.fillStyle = colors.themeColor("--faint");
    if (t.end - t.y > 30 && info.process) context.fillText(fitted(info.process, GUTTER - 30), 22, y + 22);
    context.strokeStyle = colors.themeColor("--line");
    context.beginPath();
    context.moveTo(0, t.end - top - GAP / 2);
    context.lineTo(GUTTER + plotWidth, t.end - top - GAP / 2);
    context.stroke();
  }

  function drawAxis(x, width) {
    const context = prepare(axis, width, AXIS), ticks = x.ticks(plotWidth / 120);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : duration;
    context.font = FONT;
    context.fillStyle = colors.themeColor("--faint");
    for (const tick of ticks) context.fillText(format.position(tick, step), GUTTER + x(tick) + 3, AXIS - 8);
  }

  /* Zoom and movement. The wheel alone scrolls, if there is anything to scroll. Two fingers are small steps with Ctrl. */
  const behaviour = makeZoom()
    .wheelDelta((event) => -event.deltaY * (event.deltaMode ? 0.05 : Math.abs(event.deltaY) < 40 ? 0.01 : 0.002))
    .filter((event) => event.type !== "wheel" ? !event.button && event.type !== "dblclick"
                                              : event.ctrlKey || event.metaKey || scroll.scrollHeight <= scroll.clientHeight)
    .on("zoom", ({ transform: next, sourceEvent: event }) => {
      if (event?.type === "mousemove" && event.movementY) scroll.scrollTop -= event.movementY;
      transform = next;
      redraw();
    });
  const target = select(canvas).call(behaviour);

  function fit(width, height) {
    const visible = range();
    plotWidth = width;
    behaviour.extent([[0, 0], [width, height]]).translateExtent([[0, -Infinity], [width, Infinity]])
      .scaleExtent([1, Math.max(1, duration / 50)]);
    show(...(wanted || [visible.from, visible.to]));
    wanted = null;
  }

  let wanted = null; // a range asked for before the width is known

  function show(from, to) {
    if (plotWidth === 1) {
      wanted = [from, to];
      return;
    }
    const k = Math.min(duration / Math.max(to - from, 1e-9), Math.max(1, duration / 50));
    const next = zoomIdentity.scale(k).translate(-from / duration * plotWidth, 0);
    target.call(behaviour.transform, k <= 1 ? zoomIdentity : next);
  }

  /** By @factor around the middle, or moved by a share of what is visible. */
  function scaleBy(factor) {
    target.call(behaviour.scaleBy, factor, [plotWidth / 2, 0]);
  }
  function moveBy(share) {
    target.call(behaviour.translateBy, -share * plotWidth / transform.k, 0);
  }

  select("#timeline-reset").on("click", () => show(0, duration));
  select("#timeline-in").on("click", () => scaleBy(2));
  select("#timeline-out").on("click", () => scaleBy(0.5));
  if (head.merged_below_ns)
    select("#timeline-merged").text(`calls shorter than ${format.time(head.merged_below_ns)} are merged`)
      .attr("title", "The recording has more calls than the page: those that begin close together are drawn as one, " +
                     "with the name of the longest. Table, flame graph and histograms have all of them.");

  function hit(event) {
    const at = canvas.getBoundingClientRect(), y = event.clientY - at.top + scroll.scrollTop;
    const thread = threads.find((t) => y >= t.y && y < t.end), { x } = range();
    const row = thread?.rows.find((r) => isShown(thread, r) && y >= r.y && y < r.y + r.height);
    const left = event.clientX - at.left;
    if (!row || left < GUTTER) return { thread, left };
    const pixel = (duration / plotWidth) / transform.k;
    return { thread, row, left, slice: sliceAt(row, x.invert(left - GUTTER), pixel) };
  }

  function describe({ thread, row, slice }) {
    const { all } = row, took = all.end[slice] - all.start[slice], n = all.count[slice];
    const when = `from ${format.position(all.start[slice], 1)}, ${threadTitle(thread.index)}`;
    if (row.name === "gaps") return [`${format.count(n)} events lost`, when, `gap of ${format.time(took)}`];
    if (row.name !== "calls") {
      const text = head.texts[all.name[slice]];
      return [n > 1 ? `${format.count(n)} merged, the longest: ${text}` : text, took ? format.time(took) : "", when];
    }
    const f = state.data.functions[all.name[slice]];
    if (n > 1)
      return [f.name, f.module, `and ${format.count(n - 1)} more short calls, merged: together ${format.time(all.busy[slice])} in ` +
              `${format.time(took)}`, when];
    return [f.name, f.module, `${format.time(all.busy[slice])}`, ENDS[all.how[slice]], when];
  }

  function nameTip(thread) {
    const info = head.threads[thread.index];
    return [threadTitle(thread.index), `process ${info.process} ${info.pid}`, thread.folded ? "click: unfold" : "click: fold"];
  }

  let pressed = null;
  target.on("mousemove.tip", (event) => {
    const found = hit(event);
    const isName = found.left < GUTTER && found.thread;
    canvas.style.cursor = isName ? "pointer" : found.slice >= 0 ? "default" : "grab";
    showTip(event, isName ? nameTip(found.thread) : found.slice >= 0 && !event.buttons ? describe(found) : null);
  }).on("mouseleave.tip", (event) => showTip(event, null)).on("mousedown.tip", (event) => (pressed = event))
    .on("click.tip", (event) => {
      const found = hit(event);
      if (pressed && Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) > 3) return;
      if (found.left < GUTTER && found.thread) {
        found.thread.folded = !found.thread.folded;
        layout();
        redraw();
      } else if (found.slice >= 0 && found.row.name === "calls") choose(found.row.all.name[found.slice]);
    }).on("dblclick.tip", (event) => {
      const { row, slice } = hit(event);
      if (!(slice >= 0)) return;
      const from = row.all.start[slice], took = row.all.end[slice] - from;
      show(Math.max(0, from - took * 0.1), from + took * 1.1);
    });

  /** Zooms to the longest call of function @index; false if the timeline has it only among merged ones. */
  function showSlowest(index) {
    let best = null, longest = -1;
    for (const t of threads)
      for (const row of t.rows)
        for (let i = row.first; row.name === "calls" && i < row.end; i++) {
          const { name, count, start, end } = row.all;
          if (name[i] !== index || count[i] > 1 || end[i] - start[i] <= longest) continue;
          longest = end[i] - start[i];
          best = { t, row, from: start[i], to: end[i] };
        }
    if (!best) return false;
    if (best.t.folded) {
      best.t.folded = false;
      layout();
    }
    const room = Math.max(10, 0.15 * longest);
    show(Math.max(0, best.from - room), best.to + room);
    scroll.scrollTop = Math.max(0, Math.min(best.t.y, best.row.y - scroll.clientHeight / 2));
    return true;
  }

  function addLegend() {
    const states = [["on a CPU", "CPU 0"], ["could run", "runnable"], ["asleep", "sleeping"], ["blocked", "blocked"]];
    const items = select("#timeline-states").selectChildren("span").data(states).join("span").text("");
    items.append("i").style("background", (s) => colors.stateColor(s[1]));
    items.append("span").text((s) => s[0]);
  }
  if (head.sched) {
    addLegend();
    colors.onThemeChange(addLegend);
  }

  const redraw = oncePerFrame(draw);
  select(scroll).on("scroll", redraw);
  onChange(redraw);
  colors.onThemeChange(redraw);
  layout();
  return {
    draw,
    key(event) {
      const keys = { w: () => scaleBy(1.5), s: () => scaleBy(1 / 1.5), a: () => moveBy(-0.2), d: () => moveBy(0.2),
                     ArrowLeft: () => moveBy(-0.2), ArrowRight: () => moveBy(0.2), "+": () => scaleBy(1.5),
                     "-": () => scaleBy(1 / 1.5), Escape: () => show(0, duration) };
      keys[event.key]?.();
      return event.key in keys;
    },
    show,
    showSlowest,
  };
}
