#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 27 s
# Frames that end without a return: exceptions, forced unwinding, longjmp, deep recursion.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

traced() { # LABEL REPAIRED CHECK...
	local label=$1 repaired=$2
	shift 2
	assert_eq "$label: the target's answer" "$TARGET_STATUS" 0
	assert_eq "$label: kxray's status" "$STATUS" 0
	expect "$label" "$@" "repaired=$repaired" report account fdr
}

# 20,000 exceptions through two traced frames; the target's status shows whether all were caught.
trace_target throws -f catcher -f passer -f thrower
traced "exceptions" 40000 cxx=long
assert_contains "exceptions: why the exits are expensive" "$(cat "$TMP/rec.err")" "expensive exits"
assert "exceptions: what they cost" "$(cat "$TMP/rec.err")" grep -qE \
	'expensive exits, about [0-9.]+ us a call \(.*; --exits=none records entries alone, at about [0-9.]+ us$' "$TMP/rec.err"

# 20 pthread_exit and 20 pthread_cancel, each through three cleanup handlers.
trace_target cancel -f top -f middle -f bottom
traced "forced unwinding" 120 tools
assert_eq "forced unwinding: handlers" "$(json "$TMP/did.json" 'd["handlers"]')" 120

# A longjmp leaves eleven frames. The kernel nests at most 64 return probes: it misses the returns of
# the other 937 of 1,001 frames.
for exits in auto return instruction none; do
	case $exits in
	none) jumps=3250 dives=10010 ;; # every call is closed by kxray
	instruction) jumps=2750 dives=0 ;;
	*) jumps=2750 dives=9370 ;;
	esac
	trace_target longjmp -f catcher -f dive -f jump -f after --exits=$exits
	traced "longjmp, --exits=$exits" $jumps tools
	trace_target deep -f descend -f bottom --exits=$exits
	traced "recursion, --exits=$exits" $dives tools
done

# Functions that return twice or to another place, also those of the C library. The target's status shows
# whether all went right; end_target ends an endless loop.
for mechanism in session multi single; do
	for pattern in 'libc.so*:*setjmp*' 'libc.so*:*'; do
		# The kernel takes minutes to remove thousands of single probes.
		[ "$mechanism $pattern" = 'single libc.so*:*' ] && continue
		trace_target returns -f "$pattern" --mechanism $mechanism
		assert_eq "returning twice, $pattern, $mechanism: the target's answer" "$TARGET_STATUS" 0
		expect "returning twice, $pattern, $mechanism" whole balanced
	done
done
