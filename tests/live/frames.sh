#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 12 s
# Functions whose entry probe is behind the instruction that takes their frame, or whose exits are at jumps: exact counts, and the same calls,
# arguments, callers and nesting as with probes at their first instruction, which return probes need.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

functions=(-f 'frame_*' -f turn -x frame_dummy)

# Return probes put the address of a trampoline where the function that a tail call enters finds its caller.
compared=("${functions[@]}" -x frame_tail)

# entries: function, argument and caller of each entry in order; of addresses what does not depend on where the
# program was loaded
entries() {
	"$KXRAY" dump "$TRACE" | python3 -c '
import re, sys
for name, values in re.findall(r"entry +(\w+) \(([^)]*)\)", sys.stdin.read()):
    print(name, *(hex(int(v, 16) & 0xfff) for v in values.split(", ")))'
}

# counted: calls of each function in the trace
counted() {
	"$KXRAY" report --json "$TRACE" | python3 -c 'import json, sys
print(*sorted((f["name"], f["count"]) for f in json.load(sys.stdin)["functions"]))'
}

cheap=$("$KXRAY" functions "$TARGETS/frames" --exits=none "${functions[@]}" --json 2>/dev/null | python3 -c '
import json, sys
print(*sorted((f["name"], f["probe_offset"]) for f in json.load(sys.stdin) if f["cost"] == "emulated"))')
assert_contains "places" "$cheap" "('frame_call', 8) ('frame_early', 0) ('frame_first', 7) ('frame_jcc', 21) ('frame_left', 4) ('frame_push', 11) ('frame_pushed', 10) ('frame_tail', 8)"

chosen() {
	"$KXRAY" functions -p "$1" -f frame_first -f frame_early -f frame_call -f frame_tail --json 2>/dev/null | python3 -c '
import json, sys
print(*sorted((f["name"], f["cost"], f["exit"]) for f in json.load(sys.stdin)))'
}
start_target frames
assert_eq "exits at jumps and return instructions where a return probe needs a single step at the entry" "$(chosen "$PID")" \
	"('frame_call', 'emulated', 'instruction') ('frame_early', 'emulated', 'return') ('frame_first', 'emulated', 'instruction') ('frame_tail', 'stepped', 'return')"
go_target
end_target "$PID"

trace_command frames "${compared[@]}" --exits=return --callers --args 1
assert_eq "return probes: status" "$STATUS" 0
entries >"$TMP/at_first"
assert_eq "entries" "$(wc -l <"$TMP/at_first")" \
	"$(json "$TMP/did.json" 'sum(d["calls"].values()) - d["calls"]["frame_tail"]')"
trace_command frames "${compared[@]}" --exits=return --depth 2
counted >"$TMP/shallow"

for mechanism in session multi single; do
	for exits in instruction auto none; do
		label="$mechanism, --exits=$exits"
		trace_command frames "${compared[@]}" --exits=$exits --mechanism $mechanism --callers --args 1
		if grep -q 'does not offer' "$TMP/rec.err"; then
			skip "$label" "$(cat "$TMP/rec.err")"
			continue 2
		fi
		assert_eq "$label: status" "$STATUS" 0
		entries >"$TMP/moved"
		assert_eq "$label: the same calls" "$(cmp "$TMP/moved" "$TMP/at_first" 2>&1)" ""
		trace_command frames "${functions[@]}" --exits=$exits --mechanism $mechanism
		if [ $exits = none ]; then
			expect "$label" entries fdr
			continue
		fi
		expect "$label" entered fdr
		assert_eq "$label: left by longjmp" "$(json "$TMP/rec.json" 'd["repaired"]')" \
			"$(json "$TMP/did.json" 'd["left"]')"
	done
done

trace_command frames "${compared[@]}" --exits=instruction --depth 2
assert_eq "--depth 2" "$(counted)" "$(cat "$TMP/shallow")"
assert_contains "--depth 2 leaves calls out" "$(cat "$TMP/shallow")" "('frame_jcc', 100)"
