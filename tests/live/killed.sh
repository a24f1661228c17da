#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 33 s
# kxray is interrupted at random moments, mostly by SIGKILL: no probe and no temporary file is left, and the
# target computes its result. More rounds: tests/live/killed.sh ROUNDS [SEED]
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

rounds=${1:-60}
start_target many
TARGET_PID=$PID
python3 tests/live/killed.py "$KXRAY" "$PID" "$rounds" "${2:-$RANDOM}" "$TRACE" 'many_0[0-4]*' \
	>"$TMP/killed.json" || fail "the rounds" "killed.py failed"
result=$(cat "$TMP/killed.json")
echo "# $result"
of() { json "$TMP/killed.json" "d['$1']"; }

assert "kxray was killed" "never: $result" test "$(of killed)" -gt 0
assert_eq "changed bytes in the target's code" "$(of changed)" 0
assert_eq "probes that the kernel gave up" "$(of leaks)" 0
assert_eq "temporary files" "$(of temporary)" 0
# A trace of which nothing was flushed yet can be read, too.
start_kxray "$TARGET_PID" -f many_00000
kill -KILL "$KX_PID"
end_kxray
while read -r tool; do
	run "$tool" account "$TRACE" -instr_map="$TRACE.map"
	assert_eq "an early kill: $tool" "$STATUS $ERR" "0 "
done < <(llvm_xrays)
run "$KXRAY" report "$TRACE"
assert_eq "an early kill: kxray report" "$STATUS" 0

go_target
end_target "$TARGET_PID"
assert_eq "the target's status" "$STATUS" 0
assert_contains "the target's answer" "$(tail -n 1 "$TMP/many.out")" '"calls":10000'
