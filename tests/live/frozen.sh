#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 30 s
# A process whose control group is frozen: record --in-process says so and ends, or takes its jumps out and leaves the rest to the keeper
# until the group is thawed. Frozen and thawed all the time, threads make each borrowed call once, and are right.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh
. tests/live/remote.sh

mount=$(awk '{ for (i = 7; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") print $5 }' /proc/self/mountinfo | head -n 1)
group=$mount/kx-frozen.$$
if [ -z "$mount" ]; then
	skip "frozen" "cgroup v2 is not mounted"
	exit
elif ! mkdir "$group" 2>"$TMP/why" || ! [ -w "$group/cgroup.freeze" ]; then
	skip "frozen" "no control group can be frozen: $(cat "$TMP/why")"
	rmdir "$group" 2>/dev/null
	exit
fi
is_frozen() { has_text "frozen $1" "$group/cgroup.events"; }
freeze() { # 0|1
	echo "$1" >"$group/cgroup.freeze"
	wait_for is_frozen "$1"
}
in_group() { echo "$TARGET_PID" >"$group/cgroup.procs"; }
# the shell's own end must not leave it frozen: the target could not be killed with version 1
trap 'echo 0 >"$group/cgroup.freeze"; _cleanup; wait_for rmdir "$group"' EXIT
says="process %d is in a frozen cgroup ($group): thaw it first, as its threads can make no system calls until then"

# frozen_calls LABEL TARGET ARG...: whatever was made when it is frozen is not made again, and what was not is made when it is thawed
frozen_calls() {
	start stopped "${@:2}"
	in_group
	freeze 1
	run "$PATCHER" calls "$TARGET_PID" 1 50
	# shellcheck disable=SC2059
	assert_eq "$1: frozen" "$OUT" "error 16 $(printf "$says" "$TARGET_PID")"
	freeze 0
	run "$PATCHER" calls "$TARGET_PID" 1
	maps=$(wc -l <"/proc/$TARGET_PID/maps")
	background freeze_often
	run "$PATCHER" calls "$TARGET_PID" 40 100000
	kill "$PID"
	wait "$PID" 2>/dev/null
	freeze 0
	assert_eq "$1: frozen often" "$OUT" "right 40"
	assert_eq "$1: mappings" "$(wc -l <"/proc/$TARGET_PID/maps")" "$maps"
}
# frozen for longer than a borrowed thread is waited for before its group is looked at
freeze_often() { while :; do freeze 1 && nap 3 && freeze 0 && nap 0; done; }
nap() { read -r -t "0.0$1$((RANDOM % 10))" <>"$TMP/.pause" || :; }
frozen_calls work work
tell x
finish work '{"wrong":0,"worked":1,"joined":0}'
frozen_calls pause pause 1
kill -USR1 "$TARGET_PID"
end_target "$TARGET_PID"
assert_eq "pause: a signal" "$STATUS $(last_line)" "0 paused 1"
frozen_calls nanosleep nanosleep
kill -USR1 "$TARGET_PID"
end_target "$TARGET_PID"
assert_contains "nanosleep: a signal ends it" "$STATUS $(last_line)" '0 {"result":-1,"errno":4,"handled":1,'


start stopped leaderless
in_group
freeze 1
run "$PATCHER" calls "$TARGET_PID" 1 50
# shellcheck disable=SC2059
assert_eq "the main thread has ended: frozen" "$OUT" "error 16 $(printf "$says" "$TARGET_PID")"
freeze 0
tell x
end_target "$TARGET_PID"
assert_eq "the main thread has ended: the target" "$STATUS $(last_line)" '0 {"wrong":0,"worked":1,"joined":0}'

# record: a group that is frozen before, also if it is asked to end meanwhile, and one that is frozen while it records
start_loop() {
	TARGETS=$BUILD/tests/hazards start_target loop
	TARGET_PID=$PID
	in_group
}
ran() { [ "$(grep -c ran "$TMP/loop.out")" -ge "$1" ]; }
step() { # the target is right
	local before
	before=$(grep -c ran "$TMP/loop.out")
	go_target x
	wait_for ran $((before + 1)) || fail "$LABEL" "the target does not work"
}
finish_loop() {
	step
	go_target q
	end_target "$TARGET_PID"
	assert_contains "$LABEL: the target" "$STATUS $(tail -n 1 "$TMP/loop.out")" "0 right"
}
changed() { python3 -S tests/live/process_code.py "$TARGET_PID"; }
left() { run "$KXRAY" detach -p "$TARGET_PID"; }
nothing_is_left() { left && [ "$OUT" = "nothing of kxray is in process $TARGET_PID" ]; }

LABEL="frozen before"
start_loop
freeze 1
run "$KXRAY" record --in-process -p "$TARGET_PID" -f 'hz_*' -o "$TMP/trace.xray"
# shellcheck disable=SC2059
assert_eq "$LABEL" "$STATUS $ERR" "1 kxray record: $(printf "$says" "$TARGET_PID")"
"$KXRAY" record --in-process -p "$TARGET_PID" -f 'hz_*' -o "$TMP/trace.xray" 2>"$TMP/rec.err" &
KX_PID=$!
takes_signals() { grep -q 'SigBlk:.*[2367abef]$' "/proc/$KX_PID/status" || _is_over "$KX_PID"; }
wait_for takes_signals
kill -INT "$KX_PID"
end_kxray
assert_eq "$LABEL: asked to end" "$STATUS" 1
freeze 0
assert_eq "$LABEL: bytes that differ" "$(changed)" 0
assert "$LABEL: what is left" "$OUT" nothing_is_left
finish_loop

LABEL="frozen while it records"
start_loop
start_kxray "$TARGET_PID" -f 'hz_*' --in-process
step
freeze 1
kill -INT "$KX_PID"
end_kxray
assert_eq "$LABEL: status" "$STATUS" 0
# shellcheck disable=SC2059
assert_contains "$LABEL: a notice" "$(cat "$TMP/rec.err")" "stays mapped there: $(printf "$says" "$TARGET_PID"); kx-keeper unmaps it then"
freeze 0
wait_for nothing_is_left || fail "$LABEL: what is left" "$OUT"
assert_eq "$LABEL: bytes that differ" "$(changed)" 0
finish_loop
