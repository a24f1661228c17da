#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 58 s
# --min-duration and --depth: the kernel leaves out exactly the calls that it should.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

functions=(-f quick -f idle -f slow -f parent -f jumper -f leaper -f ender)

reduced() { # LABEL CHECK...
	python3 -S tests/live/reduce.py "$TMP" "$@" || fail "$1" "the check did not run"
}

# Among 6,000 calls, those that are slow by design, and their callers with their true start.
lasting() { # LABEL OPTION...
	local label=$1
	shift
	trace_command slow "${functions[@]}" --min-duration 30ms "$@"
	assert_eq "$label: status" "$STATUS" 0
	reduced "$label" durations=30 calls
}
lasting "lasting"
lasting "lasting, instruction exits" --exits=instruction
lasting "lasting, by multi" --mechanism multi
lasting "lasting, by single" --mechanism single
lasting "lasting, with arguments" --args 6 --callers
# Scheduler events do not delay the start of callers.
lasting "lasting, with the scheduler" --sched
TARGET_ARGS=--repeat=16 lasting "lasting, in small rings" --ring-size 4K
assert_eq "in small rings nothing is lost" "$(json "$TMP/rec.json" 'd["lost"]')" 0

# An attached process, with a call that is still open when the recording ends.
start_target slow
start_kxray "$PID" "${functions[@]}" -f wait_for_byte --min-duration 30ms
go_target
wait_for has_text spans "$TMP/slow.out"
tail -n 1 "$TMP/slow.out" >"$TMP/did.json"
wait_for is_asleep "$PID"
sleep 0.1
kill -INT "$KX_PID"
end_kxray
assert_eq "open call: status" "$STATUS" 0
go_target
end_target "$PID"
assert_eq "open call: target unharmed" "$STATUS" 0
reduced "open call" durations=30
run "$KXRAY" export -f csv -o - "$TRACE"
assert_contains "open call: it is in the trace" "$(grep wait_for_byte <<<"$OUT")" ,open,

# Quick calls do not displace slow ones: with the smallest limit, all calls are recorded whose end is.
# (Another record of the thread, after a migration, shows that leaper() lasts.)
trace_command slow "${functions[@]}" --min-duration 1ns
reduced "any duration" calls counts=quick:4548,idle:1512,parent:12,slow:12,jumper:12,leaper:0-12,ender:2

# The same numbers by every mechanism. Of 6,110 calls, 38 and 3,110 are shallow enough.
depths() { # LABEL OPTION...
	local label=$1
	shift
	trace_command slow "${functions[@]}" --depth 1 "$@"
	reduced "$label: 1" calls counts=parent:12,jumper:12,idle:12,ender:2
	assert_eq "$label: 1: calls left out" "$(json "$TMP/rec.json" 'd["reduced"]')" $((6110 - 38))
	trace_command slow "${functions[@]}" --depth 2 "$@"
	assert_eq "$label: 2: calls left out" "$(json "$TMP/rec.json" 'd["reduced"]')" $((6110 - 3110))
	reduced "$label: 2" counts=parent:12,jumper:12,idle:1512,ender:2,slow:12,leaper:12,quick:1548
	trace_command slow "${functions[@]}" --depth 3 "$@"
	reduced "$label: 3" calls counts=quick:4548,idle:1512,parent:12,slow:12,jumper:12,leaper:12,ender:2
	assert_eq "$label: 3: nothing is left out" "$(json "$TMP/rec.json" 'd["reduced"]')" 0
}
depths "depth"
depths "depth, by multi" --mechanism multi
depths "depth, by single" --mechanism single
depths "depth, instruction exits" --exits=instruction

trace_command slow "${functions[@]}" --depth 1 --min-duration 30ms
assert_eq "both: status" "$STATUS" 0
assert_eq "both: calls" "$("$KXRAY" report --json "$TRACE" | python3 -c 'import json, sys
print(*sorted((f["name"], f["count"]) for f in json.load(sys.stdin)["functions"] if f["name"] != "idle"))')" \
	"('ender', 2) ('jumper', 12) ('parent', 12)"

# A recursion deeper than return probes nest and than the depth that kxray follows.
for mechanism in session multi single; do
	trace_command deep -f descend -f bottom --depth 5 --mechanism $mechanism
	assert_eq "recursion, $mechanism: calls" "$("$KXRAY" report --json "$TRACE" |
		python3 -c 'import json, sys; print([f["count"] for f in json.load(sys.stdin)["functions"]])')" "[50]"
	assert_eq "recursion, $mechanism: calls left out" "$(json "$TMP/rec.json" 'd["reduced"]')" $((10 * 996))
	assert_eq "recursion, $mechanism: none is beyond what is tracked" "$(grep -c 'nested deeper' "$TMP/rec.err")" 0
done
trace_command deep -f descend -f bottom --min-duration 10s
assert_eq "deep recursion: events" "$(json "$TMP/rec.json" 'd["events"]')" 0
assert_contains "deep recursion: it says so" "$(cat "$TMP/rec.err")" "nested deeper"

# Frames left by longjmp do not count as depth.
trace_command longjmp -f catcher -f dive -f jump -f after --depth 3
assert_eq "longjmp: calls" "$("$KXRAY" report --json "$TRACE" | python3 -c 'import json, sys
print(*sorted((f["name"], f["count"]) for f in json.load(sys.stdin)["functions"]))')" \
	"('after', 250) ('catcher', 250) ('dive', 500)"

# Usage errors.
for bad in 0 -1 5x us 1e3 99999999s ''; do
	run "$KXRAY" record --min-duration "$bad" -o "$TMP/bad.xray" -- true
	assert_eq "--min-duration '$bad': status" "$STATUS" 2
	assert_contains "--min-duration '$bad': message" "$ERR" "takes a time of 1ns to 3600s"
done
for bad in 0 97 -1 x ''; do
	run "$KXRAY" record --depth "$bad" -o "$TMP/bad.xray" -- true
	assert_eq "--depth '$bad': status" "$STATUS" 2
	assert_contains "--depth '$bad': message" "$ERR" "--depth takes 1 to 96"
done
run "$KXRAY" record --min-duration 5us --exits=none -o "$TMP/bad.xray" -- true
assert_eq "--min-duration without exits: status" "$STATUS" 2
assert_eq "usage errors: nothing is written" "$(ls "$TMP"/bad.xray* 2>/dev/null)" ""
