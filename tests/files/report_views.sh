#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s, without root
# The trees of a random trace have the calls and times of other outputs: of each stack those of the folded export, of each
# function those of the table; callers and callees have those of the tree.
. "$(dirname "$0")/../lib.sh"

FUNCTIONS=40
"$BUILD/tests/make_trace" write "$TMP/trace.xray" 40000 3 $FUNCTIONS || fail "the trace" "it cannot be made"

"$KXRAY" report --json "$TMP/trace.xray" >"$TMP/table.json"
"$KXRAY" report --tree --json "$TMP/trace.xray" >"$TMP/tree.json"
"$KXRAY" report --callers '*' --json "$TMP/trace.xray" >"$TMP/callers.json"
"$KXRAY" report --callees '*' --json "$TMP/trace.xray" >"$TMP/callees.json"
"$KXRAY" report --histogram '*' --json "$TMP/trace.xray" >"$TMP/histogram.json"
"$KXRAY" report --slowest 50 --json "$TMP/trace.xray" >"$TMP/slowest.json"
"$KXRAY" export -f folded -o "$TMP/folded" "$TMP/trace.xray" 2>/dev/null
"$KXRAY" export -f folded --folded-count -o "$TMP/counts" "$TMP/trace.xray" 2>/dev/null

cat >"$TMP/check.py" <<'PYTHON'
import collections, json, sys
folder = sys.argv[1]
load = lambda name: json.load(open(f"{folder}/{name}.json"))
table, tree, callers, callees = load("table"), load("tree"), load("callers"), load("callees")
histogram, slowest = load("histogram"), load("slowest")
Sum = collections.Counter

def folded(name):
    lines = (line.rsplit(" ", 1) for line in open(f"{folder}/{name}"))
    return {tuple(stack.split(";")[1:]): int(value) for stack, value in lines}

def paths(nodes):
    known = []
    for n in nodes:
        known.append((known[n["parent"]] if n["parent"] is not None else ()) + (n["name"],))
    return known

def add_up(nodes):
    sums = [n["self_ns"] for n in nodes]
    for n in nodes:
        if n["parent"] is not None:
            sums[n["parent"]] += n["total_ns"]
    return all(s == n["total_ns"] for s, n in zip(sums, nodes))

def same(what, got, want, slack=0):
    bad = [k for k in set(got) | set(want) if abs(got.get(k, 0) - want.get(k, 0)) > slack]
    print(f"{what}: " + (f"{len(bad)} differ, {bad[0]}: {got.get(bad[0])} and {want.get(bad[0])}" if bad else "the same"))

nodes = tree["nodes"]
stacks = dict(zip(paths(nodes), nodes))
same("calls of stacks", {p: n["count"] + n["open"] for p, n in stacks.items()}, folded("counts"))
same("self times of stacks", {p: n["self_ns"] for p, n in stacks.items()}, folded("folded"), 1)
print("totals:", all(add_up(v) for v in (nodes, callers["nodes"], callees["nodes"])))
calls = Sum()
for n in nodes:
    calls[n["name"]] += n["count"]
counts = {f["name"]: f["count"] for f in table["functions"]}
same("calls of functions", calls, counts)
roots = {n["name"]: n for n in callers["nodes"] if n["parent"] is None}
same("calls of callers", {name: n["count"] for name, n in roots.items()}, counts)
# an open call counts in the tree, not in the table
closed = {f["name"]: f for f in table["functions"] if not f["open"]}
same("times of callers", {name: roots[name]["total_ns"] for name in closed},
     {name: f["total_ns"] for name, f in closed.items()}, 1)
callee_calls = Sum()
for n in callees["nodes"]:
    if n["depth"] == 1:
        callee_calls[n["name"]] += n["count"]
same("calls of callees", callee_calls, {name: counts[name] - sum(n["count"] for p, n in stacks.items()
                                                                if p == (name,)) for name in callee_calls})
h = {f["name"]: f for f in histogram["histograms"]}
same("calls in buckets", {name: sum(b["count"] for b in f["buckets"]) for name, f in h.items()},
     {f["name"]: f["count"] - f["no_exit"] for f in table["functions"]})
same("extremes", {name: f["max_ns"] - f["min_ns"] for name, f in h.items()},
     {f["name"]: f["max_ns"] - f["min_ns"] for f in table["functions"]})
longest = max(f["max_ns"] for f in table["functions"])
print("slowest:", abs(slowest["slowest"][0]["total_ns"] - longest) <= 1, len(slowest["slowest"]),
      all(add_up(c["nodes"]) and c["total_ns"] == c["self_ns"] + c["callees_ns"] for c in slowest["slowest"]))
print("of", len(nodes) > 1000, len(counts))
PYTHON
assert_eq "trees, table, folded stacks and histogram agree" "$(python3 "$TMP/check.py" "$TMP")" \
	"calls of stacks: the same
self times of stacks: the same
totals: True
calls of functions: the same
calls of callers: the same
times of callers: the same
calls of callees: the same
calls in buckets: the same
extremes: the same
slowest: True 50 True
of True $FUNCTIONS"

# A reader that closes the pipe is no failure.
for view in --tree "--slowest 100" "--histogram *"; do
	set -f
	# shellcheck disable=SC2086
	"$KXRAY" report $view "$TMP/trace.xray" 2>"$TMP/err" | head -n 3 >"$TMP/head"
	status=${PIPESTATUS[0]}
	set +f
	assert_eq "report $view into head" "$status $(wc -l <"$TMP/head") $(cat "$TMP/err")" "0 3 "
done
