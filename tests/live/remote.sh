# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# For the tests of build/tests/patcher, after lib.sh.

PATCHER=$BUILD/tests/patcher

# start TARGET ARG...: its pid is in $TARGET_PID, its output in $TMP/target.out; `tell BYTES` writes to it
start() {
	rm -f "$TMP/target.in"
	mkfifo "$TMP/target.in"
	: >"$TMP/target.out"
	"$TARGETS/$1" "${@:2}" <"$TMP/target.in" >"$TMP/target.out" 2>&1 &
	TARGET_PID=$!
	_pids+=("$TARGET_PID")
	exec {TARGET_IN}>"$TMP/target.in"
	wait_for has_text ready "$TMP/target.out" || fail "start of $*" "it did not say ready"
}
tell() { printf '%s' "$1" >&"$TARGET_IN"; }
last_line() { tail -n 1 "$TMP/target.out"; }

# finish LABEL WANT: the target ends with status 0, and its last line is WANT
finish() {
	end_target "$TARGET_PID"
	assert_eq "$1: the target" "$STATUS $(last_line)" "0 $2"
}

# start_patcher ARG...: in the background; its output in $TMP/patcher.out; `tell_patcher` writes a byte
start_patcher() {
	rm -f "$TMP/patcher.in"
	mkfifo "$TMP/patcher.in"
	: >"$TMP/patcher.out"
	"$PATCHER" "$@" <"$TMP/patcher.in" >"$TMP/patcher.out" 2>&1 &
	PATCHER_PID=$!
	_pids+=("$PATCHER_PID")
	exec {PATCHER_IN}>"$TMP/patcher.in"
}
tell_patcher() { printf x >&"$PATCHER_IN"; }
end_patcher() {
	exec {PATCHER_IN}>&-
	wait "$PATCHER_PID"
}
state_of() { sed 's/.*) //; s/ .*//' "/proc/$1/stat"; }
is_in_state() { [ "$(state_of "$1")" = "$2" ]; }
is_in_call() { [[ $(cat "/proc/$1/syscall") == "$2 "* ]]; }
