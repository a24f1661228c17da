#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s
# Values of calls, by -f 'NAME(arg1:TYPE) -> ret:TYPE': each is what the target passed, in every export that has them.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

specs=(-f 'take_integers(arg1:i8, arg2:u8, arg3:i16, arg4:u16, arg5:i32, arg6:u32) -> ret:i8'
	-f 'take_longs(arg1:i64, arg2:u64, arg3:bool, arg4:char, arg5:ptr, arg6:x64) -> ret:u64'
	-f 'take_string(arg1:str) -> ret:ptr' -f 'take_bytes(arg1:str[arg2], arg2:i64, arg3:i32) -> ret:i32')
names=(take_integers take_longs take_string take_bytes)

# compare NAME: each value of each call
compare() {
	assert_eq "$1: statuses, lost, exits without entry" \
		"$STATUS $TARGET_STATUS $(json "$TMP/rec.json" '[d["lost"], d["orphans"]]')" "0 0 [0, 0]"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE" 2>"$TMP/export.err" || fail "$1: csv" "$(cat "$TMP/export.err")"
	assert_eq "$1: csv" "$(python3 tests/live/values.py csv "$TMP/calls.csv" "$TMP/did.json" "${names[@]}" 2>&1)" "compared 541"
}

trace_target values "${specs[@]}"
compare "by default"
"$KXRAY" dump --json "$TRACE" >"$TMP/dump.json"
assert_eq "dump --json" "$(python3 tests/live/values.py dump "$TMP/dump.json" "$TMP/did.json" "${names[@]}" 2>&1)" "compared 541"
"$KXRAY" export -f chrome -o "$TMP/chrome.json" "$TRACE" 2>/dev/null
assert_eq "chrome" "$(python3 tests/live/values.py chrome "$TMP/chrome.json" "$TMP/did.json" "${names[@]}" 2>&1)" "compared 541"
for filter in "--depth 9" "--function take_*" "--exclude result_*" "--min-duration 1ns"; do
	# shellcheck disable=SC2086
	"$KXRAY" export -f csv $filter -o "$TMP/filtered.csv" "$TRACE" 2>"$TMP/export.err" || fail "csv $filter" "$(cat "$TMP/export.err")"
	assert_eq "csv $filter: rows with values that differ" "$(grep ',take_' "$TMP/filtered.csv" | grep -vxFf "$TMP/calls.csv")" ""
done
for value in "arg1 21 90" "arg2 14 77" "ret 20 90"; do
	set -- $value
	"$KXRAY" report --by-value "$1" --json "$TRACE" >"$TMP/by_value.json"
	assert_eq "report --by-value $1" "$(python3 tests/live/by_value.py "$TMP/calls.csv" "$1" "$TMP/by_value.json" 2>&1)" "$2 values, $3 calls"
	"$KXRAY" export -f pprof --pprof-label "$1" -o "$TMP/values.pb.gz" "$TRACE" 2>/dev/null
	assert_eq "pprof --pprof-label $1" "$(python3 tests/readers/pprof.py --labels "$TMP/values.pb.gz" 2>&1)" \
		"$(python3 tests/live/by_value.py labels "$TMP/by_value.json")"
done
"$KXRAY" export -f xray -o "$TMP/exported.xray" "$TRACE" 2>"$TMP/export.err" || fail "xray" "$(cat "$TMP/export.err")"
"$KXRAY" export -f csv -o "$TMP/exported.csv" "$TMP/exported.xray" 2>"$TMP/export.err" || fail "xray: csv" "$(cat "$TMP/export.err")"
assert_eq "xray" "$(python3 tests/live/values.py csv "$TMP/exported.csv" "$TMP/did.json" "${names[@]}" 2>&1)" "compared 541"
# calls without values, which the kernel side had no memory for, or whose beginning is in an earlier file, are not without a mark
LC_ALL=C sed 's/kxray:values /kxray:absent /g' "$TRACE" >"$TMP/unread.xray"
cp "$TRACE.map" "$TMP/unread.xray.map"
python3 -c 'import json, sys
did = json.load(sys.stdin)
for call in did["calls"]:
	call |= {"args": dict.fromkeys(call["args"]), "result": None}
json.dump(did, sys.stdout)' <"$TMP/did.json" >"$TMP/unread.json"
"$KXRAY" dump --json "$TMP/unread.xray" >"$TMP/unread.dump"
for format in csv chrome; do
	"$KXRAY" export -f $format -o "$TMP/unread.$format" "$TMP/unread.xray" 2>"$TMP/export.err" || fail "unread: $format" "$(cat "$TMP/export.err")"
done
for format in csv chrome dump; do
	assert_eq "unread: $format" "$(python3 tests/live/values.py $format "$TMP/unread.$format" "$TMP/unread.json" "${names[@]}" 2>&1)" "compared 541"
done
trace_target values "${specs[@]}" --callers --args 3
compare "with callers"
for mechanism in session multi single; do
	trace_target values "${specs[@]}" --mechanism $mechanism --exits instruction
	compare "$mechanism, return instructions"
done
trace_target values "${specs[@]}" --depth 3 --follow
compare "--depth, --follow"
trace_target values "${specs[@]}" --fdr-version 1
compare "FDR version 1"
trace_target values "${specs[@]}" --max-overhead 99
compare "--max-overhead"
