#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s
# A thread of a process makes system calls for another process. Its registers, errno, signal mask and signal stack stay as they are, the
# call that it was in goes on, also one that waits for a time, its signals come, also if the other process is killed meanwhile.
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

# Waits whose end only the kernel knows go on after each borrowed call: they end while threads are borrowed all the time, by their
# first deadlines and not earlier.
start stopped sleeps 150
start_patcher calls "$TARGET_PID" 100000000
end_target "$TARGET_PID"
assert_eq "sleeps end in time" "$STATUS $(last_line)" '0 {"wrong":0,"early":0}'
end_patcher
assert_eq "the borrower ends after them" "$(cat "$TMP/patcher.out")" "error 3 process $TARGET_PID has ended"

# ... also if the caller is killed. A signal ends them, with what is left of their time.
vdso_changed() { python3 -S tests/live/process_code.py --vdso "$TARGET_PID"; }
start stopped nanosleep
wait_for is_in_call "$TARGET_PID" 230
asleep=$(date +%s%3N)
has_slept() { [ "$(date +%s%3N)" -gt $((asleep + 500)) ]; }
wait_for has_slept
calls 1
assert_eq "nanosleep" "$OUT" "right 1"
assert "nanosleep: the instructions that continue it" "no byte of the vDSO differs" test "$(vdso_changed)" -gt 0
run python3 tests/live/remote_kills.py "${1:-40}" "${2:-$RANDOM}" "$PATCHER" calls "$TARGET_PID" 100000000
assert_eq "nanosleep: the caller is killed" "$STATUS $OUT" "0 killed ${1:-40}"
sleeps() { is_in_call "$TARGET_PID" 230 || is_in_call "$TARGET_PID" 219; }
wait_for sleeps
if command -v strace >/dev/null; then
	for ((step = 1; ; step++)); do # killed in each of its calls that touch the target
		strace -f -qq -o /dev/null -e trace=ptrace,pwrite64 -e "inject=ptrace,pwrite64:signal=KILL:when=$step" \
			"$PATCHER" calls "$TARGET_PID" 1 >"$TMP/patcher.out" 2>&1 && break
		wait_for sleeps || break
		assert_eq "nanosleep: killed at step $step: blocked signals" "$(awk '/^SigBlk/ { print $2 }' "/proc/$TARGET_PID/status")" 0000000000000000
	done 2>/dev/null
	assert "nanosleep: steps" "only $step" test "$step" -gt 20
else
	skip "nanosleep: killed at each step" "strace is not installed"
fi
run "$PATCHER" remove "$TARGET_PID"
assert_eq "nanosleep: bytes of the vDSO that differ when all is removed" "$(vdso_changed)" 0
kill -USR1 "$TARGET_PID"
end_target "$TARGET_PID"
assert_contains "nanosleep: a signal ends it" "$STATUS $(last_line)" '0 {"result":-1,"errno":4,"handled":1,'
assert_between "nanosleep: what is left, beyond 1000 s less what has passed, in us" "$(last_line | sed 's/.*"over_ms"://; s/[.}]//g')" 0 999999

start stopped vfork
wait_for is_in_state "$TARGET_PID" D
calls 1 50
assert_eq "vfork" "$OUT" \
	"error 16 process $TARGET_PID has no thread that can be made to do a system call: for 50 ms all were on stacks whose end is not known, in waits that cannot be continued, or handle their own system calls"
tell xx
finish "vfork" '{"status":7,"fed":1}'

# Strict seccomp kills a thread for any other call: one that was not under it when a call was asked for is looked at again.
start stopped vfork strict
wait_for is_in_state "$TARGET_PID" D
start_patcher calls "$TARGET_PID" 1 60000
wait_for is_traced
tell x
wait_for has_text strict "$TMP/target.out"
end_patcher
# it may have been taken in the moment before
[ "$(last_line)" = strict ] || fail "strict seccomp meanwhile" "$(last_line)"
[[ $(<"$TMP/patcher.out") == "right 1" ]] || assert_contains "strict seccomp meanwhile" "$(cat "$TMP/patcher.out")" "it has a seccomp filter"
tell x
end_target "$TARGET_PID"
assert_eq "strict seccomp meanwhile: the target" "$STATUS" 0

for mode in seccomp filtered; do
	start stopped $mode
	calls 1
	assert_eq "$mode" "$OUT" \
		"error 95 process $TARGET_PID cannot be made to do system calls: it has a seccomp filter, which may forbid system calls"
	tell x
	finish "$mode" '{"wrong":0,"worked":1,"joined":0}'
done
