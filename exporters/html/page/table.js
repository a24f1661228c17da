// SPDX-License-Identifier: BSD-2-Clause
// The table of functions: sortable, filtered by the search, and only the visible rows are in the document.
import { ascending, descending, max } from "d3-array";
import { select } from "d3-selection";
import * as format from "./format.js";
import { state, onChange, choose, colors, oncePerFrame } from "./state.js";

const ROW = 25; // pixels: the style's height and its border
const time = (key) => ({ key, text: (f) => format.time(f[key]) });

function columns(head, functions) {
  const list = [
    { key: "name", title: "function" },
    { key: "count", title: "calls", text: (f) => format.count(f.count) },
    { ...time("total"), title: "total", share: true, hint: "time of its calls; recursion counted once" },
    { ...time("self"), title: "self", share: true, hint: "time without traced callees" },
  ];
  if (head.sched)
    list.push({ ...time("off"), title: "off CPU", hint: "part of total in which the thread was on no CPU" },
              { ...time("wait"), title: "waiting", hint: "part of off CPU in which it could have run" });
  list.push({ ...time("min"), title: "min" }, { ...time("p50"), title: "p50" }, { ...time("p90"), title: "p90" },
            { ...time("p99"), title: "p99" }, { ...time("max"), title: "max" });
  const some = (key, title, hint) => functions.some((f) => f[key]) &&
    list.push({ key, title, hint, text: (f) => format.count(f[key]) });
  some("open", "open", "calls that had not ended when the recording did; without times");
  some("no_exit", "no exit", "calls whose exit was not recorded: counted, without times");
  if (functions.some((f) => f.all_calls > f.count))
    list.push({ key: "all_calls", title: "all calls", text: (f) => format.count(f.all_calls),
                hint: "calls counted, of which some were recorded (--max-overhead)" });
  return list;
}

function nameCell(cell, f) {
  cell.append("i").style("background", colors.functionColor(f.index));
  cell.append("span").text(f.name);
  cell.append("small").text(f.module);
  cell.attr("title", f.module ? `${f.name}  [${f.module}]` : f.name);
}

export function makeTable() {
  const { head, functions } = state.data;
  const scroll = select("#functions .scroll"), body = scroll.select("tbody");
  const cols = columns(head, functions);
  const sort = { key: "total", down: true };
  let rows = [];
  const most = { total: max(functions, (f) => f.total) || 1, self: Math.max(1, head.self_ns) };

  const heads = scroll.select("thead tr").selectAll("th").data(cols).join("th")
    .attr("tabindex", 0).attr("title", (c) => c.hint || null).text((c) => c.title)
    .on("click keydown", (event, c) => {
      if (event.type === "keydown" && event.key !== "Enter") return;
      sort.down = sort.key === c.key ? !sort.down : c.key !== "name";
      sort.key = c.key;
      arrange();
    });

  function arrange() {
    const order = sort.down ? descending : ascending;
    rows = functions.filter((f) => !state.hits || state.hits[f.index]);
    rows.sort((a, b) => order(a[sort.key], b[sort.key]) || ascending(a.index, b.index));
    heads.attr("aria-sort", (c) => (c.key !== sort.key ? null : sort.down ? "descending" : "ascending"));
    draw();
  }

  function draw() {
    const node = scroll.node(), first = Math.max(0, Math.floor(node.scrollTop / ROW) - 4);
    const shown = rows.slice(first, first + Math.ceil(node.clientHeight / ROW) + 8);
    body.selectAll("tr").remove();
    space(first);
    for (const f of shown) drawRow(f);
    space(rows.length - first - shown.length);
  }

  function space(n) {
    if (n > 0) body.append("tr").attr("class", "space").append("td").attr("colspan", cols.length).style("height", n * ROW + "px");
  }

  function drawRow(f) {
    const row = body.append("tr").classed("chosen", f.index === state.chosen).on("click", () => choose(f.index));
    for (const c of cols) {
      const cell = row.append("td");
      if (!c.text) nameCell(cell, f);
      else cell.text(c.text(f)).classed("zero", !f[c.key]);
      if (c.share)
        cell.classed("share", true).style("background-size", `${Math.min(70, 70 * f[c.key] / most[c.key])}% 2px`);
    }
  }

  const redraw = oncePerFrame(draw);
  scroll.on("scroll", redraw).on("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target !== scroll.node()) return;
    event.preventDefault();
    const at = rows.findIndex((f) => f.index === state.chosen) + step;
    if (rows[at]) {
      choose(rows[at].index);
      const top = at * ROW, node = scroll.node();
      if (top < node.scrollTop) node.scrollTop = top;
      else if (top > node.scrollTop + node.clientHeight - 3 * ROW) node.scrollTop = top - node.clientHeight + 3 * ROW;
    }
  });
  let searched = null;
  onChange(() => {
    if (searched !== state.hits) {
      searched = state.hits;
      scroll.node().scrollTop = 0;
      arrange();
    } else redraw();
  });
  colors.onThemeChange(redraw);
  arrange();
  return { draw };
}
