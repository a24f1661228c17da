#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: alone, 10 s
# kxray top -a and --follow: calls of processes that start while it watches, exactly.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

program=$TMP/counted
cp "$TARGETS/counts" "$program"

begin_top() { # OPTION...
	rm -f "$TMP/top.err"
	"$KXRAY" top --json -i 0.2 "$@" >"$TMP/top.json" 2>"$TMP/top.err" </dev/null &
	TOP_PID=$!
	_pids+=("$TOP_PID")
	wait_for has_text 'kxray: watching ' "$TMP/top.err" || fail "top $*" "$(cat "$TMP/top.err")"
}
end_top() { # LABEL
	STATUS=0
	wait_for _is_over "$TOP_PID" || kill -KILL "$TOP_PID"
	wait "$TOP_PID" || STATUS=$?
	assert_eq "$1: status $(tail -n 1 "$TMP/top.err")" "$STATUS" 0
}
# totals: "NAME:CALLS:TIMED ..." of the last line
totals() {
	tail -n 1 "$TMP/top.json" >"$TMP/last.json"
	json "$TMP/last.json" '" ".join(sorted("%s:%d:%d" % (f["name"], f["total_calls"], f["total_timed"]) for f in d["functions"]))'
}

begin_top -a -f "$program:leaf_a" -f "$program:six_args"
for i in 1 2 3; do "$program" --start=now >"$TMP/$i.out" & done
wait %2 %3 %4 2>/dev/null
wait_for has_text '"calls"' "$TMP/1.out"
wait_for has_text '"calls"' "$TMP/2.out"
wait_for has_text '"calls"' "$TMP/3.out"
kill -INT "$TOP_PID"
end_top "-a"
assert_eq "-a: three processes" "$(totals)" "leaf_a:13800:13800 six_args:138:138"

mkfifo "$TMP/go"
background sh -c "read x <'$TMP/go'; '$program' --start=now; '$program' --start=now" >"$TMP/sh.out"
begin_top -p "$PID" --follow -f "$program:leaf_a" -f "$program:outer"
echo >"$TMP/go"
end_top "--follow"
assert_eq "--follow: two children" "$(totals)" "leaf_a:9200:9200 outer:1840:1840"
