#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s
# Perfetto's own trace_processor_shell, if it is on PATH, loads exports without an error and has the calls, times, times
# off the CPU and CPU tracks of the report.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh
if ! command -v trace_processor_shell >/dev/null; then
	skip "trace_processor_shell" "it is not on PATH"
	exit 0
fi

# same LABEL [OPTION...]: exports and reports $TRACE with these options
same() {
	local label=$1 cut=
	shift
	[[ $* != *--time* ]] || cut='cut'
	"$KXRAY" report --json --raw "$@" "$TRACE" >"$TMP/report.json" || fail "$label: report" "status $?"
	run "$KXRAY" export --raw -f perfetto "$@" -o "$TMP/out.pftrace" "$TRACE"
	assert_eq "$label: export" "$STATUS" 0
	run python3 tests/live/perfetto_sql.py "$TMP/out.pftrace" "$TMP/report.json" $cut
	assert_eq "$label" "$OUT$ERR" "the same"
}

trace_target counts "${COUNTED[@]}"
same "calls"
trace_target waits -f nap -f take -f give -f spin -f pass_on -f mark -f work_sleeper -f work_reader --sched
same "with --sched"
same "a part of the time" --time 20ms..120ms
TARGET_ARGS=--repeat=4 trace_target counts "${COUNTED[@]}" --sched --ring-size 4K
assert "events are lost" "none" [ "$(json "$TMP/rec.json" 'd["lost"]')" -gt 0 ]
same "with losses"
symbol=$'qu\e[31mi"c,k\'\n\x9b2J\xff'
objcopy --redefine-sym "quick=$symbol" "$TARGETS/pauses" "$TMP/=p\"'"
run "$KXRAY" record --sched -o "$TRACE" -f 'qu*' -f '*settle' -- "$TMP/=p\"'" --start=now
same "names that are hard to quote"
"$BUILD/tests/make_trace" write "$TRACE" 1000000 5 60 60 || fail "make_trace" "status $?"
same "a million events"
