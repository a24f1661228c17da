#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# How near recorded durations come to what functions measure inside themselves, after subtraction of the probes'
# own time: the median error for functions of 150 ns to 1 ms with cheap and with single-stepped entries, and of
# functions that call ten of those. Called by scripts/bench.sh; needs a built $BUILD and its tests.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-5} # recordings; a figure is the median of theirs

need_root
target=$BUILD/tests/targets/self_timed
[ -x "$target" ] || die "$target is missing; run 'make tests'"
bench_folder
trap 'rm -rf "$TMP"' EXIT
for ((i = 0; i < ROUNDS; i++)); do
	# by default the stepped ones would have cheap entries, and exits at their return instructions
	"$KXRAY" record -q --exits=return -o "$TMP/t.xray" -f 'cheap_*' -f 'stepped_*' -f 'parent_*' -- "$target" --start=now \
		>"$TMP/out" 2>"$TMP/err" || die "recording failed: $(cat "$TMP/err")"
	tail -n 1 "$TMP/out" >"$TMP/did.json"
	objcopy --dump-section .kxray.session="$TMP/session" "$TMP/t.xray.map" "$TMP/copy"
	python3 tests/live/probe_cost.py accuracy "$TMP/t.xray" "$TMP/session" "$TMP/did.json" >>"$TMP/errors"
done
for function in {cheap,stepped}_{150ns,1us,10us,1ms,rare,walk} parent_{cheap,stepped}; do
	column() { awk -v f="$function" -v c="$1" '$1 == f { print $c }' "$TMP/errors"; }
	case $function in
	*_walk) limit=10000 ;; # 1 percent: how much of the probes' code and data stays in the caches is the function's
	cheap*) limit=100 ;;
	stepped*) limit=1000 ;;
	parent_cheap) limit=1000 ;;    # ten calls and their probes
	parent_stepped) limit=10000 ;;
	esac
	verdict "error of the duration of $function" "$(column 4 | tr -d - | median)" "<=" "$limit" ns \
		"$(column 4 | least) to $(column 4 | greatest); recorded $(column 3 | median); sixths of one recording's calls: $(column 5 | median) apart"
done
summary
