#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# --results: every exit carries what the call returned, as the target itself got it.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# compare NAME [--without FUNCTION]: each call's result, function by function
compare() {
	local name=$1
	shift
	assert_eq "$name: statuses, lost, exits without entry" \
		"$STATUS $TARGET_STATUS $(json "$TMP/rec.json" '[d["lost"], d["orphans"]]')" "0 0 [0, 0]"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE" 2>"$TMP/export.err" || fail "$name: export" "$(cat "$TMP/export.err")"
	assert_eq "$name: results" "$(python3 tests/live/results.py "$TMP/calls.csv" "$TMP/did.json" "$@")" "compared 530"
}

export TARGET_ARGS=--repeat=10
trace_target values -f 'result_*' --results
compare "by default"
trace_target values -f 'result_*' --results --args 2 --callers
compare "with arguments and callers"
trace_target values -f 'result_*' --results --exits return
compare "return probes"
for mechanism in session multi single; do
	trace_target values -f 'result_*' --results --mechanism $mechanism --exits instruction
	compare "$mechanism, return instructions" --without result_tail
done
trace_target values -f 'result_*' --results --min-duration 1ns
compare "--min-duration"
trace_target values -f 'result_*' --results --exits instruction --fdr-version 1
compare "FDR version 1" --without result_tail
trace_target values -f 'result_*'
assert_eq "without --results there is none" "$(
	"$KXRAY" export -f csv -o - "$TRACE" 2>/dev/null | cut -d, -f14 | sort -u | tr -d '\r\n'
)" result

# The target is this shell's child. Kernel functions: vm/kernel_functions.sh.
unset TARGET_ARGS
trace_target kernelcalls -f 'syscall:getppid' --results
"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE" 2>/dev/null
assert_eq "of system calls" \
	"$(awk -F, 'NR > 1 { print $4, $14 }' "$TMP/calls.csv" | tr -d '\r' | sort | uniq -c | awk '{ print $1, $2, $3 }')" \
	"400 getppid $$"
