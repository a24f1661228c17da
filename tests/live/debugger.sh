#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: alone, 2 s
# A recording ends while a debugger has a breakpoint at a probe: the probe is removed when the debugger lets go of
# the process, which keeps running. A process under valgrind is refused (probes for all processes would kill it).
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

changed() { python3 tests/live/process_code.py "$TARGET_PID"; }
is_unchanged() { [ "$(changed)" = 0 ]; }
is_stopped() { [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat")" = t ]; }

# runs_in_gdb: gdb has reached its last command before the target runs again, and it runs
runs_in_gdb() { [ -e "$TMP/continuing" ] && ! is_stopped "$TARGET_PID"; }

# start_gdb: sets a breakpoint at tick that never stops the target for long; when gdb is interrupted, it detaches
start_gdb() {
	rm -f "$TMP/continuing"
	background gdb -q -nx -batch -p "$TARGET_PID" -ex 'set debuginfod enabled off' -ex 'break *tick if 0 == 1' \
		-ex "shell touch $TMP/continuing" -ex continue -ex delete -ex detach \
		>"$TMP/gdb.out" 2>&1 </dev/null
	GDB=$PID
	wait_for runs_in_gdb || fail "gdb" "$(tail -n 5 "$TMP/gdb.out")"
}

end_gdb() {
	kill -INT "$TARGET_PID" # taken by gdb
	wait_for _is_over "$GDB" || fail "end of gdb" "$(tail -n 5 "$TMP/gdb.out")"
}

end_sleeper() { # LABEL
	wait_for is_unchanged
	assert_eq "$1: changed bytes at the end" "$(changed)" 0
	kill -TERM "$TARGET_PID"
	end_target "$TARGET_PID"
	assert_eq "$1: the target's status" "$STATUS" 0
}

if command -v gdb >/dev/null; then
	start_target sleeper
	TARGET_PID=$PID
	start_kxray "$TARGET_PID" -f tick
	start_gdb
	kill -INT "$KX_PID"
	end_kxray
	assert_eq "the debugger comes later: status" "$STATUS" 0
	assert_contains "the debugger comes later: message" "$(cat "$TMP/rec.err")" \
		"process $TARGET_PID has a debugger (gdb, process $GDB): its probes stay in place"
	assert "the debugger comes later: the probes stay" "$(changed) bytes differ" \
		test "$(changed)" -gt 0
	end_gdb
	end_sleeper "the debugger comes later"

	start_target sleeper
	TARGET_PID=$PID
	start_gdb
	start_kxray "$TARGET_PID" -f tick
	assert_contains "the debugger is first: message" "$(cat "$TMP/rec.err")" \
		"process $TARGET_PID has a debugger (gdb, process $GDB): it does not stop at breakpoints"
	kill -KILL "$KX_PID"
	end_kxray
	end_gdb
	end_sleeper "the debugger is first, kxray is killed"
else
	skip "debugger" "needs the package gdb"
fi

if command -v valgrind >/dev/null; then
	rm -f "$TMP/sleeper.out"
	mkfifo "$TMP/valgrind.in"
	exec {TARGET_IN}<>"$TMP/valgrind.in"
	background valgrind --quiet --tool=none "$TARGETS/sleeper" <"$TMP/valgrind.in" >"$TMP/sleeper.out" 2>&1
	TARGET_PID=$PID
	wait_for has_text ready "$TMP/sleeper.out"
	run "$KXRAY" record -p "$TARGET_PID" -o "$TRACE" -f tick
	assert_eq "valgrind: status" "$STATUS" 1
	assert_contains "valgrind: message" "$ERR" "process $TARGET_PID runs under valgrind"
	run "$KXRAY" record -a -o "$TRACE" -f "$TARGETS/sleeper:tick"
	assert_eq "valgrind, -a: status" "$STATUS" 1
	assert_contains "valgrind, -a: message" "$ERR" "process $TARGET_PID runs under valgrind, which executes a translated copy of its code, and has sleeper mapped"
	# the dynamic linker is watched
	run "$KXRAY" record -a -o "$TRACE" -f "$TARGETS/counts:inner" -d 100ms
	assert_eq "valgrind, -a, another file: status" "$STATUS" 1
	assert_contains "valgrind, -a, another file: message" "$ERR" "has ld-linux-x86-64.so.2 mapped"
	run "$KXRAY" record -a --comm counts -o "$TRACE" -f "$TARGETS/counts:inner" -d 100ms
	assert_eq "valgrind, -a --comm: status" "$STATUS" 0
	kill -TERM "$TARGET_PID"
	end_target "$TARGET_PID"
	assert_eq "valgrind: the target's status" "$STATUS" 0
else
	skip "valgrind" "needs the package valgrind"
fi
