#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures kxray's cost against empty BPF programs, perf and bpftrace:
#     scripts/bench.sh [empty] [callers] [values] [top] [peers] [share] [attach] [export] [diff] [compress] [syscalls] [follow] [rates] [accuracy]
#                      [bystander] [hitpath] [start] [collector] [budget] [fleet] [in-process]
# default: all. The figures as JSON, and a chart of them: scripts/bench_figures.py.
# Needs root, a built $BUILD (default build), and `scripts/setup.sh bench`. About half an hour, most of it for budget.
#
#     empty     a recorded call against the same probes with empty BPF programs
#     callers   a call recorded with --callers against one recorded without
#     values    a call recorded with values against one recorded without; one that a condition leaves out against an empty program
#     top       a call that kxray top counts and times against one recorded: the target's time, and with kxray's own CPU time
#     peers     perf record, bpftrace and trace-cmd on the same function; uftrace and LLVM XRay on rebuilt ones
#     share     scripts/bench-share.sh: functions with a cheap entry in some libraries
#     attach    scripts/bench-attach.sh: attaching to 10,000 functions, and detaching
#     export    scripts/bench-export.sh: report and export against llvm-xray
#     diff      scripts/bench-diff.sh: CPU time and memory of diff
#     merge     scripts/bench-merge.sh: CPU time and memory of merge
#     compress  scripts/bench-compress.sh: size and CPU time of record --compress
#     syscalls  scripts/bench-syscalls.sh: the time that tracing adds to a system call
#     follow    scripts/bench-follow.sh: how long newly mapped code runs untraced
#     rates     scripts/bench-rates.sh: the cost of recording against its prediction
#     accuracy  scripts/bench-accuracy.sh: durations against what the functions measure themselves
#     hitpath   scripts/bench-hitpath.sh: what each part of the program at a probe costs
#     budget    scripts/bench-budget.sh: what --max-overhead lets recording take
#     bystander scripts/bench-bystander.sh: malloc+free of a process that nobody asked to trace
#     fleet     scripts/bench-fleet.sh: a flight recorder with a dump and push every ten seconds
#     collector scripts/bench-collector.sh: what kxray itself takes, beside idle and busy programs
#     start     scripts/bench-start.sh: planning 100,000 functions, -a with 400 processes, the target's longest pause
#
# A figure about a call is the ratio of two consecutive measurements of the same running target's CPU time;
# the table shows the median, minimum and maximum of several such pairs.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
. scripts/bench-tools.sh
ROUNDS=${ROUNDS:-5}            # pairs for each ratio
CALLS=${CALLS:-20000}          # of one run; a measurement is the median of RUNS
RUNS=${RUNS:-9}
STEPPED_CALLS=${STEPPED_CALLS:-2000} # where the peers single-step

need_root
for file in "$KXRAY" "$BUILD/tests/empty"; do
	[ -x "$file" ] || die "$file is missing; run 'make tests'"
done
use_tracefs "$@"
bench_folder
tool=
target=
cleanup()
{
	if [ -n "$tool" ]; then
		kill -KILL "$tool" 2>/dev/null
	fi
	if [ -n "$target" ]; then
		kill -KILL "$target" 2>/dev/null
	fi
	wait 2>/dev/null
	if command -v perf >/dev/null; then
		perf probe -q -d 'kxbench:*' >/dev/null 2>&1
	fi
	rm -rf "$TMP"
}
trap cleanup EXIT
compile() # NAME SOURCE [ARG...]
{
	mkdir -p "$BUILD/tests/bench"
	${CC:-gcc} -std=gnu11 -O2 -D_GNU_SOURCE -fcf-protection=none \
		-I. -Iuser -I"$BUILD" -o "$BUILD/tests/bench/$1" "${@:2}" ||
		die "$2 does not compile"
}

# ratio NAME OPERATOR LIMIT DETAIL: from the lines of $TMP/pairs, "ABOVE BELOW"
ratio()
{
	awk '{ print $1 / $2 }' "$TMP/pairs" >"$TMP/ratios"
	local m l g
	m=$(median <"$TMP/ratios")
	l=$(least <"$TMP/ratios")
	g=$(greatest <"$TMP/ratios")
	verdict "$1" "$(printf %.2f "$m")" "$2" "$3" x \
		"$(printf '%.2f to %.2f; %s' "$l" "$g" "$4")"
}
# note NAME: the same without a limit
note()
{
	local m
	m=$(awk '{ print $1 / $2 }' "$TMP/pairs" | median)
	printf '%-4s  %-52s %9.2f %-3s %-11s %s\n' "" "$1" "$m" x "" \
		"$(column 1) / $(column 2) ns a call"
	printf 'bench name="%s" value=%.2f unit=x result=NOTE\n' "$1" "$m" >>"$TMP/lines"
}
# column N: prints the median of column N of $TMP/pairs
column() { cut -d' ' -f"$1" "$TMP/pairs" | median | xargs printf '%.0f'; }

# The target prints its functions' first bytes, which show whether a probe is in place.

start_target() # [COMMAND...]: the target, or a tool that runs it
{
	[ $# -gt 0 ] || set -- "$BUILD/tests/bench/target"
	rm -f "$TMP/in" "$TMP/out"
	mkfifo "$TMP/in" "$TMP/out"
	"${on_target_cpu[@]}" "$@" <"$TMP/in" >"$TMP/out" 2>"$TMP/target.err" &
	target=$!
	exec 5>"$TMP/in" 6<"$TMP/out"
	# Once it answers, taskset has executed the target.
	ask code bench_push
}
end_target()
{
	exec 5>&- 6<&-
	wait "$target" 2>/dev/null
	target=
}
ask()
{
	echo "$*" >&5
	read -r -t 60 -u 6 REPLY || die "the target does not answer"
}
# wait_code FUNCTION SAME|OTHER CODE: waits until the function's first bytes are (SAME) or are not (OTHER) CODE
wait_code()
{
	local end=$((SECONDS + 60))
	while [ $SECONDS -lt $end ]; do
		ask code "$1"
		if [ "$2" = SAME ] && [ "$REPLY" = "$3" ]; then return 0; fi
		if [ "$2" = OTHER ] && [ "$REPLY" != "$3" ]; then return 0; fi
		sleep 0.02
	done
	return 1
}
measure() # FUNCTION CALLS
{
	# Warm: caches, the tool's first page faults, and the kernel's optimization of a nop5.
	ask run "$1" 500 1
	ask run "$1" "$2" "$RUNS"
	read -r NS _ TOTAL <<<"$REPLY"
	TOTAL=$((TOTAL + 500))
}

# The same; BOTH: with the tool's own CPU time a call. It takes the tool up to a quarter of a second to notice that it has work.
measure_both()
{
	local before after
	read -r before _ <"/proc/$tool/schedstat"
	measure "$1" "$2"
	sleep 0.5
	read -r after _ <"/proc/$tool/schedstat"
	BOTH=$(awk -v ns="$NS" -v own=$((after - before)) -v calls="$TOTAL" 'BEGIN { print ns + own / calls }')
}

# pairs FUNCTION TOOL_A CALLS_A TOOL_B CALLS_B: fills $TMP/pairs with "A B" in ns a call
pairs()
{
	local i a
	: >"$TMP/pairs"
	for ((i = 0; i < ROUNDS; i++)); do
		"with_$2" "$1" "$3" || return 1
		a=$NS
		"with_$4" "$1" "$5" || return 1
		echo "$a $NS" >>"$TMP/pairs"
	done
}

bench_empty()
{
	local f
	[ "${kinds[0]}" = nop5 ] || cannot "recorded call / empty programs, nop5" "kxray puts no probes there: on this kernel they harm"
	for f in "${kinds[@]}"; do
		if pairs "bench_$f" kxray "$CALLS" empty "$CALLS"; then
			ratio "recorded call / empty programs, ${f//_/; }" "<=" 1.10 \
				"$(column 1) / $(column 2) ns a call, $mechanism"
		else
			cannot "recorded call / empty programs, ${f//_/; }" "$WHY"
		fi
	done
}

# The return address is one more argument of each entry.
bench_callers()
{
	local without
	if pairs bench_push callers "$CALLS" kxray "$CALLS"; then
		without=$KXRAY_BYTES
		note "recorded with --callers / without, push"
		with_callers bench_push "$CALLS"
		printf '%-4s  %-52s %9.1f %-3s %-11s %s\n' "" "bytes of an event on disk with --callers, push" \
			"$KXRAY_BYTES" B "" "without: $(printf %.1f "$without")"
		printf 'bench name="bytes of an event on disk with --callers, push" value=%.1f unit=B result=NOTE\n' \
			"$KXRAY_BYTES" >>"$TMP/lines"
	else
		cannot "recorded with --callers / without, push" "$WHY"
	fi
}

bench_top()
{
	local f i name a b
	for f in "${kinds[@]}"; do
		name="kxray top / record, CPU time of a call, ${f//_/; }"
		: >"$TMP/pairs"
		: >"$TMP/both"
		for ((i = 0; i < ROUNDS; i++)); do
			with_top "bench_$f" "$CALLS" || break
			a=$NS b=$BOTH
			with_kxray "bench_$f" "$CALLS" || break
			echo "$a $NS" >>"$TMP/pairs"
			echo "$b $BOTH" >>"$TMP/both"
		done
		if [ "$i" -lt "$ROUNDS" ]; then
			cannot "$name" "$WHY"
			continue
		fi
		note "the same, the target's part, ${f//_/; }"
		mv "$TMP/both" "$TMP/pairs"
		ratio "$name" "<=" 0.99 "$(column 1) / $(column 2) ns"
	done
}

# Of the cheapest call, which has the greatest ratio.
bench_values()
{
	local what limit f=${kinds[0]}
	for what in "number 1.15" "string 1.40"; do
		read -r what limit <<<"$what"
		if pairs "bench_$f" "$what" "$CALLS" kxray "$CALLS"; then
			ratio "$([ "$what" = number ] && echo "recorded with an integer and its result" ||
				echo "recorded with a string of 16 bytes") / without, $f" "<=" "$limit" \
				"$(column 1) / $(column 2) ns a call"
		else
			cannot "recorded with a $what / without, $f" "$WHY"
		fi
	done
	while IFS='@' read -r what KX_IF limit; do
		if ! pairs "bench_$f" rejected "$CALLS" empty_entry "$CALLS"; then
			cannot "rejected by $what / empty program at entry, $f" "$WHY"
		elif [ -n "$limit" ]; then
			ratio "rejected by $what / empty program at entry, $f" "<=" "$limit" "$(column 1) / $(column 2) ns a call"
		else
			note "rejected by $what / empty program at entry, $f"
		fi
	done <<'END'
a number@arg2 == 1@1.10
three numbers@arg2 == 1 || arg3:i32 == 123456 || arg4 == 1@
a string@arg1:str =~ "a*"@
the result@ret == 123456@
END
	KX_IF='arg2 == 1'
	if pairs "bench_$f" rejected "$CALLS" empty "$CALLS"; then
		ratio "rejected by a number / empty programs, $f" "<=" 1.10 "$(column 1) / $(column 2) ns a call"
	else
		cannot "rejected by a number / empty programs, $f" "$WHY"
	fi
}

# Tools that work inside the process, which was built for them.
bench_rebuilt()
{
	local name="kxray / uftrace, on a rebuilt program"
	if ! command -v uftrace >/dev/null; then
		cannot "$name" "uftrace is not installed"
	elif pairs bench_c kxray "$CALLS" uftrace "$CALLS"; then
		note "$name"
	else
		cannot "$name" "$WHY"
	fi
	name="kxray / LLVM XRay, on a rebuilt program"
	if [ -z "$xray" ]; then
		cannot "$name" "llvm-xray is not installed"
	elif pairs bench_c kxray "$CALLS" xray "$CALLS"; then
		note "$name"
	else
		cannot "$name" "$WHY"
	fi
}

bench_bpftrace()
{
	local name="bpftrace / kxray, endbr64; push"
	if ! command -v bpftrace >/dev/null; then
		cannot "$name" "bpftrace is not installed"
		return
	fi
	if pairs bench_endbr64_push bpftrace "$STEPPED_CALLS" kxray "$CALLS"; then
		ratio "$name" ">=" 12 "$(column 1) / $(column 2) ns a call"
	else
		cannot "$name" "$WHY"
	fi
	name="bpftrace printf / kxray, endbr64; push"
	if pairs bench_endbr64_push bpftrace_printf "$STEPPED_CALLS" kxray "$CALLS"; then
		ratio "$name" ">=" 12 "$(column 1) / $(column 2) ns a call; $PRINTED"
	else
		cannot "$name" "$WHY"
	fi
}

bench_peers()
{
	local name
	bench_rebuilt
	bench_trace_cmd
	# What moving the probe can gain at most, for any tool: it depends on this machine's cost of a trap.
	if pairs bench_endbr64_push empty_stepped "$STEPPED_CALLS" empty "$CALLS"; then
		note "empty programs at the endbr64 / at the push"
	fi
	bench_bpftrace
	name="perf record / kxray, endbr64; push"
	if ! command -v perf >/dev/null; then
		cannot "$name" "perf is not installed"
		return
	fi
	if perf_probes bench_endbr64_push &&
		pairs bench_endbr64_push perf "$STEPPED_CALLS" kxray "$CALLS"; then
		ratio "$name" ">=" 12 "$(column 1) / $(column 2) ns a call"
	else
		cannot "$name" "$WHY"
	fi
	name="kxray / perf record, push"
	if perf_probes bench_push && pairs bench_push kxray "$CALLS" perf "$CALLS"; then
		ratio "$name" "<=" 0.55 "$(column 1) / $(column 2) ns a call"
		verdict "bytes of an event on disk, push" "$(printf %.1f "$KXRAY_BYTES")" "<=" 10 B \
			"perf record: $(printf %.1f "$PERF_BYTES")"
	else
		cannot "$name" "$WHY"
		cannot "bytes of an event on disk, push" "$WHY"
	fi
}

# The same probes, which perf probe has made, as ftrace's events.
bench_trace_cmd()
{
	local name="trace-cmd / kxray, push"
	if ! command -v trace-cmd perf >/dev/null; then
		cannot "$name" "trace-cmd or perf is not installed"
	elif perf_probes bench_push && pairs bench_push trace_cmd "$CALLS" kxray "$CALLS"; then
		note "$name"
	else
		cannot "$name" "$WHY"
	fi
}

compile target tests/bench/target.c
compile target-uftrace tests/bench/target.c -pg
xray=$(command -v llvm-xray llvm-xray-14 llvm-xray-19 /usr/lib/llvm-14/bin/llvm-xray | head -n 1)
CC=${CLANG:-clang} compile target-xray tests/bench/target.c -DXRAY -fxray-instrument -fxray-instruction-threshold=1
xray_target=("$BUILD/tests/bench/target-xray")
cpu=/sys/devices/system/cpu/cpu0
# Its runtime reads the TSC only if it finds the frequency, which virtual machines do not tell; any will do here.
if ! [ -e "$cpu/tsc_freq_khz" ] && ! [ -e "$cpu/cpufreq/cpuinfo_max_freq" ]; then
	mkdir "$TMP/cpu0"
	echo 2500000 >"$TMP/cpu0/tsc_freq_khz"
	# shellcheck disable=SC2016
	xray_target=(unshare -m sh -c 'mount --bind "$2" "$1" && exec "$3"' sh "$cpu" "$TMP/cpu0" "${xray_target[@]}")
fi
# nops of 5 bytes get probes only where the kernel's way to do it harms nobody
kinds=(push endbr64_push)
"$KXRAY" functions -f bench_nop5 "$BUILD/tests/bench/target" 2>/dev/null | grep -q '^nop5 ' && kinds=(nop5 "${kinds[@]}")
mechanism=
echo "kxray bench: $(uname -sr), $(nproc) CPUs, median of $ROUNDS pairs of runs"
echo
printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"
start_target
for part in "${@:-all}"; do
	case $part in
	all)
		bench_empty
		bench_callers
		bench_values
		bench_top
		bench_peers
		;;
	empty | callers | values | top | peers) "bench_$part" ;;
	share | attach | export | diff | merge | compress | syscalls | follow | rates | accuracy | bystander | hitpath | start | collector | budget | fleet | in-process) ;;
	*) die "unknown part '$part': take empty, callers, values, top, peers, share, attach, export, diff, merge, compress, syscalls, follow, rates, accuracy, bystander, hitpath, start, collector, budget, fleet or in-process" ;;
	esac
done
end_target
summary
# Parts with a script of their own.
for script in share attach hitpath export diff merge compress syscalls follow rates accuracy bystander start collector budget fleet in-process; do
	for part in "${@:-all}"; do
		case $part in
		all | "$script")
			echo
			"scripts/bench-$script.sh" || missing=1
			;;
		esac
	done
done
[ "$missing" = 0 ]
