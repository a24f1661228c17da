#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What `kxray record --in-process` does to programs, N times each (default 5; 100 take hours), and one table of it:
#     sudo scripts/hazards-in-process.sh [N]
# The dangerous programs of tests/hazards in six ways (one beside other tools at the same functions), other tools around a recording in each
# order, SIGKILL of kxray and its keeper at 10 N random moments and, 4 N times in turns, in each of its calls that touch the target, and
# tests/live/in_process.sh. Then what is measured: the stack that recorded functions need, and how long waits take in which threads are stopped.
#
# harmed: the target's output, status or code is not what it is untraced, or it hangs; refused: kxray says why it does not record it, or functions
# not in process; inexact: its counts are not the target's own; failed: kxray ends wrongly. The rows' own tables are in $BUILD/hazards-in-process.
# Status 1 if a run was harmed, inexact or failed.
set -u

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
export BUILD=${BUILD:-build}
runs=${1:-5}
logs=$BUILD/hazards-in-process
mkdir -p "$logs"
total=(0 0 0 0 0)

row() { # WHAT RUNS HARMED REFUSED INEXACT FAILED
	local i=0 n
	printf '%-44s %6d %7d %8d %8d %7d\n' "$@"
	for n in "${@:2}"; do
		total[i]=$((total[i] + n))
		i=$((i + 1))
	done
}

# columns FILE: runs, harmed, refused, inexact and failed of run.py's line "all", which also has known and lossy ones; a table that
# has no such line failed
columns() { awk '$1 == "all" { print $2, $3, $5, $6, $8; found = 1 } END { if (!found) print "1 0 0 0 1" }' "$1"; }

# counted FILE NAME: the numbers of the line "NAME: R runs, H harmed[, N refused]"
counted() {
	sed -n "s/^$2: \([0-9]*\) runs, \([0-9]*\) harmed\(, \([0-9]*\) refused\)\?.*/\1 \2 \4/p" "$1" |
		awk '{ print $1, $2, $3 + 0, 0, 0; found = 1 } END { if (!found) print "1 0 0 0 1" }'
}

printf '%-44s %6s %7s %8s %8s %7s\n' what runs harmed refused inexact failed
for way in inprocess inprocess-leave inprocess-late inprocess-follow inprocess-follow-late inprocess-tools; do
	tests/hazards/run.py --runs "$runs" --ways $way --jobs "$(nproc)" >"$logs/$way.txt" 2>&1
	# shellcheck disable=SC2046
	row "programs, $way" $(columns "$logs/$way.txt")
done
while read -r tool; do
	tests/hazards/orders.py --runs "$runs" --tools "$tool" >"$logs/orders-${tool// /-}.txt" 2>&1
	# shellcheck disable=SC2046
	row "around it: $tool" $(counted "$logs/orders-${tool// /-}.txt" orders)
done < <(tests/hazards/orders.py --list)
tests/hazards/kills.py --runs $((10 * runs)) >"$logs/kills.txt" 2>&1
# shellcheck disable=SC2046
row "SIGKILL at random moments" $(counted "$logs/kills.txt" kills)
tests/hazards/kills.py --steps --runs $((4 * runs)) >"$logs/kills-steps.txt" 2>&1
# shellcheck disable=SC2046
row "SIGKILL in calls that touch the target" $(counted "$logs/kills-steps.txt" kills)
failed=0
for ((i = 0; i < runs; i++)); do
	tests/live/in_process.sh >"$logs/live-$i.txt" 2>&1
	! grep -q '^not ok' "$logs/live-$i.txt" || failed=$((failed + 1))
done
row "tests/live/in_process.sh" "$runs" 0 0 0 "$failed"
sums=("${total[@]}")
row all "${sums[@]}"
echo
tests/hazards/measures.py
measured=$?
[ $((sums[1] + sums[3] + sums[4] + measured)) = 0 ]
