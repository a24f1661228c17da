#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs the tests that are built in $BUILD (default build):
#     tests/run.sh [WHAT...]     unit, live, fuzz, vm, or names: test_fdr, counts.sh
# The last line is "N passed, N failed, N skipped"; status 1 if any failed.
# KX_TEST_TIMEOUT: seconds for one unit binary or script (default 900).
# KX_TEST_JOBS: how many unit binaries or VM scripts run at once (default: the number of CPUs).
set -u

cd "$(dirname "$0")/.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
export BUILD
limit=${KX_TEST_TIMEOUT:-900}
cores=${KX_TEST_JOBS:-$(nproc)}
passed=0 failed=0 skipped=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
trap 'stop 130' INT
trap 'stop 143' TERM
trap 'stop 129' HUP

wanted() { # KIND NAME
	[ $# -eq 2 ] && [ ${#selection[@]} -eq 0 ] && return 0
	local s
	for s in ${selection[@]+"${selection[@]}"}; do
		[ "$s" = "$1" ] || [ "$s" = "$2" ] || [ "$s.sh" = "$2" ] || [ "$s" = "$1/$2" ] && return 0
	done
	return 1
}

declare -A name_of=() log_of=() start_of=() # by process id, of what runs

# Each is the leader of a process group: timeout makes it one.
stop() { # STATUS
	local pid
	for pid in "${!name_of[@]}"; do
		kill "$pid" 2>/dev/null
	done
	wait
	exit "$1"
}

# execute AT-ONCE NAME COMMAND...: starts it once fewer than AT-ONCE are running. Each
# one's output is kept apart, and told when it is done.
execute() {
	local most=$1 name=$2 log
	shift 2
	while [ ${#name_of[@]} -ge "$most" ]; do
		collect
	done
	log=$(mktemp -p "$logs")
	# The shell has what it starts with & ignore SIGINT.
	env --default-signal=INT,QUIT timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null &
	name_of[$!]=$name log_of[$!]=$log start_of[$!]=$SECONDS
}

# collect: waits for the next one to end, tells about it
collect() {
	local pid status=0 p f s name log
	wait -n -p pid "${!name_of[@]}" || status=$?
	name=${name_of[$pid]} log=${log_of[$pid]}
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
		$((SECONDS - start_of[$pid]))
	if [ "$f" -gt 0 ]; then
		sed 's/^/    /' "$log" | tail -n 200
	else
		grep -aE '^(skip |(not )?ok [0-9]+ # SKIP)' "$log" | sed 's/^/    /'
	fi
	rm -f "$log"
	unset "name_of[$pid]" "log_of[$pid]" "start_of[$pid]"
}

collect_all() {
	while [ ${#name_of[@]} -gt 0 ]; do
		collect
	done
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
	execute "$cores" "unit/$name" env CMOCKA_MESSAGE_OUTPUT=TAP "$BUILD/tests/$name"
done
collect_all
# Scripts that are not executable are helpers of the others. Live ones have the machine
# to themselves; a virtual machine takes one core, and most of its time.
for kind in live fuzz vm; do
	at_once=1
	[ "$kind" = vm ] && at_once=$cores
	for script in tests/$kind/*.sh; do
		[ -x "$script" ] || continue
		name=$(basename "$script")
		wanted "$kind" "$name" || continue
		execute "$at_once" "$kind/$name" ${as_root[@]+"${as_root[@]}"} "$script"
	done
	collect_all
done

if [ $((passed + failed + skipped)) -eq 0 ]; then
	echo "no test has the name ${selection[*]-}"
	failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
