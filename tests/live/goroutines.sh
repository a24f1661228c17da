#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# Goroutines begin a call in one thread and end it in another: every call is counted, and none gets a duration that another call began
# or ended.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

if ! command -v go >/dev/null; then
	skip "goroutines" "go is not installed"
	exit
fi
# the cache of the hazards' target, and its flags: else each run compiles Go's own library
GOCACHE=${GOCACHE:-$BUILD/go-cache} GOFLAGS=-mod=mod go build -o "$TMP/naps" tests/live/targets/naps.go || fail "go build" ""

# compare LABEL CALLS LONGEST: with the target's own; the clock's frequency is measured: half a percent
compare() {
	assert_eq "$1: calls" "$2" "$(json "$TMP/did.json" 'd["calls"]["main.nap"]')"
	assert "$1: no call is longer than the longest" "$3 ns, $(cat "$TMP/did.json")" \
		test "$3" -le "$(json "$TMP/did.json" 'int(d["longest_ns"] * 1.005) + 2000')"
}

# More calls are open at a time than --depth=3 lets through, so their number is not that of all.
for options in '' --mechanism=multi --min-duration=1us --depth=3; do
	run "$KXRAY" record -o "$TRACE" -f main.nap $options -- "$TMP/naps" --start=now
	assert_eq "record $options: status" "$STATUS" 0
	grep '^{' "$TMP/run.out" >"$TMP/did.json"
	run "$KXRAY" report --json "$TRACE"
	calls=$(json "$TMP/run.out" 'd["functions"][0]["count"]')
	case $options in --min-duration* | --depth*) calls=$(json "$TMP/did.json" 'd["calls"]["main.nap"]') ;; esac
	compare "record $options" "$calls" "$(json "$TMP/run.out" 'd["functions"][0]["max_ns"]')"
done

# top has no threads to draw, so it measures all calls.
mkfifo "$TMP/go_on"
"$TMP/naps" <"$TMP/go_on" >"$TMP/naps.out" &
PID=$!
_pids+=("$PID")
exec 7>"$TMP/go_on"
wait_for has_text "ready $PID" "$TMP/naps.out" || fail "the target does not start" ""
"$KXRAY" top --json -p "$PID" -f main.nap >"$TMP/top.out" 2>"$TMP/top.err" 7>&- &
TOP_PID=$!
_pids+=("$TOP_PID")
_watches() { has_text 'kxray: watching ' "$TMP/top.err" || _is_over "$TOP_PID"; }
wait_for _watches || fail "top" "$(cat "$TMP/top.err")"
echo >&7
exec 7>&-
STATUS=0
wait "$TOP_PID" || STATUS=$?
assert_eq "top: status" "$STATUS" 0
wait "$PID"
grep '^{' "$TMP/naps.out" >"$TMP/did.json"
tail -n 1 "$TMP/top.out" >"$TMP/top.json"
compare top "$(json "$TMP/top.json" 'd["functions"][0]["total_calls"]')" "$(python3 -c 'import json, sys
print(max(f.get("max_ns") or 0 for line in sys.stdin for f in json.loads(line)["functions"]))' <"$TMP/top.out")"
assert_eq "top: measured" "$(json "$TMP/top.json" 'd["functions"][0]["total_timed"]')" "$(json "$TMP/did.json" 'd["calls"]["main.nap"]')"
