#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 26 s
# Exact counts: four threads call known functions known numbers of times.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

full=(report account fdr threads summary sleep tools)
plain=(report account threads summary sleep)

# traced LABEL CHECK...: both programs ended with status 0, and the CHECKs of expect.py hold
traced() {
	local label=$1
	shift
	assert_eq "$label: statuses" "$STATUS $TARGET_STATUS" "0 0"
	expect "$label" "$@"
}

trace_target counts "${COUNTED[@]}"
traced "by PID" "${full[@]}"

for build in cet nopie static; do
	trace_target "counts-$build" "${COUNTED[@]}"
	traced "$build build" "${plain[@]}"
done

for mechanism in session multi single; do
	trace_target counts "${COUNTED[@]}" --mechanism "$mechanism"
	if grep -q 'does not offer' "$TMP/rec.err"; then
		skip "mechanism $mechanism" "$(cat "$TMP/rec.err")"
		continue
	fi
	traced "mechanism $mechanism" "${plain[@]}"
done

trace_target counts "${COUNTED[@]}" --clock ktime
traced "clock ktime" "${plain[@]}" fdr

trace_target counts "${COUNTED[@]}" --exits=return
traced "return probes" "${plain[@]}" fdr
trace_target counts "${COUNTED[@]}" --exits=instruction
traced "instruction exits" "${full[@]}" tails
trace_target counts "${COUNTED[@]}" --exits=none
traced "no exits" entries account fdr

# "-- COMMAND": main is recorded; the command keeps its standard streams, and its exit status is passed on.
TARGET_ARGS=--exit=5 trace_command counts "${COUNTED[@]}" -f main
assert_eq "command: its exit status" "$STATUS" 5
expect "command" extra=main:1 report account fdr threads summary sleep tools
_new_recording
printf e | "$KXRAY" record -o "$TRACE" -f main -- "$TARGETS/victim" >"$TMP/out" 2>"$TMP/rec.err"
assert_eq "command: its own stdin, stdout and status" \
	"${PIPESTATUS[1]} $(cut -c 1-5 "$TMP/out" | tr '\n' ' ')" '7 ready {"cal '
