#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 32 s
# Every version of the format from a live target, and recordings with hundreds of buffers.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

for version in 1 2 3 4 5; do
	trace_target counts "${COUNTED[@]}" --fdr-version $version
	assert_eq "version $version: statuses" "$STATUS $TARGET_STATUS" "0 0"
	expect "version $version" version=$version account report fdr threads summary cpus tools
done

# Six arguments per call fill many buffers with few calls. The rings are large enough for the whole recording.
for version in 1 5; do
	TARGET_ARGS=--repeat=32 trace_target counts -f leaf_a -f leaf_nop5 --args 6 --ring-size 64M \
		--fdr-version $version
	expect "version $version, long" only=leaf_a,leaf_nop5 version=$version buffers=68 account \
		report fdr summary long_tools
done
