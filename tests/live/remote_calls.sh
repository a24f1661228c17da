#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s
# A thread of a process makes system calls for another process. Its registers, errno, signal mask and signal stack stay as they are, the
# call that it was in goes on, its signals come, also if the other process is killed meanwhile.
. "$(dirname "$0")/../lib.sh"
. tests/live/remote.sh

calls() { run "$PATCHER" calls "$TARGET_PID" "$@"; }

start stopped work
calls 100
assert_eq "a process" "$OUT" "right 100"
kill -STOP "$TARGET_PID"
wait_for is_in_state "$TARGET_PID" T
calls 10
assert_eq "a process that is stopped by SIGSTOP" "$OUT" "right 10"
assert_eq "stays so" "$(state_of "$TARGET_PID")" T
kill -CONT "$TARGET_PID"
tell x
finish "a process" '{"wrong":0,"worked":1,"joined":0}'

# here the thread that checks its registers must be taken
start stopped leaderless
calls 100
assert_eq "the main thread has ended" "$OUT" "right 100"
run python3 tests/live/remote_kills.py "${1:-40}" "${2:-$RANDOM}" "$PATCHER" calls "$TARGET_PID" 100000000
assert_eq "the caller is killed" "$STATUS $OUT" "0 killed ${1:-40}"
tell x
end_target "$TARGET_PID"
assert_eq "it finds nothing changed" "$STATUS $(last_line)" '0 {"wrong":0,"worked":1,"joined":0}'

start stopped signals 1000
calls 100
wait_for has_text sent "$TMP/target.out"
tell x
finish "signals" '{"sent":1000,"handled":1000}'

start stopped semop
calls 20
tell x
finish "semop" '{"result":0,"errno":0}'

# a signal that comes while a call is borrowed ends pause(2)
is_traced() { [[ $(<"/proc/$TARGET_PID/status") =~ TracerPid:[[:space:]]+[1-9] ]]; }
start stopped pause 20
for i in {1..20}; do
	wait_for is_in_call "$TARGET_PID" 34
	start_patcher calls "$TARGET_PID" 100000000
	wait_for is_traced
	kill -USR1 "$TARGET_PID"
	wait_for has_text "paused $i" "$TMP/target.out" || break
	kill "$PATCHER_PID"
	end_patcher
done
end_target "$TARGET_PID"
assert_eq "pause: signals" "$STATUS $(last_line)" "0 paused 20"

start stopped nanosleep
wait_for is_in_call "$TARGET_PID" 230
calls 1 50
assert_eq "nanosleep" "$OUT" \
	"error 16 process $TARGET_PID has no thread that can be made to do a system call now: all wait in the kernel for a time"
kill -USR1 "$TARGET_PID"
finish "nanosleep" '{"handled":1}'

for mode in seccomp filtered; do
	start stopped $mode
	calls 1
	assert_eq "$mode" "$OUT" \
		"error 95 process $TARGET_PID cannot be made to do system calls: it has a seccomp filter, which may forbid system calls"
	tell x
	finish "$mode" '{"wrong":0,"worked":1,"joined":0}'
done
