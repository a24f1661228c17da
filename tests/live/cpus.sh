#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 6 s
# The CPU of every record and the time of every migration, compared with the target's own log.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

if [ "$(nproc)" -lt 2 ]; then
	skip "CPUs" "this machine lets us use one only"
	exit
fi

TARGET_ARGS=--repeat=5 trace_target counts -f on_cpu -f leaf_nop5
expect "pinned" only=on_cpu,leaf_nop5 fdr cpus
# A migration between two calls shows only in the scheduler's event.
TARGET_ARGS=--repeat=10 trace_target hops -f stand
expect "moving" hops

trace_target hops -f stand --fdr-version 1
expect "moving, version 1" hops
for exits in none instruction return; do
	trace_target hops -f stand --exits "$exits"
	expect "moving, --exits=$exits" hops
done
trace_target hops -f stand --sched
expect "moving, with the scheduler's events" hops
trace_command hops -f stand
expect "moving, as a command" hops
