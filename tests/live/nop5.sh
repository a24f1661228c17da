#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 4 s
# A function that begins with a nop of 5 bytes is recorded exactly, and children of the program call it unharmed, whatever this kernel does with a
# probe on such a nop.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

for how in "" --exits=none --exits=instruction --follow; do
	# shellcheck disable=SC2086
	trace_target forks_nop5 -f hot_patched $how
	assert_eq "record $how: the target" "$TARGET_STATUS $(json "$TMP/did.json" 'd["wrong"]')" "0 0"
	assert_eq "record $how: its calls" "$(json "$TMP/rec.json" 'd["events"]')" \
		$((($([[ $how = --follow ]] && echo 30 || echo 20)) * $([[ $how = --exits=none ]] && echo 1 || echo 2)))
done
trace_command forks_nop5 -f hot_patched
assert_eq "record -- COMMAND: the target" "$STATUS $(json "$TMP/did.json" 'd["wrong"]')" "0 0"
