// SPDX-License-Identifier: BSD-2-Clause
// All numbers of the page as they were read, for scripts and tests: open it with #json.

export function summary({ head, functions, flame, rows }) {
  const list = functions.map((f) => ({
    name: f.name, module: f.module, count: f.count, open: f.open, no_exit: f.no_exit, total_ns: f.total, self_ns: f.self,
    min_ns: f.min, p50_ns: f.p50, p90_ns: f.p90, p99_ns: f.p99, max_ns: f.max,
    in_histogram: f.buckets.reduce((sum, n) => sum + n, 0), in_flame: 0, in_timeline: 0,
  }));
  const totals = { slices: 0, calls_in_timeline: 0, lost_in_timeline: 0, marks: 0, calls_in_flame: 0 };
  for (let i = 1; i < flame.parent.length; i++) {
    if (!flame.parent[i]) continue;
    totals.calls_in_flame += flame.calls[i];
    if (list[flame.name[i]]) list[flame.name[i]].in_flame += flame.calls[i];
  }
  for (const row of rows)
    for (let i = row.first; i < row.end; i++) {
      const n = row.all.count[i];
      totals.slices++;
      if (row.kind === 2) totals.marks += n;
      if (row.kind === 3) totals.lost_in_timeline += n;
      if (row.kind !== 0) continue;
      totals.calls_in_timeline += n;
      list[row.all.name[i]].in_timeline += n;
    }
  return { ...head, texts: undefined, page: totals, load_ms: Math.round(performance.now()), functions: list };
}
