#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 10 s
# Calls whose exit was not recorded are counted, and have no duration: in statistics, under
# --min-duration (recording and reading), in flight dumps; exporters mark them.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

functions=(-f quick -f settle -f pauses)

# no_times LABEL FILE: report's numbers are those of the target
no_times() {
	run "$KXRAY" report --json "$2"
	cp "$TMP/run.out" "$TMP/report.json"
	assert_eq "$1: calls" "$(json "$TMP/report.json" 'sorted((f["name"], f["count"]) for f in d["functions"])')" \
		"$(json "$TMP/did.json" 'sorted(d["calls"].items())')"
	assert_eq "$1: calls without exit" \
		"$(json "$TMP/report.json" 'sorted((f["name"], f.get("no_exit")) for f in d["functions"])')" \
		"$(json "$TMP/did.json" '[("pauses", 0), ("quick", d["jumps"]), ("settle", 0)]')"
	# the clock's frequency is measured: half a percent
	assert "$1: no time is longer than the target's own" "$(cat "$TMP/report.json") $(cat "$TMP/did.json")" \
		json_true "$TMP/report.json" 'f["quick"]["p90_ns"] <= f["quick"]["max_ns"] <= most' \
		"f = {x['name']: x for x in d['functions']}; most = $(json "$TMP/did.json" 'd["longest_ns"]') * 1.005 + 2000"
	assert "$1: the pauses are self time of the caller" "$(cat "$TMP/report.json")" \
		json_true "$TMP/report.json" 'f["pauses"]["self_ns"] >= 0.995 * 30e6 * f["quick"]["count"]' \
		"f = {x['name']: x for x in d['functions']}"
}
json_true() { # FILE EXPRESSION STATEMENTS
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
exec(sys.argv[3])
sys.exit(not eval(sys.argv[2]))' "$@"
}

for exits in return instruction; do
	trace_target pauses "${functions[@]}" --exits=$exits
	assert_eq "$exits: statuses" "$STATUS $TARGET_STATUS" "0 0"
	no_times "$exits" "$TRACE"
done
jumps=$(json "$TMP/did.json" 'd["jumps"]')
calls=$(json "$TMP/did.json" 'd["calls"]["quick"]')
longest_us=$(json "$TMP/did.json" 'd["longest_ns"] // 1000 + 100')

run "$KXRAY" report "$TRACE"
assert_contains "table: the column" "$OUT" "NO EXIT"
assert_eq "table: the number" "$(awk '/ quick / { print $1, $(NF - 2) }' <<<"$OUT")" "$calls $jumps"
run "$KXRAY" report --by-process --json "$TRACE"
assert_eq "by process: calls without exit" "$(json "$TMP/run.out" \
	'sum(f["no_exit"] for p in d["processes"] for f in p["functions"])')" "$jumps"

# A filter by duration keeps no call of unknown duration; the caller, with its true time, is kept.
run "$KXRAY" report --json --min-duration "${longest_us}us" "$TRACE"
assert_eq "report --min-duration: calls" \
	"$(json "$TMP/run.out" '[(f["name"], f["count"], f["no_exit"]) for f in d["functions"]]')" "[('pauses', 1, 0)]"
run "$KXRAY" export -f csv -o - --min-duration "${longest_us}us" "$TRACE"
assert_eq "export --min-duration: calls" "$(tail -n +2 <<<"$OUT" | cut -d , -f 4)" pauses

# Exporters mark them.
for format in csv chrome; do
	run "$KXRAY" export -f $format -o - "$TRACE"
	assert_eq "$format: marked calls" "$(grep -c repaired <<<"$OUT")" "$jumps"
done
run "$KXRAY" export -f folded -o - "$TRACE"
assert_eq "folded: time of quick at most that of the others" "$(awk -F '[ ;]' -v most=$(((calls - jumps) * longest_us * 1000)) \
	'/;quick / { print $NF <= most }' <<<"$OUT")" 1

# The kernel's --min-duration: only the call that is known to be long.
trace_target pauses "${functions[@]}" --min-duration 25ms
run "$KXRAY" export -f csv -o - "$TRACE"
assert_eq "record --min-duration: calls of unknown duration" "$(grep -c ',quick,.*,repaired,' <<<"$OUT")" 0
assert_eq "record --min-duration: the caller" "$(grep -c ',pauses,.*,exit,' <<<"$OUT")" 1

# A flight recorder's dump knows them, too.
trace_target pauses "${functions[@]}" --flight-recorder 1M
assert_eq "flight recorder: statuses" "$STATUS $TARGET_STATUS" "0 0"
no_times "flight recorder" "${TRACE%.xray}.1.xray"
