#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs the tests that are built in $BUILD (default build):
#     tests/run.sh [WHAT...]     unit, live, fuzz, vm, or names: test_fdr, counts.sh
# The last line is "N passed, N failed, N skipped"; status 1 if any failed.
# KX_TEST_TIMEOUT: seconds for one unit binary or script (default 600).
set -u

cd "$(dirname "$0")/.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
export BUILD
limit=${KX_TEST_TIMEOUT:-600}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

wanted() { # KIND NAME
	[ $# -eq 2 ] && [ ${#selection[@]} -eq 0 ] && return 0
	local s
	for s in ${selection[@]+"${selection[@]}"}; do
		[ "$s" = "$1" ] || [ "$s" = "$2" ] || [ "$s.sh" = "$2" ] || [ "$s" = "$1/$2" ] && return 0
	done
	return 1
}

# execute NAME COMMAND...: output into $log, counts from its report lines
execute() {
	local name=$1 status=0 p f s start=$SECONDS
	shift
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
	# "ok NAME", "not ok NAME: why", "skip NAME: reason"; TAP has "ok 1 - NAME".
	# TAP's skips are "ok 1 # SKIP" or "not ok 1 # SKIP".
	s=$(grep -acE '^(skip |(not )?ok [0-9]+ # SKIP)' "$log")
	p=$(grep -aE '^ok ' "$log" | grep -acvE '^ok [0-9]+ # SKIP')
	f=$(grep -aE '^not ok ' "$log" | grep -acvE '^not ok [0-9]+ # SKIP')
	if [ "$f" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((p + s)) -eq 0 ]; }; then
		f=1
		case $status in
		124 | 137) echo "not ok $name: not done after $limit seconds" ;;
		0) echo "not ok $name: it ran no test" ;;
		*) echo "not ok $name: ended with status $status" ;;
		esac >>"$log"
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf '%-32s %4d passed %3d failed %3d skipped %5d s\n' "$name" "$p" "$f" "$s" \
		$((SECONDS - start))
	if [ "$f" -gt 0 ]; then
		sed 's/^/    /' "$log" | tail -n 200
	else
		grep -aE '^(skip |(not )?ok [0-9]+ # SKIP)' "$log" | sed 's/^/    /'
	fi
}

selection=("$@")
as_root=()
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
	as_root=(sudo -E)
fi

for source in tests/unit/test_*.c; do
	[ -e "$source" ] || continue
	name=$(basename "$source" .c)
	wanted unit "$name" || continue
	execute "unit/$name" env CMOCKA_MESSAGE_OUTPUT=TAP "$BUILD/tests/$name"
done
# Scripts that are not executable are helpers of the others.
for kind in live fuzz vm; do
	for script in tests/$kind/*.sh; do
		[ -x "$script" ] || continue
		name=$(basename "$script")
		wanted "$kind" "$name" || continue
		execute "$kind/$name" ${as_root[@]+"${as_root[@]}"} "$script"
	done
done

if [ $((passed + failed + skipped)) -eq 0 ]; then
	echo "no test has the name ${selection[*]-}"
	failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
