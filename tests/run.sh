#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Runs the tests that are built in $BUILD (default build); tests/README.md describes them.
#     tests/run.sh [WHAT...]     everything, or some: fast, unit, files, live, hazards, fuzz, vm, or
#                                names of single ones: test_plan, counts.sh, vm/sched
# The last line is "N passed, N failed, N skipped"; status 1 if a test failed or a WHAT names no test.
#
# Several tests run at a time, the longest first. Tests marked "alone" run last, one at a time, beside tests
# that touch no other process: those that need no root, and those in guests.
#     KX_TEST_JOBS      how many at a time (default: twice the number of CPUs, and one: many wait)
#     KX_TEST_TIMEOUT   seconds after which a test counts as hanging (default 1800)
#     KX_TEST_RETRY=1   a test that fails is run once more, at the end and alone
set -u

cd "$(dirname "$0")/.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
export BUILD
limit=${KX_TEST_TIMEOUT:-1800}
most=${KX_TEST_JOBS:-$((2 * $(nproc) + 1))}
retry=${KX_TEST_RETRY:-0}
passed=0 failed=0 skipped=0
again=() second_try=()
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
# A version manager's python3 is a shell script, which costs more than most of the tests' Python programs, and its
# interpreter takes twice as long to start as Debian's, if it has many packages.
if [ -x /usr/bin/python3 ] && [ "$(command -v python3)" != /usr/bin/python3 ]; then
	mkdir "$logs/bin"
	ln -s /usr/bin/python3 "$logs/bin/"
	PATH=$logs/bin:$PATH
fi
trap 'stop 130' INT
trap 'stop 143' TERM
trap 'stop 129' HUP

# $list has one line per test: "MODE SECONDS KIND/NAME ROOT", ROOT being "user", "guest" or nothing. They come from
# the script's header line, e.g. "# run: parallel, 12 s" or "# run: alone, 5 s, without root"; a script without such
# a line is a helper, not a test. The seconds affect only the order.
list=$logs/list
# "# run with both kernels: ..." is only for .ci/run and `make kernels` (KX_VM_SERIES names two).
both=()
[[ ${KX_VM_SERIES:-} != *" "* ]] || both=(-e 's/ run with both kernels:/ run:/')
header_of() { sed -n "${both[@]}" -e 's/^[/# ]* run: \(parallel\|alone\), \([0-9]*\) s\(, without root\)\?$/\1 \2 \3/p;20q' "$1"; }

find_tests() {
	local source mode seconds rest
	for source in tests/unit/test_*.c; do
		read -r mode seconds rest <<<"$(header_of "$source")"
		echo "${mode:-parallel} ${seconds:-1} unit/$(basename "$source" .c) user"
	done
	for source in tests/{files,live,hazards,fuzz,vm}/*.sh; do
		[ -x "$source" ] || continue
		read -r mode seconds rest <<<"$(header_of "$source")"
		case $source in
		tests/vm/*) rest=guest ;;
		*) rest=${rest:+user} ;;
		esac
		[ -z "$mode" ] || echo "$mode $seconds ${source#tests/} $rest"
	done
}

# chosen WHAT: the lines of $list that WHAT selects
chosen() {
	awk -v what="$1" '{
		kind = name = $3
		sub("/.*", "", kind)
		sub(".*/", "", name)
		if (what == kind || what == name || what ".sh" == name || what == $3 || what ".sh" == $3 ||
			(what == "fast" && $4 == "user"))
			print
	}' "$list"
}

# The command of a test, in $command
command_of() { # KIND/NAME ROOT
	case $1 in
	unit/*) command=(env CMOCKA_MESSAGE_OUTPUT=TAP "$BUILD/tests/${1#unit/}") ;;
	*)
		command=("tests/$1")
		[ "$2" = user ] || command=(${as_root[@]+"${as_root[@]}"} "${command[@]}")
		;;
	esac
}

declare -A name_of=() log_of=() start_of=() # of running tests, indexed by process id
declare -A root_of=() mode_of=()            # indexed by test name

# timeout makes each test the leader of a process group, and passes the signal on to it.
stop() { # STATUS
	local pid
	for pid in "${!name_of[@]}"; do
		kill "$pid" 2>/dev/null
	done
	wait
	exit "$1"
}

# busy MOST: succeeds if MOST tests are running
busy() { [ ${#name_of[@]} -ge "$1" ]; }

# disturbed: succeeds if a test is running beside which an "alone" test must not run
disturbed() {
	local name
	for name in "${name_of[@]}"; do
		[ -n "${root_of[$name]}" ] && [ "${mode_of[$name]}" = parallel ] || return 0
	done
	return 1
}

# start KIND/NAME: starts a test. collect prints its output when it has ended.
start() {
	local name=$1 log command
	log=$(mktemp -p "$logs")
	command_of "$name" "${root_of[$name]}"
	# The shell makes background commands ignore SIGINT.
	env --default-signal=INT,QUIT timeout -k 10 "$limit" \
		bash -c 'TIMEFORMAT="run.sh: CPU time %U %S"; time "$@"' "$name" "${command[@]}" >"$log" 2>&1 </dev/null &
	name_of[$!]=$name log_of[$!]=$log start_of[$!]=$SECONDS
}

# unexpected NAME LOG: prints "TEST: REASON" for each skip that tests/expected-skips does not list
unexpected() {
	local user=any
	[ "$(id -u)" = 0 ] || user=user
	sed -nE 's/[[:space:]]*$//; s/^skip ([^:]*): ?(.*)/\1|\2/p; s/^(not )?ok [0-9]+ # SKIP ?(.*)/\2|/p' "$2" |
		while IFS='|' read -r test reason; do
			while IFS='|' read -r script tests reasons run_by _; do
				[[ $1 == $script && $test == $tests && $reason == $reasons ]] || continue
				[ "$run_by" = any ] || [ "$run_by" = "$user" ] || continue
				continue 2
			done < <(sed -E '/^#/d; s/[[:space:]]*\|[[:space:]]*/|/g' tests/expected-skips)
			echo "$test: $reason"
		done
}

# collect: waits until a test ends and prints its result
collect() {
	local pid status=0 p f s cpu name log line
	wait -n -p pid "${!name_of[@]}" || status=$?
	name=${name_of[$pid]} log=${log_of[$pid]}
	# "ok NAME", "not ok NAME: why", "skip NAME: reason"; TAP has "ok 1 - NAME".
	# TAP's skips are "ok 1 # SKIP" or "not ok 1 # SKIP".
	while IFS= read -r line; do
		echo "not ok $line (skipped, which tests/expected-skips does not expect)" >>"$log"
	done < <(unexpected "$name" "$log")
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
	# of those that had to be killed it is not known
	cpu=$(sed -n 's/^run\.sh: CPU time //p' "$log" | awk '{ s += $1 + $2 } END { printf "%.1f", s }')
	sed -i '/^run\.sh: CPU time /d' "$log"
	printf '%-32s %4d passed %3d failed %3d skipped %5d s, %5.1f s of CPU time\n' "$name" "$p" "$f" "$s" \
		$((SECONDS - start_of[$pid])) "$cpu"
	if [ "$f" -gt 0 ]; then
		sed 's/^/    /' "$log" | tail -n 200
	else
		grep -aE '^(skip |(not )?ok [0-9]+ # SKIP)' "$log" | sed 's/^/    /'
	fi
	rm -f "$log"
	unset "name_of[$pid]" "log_of[$pid]" "start_of[$pid]"
	if [ "$f" -gt 0 ] && [ "$retry" = 1 ]; then
		again+=("$name")
		return
	fi
	[ "$retry" != 2 ] || [ "$f" -gt 0 ] || second_try+=("$name")
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

collect_all() {
	while [ ${#name_of[@]} -gt 0 ]; do
		collect
	done
}

as_root=()
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
	as_root=(sudo -E)
fi

find_tests >"$list"
[ $# -gt 0 ] || set -- unit files live hazards fuzz vm
for what in "$@"; do
	if [ -z "$(chosen "$what")" ]; then
		echo "not ok $what: no test has this name"
		failed=$((failed + 1))
	fi
done
if [ "$failed" -gt 0 ]; then
	echo "0 passed, $failed failed, 0 skipped"
	exit 1
fi

[ "$*" != fast ] || export KX_TEST_FAST=1
# The longest first. What needs no root waits for the "alone" tests, to run beside them, and so do short guests; long
# ones are needed earlier, since they work while others wait.
shared=() alone=() unshared=()
while read -r mode seconds name root; do
	root_of[$name]=$root mode_of[$name]=$mode
	case $mode,$root in
	alone,*) alone+=("$name") ;;
	*,user) unshared+=("$name") ;;
	*,guest) if [ "$seconds" -le 40 ]; then unshared+=("$name"); else shared+=("$name"); fi ;;
	*) shared+=("$name") ;;
	esac
done < <(for what in "$@"; do chosen "$what"; done | sort -u | sort -k2,2nr -k3,3)
while [ $((${#shared[@]} + ${#alone[@]} + ${#unshared[@]})) -gt 0 ]; do
	if busy "$most"; then
		collect
	elif [ ${#shared[@]} -gt 0 ]; then
		start "${shared[0]}"
		shared=("${shared[@]:1}")
	elif [ ${#alone[@]} -gt 0 ] && ! disturbed; then
		start "${alone[0]}"
		alone=("${alone[@]:1}")
	elif [ ${#unshared[@]} -gt 0 ]; then
		start "${unshared[0]}"
		unshared=("${unshared[@]:1}")
	else
		collect
	fi
done
collect_all

if [ ${#again[@]} -gt 0 ]; then
	retry=2
	for name in "${again[@]}"; do
		echo "once more: $name"
		start "$name"
		collect_all
	done
	for name in ${second_try[@]+"${second_try[@]}"}; do
		echo "passed at the second try: $name"
	done
	echo "${#second_try[@]} of ${#again[@]} that failed passed at the second try"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
