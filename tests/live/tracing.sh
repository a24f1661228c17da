# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034
#
# Helpers of the tests that record a target; read after ../lib.sh. A recording leaves
#     $TMP/trace.xray, $TMP/trace.xray.map
#     $TMP/did.json     the target's own counts
#     $TMP/rec.json     the summary of record --json, $TMP/rec.err its messages
#     $STATUS           kxray's exit status, $TARGET_STATUS the target's
TRACE=$TMP/trace.xray
# -S: without site-packages, which take half of the start
EXPECT="python3 -S tests/live/expect.py"
COUNTED=(-f 'leaf_*' -f inner -f middle -f outer -f recursive -f 'tail_*' -f sleep_2ms -f six_args
	-f on_cpu)

_new_recording() { rm -f "$TRACE" "$TRACE.map" "$TMP"/{did,rec}.json "$TMP"/rec.{err,out}; }

# start_kxray PID [OPTION...]: attaches, waits until it records; its pid is in $KX_PID
start_kxray() {
	local pid=$1
	shift
	_new_recording
	"$KXRAY" record -p "$pid" -o "$TRACE" --json "$@" >"$TMP/rec.json" 2>"$TMP/rec.err" &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for _records || fail "attach to $pid" "$(cat "$TMP/rec.err")"
}
_records() { has_text 'kxray: recording ' "$TMP/rec.err" || _is_over "$KX_PID"; }

# recorded: prints the names of the functions in the trace, in order
recorded() {
	"$KXRAY" report --json "$TRACE" | python3 -c 'import json, sys
print(*sorted(f["name"] for f in json.load(sys.stdin)["functions"]))'
}

# ends_by_signal PID: succeeds if it has a signalfd for SIGINT, that is, while it records or counts
ends_by_signal() {
	local mask
	# A blocked SIGINT alone says nothing: it is also blocked for a moment when the keeper starts.
	for mask in $(sed -n 's/^sigmask:[[:space:]]*//p' "/proc/$1/fdinfo/"* 2>/dev/null); do
		[ $((0x$mask & 2)) -eq 0 ] || return 0
	done
	return 1
}

# end_kxray: waits for the end of kxray; 124 in $STATUS if it had to be killed
end_kxray() {
	STATUS=0
	if wait_for _is_over "$KX_PID"; then
		wait "$KX_PID" || STATUS=$?
	else
		kill -KILL "$KX_PID"
		wait "$KX_PID" 2>/dev/null
		STATUS=124
	fi
}

# trace_target NAME [OPTION...]: the target waits, kxray attaches, the target works and ends
trace_target() {
	local name=$1
	shift
	# shellcheck disable=SC2086
	start_target "$name" ${TARGET_ARGS:-}
	TARGET_PID=$PID
	start_kxray "$PID" "$@"
	go_target
	end_target "$TARGET_PID"
	TARGET_STATUS=$STATUS
	end_kxray
	tail -n 1 "$TMP/$name.out" >"$TMP/did.json"
}

# trace_command NAME [OPTION...]: the same with "-- COMMAND"
trace_command() {
	local name=$1
	shift
	_new_recording
	STATUS=0
	# shellcheck disable=SC2086
	"$KXRAY" record -o "$TRACE" --json "$@" -- "$TARGETS/$name" --start=now ${TARGET_ARGS:-} \
		>"$TMP/$name.out" 2>"$TMP/rec.err" </dev/null || STATUS=$?
	# Its standard output is the target's: the summary comes last.
	tail -n 1 "$TMP/$name.out" >"$TMP/rec.json"
	tail -n 2 "$TMP/$name.out" | head -n 1 >"$TMP/did.json"
}

# used_cpu PID TICKS: succeeds if the process has used at least TICKS (1/100 s) of CPU time
used_cpu() { [ "$(cpu_ticks "$1")" -ge "$2" ]; }
cpu_ticks() {
	local stat=
	read -r -d '' stat <"/proc/$1/stat"
	# shellcheck disable=SC2086
	set -- ${stat##*) }
	echo $((${12} + ${13}))
}

# expect LABEL CHECK...: see expect.py
expect() { $EXPECT "$TMP" "$@" || fail "$1" "the checks did not run"; }
