#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures kxray's cost against empty BPF programs, perf and bpftrace:
#     scripts/bench.sh [empty] [callers] [values] [top] [peers] [share] [attach] [export] [diff] [compress] [syscalls] [follow] [rates] [accuracy]
#                      [bystander] [hitpath] [start] [budget] [fleet]
# default: all. The figures as JSON, and a chart of them: scripts/bench_figures.py.
# Needs root, a built $BUILD (default build), and `scripts/setup.sh bench`. About half an hour, most of it for budget.
#
#     empty     a recorded call against the same probes with empty BPF programs
#     callers   a call recorded with --callers against one recorded without
#     values    a call recorded with values against one recorded without; one that a condition leaves out against an empty program
#     top       a call that kxray top counts and times against one recorded: the target's time, and with kxray's own CPU time
#     peers     perf record, bpftrace and trace-cmd on the same function; uftrace and LLVM XRay on rebuilt ones
#     share     functions with a cheap entry in some libraries, with return probes and without, and why the others have none
#     attach    attaching to 10,000 functions, and detaching
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
#     start     scripts/bench-start.sh: planning 100,000 functions, -a with 400 processes, the target's longest pause
#
# A figure about a call is the ratio of two consecutive measurements of the same running target's CPU time;
# the table shows the median, minimum and maximum of several such pairs.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-5}            # pairs for each ratio
CALLS=${CALLS:-20000}          # of one run; a measurement is the median of RUNS
RUNS=${RUNS:-9}
STEPPED_CALLS=${STEPPED_CALLS:-2000} # where the peers single-step

need_root
[ -x "$KXRAY" ] || die "$KXRAY is missing; run 'make'"
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

divide() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f\n", b ? a / b : 0 }'; }

# field FILE KEY: prints a number from a JSON object on one line
field() { sed -n "s/.*\"$2\":\([-0-9.e+]*\).*/\1/p" "$1" | tail -n 1; }

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
# with_TOOL FUNCTION CALLS: puts ns a call into NS, or the reason into WHY and returns 1. Each removes its
# probes and checks that the tool has recorded every call.

with_empty() { empty_at "$1" "$2" "$([ "$1" = bench_endbr64_push ] && echo 4 || echo 0)"; }
with_empty_stepped() { empty_at "$1" "$2" 0; }

with_empty_entry() { empty_at "$1" "$2" "$([ "$1" = bench_endbr64_push ] && echo 4 || echo 0)" entry; }

empty_at() # FUNCTION CALLS OFFSET [entry]
{
	WHY="empty programs could not be attached"
	rm -f "$TMP/hold"
	mkfifo "$TMP/hold"
	"${on_tool_cpus[@]}" "$BUILD/tests/bench/empty" "$target" "$1" "$3" ${4:-} \
		<"$TMP/hold" >"$TMP/tool.out" 2>"$TMP/tool.err" &
	tool=$!
	exec 7>"$TMP/hold"
	if wait_text "$TMP/tool.out" ready; then
		mechanism=$(sed -n 's/ready //p' "$TMP/tool.out")
		measure "$1" "$2"
		WHY=
	fi
	exec 7>&-
	wait "$tool" 2>/dev/null
	tool=
	[ -z "$WHY" ]
}

with_kxray()
{
	WHY="kxray did not start"
	# shellcheck disable=SC2086
	start_tool "$TMP/record.json" "$TMP/tool.err" "$KXRAY" record -p "$target" -f "$1${KX_VALUES:-}" \
		-o "$TMP/trace.xray" --json ${KX_BENCH_RECORD:-}
	if wait_text "$TMP/tool.err" '^kxray: recording'; then
		measure_both "$1" "$2"
		WHY=
	fi
	end_tool
	[ -z "$WHY" ] || { WHY="$WHY: $(head -n 1 "$TMP/tool.err")" && return 1; }
	KXRAY_BYTES=$(divide "$(field "$TMP/record.json" bytes)" "$(field "$TMP/record.json" events)")
	if [ "$(field "$TMP/record.json" events)" != $((2 * TOTAL)) ]; then
		WHY="kxray recorded $(field "$TMP/record.json" events) of $((2 * TOTAL)) events"
		return 1
	fi
}

# The same with --callers.
with_callers() { KX_BENCH_RECORD="${KX_BENCH_RECORD:-} --callers" with_kxray "$@"; }

# only_repeats ENTRY RETURN: succeeds if perf has recorded each call of the target's thread; prints what it has recorded beside.
# The function does not recurse, so two entries without a return between them are one call: the kernel runs a probe again
# if the probed instruction could not be executed (a signal, a page fault). The same holds for two returns. Of a
# call without its entry or its return, the neighbours become one, and a call is missing.
only_repeats()
{
	perf script -i "$TMP/perf.data" -F tid,event 2>/dev/null |
		awk -v target="$target" -v calls="$TOTAL" -v entry="$1" -v return_="$2" '
		{ sub(/:$/, "", $2) }
		$1 != target || ($2 != entry && $2 != return_) { others[$1 " " $2]++; next }
		$2 == last { repeats[$2]++; next }
		{ n[$2]++; last = $2 }
		END {
			for (k in repeats) printf "bench: perf recorded %d of %s twice\n", repeats[k], k
			for (k in others) { split(k, p, " "); printf "bench: perf also recorded %d of %s in thread %s\n", others[k], p[2], p[1] }
			exit n[entry] != calls || n[return_] != calls || repeats[entry] + repeats[return_] > calls / 1000
		}' >&2
}

# Both events go into buffers of the same size as kxray's rings.
with_perf()
{
	local samples
	WHY="perf record did not start"
	rm -f "$TMP/ctl" "$TMP/ack"
	mkfifo "$TMP/ctl" "$TMP/ack"
	exec 8<>"$TMP/ctl" 9<>"$TMP/ack"
	start_tool "$TMP/tool.out" "$TMP/tool.err" perf record -p "$target" -m 16M -D -1 \
		--control "fifo:$TMP/ctl,$TMP/ack" -o "$TMP/perf.data" \
		-e "kxbench:${1}_entry,kxbench:${1}_return__return"
	echo enable >&8
	if read -r -t 60 -u 9 REPLY; then
		measure "$1" "$2"
		WHY=
	fi
	end_tool
	exec 8>&- 9>&-
	[ -z "$WHY" ] || { WHY="$WHY: $(head -n 1 "$TMP/tool.err")" && return 1; }
	samples=$(sed -n 's/.*(\([0-9]*\) samples).*/\1/p' "$TMP/tool.err")
	PERF_BYTES=$(divide "$(stat -c %s "$TMP/perf.data")" "${samples:-0}")
	# perf record prints a count estimated from the file's size, so count the samples in the file.
	samples=$(perf report -i "$TMP/perf.data" --stats 2>/dev/null |
		sed -n 's/^ *SAMPLE events: *\([0-9]*\).*/\1/p' | head -n 1)
	if [ "$samples" != $((2 * TOTAL)) ] &&
		! only_repeats "kxbench:${1}_entry" "kxbench:${1}_return__return"; then
		WHY="perf recorded $samples of $((2 * TOTAL)) events"
		return 1
	fi
	PERF_BYTES=$(divide "$(stat -c %s "$TMP/perf.data")" "$samples")
}

# Both events by ftrace, with its buffer of the same size as kxray's rings.
with_trace_cmd()
{
	local counted
	WHY="trace-cmd did not start"
	start_tool "$TMP/tool.out" "$TMP/tool.err" trace-cmd record -b 16384 -P "$target" -o "$TMP/trace.dat" \
		-e "kxbench:${1}_entry" -e "kxbench:${1}_return__return"
	if wait_text "$TMP/tool.out" 'Hit Ctrl^C'; then
		measure "$1" "$2"
		WHY=
	fi
	end_tool
	[ -z "$WHY" ] || { WHY="$WHY: $(tr -s '\n ' '  ' <"$TMP/tool.err" | cut -c 1-200)" && return 1; }
	counted=$(trace-cmd report -i "$TMP/trace.dat" 2>/dev/null | grep -c "${1}_\(entry\|return__return\)")
	if [ "$counted" != $((2 * TOTAL)) ]; then
		WHY="trace-cmd recorded $counted of $((2 * TOTAL)) events"
		return 1
	fi
}

# bpftrace_with FUNCTION CALLS AT-ENTRY AT-RETURN: actions of the two probes
bpftrace_with()
{
	local code program=$BUILD/tests/bench/target
	WHY="bpftrace did not start"
	ask code "$1"
	code=$REPLY
	start_tool "$TMP/tool.out" "$TMP/tool.err" env BPFTRACE_PERF_RB_PAGES=4096 bpftrace -p "$target" -e "
		uprobe:$program:$1 { $3 }
		uretprobe:$program:$1 { $4 }"
	# The changed byte shows only the entry probe; the return probe is attached shortly after it.
	if wait_text "$TMP/tool.out" Attaching && wait_code "$1" OTHER "$code"; then
		sleep 0.5
		measure "$1" "$2"
		WHY=
	fi
	end_tool
	[ -z "$WHY" ] || { WHY="$WHY: $(tail -n 1 "$TMP/tool.err")" && return 1; }
}

with_bpftrace()
{
	local counted
	bpftrace_with "$1" "$2" '@entered[tid] = nsecs;' '@returns = count();' || return
	counted=$(sed -n 's/^@returns: //p' "$TMP/tool.out")
	if [ "$counted" != "$TOTAL" ]; then
		WHY="bpftrace recorded ${counted:-no} returns in $TOTAL calls"
		return 1
	fi
}

# Each event to user space, as a line. Some are lost, which does not change what a call takes.
with_bpftrace_printf()
{
	local counted
	bpftrace_with "$1" "$2" 'printf("E %lu %d\n", nsecs, tid);' 'printf("X %lu %d\n", nsecs, tid);' || return
	counted=$(grep -c '^[EX] ' "$TMP/tool.out")
	PRINTED="$counted of $((2 * TOTAL)) events were printed"
	if [ "$counted" -lt $((TOTAL * 18 / 10)) ] || [ "$counted" -gt $((2 * TOTAL)) ]; then
		WHY="bpftrace: $PRINTED"
		return 1
	fi
}

# with_rebuilt FUNCTION CALLS COMMAND...: in another process, which runs a build of the target for that tool
with_rebuilt()
{
	end_target
	start_target "${@:3}"
	measure "$1" "$2"
	end_target
	start_target
}

with_uftrace()
{
	local counted
	rm -rf "$TMP/uftrace"
	with_rebuilt "$1" "$2" uftrace record -d "$TMP/uftrace" "$BUILD/tests/bench/target-uftrace"
	counted=$(uftrace report -d "$TMP/uftrace" -f call 2>/dev/null | awk -v f="$1" '$2 == f { print $1 }')
	if [ "$counted" != "$TOTAL" ]; then
		WHY="uftrace recorded ${counted:-no} calls of $TOTAL"
		return 1
	fi
}

with_xray()
{
	local counted
	rm -f "$TMP"/xray.*
	XRAY_OPTIONS="verbosity=0 xray_logfile_base=$TMP/xray." with_rebuilt "$1" "$2" "${xray_target[@]}"
	counted=$("$xray" account -format=csv -m "$BUILD/tests/bench/target-xray" "$TMP"/xray.* 2>/dev/null |
		awk -F, -v f="$1" '$0 ~ f { print $2 }')
	if [ "$counted" != "$TOTAL" ]; then
		WHY="XRay recorded ${counted:-no} calls of $TOTAL"
		return 1
	fi
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
	for f in nop5 push endbr64_push; do
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

# The same function, counted and timed; each call must have a duration.
with_top()
{
	WHY="kxray top did not start"
	start_tool "$TMP/top.json" "$TMP/tool.err" "$KXRAY" top -p "$target" -f "$1" --json
	if wait_text "$TMP/tool.err" '^kxray: watching'; then
		measure_both "$1" "$2"
		WHY=
	fi
	end_tool
	[ -z "$WHY" ] || { WHY="$WHY: $(head -n 1 "$TMP/tool.err")" && return 1; }
	if [ "$(field "$TMP/top.json" total_timed)" != "$TOTAL" ]; then
		WHY="kxray top timed $(field "$TMP/top.json" total_timed) of $TOTAL calls"
		return 1
	fi
}

bench_top()
{
	local f i name a b
	for f in nop5 push endbr64_push; do
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

with_number() { KX_VALUES='(arg1:u64) -> ret:i64' with_kxray "$@"; }
# Every call is left out, by the condition $KX_IF.
with_rejected()
{
	WHY="kxray did not start"
	start_tool "$TMP/record.json" "$TMP/tool.err" "$KXRAY" record -p "$target" -f "$1" --if "$KX_IF" -o "$TMP/trace.xray" --json
	if wait_text "$TMP/tool.err" '^kxray: recording'; then
		measure "$1" "$2"
		WHY=
	fi
	end_tool
	[ -z "$WHY" ] || { WHY="$WHY: $(head -n 1 "$TMP/tool.err")" && return 1; }
	if [ "$(field "$TMP/record.json" events) $(field "$TMP/record.json" rejected)" != "0 $TOTAL" ]; then
		WHY="kxray rejected $(field "$TMP/record.json" rejected) of $TOTAL calls"
		return 1
	fi
}
with_string() { KX_VALUES='(arg1:str)' with_kxray "$@"; }

# Of a nop5, the cheapest call, and so the greatest ratio.
bench_values()
{
	local what limit
	for what in "number 1.15" "string 1.40"; do
		read -r what limit <<<"$what"
		if pairs bench_nop5 "$what" "$CALLS" kxray "$CALLS"; then
			ratio "$([ "$what" = number ] && echo "recorded with an integer and its result" ||
				echo "recorded with a string of 16 bytes") / without, nop5" "<=" "$limit" \
				"$(column 1) / $(column 2) ns a call"
		else
			cannot "recorded with a $what / without, nop5" "$WHY"
		fi
	done
	while IFS='@' read -r what KX_IF limit; do
		if ! pairs bench_nop5 rejected "$CALLS" empty_entry "$CALLS"; then
			cannot "rejected by $what / empty program at entry, nop5" "$WHY"
		elif [ -n "$limit" ]; then
			ratio "rejected by $what / empty program at entry, nop5" "<=" "$limit" "$(column 1) / $(column 2) ns a call"
		else
			note "rejected by $what / empty program at entry, nop5"
		fi
	done <<'END'
a number@arg2 == 1@1.10
three numbers@arg2 == 1 || arg3:i32 == 123456 || arg4 == 1@
a string@arg1:str =~ "a*"@
the result@ret == 123456@
END
	KX_IF='arg2 == 1'
	if pairs bench_nop5 rejected "$CALLS" empty "$CALLS"; then
		ratio "rejected by a number / empty programs, nop5" "<=" 1.10 "$(column 1) / $(column 2) ns a call"
	else
		cannot "rejected by a number / empty programs, nop5" "$WHY"
	fi
}

perf_probes() # FUNCTION
{
	local out
	# Probes of a killed run may still exist.
	perf probe -q -d "kxbench:${1}_*" >/dev/null 2>&1
	if ! out=$(perf probe -x "$BUILD/tests/bench/target" "kxbench:${1}_entry=$1" 2>&1 &&
		perf probe -x "$BUILD/tests/bench/target" "kxbench:${1}_return=$1%return" 2>&1); then
		WHY="perf probe: $(tail -n 1 <<<"$out")"
		return 1
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

# most PATH EXITS: what part of its functions can have a cheap entry at all, by the table in $TMP/placement
most()
{
	awk -v path="$1:" -v column="$([ "$2" = return ] && echo 1 || echo 2)" '
		/^[^ ]/ { here = $1 == path }
		here && /at most, as this kernel emulates/ { sub(/.*emulates: /, ""); split($0, p, / % /)
			match(p[column], /[0-9.]+$/); share = substr(p[column], RSTART)
			match($0, /[0-9]+ of [0-9]+ functions/); none = substr($0, RSTART); sub(/ .*/, "", none); getline
			match($0, /[0-9]+ more/); frame = substr($0, RSTART); sub(/ .*/, "", frame)
			printf "; at most %s %%: %d have no emulated instruction in the straight code at their beginning", share, none
			if (column == 1) printf ", %d none before their frame is taken", frame }' "$TMP/placement"
}

# share NAME LIMIT PATH EXITS: the percentage of functions whose entry is not single-stepped
share()
{
	local all cheap
	if [ -z "$3" ] || ! "$KXRAY" functions -f '*' --max-functions 1000000 --exits="$4" --json "$3" \
		>"$TMP/functions" 2>"$TMP/tool.err"; then
		cannot "cheap entries, $1, --exits=$4" "${3:-not installed} $(tail -n 1 "$TMP/tool.err" 2>/dev/null)"
		return
	fi
	all=$(grep -c '"cost":' "$TMP/functions")
	cheap=$(grep -cE '"cost": "(nop5|emulated)"' "$TMP/functions")
	verdict "functions with a cheap entry, $1, --exits=$4" \
		"$(awk -v a="$cheap" -v b="$all" 'BEGIN { printf "%.1f", 100 * a / b }')" ">=" "$2" % \
		"$cheap of $all in $3$(most "$3" "$4")"
}

library() { ldconfig -p | sed -n "s/.*\b$1 .*x86-64.* => //p" | head -n 1; }

bench_share()
{
	local python exits
	python=$(library 'libpython3[0-9.]*\.so\.1\.0')
	if [ -z "$python" ]; then
		python=$(readlink -f "$(command -v python3)")
	fi
	: >"$TMP/placement"
	[ ! -x "$BUILD/tests/placement" ] ||
		"$BUILD/tests/placement" "$(library 'libc\.so\.6')" "$python" "$(library 'libstdc++\.so\.6')" \
			"$(library 'libcrypto\.so\.3')" >"$TMP/placement"
	# Return probes need the stack pointer as it was at entry; without them the probe may be behind `sub $n,%rsp`. auto, in
	# a program without exceptions, gives them up where that pays.
	for exits in return auto none; do
		share libc 80 "$(library 'libc\.so\.6')" $exits
		share "$(basename "${python:-python3}")" 86 "$python" $exits
		share libstdc++ 85 "$(library 'libstdc++\.so\.6')" $exits
		share libcrypto 75 "$(library 'libcrypto\.so\.3')" $exits
	done
	if [ -s "$TMP/placement" ]; then
		sed 's/^/# /' "$TMP/placement"
	else
		cannot "why entries and exits are single-stepped" "$BUILD/tests/placement is not built (make tests)"
	fi
}

bench_attach()
{
	local i many=$BUILD/tests/targets/many
	if ! [ -x "$many" ]; then
		cannot "10,000 functions attached" "$many is not built"
		return
	fi
	: >"$TMP/attach"
	: >"$TMP/detach"
	for ((i = 0; i < ROUNDS; i++)); do
		rm -f "$TMP/in"
		mkfifo "$TMP/in"
		"${on_target_cpu[@]}" "$many" <"$TMP/in" >"$TMP/many.out" 2>&1 &
		target=$!
		exec 5>"$TMP/in"
		tool=$target
		wait_text "$TMP/many.out" ready || die "$many does not start"
		start_tool "$TMP/record.json" "$TMP/tool.err" "$KXRAY" record -p "$target" \
			-f 'many_*' -o "$TMP/trace.xray" --json
		WHY=
		wait_text "$TMP/tool.err" '^kxray: recording' || WHY="kxray did not start"
		# Call every function once, so that probes in use are detached.
		echo g >&5
		wait "$target"
		target=
		exec 5>&-
		end_tool
		if [ -z "$WHY" ] && [ "$(field "$TMP/record.json" functions)" != 10000 ]; then
			WHY="$(field "$TMP/record.json" functions) functions were traced"
		fi
		if [ -n "$WHY" ]; then
			cannot "10,000 functions attached" "$WHY: $(head -n 1 "$TMP/tool.err")"
			return
		fi
		field "$TMP/record.json" attach_seconds >>"$TMP/attach"
		field "$TMP/record.json" detach_seconds >>"$TMP/detach"
	done
	for i in attach detach; do
		verdict "10,000 functions ${i}ed" \
			"$(median <"$TMP/$i" | awk '{ printf "%.1f", $1 * 1000 }')" "<=" \
			"$([ $i = attach ] && echo 100 || echo 200)" ms \
			"$(least <"$TMP/$i" | awk '{ printf "%.1f", $1 * 1000 }') to $(greatest <"$TMP/$i" |
				awk '{ printf "%.1f ms", $1 * 1000 }')"
	done
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
compile empty tests/bench/empty.c "${with_kxray[@]}"
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
		bench_share
		;;
	empty | callers | values | top | peers | share) "bench_$part" ;;
	attach | export | diff | merge | compress | syscalls | follow | rates | accuracy | bystander | hitpath | start | budget | fleet | in-process) ;;
	*) die "unknown part '$part': take empty, callers, values, top, peers, share, attach, export, diff, merge, compress, syscalls, follow, rates, accuracy, bystander, hitpath, start, budget, fleet or in-process" ;;
	esac
done
end_target
for part in "${@:-all}"; do
	case $part in
	all | attach) bench_attach ;;
	esac
done
summary
# Parts with a script of their own.
for script in hitpath export diff merge compress syscalls follow rates accuracy bystander start budget fleet in-process; do
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
