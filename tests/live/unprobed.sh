#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 25 s
# Functions whose probes the kernel does not set, although it accepts them, are named and counted; where all
# are set nothing is said.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

for how in "" "--mechanism=multi" "--mechanism=single" "--exits=instruction"; do
	# shellcheck disable=SC2086
	trace_target writable -f plain -f patched $how
	assert_eq "writable code ${how:-by default}: statuses" "$STATUS $TARGET_STATUS" "0 0"
	run "$KXRAY" report --json "$TRACE"
	cp "$TMP/run.out" "$TMP/report.json"
	assert_eq "writable code ${how:-by default}: the other function's calls" \
		"$(json "$TMP/report.json" '{f["name"]: f["count"] for f in d["functions"]}')" "{'plain': 1000}"
	assert_eq "writable code ${how:-by default}: functions without a probe" \
		"$(json "$TMP/rec.json" 'd.get("unprobed")')" 1
	message=$(grep 'no probe in process' "$TMP/rec.err")
	assert_contains "writable code ${how:-by default}: it is named" "$message" \
		"1 of 2 functions of writable have no probe in process $TARGET_PID"
	assert_contains "writable code ${how:-by default}: the reason" "$message" "(patched): the code is mapped writable"
	assert_contains "writable code ${how:-by default}: the summary" "$(cat "$TMP/rec.err")" \
		"1 function had no probe in the code of a traced process"
done

# Every kind of entry and exit, in the program and a library, is found.
for how in "" "--mechanism=multi" "--mechanism=single" "--exits=instruction" "--args 6"; do
	for target in counts counts-cet counts-nopie; do
		# shellcheck disable=SC2086
		trace_target $target "${COUNTED[@]}" -f 'libc.so*:mem*' $how
		assert_eq "$target ${how:-by default}: all probes are found" \
			"$STATUS $(json "$TMP/rec.json" 'd.get("unprobed")') $(grep -c 'no probe' "$TMP/rec.err")" "0 None 0"
	done
done
