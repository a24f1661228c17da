#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 10 s
# USDT markers: each one is in the trace as often and with the values as the target passed it, by every mechanism; semaphores are up
# while kxray records and down again afterwards, also when it was killed; spans between two markers.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

values=(-f 'usdt:kxt:integers(arg1, arg2, arg3, arg4, arg5, arg6)' -f 'usdt:kxt:longs(arg1, arg2, arg3:ptr)'
	-f 'usdt:kxt:text(arg1:str[arg2], arg2)' -f 'usdt:kxt:memory(arg1, arg2, arg3, arg4)'
	-f 'usdt:kxt:constants(arg1, arg2, arg5, arg9, arg10, arg12)' -f 'usdt:kxp:*(arg1)' -f 'usdt:kxt:guarded')
names=(usdt:kxt:integers usdt:kxt:longs usdt:kxt:text usdt:kxt:memory usdt:kxt:constants usdt:kxp:twice usdt:kxp:none)

# counts: NAME COUNT of each marker in the report
counts() {
	"$KXRAY" report --json "$TRACE" | python3 -c 'import json, sys
print(*sorted(f["name"] + "=" + str(f["count"]) for f in json.load(sys.stdin)["functions"]))'
}

compare() { # NAME
	assert_eq "$1: statuses, lost, exits without entry: $(tail -n 1 "$TMP/rec.err")" \
		"$STATUS $TARGET_STATUS $(json "$TMP/rec.json" '[d["lost"], d["orphans"], d["repaired"]]')" "0 0 [0, 0, 0]"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE" 2>"$TMP/export.err" || fail "$1: csv" "$(cat "$TMP/export.err")"
	assert_eq "$1: values" "$(python3 tests/live/values.py csv "$TMP/calls.csv" "$TMP/did.json" "${names[@]}" 2>&1)" "compared 702"
	assert_eq "$1: guarded by the semaphore" "$(counts | grep -o 'guarded=[0-9]*') $(json "$TMP/did.json" 'd["guarded"]')" "guarded=50 50"
}

trace_target usdt "${values[@]}"
compare "by default"
