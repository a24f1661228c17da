#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 12 s
# --args N: every entry carries the first N integer arguments, with their values at the function's start.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

functions=(-f six_args -f on_cpu)

for n in 0 1 5 6; do
	trace_target counts "${functions[@]}" --args $n
	expect "$n arguments" only=six_args,on_cpu args=$n account fdr
done
for mechanism in multi single; do
	trace_target counts "${functions[@]}" --args 6 --mechanism $mechanism
	expect "by $mechanism" only=six_args,on_cpu args=6
done
for version in 1 3; do
	trace_target counts "${functions[@]}" --args 6 --fdr-version $version
	expect "version $version" only=six_args,on_cpu args=6 account tools
done
for exits in instruction none; do
	trace_target counts "${functions[@]}" --args 6 --exits $exits
	expect "--exits=$exits" only=six_args,on_cpu args=6 account
done
# The probe is moved past endbr64; the arguments must still be those at the function's start.
trace_target counts-cet "${functions[@]}" --args 6
expect "cet build" only=six_args,on_cpu args=6 account
