#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures the time that system call tracing adds to a short one (getppid): if it is recorded, if other
# system calls of the process are recorded, and if it belongs to a process that is not traced.
#     scripts/bench-syscalls.sh
# Needs root, a built $BUILD (default build) and the packages strace and linux-perf for comparison.
# About a minute.
#
# A measurement is the CPU time of the process, minus that of the runs without tracing directly before
# and after it. The table shows the median, minimum and maximum of ROUNDS such differences in ns a call.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-5}
CALLS=${CALLS:-20000}
RUNS=${RUNS:-9}

need_root
[ -x "$KXRAY" ] || die "$KXRAY is missing; run 'make'"
use_tracefs "$@"
bench_folder
tool=
target=
bystander=
cleanup()
{
	local pid
	for pid in $tool $target $bystander; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap cleanup EXIT
ask()
{
	echo "$CALLS $RUNS" >&5
	read -r -t 120 -u 6 REPLY || die "the target does not answer"
}
# added NAME EVENTS READY COMMAND...: writes the ns that COMMAND adds to a call to $TMP/added; COMMAND
# prints READY when it is tracing. EVENTS: the number that kxray must have recorded at least, - for other tools.
added()
{
	local name=$1 events=$2 ready=$3 before between recorded i
	shift 3
	: >"$TMP/added"
	: >"$TMP/pairs"
	for ((i = 0; i < ROUNDS; i++)); do
		ask
		before=$REPLY
		start_tool "$TMP/tool.out" "$TMP/tool.err" "$@"
		if ! wait_text "$TMP/tool.err" "$ready"; then
			end_tool
			cannot "$name" "$(head -n 1 "$TMP/tool.err")"
			return 1
		fi
		ask
		between=$REPLY
		end_tool
		recorded=$(sed -n 's/.*"events":\([0-9]*\).*/\1/p' "$TMP/tool.out" | tail -n 1)
		if [ "$events" != - ] && [ "${recorded:-0}" -lt "$events" ]; then
			cannot "$name" "${recorded:-0} of $events events were recorded"
			return 1
		fi
		ask
		awk -v b="$before" -v m="$between" -v a="$REPLY" \
			'BEGIN { print m - (b + a) / 2, (b + a) / 2 }' >>"$TMP/pairs"
	done
	awk '{ print $1 }' "$TMP/pairs" >"$TMP/added"
	awk '{ print $2 }' "$TMP/pairs" | median >"$TMP/base"
}
note() # NAME
{
	local m
	m=$(median <"$TMP/added")
	printf '%-4s  %-52s %9.0f ns  %s\n' "" "$1" "$m" \
		"$(sort -g "$TMP/added" | awk 'NR == 1 { l = $1 } END { printf "%.0f to %.0f", l, $1 }'
		); without tracing $(printf %.0f "$(cat "$TMP/base")") ns"
	printf 'bench name="%s" value=%.0f unit=ns result=NOTE\n' "$1" "$m" >>"$TMP/lines"
}

# perf does not print when it is ready, but it acknowledges "enable"; so it starts with its events disabled.
# shellcheck disable=SC2016
perf='trap "kill -INT \$pid" INT
rm -f "$0/ctl" "$0/ack"
mkfifo "$0/ctl" "$0/ack"
exec 8<>"$0/ctl" 9<>"$0/ack"
env --default-signal=INT perf record -m 16M -p "$1" -D -1 --control "fifo:$0/ctl,$0/ack" \
	-o "$0/perf.data" -e raw_syscalls:sys_enter,raw_syscalls:sys_exit &
pid=$!
echo enable >&8
read -r -t 10 -u 9 REPLY && echo enabled >&2
while kill -0 $pid 2>/dev/null; do wait $pid; done'
mkdir -p "$BUILD/tests/bench"
${CC:-gcc} -std=gnu11 -O2 -D_GNU_SOURCE -o "$BUILD/tests/bench/syscalls" tests/bench/syscalls.c ||
	die "tests/bench/syscalls.c does not compile"
sleep infinity &
bystander=$!
mkfifo "$TMP/in" "$TMP/out"
"${on_target_cpu[@]}" "$BUILD/tests/bench/syscalls" <"$TMP/in" >"$TMP/out" &
target=$!
exec 5>"$TMP/in" 6<"$TMP/out"
read -r -t 10 -u 6 REPLY || die "the target does not start"
record=("$KXRAY" record -o "$TMP/trace.xray" --json)
recording='^kxray: recording'
all=$((2 * CALLS * RUNS))
echo "kxray bench: system calls, $(uname -sr), $(nproc) CPUs, median of $ROUNDS differences"
echo
printf '%-4s  %-52s %9s     %s\n' "" "what is added to a call" "measured" "least to greatest"
added recorded "$all" "$recording" "${record[@]}" -p "$target" -f 'syscall:*' && note "recorded"
cp "$TMP/added" "$TMP/recorded"
added "recorded with --args 3" "$all" "$recording" "${record[@]}" -p "$target" -f 'syscall:*' --args 3 &&
	note "recorded with --args 3 and results"
added "not selected" 0 "$recording" "${record[@]}" -p "$target" -f syscall:vhangup &&
	note "of the traced process, another is selected"
added "other processes" 0 "$recording" "${record[@]}" -p "$bystander" -f 'syscall:*' &&
	note "of every other process"
if command -v perf >/dev/null; then
	added "perf record" - enabled bash -c "$perf" "$TMP" "$target" && note "perf record, both tracepoints"
else
	cannot "perf record" "perf is missing; run 'scripts/setup.sh bench'"
fi
if command -v strace >/dev/null; then
	CALLS=$((CALLS / 20))
	added strace - attached strace -c -p "$target" && note "strace -c"
else
	cannot strace "strace is missing; run 'scripts/setup.sh test'"
fi
exec 5>&-
wait "$target"
target=
summary
