#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s
# All threads of a process are stopped and go on, and nothing in the process shows it: system calls, signals, threads that start and end
# meanwhile, stopped processes. What cannot be stopped is let go.
. "$(dirname "$0")/../lib.sh"
. tests/live/remote.sh

stop() { run "$PATCHER" stop "$TARGET_PID" "$@"; }

start stopped work
stop 100
assert_eq "two threads" "$OUT" "threads 2"
kill -STOP "$TARGET_PID"
wait_for is_in_state "$TARGET_PID" T
stop 20
assert_eq "a process that is stopped by SIGSTOP" "$OUT" "threads 2"
assert_eq "stays so" "$(state_of "$TARGET_PID")" T
kill -CONT "$TARGET_PID"
start_patcher hold "$TARGET_PID"
wait_for has_text stopped "$TMP/patcher.out"
stop 1
assert_eq "traced by another" "$OUT" "error 1 process $TARGET_PID is traced by patcher (process $(awk '/^TracerPid/ { print $2 }' "/proc/$TARGET_PID/status"))"
kill -KILL "$PATCHER_PID"
end_patcher 2>/dev/null
tell x
finish "the tracer was killed" '{"wrong":0,"worked":1,"joined":0}'

start stopped leaderless
stop 100
assert_eq "the main thread has ended" "$OUT" "threads 2"
tell x
end_target "$TARGET_PID"
assert_eq "the main thread has ended: status" "$STATUS" 0

start stopped threads
stop 100
assert_contains "threads start and end" "$OUT" threads
tell x
end_target "$TARGET_PID"
assert_eq "each has run" "$STATUS $(last_line | tr -dc '0-9,' | awk -F, '{ print ($1 == $2 && $1 > 0) }')" "0 1"

start stopped signals 1000
stop 100
wait_for has_text sent "$TMP/target.out"
tell x
finish "signals" '{"sent":1000,"handled":1000}'

start stopped semop
stop 20
tell x
finish "semop" '{"result":0,"errno":0}'

# A thread that is waited for has the waiting one's priority meanwhile, and not a moment longer.
priority() { awk '{ print $18 }' "/proc/$TARGET_PID/stat"; }
priority_is() { [ "$(priority)" = "$1" ]; }
start stopped work
before=$(priority)
for end in byte kill; do
	start_patcher lend "$TARGET_PID"
	wait_for has_text raised "$TMP/patcher.out"
	assert_eq "lent until $end: the tracer" "$(cat "$TMP/patcher.out")" "raised 1"
	wait_for priority_is -2 || fail "lent until $end" "$(priority)"
	if [ "$end" = byte ]; then tell_patcher; else kill -KILL "$PATCHER_PID"; fi
	end_patcher 2>/dev/null
	assert_eq "lent until $end: the priority afterwards" "$(priority)" "$before"
done
tell x
finish "lent" '{"wrong":0,"worked":1,"joined":0}'

# The thread that stops others runs before the target's own, whatever priority these have; where none can be greater, it keeps its own.
fifo() { python3 -IS -c 'import os, sys; os.sched_setscheduler(int(sys.argv[1]), os.SCHED_FIFO, os.sched_param(int(sys.argv[2])))' "$TARGET_PID" "$1"; }
for case in "10 11" "98 99" "99 0"; do
	start stopped work
	fifo "${case% *}"
	start_patcher hold "$TARGET_PID"
	wait_for has_text stopped "$TMP/patcher.out"
	assert_eq "a target of priority ${case% *}: the tracer's" "$(awk '{ print $40 }' "/proc/$PATCHER_PID/stat")" "${case#* }"
	tell_patcher
	end_patcher
	tell x
	finish "a target of priority ${case% *}" '{"wrong":0,"worked":1,"joined":0}'
done

# epoll_wait goes on, for as long as is left, unless a handler runs
start stopped epoll 600000
began=$(date +%s%3N)
tell x
wait_for is_in_call "$TARGET_PID" 232
has_slept() { [ "$(date +%s%3N)" -gt $((asleep + 100)) ]; }
asleep=$(date +%s%3N)
wait_for has_slept
start_patcher hold "$TARGET_PID"
wait_for has_text stopped "$TMP/patcher.out"
assert_contains "epoll_wait: its result is ERESTARTNOHAND" "$(cat "$TMP/patcher.out")" "result -514"
assert_between "epoll_wait: the time that is left" "$(awk '/^timeout/ { print $2 }' "$TMP/patcher.out")" \
	$((600000 - $(date +%s%3N) + began)) 599999
tell_patcher
end_patcher
wait_for is_in_call "$TARGET_PID" 232
assert_eq "epoll_wait goes on" "$(last_line)" ready
start_patcher hold "$TARGET_PID"
wait_for has_text stopped "$TMP/patcher.out"
kill -USR1 "$TARGET_PID"
tell_patcher
end_patcher
end_target "$TARGET_PID"
assert_contains "a signal with a handler ends it" "$(last_line)" '{"result":-1,"errno":4,"handled":1'

start stopped epoll 200
tell x
stop 20
end_target "$TARGET_PID"
assert_contains "epoll_wait's time ends" "$(last_line)" '{"result":0,"errno":0,"handled":0'
assert_between "not too early" "$(last_line | sed 's/.*"ms"://; s/}//')" 199 999999

# Of two requests one is done: a wait for both goes on, however often it is stopped.
waits_or_ends() { is_in_call "$TARGET_PID" 426 || has_text result "$TMP/target.out"; }
for way in together apart "--deferred together" "--deferred apart"; do
	# shellcheck disable=SC2086 # words
	start ring_wait $way
	wait_for waits_or_ends
	for _ in {1..3}; do
		stop 5
		assert_eq "io_uring, $way" "$OUT" "threads 1"
		run "$PATCHER" calls "$TARGET_PID" 1
		assert_eq "io_uring, $way: a borrowed call" "$OUT" "right 1"
		wait_for waits_or_ends
	done
	tell x
	finish "io_uring, $way" "{\"result\":$([[ $way = *apart ]] && echo 0 || echo 2),\"done\":2}"
done

start stopped vfork
wait_for is_in_state "$TARGET_PID" D
stop 1 100
assert_eq "vfork" "$OUT" "error 16 thread $TARGET_PID of process $TARGET_PID cannot be stopped: it waits in the kernel, as after vfork or for a file server"
tell x
wait_for has_text vforked "$TMP/target.out"
stop 20
assert_eq "after vfork" "$OUT" "threads 1"
tell x
finish "vfork" '{"status":7,"fed":1}'

start stopped work
start_patcher stop "$TARGET_PID" 100000000
wait_for grep -q "^TracerPid:[^0]*[1-9]" "/proc/$TARGET_PID/status"
kill -KILL "$TARGET_PID"
end_patcher
assert_eq "it ends meanwhile" "$(cat "$TMP/patcher.out")" "error 3 process $TARGET_PID has ended"
end_target "$TARGET_PID" 2>/dev/null
