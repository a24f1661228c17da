#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s
# --max-overhead with many functions: their probes go in group by group; what is in is recorded exactly, and what is not is
# said.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

changed() { python3 tests/live/process_code.py "$TARGET_PID"; }
unchanged() { [ "$(changed)" = 0 ]; }
is_changed() { ! unchanged; }
did() { json "$TMP/rec.json" "d['$1']"; }

# An idle program: all are in before it is called.
# (Single events take a minute to detach on a busy machine.)
for mechanism in session multi; do
	start_target many --repeat=3
	TARGET_PID=$PID
	start_kxray "$TARGET_PID" -f 'many_00[0-4]*' --max-overhead 100000% --mechanism "$mechanism"
	if has_text 'does not offer' "$TMP/rec.err"; then
		skip "$mechanism" "$(cat "$TMP/rec.err")"
		continue
	fi
	wait_for has_text 'all probes are in' "$TMP/rec.err"
	go_target
	end_target "$TARGET_PID"
	end_kxray
	assert_eq "$mechanism: status" "$STATUS" 0
	assert_eq "$mechanism: functions" "$(did functions)" 500
	"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
	assert_eq "$mechanism: each is recorded each time" \
		"$(json "$TMP/report.json" "sorted({f['count'] for f in d['functions']}), len(d['functions'])")" "([3], 500)"
	assert_eq "$mechanism: nothing is lost, limited, or left out" \
		"$(json "$TMP/rec.json" "[d[k] for k in ('lost', 'orphans', 'sampled', 'taken_out', 'never_in')]")" "[0, 0, 0, 0, 0]"
	assert_eq "$mechanism: it took a time" "$(json "$TMP/rec.json" "d['all_in_seconds'] > 0")" True
	assert_contains "$mechanism: the summary says so" "$(cat "$TMP/rec.err")" 'went in group by group'
	assert_contains "$mechanism: the report says so" "$("$KXRAY" report "$TRACE")" "Probes went in group by group"
	assert_eq "$mechanism: the trace is valid" "$(python3 tests/live/fdr.py "$TRACE" >"$TMP/fdr.out" 2>&1 && echo yes || tail -n 1 "$TMP/fdr.out")" yes
done

# So few that nothing has to wait.
start_target many --repeat=3
TARGET_PID=$PID
start_kxray "$TARGET_PID" -f 'many_000*' --max-overhead 100000%
go_target
end_target "$TARGET_PID"
end_kxray
assert_eq "few: all calls" "$(did entries) $(did all_in_seconds) $(did never_in)" "300 0.0 0"

# They are not known before a program starts that has them: what a command executes. A copy, as what other processes have
# mapped as well gets probes of another kind, which cannot wait.
cp "$TARGETS/many" "$TMP/many"
mkfifo "$TMP/go"
exec 5<>"$TMP/go"
_new_recording
"$KXRAY" record --follow -f 'many:many_00[0-4]*' --max-overhead 100000% --json -o "$TRACE" -- \
	sh -c '"$0" --repeat=3 >/dev/null; :' "$TMP/many" <&5 >"$TMP/rec.json" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for has_text 'all probes are in' "$TMP/rec.err" || fail "joined: all are in" "$(cat "$TMP/rec.err")"
echo g >&5
end_kxray
exec 5>&-
assert_eq "joined: they went in group by group, and each call is recorded" \
	"$(json "$TMP/rec.json" "[d[k] for k in ('entries', 'functions', 'lost', 'never_in')], d['all_in_seconds'] > 0")" "([1500, 500, 0, 0], True)"

# A program that calls all of them all the time, and a budget for hardly any.
start_target many --repeat=1000000000
TARGET_PID=$PID
go_target
start_kxray "$TARGET_PID" -f 'many_*' --max-overhead 0.1
wait_for has_text 'is called too often' "$TMP/rec.err"
kill -INT "$KX_PID"
end_kxray
kill -KILL "$TARGET_PID"
assert_eq "busy: status" "$STATUS" 0
assert_eq "busy: most never went in" "$(json "$TMP/rec.json" "5000 < d['never_in'] < 10000 and d['never_in'] <= d['taken_out']")" True
assert_contains "busy: the summary says so" "$(cat "$TMP/rec.err")" 'functions never went in'
"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
assert_eq "busy: the trace is valid" "$(python3 tests/live/fdr.py "$TRACE" >"$TMP/fdr.out" 2>&1 && echo yes || tail -n 1 "$TMP/fdr.out")" yes
assert_eq "busy: none is lost" "$(did lost)" 0

# Nothing stays in the program's code.
start_target many --repeat=1000000000
TARGET_PID=$PID
go_target
assert "killed: before" "its code is changed" unchanged
start_kxray "$TARGET_PID" -f 'many_*' --max-overhead 1
wait_for has_text 'is called too often' "$TMP/rec.err"
assert "killed: meanwhile" "its code is not changed" wait_for is_changed
kill -KILL "$KX_PID"
assert "killed: the code is as before" "$(changed) bytes differ" wait_for unchanged
kill -KILL "$TARGET_PID"
