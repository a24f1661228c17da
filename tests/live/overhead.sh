#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s
# Without -f, functions that are called too often are left out before a recording begins; the predicted cost
# is printed, and where it is high kxray warns, or asks for --yes on a terminal.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

start_target hot
go_target
wait_for used_cpu "$PID" 10
run "$KXRAY" record -p "$PID" -d 1 -o "$TRACE" --json
assert_eq "default: status" "$STATUS" 0
assert_eq "default: what is recorded" "$(recorded)" "cool_loop"
assert_eq "default: what is left out, in one line" \
	"$(grep -c 'predicted to take .* % of what the program uses; left out as called too often: hot_loop$' "$TMP/run.err")" 1
assert_contains "default: the choice is made from functions of some size" "$ERR" "no -f given: chose "
rm -f "$TRACE" "$TRACE.map"

# As much as is asked for.
run "$KXRAY" record -p "$PID" -d 0.5 -o "$TRACE" --max-overhead 100000%
assert_eq "all: status" "$STATUS" 0
assert_eq "all: what is recorded" "$(recorded)" "cool_loop hot_loop"
assert_contains "all: warning" "$ERR" "kxray: warning: this is predicted to take "
rm -f "$TRACE" "$TRACE.map"

# With -f nothing is left out before; what --max-overhead does meanwhile: budget.sh.
run "$KXRAY" record -p "$PID" -f 'hot*' -d 0.5 -o "$TRACE" --max-overhead 5
assert_eq "script: status" "$STATUS" 0
assert_eq "script: what is recorded" "$(recorded)" "hot hot_loop"
assert_eq "script: the budget bounds it, so nothing is predicted" "$(grep -c predicted "$TMP/run.err")" 0
run "$KXRAY" record -p "$PID" -f 'hot*' -d 0.1 -o "$TRACE"
assert_eq "script: nothing is counted unasked" "$STATUS $(grep -c predicted "$TMP/run.err")" "0 0"
rm -f "$TRACE" "$TRACE.map"

# On a terminal.
if command -v script >/dev/null; then
	on_terminal() { # COMMAND: its output in $OUT
		STATUS=0
		OUT=$(script -qec "$1" /dev/null </dev/null) || STATUS=$?
	}
	rm -f "$TRACE"*
	on_terminal "$KXRAY record -p $PID -f 'hot*' -d 0.5 -o $TRACE"
	assert_eq "terminal: status" "$STATUS" 1
	assert_contains "terminal: prediction" "$OUT" "kxray: predicted to take "
	assert_contains "terminal: asks" "$OUT" "or add --yes"
	assert_eq "terminal: no file" "$(ls "$TRACE"* 2>/dev/null)" ""
	on_terminal "$KXRAY record -p $PID -f 'hot*' -d 0.5 -o $TRACE --yes"
	assert_eq "terminal, --yes: status" "$STATUS" 0
	assert_eq "terminal, --yes: what is recorded" "$(recorded)" "hot hot_loop"
	on_terminal "$KXRAY record -p $PID -f cool -d 0.1 -o $TRACE"
	assert_eq "terminal, cheap: status" "$STATUS" 0
	rm -f "$TRACE"*
	on_terminal "$KXRAY record --in-process -p $PID -f add -d 0.5 -o $TRACE"
	assert_eq "terminal, in process: status" "$STATUS" 0
	assert_eq "terminal, in process: the cost of uprobes is not predicted" "$(grep -c predicted <<<"$OUT")" 0
	assert_eq "terminal, in process: no advice about uprobes" "$(grep -c 'max-overhead\|expensive' <<<"$OUT")" 0
else
	skip "terminal" "no script(1) here"
fi

# A budget that nothing called fits: what is not called stays, and costs nothing.
run "$KXRAY" record -p "$PID" -f hot --by-heat 0.3 --max-overhead 0.000001 -o "$TRACE"
assert_eq "nothing fits: status" "$STATUS" 1
assert_contains "nothing fits: message" "$ERR" "allow more with --max-overhead"
kill -KILL "$PID"
