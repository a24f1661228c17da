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

go_target
end_target "$TARGET_PID"
assert_eq "the target's status" "$STATUS" 0
assert_contains "the target's answer" "$(tail -n 1 "$TMP/many.out")" '"calls":10000'
