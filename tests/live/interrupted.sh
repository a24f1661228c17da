#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s
# SIGINT and SIGQUIT at random moments while a recording of many functions starts: kxray ends with the right status and
# files, and nothing remains in the target. More rounds: tests/live/interrupted.sh ROUNDS [SEED]
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

rounds=${1:-8}
seed=${2:-$RANDOM}
start_target many
TARGET_PID=$PID

# interrupt NAME OPTION...
interrupt() {
	local name=$1
	shift
	if ! python3 tests/live/interrupted.py "$KXRAY" "$TARGET_PID" "$rounds" "$seed" "$TRACE" "$@" >"$TMP/ends.json"; then
		fail "$name" "interrupted.py failed"
		return
	fi
	echo "# $name: $(cat "$TMP/ends.json")"
	assert_eq "$name: other ends" "$(json "$TMP/ends.json" 'd["other"]')" "[]"
	assert_eq "$name: each round ended" "$(json "$TMP/ends.json" 'd["recorded"] + d["interrupted"]')" "$rounds"
	assert_eq "$name: changed bytes in the target's code" "$(json "$TMP/ends.json" 'd["changed"]')" 0
}

interrupt "10,000 functions" -f 'many_*'
# each of these probes is attached and removed by itself
interrupt "single probes" --mechanism=single -f 'many_0000*'
interrupt "--follow" --follow -f 'many_*'

# One request to end does not wait for such probes: while the keeper stands still, and removes them later.
start_kxray "$TARGET_PID" --mechanism=single -f 'many_0000*'
keeper=$(pgrep -P "$KX_PID" -x kx-keeper)
kill -STOP "$keeper"
kill -INT "$KX_PID"
end_kxray
assert_eq "keeper stands still: status" "$STATUS" 0
assert_contains "keeper stands still: message" "$(cat "$TMP/rec.err")" "kx-keeper (process $keeper) removes the rest"
run "$KXRAY" report --json "$TRACE"
assert_eq "keeper stands still: the trace can be read" "$STATUS" 0
kill -CONT "$keeper"
is_unchanged() {
	[ "$(cd tests/live && python3 -c 'import sys; from process_code import changed_bytes; print(changed_bytes(int(sys.argv[1])))' \
		"$TARGET_PID")" = 0 ]
}
wait_for is_unchanged || fail "keeper stands still" "probes stay in the target's code"

go_target
end_target "$TARGET_PID"
assert_eq "the target's status" "$STATUS" 0
assert_contains "the target's answer" "$(tail -n 1 "$TMP/many.out")" '"calls":10000'
