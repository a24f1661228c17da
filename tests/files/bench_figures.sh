#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 1 s, without root
# scripts/bench_figures.py: the bench's lines as JSON, and the chart of those that compare kxray with another tool.
. "$(dirname "$0")/../lib.sh"

cat >"$TMP/lines" <<'END'
PASS  a row of the table                     0.50 x
bench name="kxray / perf record, push" value=0.50 op=<= limit=0.55 unit=x result=PASS
bench name="report & all: llvm-xray / kxray, memory" value=10.80 op=>= limit=20 unit=x result=FAIL
bench name="bytes of an event on disk, push" value=8.0 op=<= limit=10 unit=B result=PASS
bench name="bpftrace / kxray, push" result=NONE why="bpftrace is not installed"
bench missed=1 unmeasured=1 seconds=3
END
scripts/bench_figures.py json <"$TMP/lines" >"$TMP/figures.json" || fail "json: status" "it is $?"
assert_eq "json: all figures" "$(json "$TMP/figures.json" '[(f.get("value"), f.get("limit"), f["result"]) for f in d]')" \
	"[(0.5, 0.55, 'PASS'), (10.8, 20.0, 'FAIL'), (8.0, 10.0, 'PASS'), (None, None, 'NONE')]"
assert_eq "json: why one is missing" "$(json "$TMP/figures.json" 'd[3]["why"]')" "bpftrace is not installed"

run scripts/bench_figures.py chart "$TMP/figures.json"
cp "$TMP/run.out" "$TMP/chart.svg"
assert_eq "chart: status" "$STATUS$ERR" 0
# as XML: labels in order, and lengths in proportion to 10.8 and 1 / 0.5
run python3 -c 'import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
print([t.text for t in root if t.tag.endswith("text")], [r.get("width") for r in root if r.tag.endswith("rect")])' "$TMP/chart.svg"
assert_eq "chart: bars" "$OUT" \
	"['report & all: llvm-xray / kxray, memory', '10.8 times', 'perf record / kxray, push', '2.0 times'] ['420', '78']"

echo '[]' >"$TMP/none.json"
run scripts/bench_figures.py chart "$TMP/none.json"
assert_eq "nothing to compare" "$STATUS $ERR" "1 bench_figures: $TMP/none.json has no comparison with another tool"
run scripts/bench_figures.py chart "$TMP/lines"
assert_eq "no JSON: status" "$STATUS" 1
assert_contains "no JSON: the file is named" "$ERR" "$TMP/lines cannot be read: "
run scripts/bench_figures.py
assert_eq "usage" "$STATUS" 2
