#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 26 s
# Recordings exported in every format: all formats, report and llvm-xray have the same calls and times.
# tests/files does the same with trace files.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# shellcheck source=tests/files/formats.inc
. tests/files/formats.inc

# Gaps in the trace
TARGET_ARGS=--repeat=2 trace_target counts "${COUNTED[@]}" --ring-size 4K
assert_eq "losses: statuses" "$STATUS $TARGET_STATUS" "0 0"
assert_between "losses: hits lost" "$(json "$TMP/rec.json" 'd["lost"]')" 1 1000000
same_in_all_formats losses

# Calls that kxray closed (repaired)
trace_target longjmp -f catcher -f dive -f jump -f after
assert_eq "repairs: statuses" "$STATUS $TARGET_STATUS" "0 0"
assert_eq "repairs: calls repaired" "$(json "$TMP/rec.json" 'd["repaired"]')" 2750
same_in_all_formats repairs

trace_target counts "${COUNTED[@]}" --callers --args 2
assert_eq "counts: statuses" "$STATUS $TARGET_STATUS" "0 0"
same_in_all_formats counts
assert_eq "counts: calls are the target's own counts" \
	"$(json "$TMP/report.json" 'sorted((f["name"], f["count"]) for f in d["functions"])')" \
	"$(json "$TMP/did.json" 'sorted(call for call in d["calls"].items() if call[1])')"

# Filters: report, csv and the exported trace have the same calls.

counts='sorted((f["name"], f["count"], f["open"]) for f in d["functions"])'
all_calls=$(json "$TMP/report.json" 'd["calls"]')
tid=$(json "$TMP/did.json" 'd["threads"][1]["tid"]')
# filtered LEAST MOST OPTION...: LEAST to MOST calls are left
filtered() {
	local least=$1 most=$2
	shift 2
	run "$KXRAY" report --json --raw "$@" "$TRACE"
	cp "$TMP/run.out" "$TMP/filtered.json"
	run "$KXRAY" export --raw -f csv -o "$TMP/filtered.csv" "$@" "$TRACE"
	assert_eq "filter $*: csv and report" \
		"$STATUS $($AGREE rows "$TMP/filtered.json" "$TMP/filtered.csv")" "0 the same"
	assert_between "filter $*: calls left" \
		"$(json "$TMP/filtered.json" 'sum(f["count"] for f in d["functions"])')" \
		"$least" "$most"
	run "$KXRAY" export -f xray -o "$TMP/filtered.xray" "$@" "$TRACE"
	run "$KXRAY" report --json --raw "$TMP/filtered.xray"
	assert_eq "filter $*: the exported trace" "$(json "$TMP/run.out" "$counts")" \
		"$(json "$TMP/filtered.json" "$counts")"
}
filtered "$all_calls" "$all_calls" --pid "$TARGET_PID"
filtered 0 0 --pid 1
filtered 1000 $((all_calls / 2)) --tid "$tid"
filtered 100 $((all_calls - 100)) --function 'leaf_*' -x leaf_b
filtered 100 $((all_calls - 100)) --function inner --function outer
filtered 100 $((all_calls - 100)) --function counts:outer
# The number of calls within a time range, or of a duration, depends on the machine.
filtered 1 "$all_calls" --min-duration 1ms
filtered 1000 $((all_calls - 100)) --depth 1
filtered 1000 $((all_calls - 100)) --depth 3
# from the start to the end of one call of sleep_2ms in that thread
window=$(python3 -c 'import csv, sys
start, took = next((int(r["start_ns"]), int(r["duration_ns"]))
	for r in csv.DictReader(open(sys.argv[1], newline=""))
	if r["tid"] == sys.argv[2] and r["function"] == "sleep_2ms")
print(f"{start}ns..{start + took + 1}ns")' "$TMP/out.csv" "$tid")
filtered 1 "$all_calls" --time "$window"
filtered 1 "$all_calls" --time "$window" --depth 2 --tid "$tid" -x outer --min-duration 2us
