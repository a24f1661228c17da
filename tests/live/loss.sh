#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 23 s
# Rings far too small for a busy target: losses are counted, and the trace marks them.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

functions=(-f 'leaf_*' -f outer -f middle -f inner -f recursive -f 'tail_*')
only=leaf_a,leaf_b,leaf_nop5,outer,middle,inner,recursive,tail_first,tail_last

lossy() { # LABEL OPTION...
	local label=$1
	shift
	TARGET_ARGS=--repeat=4 trace_target counts "${functions[@]}" --ring-size 4K "$@"
	assert_eq "$label: statuses" "$STATUS $TARGET_STATUS" "0 0"
	assert_contains "$label: it says why" "$(cat "$TMP/rec.err")" "lost: ring buffer full"
	expect "$label" only=$only loss
}

lossy "return probes"
lossy "instruction exits" --exits=instruction
lossy "no exits" --exits=none
lossy "by multi" --mechanism multi
lossy "by single" --mechanism single
lossy "with arguments" --args 6
lossy "version 1" --fdr-version 1
expect "version 1" tools

TARGET_ARGS=--repeat=4 trace_target counts "${functions[@]}" --ring-size 4K --fail-on-loss
assert_eq "--fail-on-loss: status" "$STATUS" 3
expect "--fail-on-loss" only=$only loss
TARGET_ARGS="--repeat=4 --exit=5" trace_command counts "${functions[@]}" --ring-size 4K --fail-on-loss
assert_eq "--fail-on-loss: status with a command" "$STATUS" 3
run "$KXRAY" report --fail-on-loss "$TRACE"
assert_eq "report --fail-on-loss: status" "$STATUS" 3

# With rings of the default size nothing is lost.
TARGET_ARGS=--repeat=10 trace_target counts "${functions[@]}" --fail-on-loss
assert_eq "default rings: status" "$STATUS" 0
expect "default rings" only=$only account summary
run "$KXRAY" report --fail-on-loss "$TRACE"
assert_eq "default rings: status of report" "$STATUS" 0
