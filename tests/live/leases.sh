#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 30 s
# While a traced thread is in a long call and calls other functions often, other programs can remove their probes (bpf/lease.bpf.h), and every call is
# still counted.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# others_leave LABEL: another program puts a probe in and takes it out, while the target is in its call
others_leave() {
	wait_for has_text working "$TMP/long_call.out" || fail "$1" "the call does not begin"
	background python3 tests/live/perf_probe.py >"$TMP/probe.out" 2>&1
	local prober=$PID
	assert "$1: another program takes its probe out" "$(cat "$TMP/probe.out")" wait_for _is_over "$prober"
	assert_eq "$1: it did so" "$(cat "$TMP/probe.out")" "in
out"
	assert_eq "$1: the call has not ended" "$(grep -c calls "$TMP/long_call.out")" 0
	printf . >&"$TARGET_IN"
	end_target "$TARGET_PID"
	assert_eq "$1: the target" "$STATUS" 0
	tail -n 1 "$TMP/long_call.out" >"$TMP/did.json"
}

for how in "" --follow --exits=return; do
	start_target long_call
	TARGET_PID=$PID
	# shellcheck disable=SC2086
	start_kxray "$PID" -f 'lc_*' $how
	go_target
	others_leave "record $how"
	end_kxray
	assert_eq "record $how: status" "$STATUS" 0
	run "$KXRAY" report --json "$TRACE"
	cp "$TMP/run.out" "$TMP/report.json"
	assert_eq "record $how: calls" "$(json "$TMP/report.json" 'sorted((f["name"], f["count"]) for f in d["functions"])')" \
		"$(json "$TMP/did.json" 'sorted(d["calls"].items())')"
	# without exits: only while they were left out, and this is said
	assert_eq "record $how: exits are missing only where the summary says so" \
		"$(json "$TMP/rec.json" 'd["repaired"] == 0 or d["return_gaps"]["threads"] >= 1')" True
	echo "# record $how: $(json "$TMP/rec.json" 'd["repaired"]') calls without an exit, $(json "$TMP/rec.json" 'd.get("return_gaps")')"
done

start_target long_call
TARGET_PID=$PID
"$KXRAY" top --json -p "$PID" -f 'lc_*' >"$TMP/top.json" 2>"$TMP/top.err" </dev/null &
TOP=$!
_pids+=("$TOP")
wait_for has_text 'kxray: watching ' "$TMP/top.err" || fail "top" "$(cat "$TMP/top.err")"
go_target
others_leave top
assert "top ends" "$(cat "$TMP/top.err")" wait_for _is_over "$TOP"
assert_eq "top: calls" "$(tail -n 1 "$TMP/top.json" | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["total_calls"])')" \
	"$(json "$TMP/did.json" 'sum(d["calls"].values())')"

# Another tool's return probes do the same to kxray, which records and ends all the same; its keeper waits.
start_target long_call --limit=120
TARGET_PID=$PID
mkfifo "$TMP/tool.in"
exec {tool_in}<>"$TMP/tool.in"
background python3 tests/live/perf_probe.py returns "$PID" "$TARGETS/long_call" lc_outer lc_inner >"$TMP/tool.out" 2>&1 <"$TMP/tool.in"
tool=$PID
wait_for has_text in "$TMP/tool.out" || fail "the other tool's probes" "$(cat "$TMP/tool.out")"
go_target
wait_for has_text working "$TMP/long_call.out" || fail "beside the other tool" "the call does not begin"
TRACE=$TMP/beside.xray
# the second one gives up the sessions of a library that both use
run "$KXRAY" record --follow -f 'libc.so*:getppid' -f 'libc.so*:malloc' -o "$TRACE" -- sh -c 'ls >/dev/null; ls >/dev/null'
assert_eq "beside another tool: record, status" "$STATUS" 0
assert_eq "beside another tool: the call has not ended" "$(grep -c calls "$TMP/long_call.out")" 0
run "$KXRAY" report --json "$TRACE"
cp "$TMP/run.out" "$TMP/report.json"
assert_eq "beside another tool: the trace" "$STATUS $(json "$TMP/report.json" 'd["functions"][0]["name"], d["lost"]')" "0 ('malloc', 0)"
printf . >&"$TARGET_IN"
end_target "$TARGET_PID"
assert_eq "beside another tool: its target" "$STATUS" 0
echo >&"$tool_in"
assert "beside another tool: that ends" "$(cat "$TMP/tool.out")" wait_for _is_over "$tool"
