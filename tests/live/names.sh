#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 4 s
# Identities of processes and threads in a trace: their names while they ran, both pids of processes in
# a pid namespace, parents, start and end. 41 processes log their own identities.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

LOG=$TMP/names.log
# Selected with its path, the program has its probes before it first runs.
functions=(-f "$TARGETS/names:mark")
links=$TMP/links
mkdir "$links"
for i in {0..39}; do
	ln -s "$TARGETS/names" "$links/short-$i"
done

# check LABEL [OPTION...]: compares the trace with the log
check() {
	local label=$1
	shift
	assert_eq "$label: status" "$STATUS" 0
	assert_eq "$label: lost" "$(json "$TMP/rec.json" 'd["lost"]')" 0
	assert_eq "$label: processes in the log" "$(wc -l <"$LOG")" 41
	objcopy --dump-section .kxray.session="$TMP/session" "$TRACE.map" "$TMP/copy"
	run "$KXRAY" report --by-process --json "$TRACE"
	cp "$TMP/run.out" "$TMP/report.json"
	run python3 tests/live/names.py "$TRACE" "$LOG" "$TMP/session" "$TMP/report.json" "$@"
	assert_eq "$label: identities" "$STATUS $(head -n 5 "$TMP/run.out")" "0 "
	echo "# $label: $ERR"
}

# by_command LABEL COMMAND...
by_command() {
	local label=$1
	shift
	_new_recording
	rm -f "$LOG"
	STATUS=0
	"$KXRAY" record -o "$TRACE" --json "${functions[@]}" ${OPTIONS[@]+"${OPTIONS[@]}"} -- "$@" \
		>"$TMP/rec.json" 2>"$TMP/rec.err" </dev/null || STATUS=$?
}

by_command "command" "$TARGETS/names" "$links" "$LOG"
check "command" --started-before "$(python3 -c 'import json, sys
print([p["pid"] for p in map(json.loads, open(sys.argv[1])) if p["name"] == "names"][0])' "$LOG")"

# The whole system; only these processes have the function.
beside_translators shared
_new_recording
rm -f "$LOG"
"$KXRAY" record -a -o "$TRACE" --json "${functions[@]}" >"$TMP/rec.json" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
if wait_for _records; then
	"$TARGETS/names" "$links" "$LOG"
	kill -INT "$KX_PID"
	end_kxray
	check "whole system"
else
	fail "whole system: start" "$(cat "$TMP/rec.err")"
fi

# The processes in the namespace read their outer ids from a /proc of the host.
why=$(unshare --pid --fork true 2>&1)
if [ -n "$why" ]; then
	skip "pid namespace" "$why"
	exit
fi
by_command "pid namespace" unshare --pid --fork "$TARGETS/names" "$links" "$LOG"
check "pid namespace"
run "$KXRAY" report --by-process --sort name "$TRACE"
assert_contains "pid namespace: report" "$OUT" " (1 in its namespace) names, 6 threads"
run "$KXRAY" dump "$TRACE"
assert_contains "pid namespace: dump" "$OUT" " (1 in its namespace) wall "
run "$KXRAY" export -f chrome -o - "$TRACE"
assert_contains "pid namespace: timeline" "$OUT" '"names (pid 1 in its namespace)"'
