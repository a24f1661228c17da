#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 30 s
# The probes' own time is measured, written into the map and subtracted exactly: every duration of the CSV
# export and every sum of the report, compared with an independent subtraction. How near the
# durations come to the functions' own measurements depends on the machine's load, so that is only printed;
# scripts/bench.sh accuracy has limits for it.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

ALL=(-f 'cheap_*' -f 'stepped_*' -f 'parent_*')
compare() { python3 tests/live/probe_cost.py "$@" 2>&1; }

# subtracted LABEL OPTION...: also with --raw, where nothing is subtracted
subtracted() {
	local label=$1 again=True
	shift
	[[ $* != *single* ]] || again=False # its probes on kxray are closed at once
	trace_command self_timed "${ALL[@]}" "$@"
	if [ "$STATUS" = 1 ] && grep -q 'does not offer' "$TMP/rec.err"; then
		skip "$label" "$(cat "$TMP/rec.err")"
		return
	fi
	assert_eq "$label: status, lost" "$STATUS $(json "$TMP/rec.json" 'd["lost"]')" "0 0"
	objcopy --dump-section .kxray.session="$TMP/session" "$TRACE.map" "$TMP/copy"
	assert_eq "$label: kinds of probes were measured" "$(json "$TMP/session" '[len(k) for k in
		(d["session"]["probe_costs"]["kinds"], d["session"]["probe_costs"]["functions"])]')" "[9, 14]"
	assert_eq "$label: and take time" "$(json "$TMP/session" 'all(0 < k["offset_ticks"] < k["cost_ticks"]
		for k in d["session"]["probe_costs"]["kinds"])')" True
	assert_eq "$label: also after pauses" "$(json "$TMP/session" '[len(d["session"]["probe_costs"]["pauses_ticks"]),
		all(len(more["offset_ticks"]) == 3 and all(a <= b for a, b in zip(more["offset_ticks"], more["cost_ticks"]))
		for k in d["session"]["probe_costs"]["kinds"] for more in (k["entry_pauses"], k["reentry_pauses"], k["exit_pauses"]))]')" "[3, True]"
	assert_eq "$label: and again while it ran" "$(json "$TMP/session" '[len(d["session"]["probe_costs"].get("scales", "")) > 0,
		all(len(s) == 3 for s in d["session"]["probe_costs"].get("scales", ""))]')" "[$again, True]"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE"
	assert_eq "$label: every call, by an independent subtraction" \
		"$(compare exact "$TRACE" "$TMP/session" "$TMP/calls.csv")" ""
	"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
	"$KXRAY" report --json -f '*' "$TRACE" >"$TMP/filtered.json"
	for report in report filtered; do
		assert_eq "$label: $report agrees with the export" "$(sums "$TMP/$report.json")" ""
	done
	compare accuracy "$TRACE" "$TMP/session" "$TMP/did.json" |
		sed "s/^/# $label: function, calls, median error in ns recorded and subtracted: /"
}

# sums FILE: what of a report's sums is not that of the export's calls (rounded one by one)
sums() {
	python3 -c 'import collections, csv, json, sys
total, own, count = (collections.Counter() for _ in range(3))
for row in csv.DictReader(open(sys.argv[2])):
    total[row["function"]] += int(row["duration_ns"])
    own[row["function"]] += int(row["self_ns"])
    count[row["function"]] += 1
for f in json.load(open(sys.argv[1]))["functions"]:
    n = f["name"]
    if f["count"] != count[n] or max(abs(f["total_ns"] - total[n]), abs(f["self_ns"] - own[n])) > count[n]:
        print(n, f, count[n], total[n], own[n])' "$1" "$TMP/calls.csv"
}

subtracted "return probes" --exits=return
subtracted "instruction exits" --exits=instruction
subtracted "by multi" --mechanism multi
subtracted "by single" --mechanism single
subtracted "with arguments" --args 6 --callers

# Calls that are not written leave gaps that were no pauses.
trace_command self_timed "${ALL[@]}" --min-duration 1ns
objcopy --dump-section .kxray.session="$TMP/session" "$TRACE.map" "$TMP/copy"
"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE"
assert_eq "--min-duration: no pauses, $(grep -c . "$TMP/calls.csv") lines" "$(json "$TMP/session" '"pauses_ticks" in d["session"]["probe_costs"]')" False
assert_eq "--min-duration: every call, by an independent subtraction" \
	"$(compare exact "$TRACE" "$TMP/session" "$TMP/calls.csv")" ""

# --raw: what the trace has, in the report and in the export.
python3 - "$TMP/session" >"$TMP/raw" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
d["session"]["probe_costs"]["kinds"] = []
d["session"]["probe_costs"]["functions"] = ""
print(json.dumps(d))
END
"$KXRAY" export -f csv --raw -o "$TMP/calls.csv" "$TRACE"
assert_eq "--raw: every call as recorded" "$(compare exact "$TRACE" "$TMP/raw" "$TMP/calls.csv")" ""
"$KXRAY" report --json --raw "$TRACE" >"$TMP/report.json"
assert_eq "--raw: the report agrees" "$(sums "$TMP/report.json")" ""
# Exported as XRay the trace keeps what was recorded, and its own map.
"$KXRAY" export -f xray -o "$TMP/again.xray" "$TRACE"
"$KXRAY" export -f csv --raw -o "$TMP/again.csv" "$TMP/again.xray"
assert_eq "an XRay export is as recorded" "$(cut -d, -f 4,7,8 "$TMP/again.csv" | cmp - <(cut -d, -f 4,7,8 "$TMP/calls.csv"))" ""
"$KXRAY" export -f csv -o "$TMP/again.csv" "$TMP/again.xray"
"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE"
assert_eq "and can be subtracted later" "$(cut -d, -f 4,7,8 "$TMP/again.csv" | cmp - <(cut -d, -f 4,7,8 "$TMP/calls.csv"))" ""

# The processor's speed changes: the map gets a series that begins with the trace and changes in the middle of it.
trace_command self_timed "${ALL[@]}"
for steps in '[500, 1500]' '[1300, 800]'; do
	objcopy --dump-section .kxray.session="$TMP/session" "$TRACE.map" "$TMP/copy"
	python3 - "$TRACE" "$TMP/session" "$steps" <<'END'
import json, sys
sys.path.insert(0, "tests/live")
import fdr
times = sorted(r.tsc for t in fdr.Trace(sys.argv[1]).threads.values() for r in t.records)
with open(sys.argv[2]) as f:
    d = json.load(f)
first = json.loads(sys.argv[3])
d["session"]["probe_costs"]["scales"] = [[0, *first], [times[len(times) // 3], *first[::-1]], [times[len(times) // 2], 900, 3000]]
with open(sys.argv[2], "w") as f:
    json.dump(d, f)
END
	objcopy --update-section .kxray.session="$TMP/session" "$TRACE.map" "$TMP/copy"
	cp "$TMP/copy" "$TRACE.map"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE"
	assert_eq "scales from $steps: every call" "$(compare exact "$TRACE" "$TMP/session" "$TMP/calls.csv")" ""
done

# Recursion and tail calls, which cost less than returns where the exits are probed.
for exits in return instruction; do
	trace_command counts "${COUNTED[@]}" --exits="$exits" --ring-size 16M
	objcopy --dump-section .kxray.session="$TMP/session" "$TRACE.map" "$TMP/copy"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE"
	assert_eq "tail calls, --exits=$exits" "$(compare exact "$TRACE" "$TMP/session" "$TMP/calls.csv")" ""
done

# Exits that move from return probes to return instructions, which take longer: a process that may throw, and others.
moves() {
	objcopy --dump-section .kxray.session="$TMP/session" "$TRACE.map" "$TMP/copy"
	json "$TMP/session" '[["one" if m[1] else "all", m[4]] for m in d["session"]["probe_costs"].get("moved_exits", {"moves": []})["moves"]]'
}
exact_moved() {
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE"
	assert_eq "$1: every call, by an independent subtraction" "$(compare exact "$TRACE" "$TMP/session" "$TMP/calls.csv")" ""
	"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
	assert_eq "$1: the report agrees" "$(sums "$TMP/report.json")" ""
}
of_instructions() { compare accuracy "$TRACE" "$TMP/session" "$TMP/did.json" | awk '$1 == "parent_cheap" { print $3, $4 }'; }
# risky LABEL MOVES: records self_timed with a library that throws; it begins when kxray has seen that
risky() {
	LD_PRELOAD=$TARGETS/plugin.so TARGETS=$TMP start_target self_timed
	start_kxray "$PID" --follow "${ALL[@]}"
	go_target
	end_target "$PID"
	end_kxray
	assert_eq "$1: statuses" "$STATUS" 0
	tail -n 1 "$TMP/self_timed.out" >"$TMP/did.json"
	assert_eq "$1: exits that moved" "$(moves)" "$2"
	exact_moved "$1"
}
# loads LABEL MOVES [OPTION]: while it is traced
loads() {
	TARGETS=$TMP start_target dlopener "$TARGETS/plugin.so"
	start_kxray "$PID" -f 'spin_*' ${3:+"$3"}
	go_target l
	wait_for grep -qF 'lose their return probes' "$TMP/rec.err"
	go_target g
	end_target "$PID"
	end_kxray
	assert_eq "$1: exits that moved" "$(moves)" "$2" # calls in between have no exit
}
run "$KXRAY" record -o "$TRACE" --mechanism session -f main -- "$TARGETS/counts" --start=now
if [ "$STATUS" = 0 ]; then
	cp "$TARGETS/dlopener" "$TARGETS/self_timed" "$TMP" # files that nobody else has mapped
	loads "dlopen" "[['all', 1]]"
	loads "dlopen, --follow" "[['one', 1], ['one', 0]]" --follow
	risky "a process that may throw" "[['one', 1], ['one', 0]]"
	assert_eq "a process that may throw: the summary's cost is that of instruction exits" "$(python3 -c 'import json, sys
session, report, summary = (json.load(open(f)) for f in sys.argv[1:])
costs = session["session"]["probe_costs"]
moved = costs["moved_exits"]["functions"].ljust(len(costs["functions"]))
# the exits of some were at return instructions from the start
kinds = [m if m.isalpha() else k for m, k in zip(moved, costs["functions"])]
ticks = sum(f["count"] * costs["kinds"][ord(kinds[f["id"] - 1]) - ord("a")]["cost_ticks"] for f in report["functions"])
percent = ticks / session["session"]["clock"]["tsc_hz"] / summary["seconds"] * 100
print(abs(percent - summary["cpu_percent"]) < 0.01 or (percent, summary["cpu_percent"]))' \
		"$TMP/session" "$TMP/report.json" "$TMP/rec.json")" True
	echo "# parent_cheap, ns too much as recorded, and what is left of it: $(of_instructions)"
	TARGETS=$TMP start_target self_timed # waits, and has the file mapped
	other=$PID
	risky "a file that others map" "[['all', 3]]"
	kill "$other"
else
	skip "exits that move" "$ERR"
fi
