// SPDX-License-Identifier: BSD-2-Clause
// The page that kxray export -f html writes: reads the data behind it and makes the views.
import { select, selectAll } from "d3-selection";
import { readData } from "./data.js";
import { makeDetails } from "./details.js";
import { makeFlame } from "./flame.js";
import * as format from "./format.js";
import { state, setSearch, choose, onChange, colors } from "./state.js";
import { makeTable } from "./table.js";
import { makeTimeline } from "./timeline.js";
import { summary } from "./summary.js";

const TABS = ["functions", "flame", "timeline"];
const views = {};

function fillHeader(head) {
  const [first] = head.processes, n = head.processes_all;
  const title = !first ? "A recording" : n === 1 ? first.name : `${first.name} and ${n - 1} more processes`;
  document.title = `${title} – kxray`;
  const h1 = select("#title").text(title + " ");
  if (first) h1.append("small").text(n === 1 ? `PID ${first.pid}` : head.processes.slice(0, 6).map((p) => `${p.name} ${p.pid}`).join(", "));
  const facts = [["duration", format.time(head.duration_ns)], ["events", format.count(head.events)],
    ["calls", format.count(head.calls)], ["functions", format.count(state.data.functions.length)],
    ["threads", format.count(head.threads.length)], ["lost", format.count(head.lost), head.lost > 0]];
  if (head.repaired) facts.push(["exits not recorded", format.count(head.repaired)]);
  if (head.open) facts.push(["open at the end", format.count(head.open)]);
  const items = select("#facts").selectAll("div").data(facts).join("div").classed("bad", (f) => f[2]);
  items.append("dt").text((f) => f[0]);
  items.append("dd").text((f) => f[1]);
  const parts = [];
  if (n === 1 && first.command.length) parts.push(first.command.join(" "));
  if (head.host) parts.push("on " + head.host);
  if (head.started) parts.push(head.started.slice(0, 19).replace("T", " ") + " UTC");
  select("#origin").text(parts.join("  ·  ")).attr("title", parts.join("\n"));
}

function fillNotes(head) {
  const notes = [];
  if (head.filtered) notes.push("Only what the filters of the export left is shown.");
  if (head.truncated) notes.push("The trace file was cut off.");
  if (head.ended_early) notes.push("The recording did not end in order: losses may not be known.");
  if (head.sampled_functions) notes.push(`${format.count(head.sampled_functions)} functions were sampled (--max-overhead).`);
  if (head.merged_below_ns)
    notes.push(`Timeline: ${format.count(head.slices)} slices; calls shorter than ${format.time(head.merged_below_ns)} are merged.`);
  if (head.stacks_dropped) notes.push(`Flame graph: the ${format.count(head.stacks_dropped)} stacks that took least are added up.`);
  select("#notes").text(notes.join(" "));
}

function fillLegend(modules) {
  const draw = () => {
    const items = select("#legend").selectChildren("span").data(modules.length > 1 ? modules.slice(0, 8) : []).join("span").text("");
    items.append("i").style("background", ([name]) => colors.moduleColor(name));
    items.append("span").text(([name]) => name || "unknown module");
  };
  draw();
  colors.onThemeChange(draw);
}

function showTab(name) {
  for (const tab of TABS) {
    select("#" + tab).attr("hidden", tab === name ? null : "");
    select("#tab-" + tab).attr("aria-selected", tab === name);
  }
  state.tab = name;
  if (!location.hash.startsWith("#" + name)) history.replaceState(null, "", "#" + name);
  views[name].draw();
}

function handleKeys(event) {
  const search = document.getElementById("search");
  if (event.target === search) {
    if (event.key === "Escape") {
      search.value = "";
      setSearch("");
      search.blur();
    }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  if (event.key === "/") search.focus();
  else if (TABS[event.key - 1]) showTab(TABS[event.key - 1]);
  else if (!views[state.tab].key?.(event)) return;
  event.preventDefault();
}

function watchSearch() {
  select("#search").on("input", (event) => setSearch(event.target.value));
  onChange(() => {
    const hits = state.data.functions.filter((f) => state.hits?.[f.index]);
    const self = hits.reduce((sum, f) => sum + f.self, 0);
    select("#found").text(!state.hits ? "" : `${format.count(hits.length)} found, ${format.percent(self, state.data.head.self_ns)} of self time`);
  });
}

/**
 * What stands behind the #: a tab, and for links "search=...", "function=NAME", "range=FROM-TO" (ns); "json" prints all
 * numbers instead.
 */
function readAddress() {
  const [tab, ...rest] = decodeURIComponent(location.hash.slice(1)).split("&");
  for (const part of rest) {
    const [key, value] = [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)];
    if (key === "search") setSearch((document.getElementById("search").value = value));
    if (key === "range") views.timeline.show(...value.split("-").map(Number));
    if (key === "function") choose(state.data.functions.findIndex((f) => f.name === value));
  }
  return tab;
}

async function start() {
  const message = select("#message");
  try {
    state.data = await readData();
    if (location.hash === "#json") {
      message.attr("hidden", "");
      select("main").append("pre").attr("id", "json").text(JSON.stringify(summary(state.data)));
      return;
    }
    const { head, functions } = state.data;
    if (head.unit === "ticks") format.useTicks();
    fillHeader(head);
    fillNotes(head);
    fillLegend(colors.setFunctions(functions));
    watchSearch();
    views.functions = makeTable();
    views.flame = makeFlame();
    views.timeline = makeTimeline();
    makeDetails(views.flame.whole, (index) => {
      showTab("timeline");
      return views.timeline.showSlowest(index);
    });
    if (functions.length) choose(functions.reduce((best, f) => (f.self > functions[best].self ? f.index : best), 0));
    const tab = readAddress();
    showTab(TABS.includes(tab) ? tab : "functions");
    selectAll("[role=tab]").on("click", (event) => showTab(event.currentTarget.dataset.tab));
    addEventListener("keydown", handleKeys);
    addEventListener("resize", () => views[state.tab].draw());
    message.attr("hidden", "");
    document.documentElement.dataset.ready = Math.round(performance.now()); // ms since the page was opened
  } catch (error) {
    message.text(`The data of this page cannot be shown: ${error.message}.\nIt needs a browser of 2023 or newer.`);
    throw error;
  }
}

addEventListener("DOMContentLoaded", start);
