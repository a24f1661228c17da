#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s
# record --in-process and libraries that are loaded and unloaded while it records: their calls are counted exactly, what takes the
# place of an unloaded one keeps every byte, and nothing stays mapped.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

cp "$TARGETS/plug.so" "$TMP/plug_a.so"
cp "$TARGETS/plug.so" "$TMP/plug_b.so"
functions=(-f 'host_*' -f 'plug_a.so:plug_*')

changed() { python3 -S tests/live/process_code.py "$TARGET_PID" "$@"; }
# the page of uprobes is the kernel's, for the probe in the linker; it does not join again what was split for guards in the C library's code
mapped() { grep -vc "\[uprobes\]\|/libc" "/proc/$TARGET_PID/maps"; }
areas_are() { [ "$(changed enabled)" = "$1" ]; }
lines_are() { [ "$(wc -l <"$TMP/plugs.out")" -ge "$1" ]; }
# tell BYTE: the target obeys; its answer is in $ANSWER
tell() {
	local n
	n=$(wc -l <"$TMP/plugs.out")
	go_target "$1"
	wait_for lines_are $((n + 1)) || fail "$1" "no answer"
	ANSWER=$(tail -n 1 "$TMP/plugs.out")
}
start() {
	start_target plugs "$TMP/plug_a.so" "$TMP/plug_b.so" "$TARGETS/plug_tsc.so"
	TARGET_PID=$PID
	# what the linker and malloc map at first stays mapped
	tell a
	PLACE=$ANSWER
	tell u
	tell b
	tell u
	before=$(mapped)
}
record() { start_kxray "$TARGET_PID" "${functions[@]}" --in-process --ring-size 16M; }
# load a|b: at the same place as ever
load() {
	tell "$1"
	assert_eq "$LABEL: the place of $1" "$ANSWER" "$PLACE"
}
finish() { # [CHECK...]: the target ends, then kxray
	go_target q
	end_target "$TARGET_PID"
	TARGET_STATUS=$STATUS
	tail -n 1 "$TMP/plugs.out" >"$TMP/did.json"
	if [ $# = 0 ]; then
		assert_eq "$LABEL: the target's status and wrong answers" "$TARGET_STATUS $(json "$TMP/did.json" "d['answer']")" "0 0"
		return
	fi
	end_kxray
	assert_eq "$LABEL: statuses" "$STATUS $TARGET_STATUS" "0 0"
	expect "$LABEL" "$@"
}

# A library that no process had mapped, of which one function needs uprobes, comes, goes, is replaced by an equal one that is not traced, and comes again.
LABEL=replaced
start
functions=(-f 'host_*' -f 'plug_a.so:plug_outer' -f 'plug_a.so:plug_inner(arg2:i64)')
record
functions=(-f 'host_*' -f 'plug_a.so:plug_*')
wait_for areas_are 1
tell s
load a
wait_for areas_are 2 || fail "$LABEL: in process" "$(cat "$TMP/rec.err")"
tell c
assert "$LABEL: jumps in the library" "no byte differs from its file" test "$(changed "$TMP/plug_a.so")" -gt 0
assert_contains "$LABEL: a notice" "$(cat "$TMP/rec.err")" "tracing 2 more functions, of plug_a.so, which was loaded"
tell u
load b
for _ in 1 2; do # also while it comes and goes, in the middle of what kxray does about its forerunner
	wait_for areas_are 1
	assert_eq "$LABEL: bytes of what took the place that differ from its file" "$(changed "$TMP/plug_b.so")" 0
	tell u
	load a
	wait_for areas_are 2
	tell c
	tell u
	load b
	assert_eq "$LABEL: at once" "$(changed "$TMP/plug_b.so")" 0
done
tell u
finish report account fdr
assert_eq "$LABEL: losses" "$(json "$TMP/rec.json" "d['lost']")" 0
assert_eq "$LABEL: in process, by uprobes" "$(json "$TMP/rec.json" "d['in_process']['functions'], d['in_process']['by_uprobes']")" "(3, 1)"

# 1,000 times, as fast as it can, in turns with the other one: the program's own functions are counted exactly, and each call of the library's that has an entry
# has its exit.
LABEL=loop
start
record
wait_for areas_are 1
tell l
# The third one makes jumps dangerous anywhere in the process: all are taken out.
load a
wait_for areas_are 2
changed switch-off
tell d
wait_for has_text "no longer recorded" "$TMP/rec.err"
assert_contains "$LABEL: a notice" "$(cat "$TMP/rec.err")" \
	"calls are no longer recorded in process: what the process has loaded makes that dangerous (plug_tsc.so "
# the notice comes first; while threads cannot be stopped, taking the jumps out is tried again
left() { echo "$(changed enabled) $(changed) $(changed "$TMP/plug_a.so")"; }
nothing_left() { [ "$(left)" = "0 0 0" ]; }
wait_for nothing_left
assert_eq "$LABEL: areas, bytes that differ from the files" "$(left)" "0 0 0"
tell u # the third
tell a # twice
tell u
tell u
kill -INT "$KX_PID"
end_kxray
assert_eq "$LABEL: kxray's status" "$STATUS" 0
assert_eq "$LABEL: how often it says that its recorder has switched itself off" "$(grep -c "has switched itself off" "$TMP/rec.err")" 1
assert_eq "$LABEL: mappings afterwards" "$(mapped)" "$before"
assert_eq "$LABEL: bytes of the program that differ from its file" "$(changed)" 0
"$KXRAY" report --json "$TRACE" >"$TMP/loop.json"
assert_eq "$LABEL: calls of the program's function, losses" \
	"$(json "$TMP/loop.json" "[f['count'] for f in d['functions'] if f['name'] == 'host_call'], d['lost']")" "([4000], 0)"
assert_eq "$LABEL: calls without an exit" "$(json "$TMP/loop.json" "sum(f['no_exit'] for f in d['functions'])")" 0
assert "$LABEL: stops" "$(cat "$TMP/rec.json")" test "$(json "$TMP/rec.json" "d['in_process']['stopped_ms'] > 0")" = True
load a
tell c
finish

# A library forbids the time stamp counter at once: the next recorded call would end the program, if its call did not end the recording.
LABEL=forbidden
start
record
wait_for areas_are 1
tell a
tell c
tell u
tell t
tell c
is_said() { grep -qE "recording in process ended [0-9.]+ s after it began: the program has forbidden|no longer recorded" "$TMP/rec.err"; }
wait_for is_said || fail "$LABEL: it is said" "$(cat "$TMP/rec.err")"
all_out() { [ "$(changed enabled) $(changed)" = "0 0" ]; } # the library that was recorded is unloaded
wait_for all_out || fail "$LABEL: the jumps are out" "$(changed enabled) $(changed)"
tell c
tell u
kill -INT "$KX_PID"
end_kxray
assert_eq "$LABEL: kxray's status" "$STATUS" 0
assert_eq "$LABEL: mappings afterwards" "$(mapped)" "$before"
finish
"$KXRAY" report --json "$TRACE" >"$TMP/forbidden.json"
assert_eq "$LABEL: calls before" "$(json "$TMP/forbidden.json" "[f['count'] for f in d['functions'] if f['name'] == 'host_call'], d['lost']")" "([2000], 0)"

# kxray is killed while the library has jumps: its keeper takes them out.
LABEL=killed
start
record
load a
wait_for areas_are 2
read -r KEEPER _ <"/proc/$KX_PID/task/$KX_PID/children"
kill -KILL "$KX_PID"
end_kxray 2>/dev/null
wait_for _is_over "$KEEPER"
assert_eq "$LABEL: bytes that differ from the files" "$(changed) $(changed "$TMP/plug_a.so")" "0 0"
tell c
tell u
assert_eq "$LABEL: mappings" "$(mapped)" "$before"

# Both are killed; then another library takes the place: kxray detach leaves it alone.
LABEL="both killed"
record
load a
wait_for areas_are 2
read -r KEEPER _ <"/proc/$KX_PID/task/$KX_PID/children"
kill -KILL "$KEEPER" "$KX_PID"
end_kxray 2>/dev/null
tell c
tell u
load b
detached() {
	run "$KXRAY" detach -p "$TARGET_PID"
	[[ $ERR != *"is recording it"* ]]
}
wait_for detached
assert_eq "$LABEL: bytes that differ from the files" "$(changed) $(changed "$TMP/plug_b.so")" "0 0"
tell c
tell u
assert_eq "$LABEL: mappings" "$(mapped) $(changed enabled)" "$before 0"
finish
