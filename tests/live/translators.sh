#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: alone, 25 s
# A program that comes under a translator (valgrind) while it is recorded, or beside a recording: no probe may be in the code that is translated.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

if ! command -v valgrind >/dev/null; then
	skip "translators" "needs the package valgrind"
	exit "$RESULT"
fi

# starter: a shell that waits for a line, then executes the target under valgrind; its process is $starter
starter() {
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	exec {TARGET_IN}<>"$TMP/go"
	# shellcheck disable=SC2016
	background bash -c 'echo ready; read -r line <"$2"; exec valgrind -q "$1" --start=now' starter "$TARGETS/counts" "$TMP/go" >"$TMP/counts.out" 2>&1
	starter=$PID
	wait_for has_text ready "$TMP/counts.out"
}

# beside LABEL STATUS MESSAGE OPTION...: what a recording with these options says and how it ends; the target must be right in any case
beside() {
	local label=$1 status=$2 message=$3
	shift 3
	starter
	_new_recording
	"$KXRAY" record -o "$TRACE" --json -f 'libc.so*:malloc' -f 'libc.so*:free' -f 'libc.so*:strlen' "${@//PID/$starter}" \
		>"$TMP/rec.json" 2>"$TMP/rec.err" &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for _records || fail "$label: start" "$(cat "$TMP/rec.err")"
	echo >&"$TARGET_IN"
	end_target "$starter"
	assert_eq "$label: the target's status" "$STATUS $(grep -c '"leaf_a"' "$TMP/counts.out")" "0 1"
	[ "$status" != 0 ] || kill -INT "$KX_PID" 2>/dev/null
	end_kxray
	assert_eq "$label: status" "$STATUS" "$status"
	assert_contains "$label: message" "$(cat "$TMP/rec.err")" "${message:+process $starter $message}"
	run "$KXRAY" report --json "$TRACE"
	assert_eq "$label: the trace is whole" "$STATUS" 0
}

left_out="runs under valgrind, which executes a translated copy of its code: a probe would kill it, so such processes are not traced"
ended="now runs under valgrind, which executes a translated copy of its code: a probe would kill it, so kxray has ended; what it has until then is whole"

beside "-p" 1 "$ended" -p PID
beside "--follow" 0 "$left_out" --follow -p PID
beside "--follow=exact" 1 "$ended" --follow=exact -p PID
beside "-a" 1 "$ended; with -p" -a
cp "$(type -P bash)" "$TMP/chosen"
beside "-a --comm" 0 "" -a --comm chosen

# A command that is started is one of several processes.
_new_recording
run "$KXRAY" record -o "$TRACE" -f 'libc.so*:malloc' -- valgrind -q "$TARGETS/counts" --start=now
assert_eq "command: status" "$STATUS" 0
assert_contains "command: message" "$ERR" "$left_out"
assert_contains "command: its output" "$OUT" '"leaf_a"'

# One that runs under it already, where probes would be for every process.
background valgrind -q --tool=none "$TARGETS/sleeper" </dev/null >"$TMP/sleeper.out" 2>&1
sleeper=$PID
wait_for has_text ready "$TMP/sleeper.out"
start_target counts
run "$KXRAY" record --follow=exact -p "$PID" -o "$TRACE" -f 'libc.so*:malloc'
assert_eq "before, --follow=exact: status" "$STATUS" 1
assert_contains "before, --follow=exact: message" "$ERR" "process $sleeper runs under valgrind, which executes a translated copy of its code, and has libc.so.6 mapped"
run "$KXRAY" record --follow -p "$PID" -o "$TRACE" -f 'libc.so*:malloc' -d 100ms
assert_eq "before, --follow: status" "$STATUS" 0
kill "$PID"
end_target "$PID"
kill "$sleeper"
end_target "$sleeper"
