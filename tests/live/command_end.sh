#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 8 s
# A command that outlives its recording (-d TIME -- COMMAND): the summary comes at once, then kxray waits for the
# command, passes on what asks it to end, or ends it itself (--kill). Exit statuses are the command's.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# goes_on OPTION... -- COMMAND...: records, as $KX_PID, until kxray waits for the command
goes_on() {
	_new_recording
	rm -f "$TMP/signals"
	"$KXRAY" record -d 200ms -o "$TRACE" --json -f "$TARGETS/counts:leaf_a" "$@" >"$TMP/rec.json" 2>"$TMP/rec.err" </dev/null &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for has_text "kxray: waiting for 'python3' (process " "$TMP/rec.err" || fail "kxray waits" "$(cat "$TMP/rec.err")"
	command=$(sed -n "s/.*waiting for 'python3' (process \([0-9]*\)).*/\1/p" "$TMP/rec.err")
	_pids+=("$command")
}
# The command notes the signals that it gets; TERM ends it, INT only if it is not told to stay.
cat >"$TMP/command.py" <<'END'
import signal, sys, time
def note(number, frame):
    open(sys.argv[1], "a").write(f"{number} ")
    if sys.argv[2] != "stays":
        sys.exit(7)
for s in (signal.SIGINT, signal.SIGTERM):
    signal.signal(s, note)
open(sys.argv[1], "w").write("ready ")
while True:
    time.sleep(1000)
END
ready() { wait_for has_text "ready" "$TMP/signals" || fail "the command" "it is not ready"; }

goes_on -- python3 "$TMP/command.py" "$TMP/signals" ends
ready
assert_eq "the summary is there while the command runs" "$(json "$TMP/rec.json" 'd["lost"]')" 0
run "$KXRAY" report "$TRACE"
assert_eq "the trace is complete" "$STATUS" 0
kill -INT "$KX_PID"
end_kxray
assert_eq "SIGINT: the command's status" "$STATUS" 7
assert_eq "SIGINT: the command got it" "$(cat "$TMP/signals")" "ready 2 "

goes_on -- python3 "$TMP/command.py" "$TMP/signals" stays
ready
kill -TERM "$KX_PID"
wait_for has_text " 15" "$TMP/signals" || fail "a command that stays" "it did not get the signal"
assert "a command that stays: kxray waits" "it ended" kill -0 "$KX_PID"
kill -INT "$KX_PID"
end_kxray
assert_eq "the second signal kills" "$STATUS $(cat "$TMP/signals")" "137 ready 15 "

goes_on -- python3 "$TMP/command.py" "$TMP/signals" ends
ready
kill -TERM "$command"
end_kxray
assert_eq "a command that ends by itself" "$STATUS" 7

_new_recording
STATUS=0
"$KXRAY" record -d 300ms --kill -o "$TRACE" -f "$TARGETS/counts:leaf_a" -- \
	python3 "$TMP/command.py" "$TMP/signals" ends 2>"$TMP/rec.err" || STATUS=$?
assert_eq "--kill: status" "$STATUS" 0
assert_contains "--kill: SIGTERM" "$(cat "$TMP/signals")" "15"
assert_eq "--kill: no word of waiting" "$(grep -c waiting "$TMP/rec.err")" 0
"$KXRAY" record -d 300ms --kill -o "$TRACE" -f "$TARGETS/counts:leaf_a" -- \
	python3 "$TMP/command.py" "$TMP/signals" stays 2>"$TMP/rec.err"
assert_eq "--kill: one that stays" "$? $(grep -c 15 "$TMP/signals")" "0 1"

run "$KXRAY" record -d 1 --kill -p $$ -f x
assert_contains "--kill without a command" "$STATUS $ERR" "2 kxray record: --kill ends a command when a time is over"
run "$KXRAY" record --kill -f x -- true
assert_contains "--kill without a time" "$STATUS $ERR" "2 kxray record: --kill ends a command when a time is over"
run "$KXRAY" record -d 2x -p $$
assert_contains "no time" "$STATUS $ERR" "2 kxray record: -d takes a time above 0, as in 5 (seconds), 500ms or 2m, not '2x'"
