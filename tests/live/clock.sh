#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 2 s
# Times stay true while another program opens and closes perf events: a recorded call is never shorter than
# what the function measured inside it.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# CALLS OF-WHICH-SHORTER, by the strict reader, in order of each thread's calls
cat >"$TMP/compare.py" <<'END'
import json, sys
sys.path.insert(0, "tests/live")
import fdr
trace = fdr.Trace(sys.argv[1])
calls = short = worst = 0
for did in json.load(open(sys.argv[2]))["threads"]:
    entered, took = [], []
    for r in trace.threads[did["tid"]].records:
        if r.kind == "entry":
            entered.append(r.tsc)
        elif r.kind in ("exit", "tail"):
            took.append(r.tsc - entered.pop())
    if len(took) != len(did["inside"]):
        sys.exit(f"{len(took)} recorded calls, not {len(did['inside'])}")
    calls += len(took)
    for recorded, inside in zip(took, did["inside"]):
        if recorded < inside:
            short += 1
            worst = max(worst, inside - recorded)
print(calls, short, *([f"by up to {worst} ticks"] if short else []))
END

REPEAT=${KX_CLOCK_REPEAT:-1} # 10,000 calls on each of two threads
for exits in return instruction; do
	TARGET_ARGS=--repeat=$REPEAT trace_target timed -f timed --exits "$exits" --ring-size 16M
	assert_eq "$exits: statuses" "$STATUS $TARGET_STATUS" "0 0"
	assert_eq "$exits: lost and repaired" "$(json "$TMP/rec.json" 'd["lost"], d["repaired"]')" "(0, 0)"
	assert_eq "$exits: perf events were opened meanwhile" \
		"$(json "$TMP/did.json" 'd["opened"] > 0')" True
	assert_eq "$exits: calls, and shorter ones than measured inside" \
		"$(python3 "$TMP/compare.py" "$TRACE" "$TMP/did.json" 2>&1)" "$((20000 * REPEAT)) 0"
done

# The error of the conversion is in the summary and in the map, and the clock's source is named.
assert_eq "the largest error" "$(json "$TMP/rec.json" '(d["clock"] == "ktime") == (d["clock_error_ns"] > 0)')" True
objcopy --dump-section .kxray.session="$TMP/session" "$TRACE.map" "$TMP/copy"
error=$(json "$TMP/session" 'int((lambda c: c["error_ticks"] * 1e9 / c["tsc_hz"])(d["session"]["clock"]))')
assert_eq "the map has it, too" "$error" "$(json "$TMP/rec.json" 'd["clock_error_ns"]')"
assert_eq "and the clock's source" "$(json "$TMP/session" 'd["session"]["clock"]["source"]')" \
	"$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
