#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: alone, 7 s
# Tracing every process's libc does not trace kxray: its own libraries take no breakpoints.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# code PID: prints the libraries of which the process has executable mappings
code() { awk '$2 ~ /x/ && $6 ~ /\.so/ { print $6 }' "/proc/$1/maps" | sort -u | tr '\n' ' '; }

_new_recording
"$KXRAY" record -a -o "$TRACE" --json -f 'libc.so*:malloc' -f 'libc.so*:free' \
	>"$TMP/rec.json" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for _records || fail "start" "$(cat "$TMP/rec.err")"
assert_eq "libraries that probes can reach" "$(code "$KX_PID")" ""

# A second recorder starts with the first one's breakpoints in its libraries, so it reads the functions'
# code from the files, not from memory.
for mechanism in session single; do
	run "$KXRAY" record -a -d 1 -o "$TMP/second" --json -f 'libc.so*:malloc' --mechanism "$mechanism"
	case $ERR in
	*"does not offer"*) skip "a second recording, $mechanism" "$ERR" ;;
	*) assert_eq "a second recording, $mechanism" "$STATUS" 0 ;;
	esac
done
kill -INT "$KX_PID"
end_kxray
assert_eq "status" "$STATUS" 0
run json "$TMP/rec.json" 'd["events"] > 0'
assert_eq "events" "$OUT" True
"$KXRAY" report --by-process --json "$TRACE" >"$TMP/report.json"
run json "$TMP/report.json" "[p for p in d['processes'] if p['pid'] == $KX_PID]"
assert_eq "its own calls in the trace" "$OUT" "[]"

# Probes of a single process do not affect kxray, so its libraries stay in place.
start_target sleeper
start_kxray "$PID" -f main
assert_contains "tracing one process" "$(code "$KX_PID")" /libc.so
kill -INT "$KX_PID"
end_kxray
