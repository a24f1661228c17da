#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s
# Perun profiles of a live program: both forms have the same numbers as the report.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

trace_target counts "${COUNTED[@]}"
assert_eq "recording" "$STATUS $TARGET_STATUS" "0 0"
for form in aggregated snapshots exclusive; do
	option=--perun-$form
	[ "$form" = aggregated ] && option=
	# shellcheck disable=SC2086
	run "$KXRAY" export --raw -f perun $option -o "$TMP/$form" "$TRACE"
	assert_eq "$form: export" "$STATUS" 0
	run python3 tests/readers/perun.py "$TMP/$form"
	assert_eq "$form: read" "$STATUS $ERR" "0 "
	cp "$TMP/run.out" "$TMP/$form.json"
done
run python3 tests/readers/perun.py "$TMP/aggregated" "$TMP/snapshots"
assert_eq "both forms have the same values" "$STATUS $ERR" "0 "
"$KXRAY" report --json --raw "$TRACE" >"$TMP/report.json"
"$KXRAY" export --raw -f perun -o - "$TRACE" 2>/dev/null | cmp -s - "$TMP/aggregated"
assert_eq "the same through a pipe" "${PIPESTATUS[*]}" "0 0"

python3 - "$TMP" <<'END'
import json, sys
def load(name):
    return json.load(open(sys.argv[1] + "/" + name + ".json"))
did, report = load("did"), {f["name"]: f for f in load("report")["functions"]}
a, e = load("aggregated"), load("exclusive")
f = a["functions"]
def ok(name, condition, why=""):
    print("ok " + name if condition else "not ok %s: %s" % (name, why))
got = {n: x["calls"] for n, x in f.items()}
ok("calls of each function", got == {n: c for n, c in did["calls"].items() if c}, got)
# Every amount is rounded to a nanosecond separately.
worst = max(abs(x["amount"] - report[n]["total_ns"]) - x["calls"] for n, x in f.items()
            if n != "recursive")
ok("total times as in the report", worst <= 1, worst)
worst = max(abs(x["exclusive"] - report[n]["self_ns"]) - x["calls"] for n, x in f.items())
ok("self times as in the report", worst <= 1, worst)
got = {n: x["amount"] for n, x in e["functions"].items()}
ok("exclusive amounts", got == {n: x["exclusive"] for n, x in f.items()}, got)
ok("stacks", f["inner"]["traces"] == {"outer;middle": did["calls"]["inner"]}, f["inner"]["traces"])
ok("deepest stack", f["recursive"]["traces"].get(";".join(["recursive"] * 9)) ==
   did["calls"]["recursive"] // 10)
ok("threads", a["threads"] == 4, a["threads"])
ok("binary", {x["location"] for x in f.values()} == {"counts"})
ok("header", a["header"]["cmd"].endswith("/counts"), a["header"])
ok("machine", a["machine"]["cpu"]["total"] >= 1 and a["machine"]["host"])
END

rm "$TRACE.map"
run "$KXRAY" export --raw -f perun -o "$TMP/nomap" "$TRACE"
run python3 tests/readers/perun.py "$TMP/nomap"
assert_eq "without map" "$STATUS $ERR" "0 "
