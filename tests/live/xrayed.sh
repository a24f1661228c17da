#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 8 s
# A binary built by clang -fxray-instrument: its sleds, its ids, its own map.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# Ids are indices into the binary's own xray_instr_map: alpha, beta, gamma_, main.
trace_target xrayed -f alpha -f beta -f gamma_
assert_eq "statuses" "$STATUS $TARGET_STATUS" "0 0"
expect "all" report account fdr summary tools ids=alpha:1,beta:2,gamma_:3
MAP=$TARGETS/xrayed expect "with the binary as the map" report account fdr summary tools \
	ids=alpha:1,beta:2,gamma_:3

# A function keeps its id even if the functions before it are not traced.
trace_target xrayed -f gamma_
MAP=$TARGETS/xrayed expect "one of them" only=gamma_ account fdr ids=gamma_:3

# A function that is not instrumented gets an id after the binary's own.
trace_target xrayed -f gamma_ -f uninstrumented
expect "one that has no sleds" extra=uninstrumented:100 only=gamma_,uninstrumented account fdr \
	ids=gamma_:3,uninstrumented:5

for exits in return instruction none; do
	trace_target xrayed -f alpha -f beta -f gamma_ --exits $exits
	MAP=$TARGETS/xrayed expect "--exits=$exits" account fdr ids=alpha:1,beta:2,gamma_:3
done
trace_command xrayed -f alpha -f main
expect "as a command" only=alpha extra=main:1 account fdr ids=alpha:1,main:4
