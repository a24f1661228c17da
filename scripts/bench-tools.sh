# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2034,SC2086 # sourced
#
# The tools that scripts/bench.sh compares, each on a function of the target that it has started ($target).
# with_TOOL FUNCTION CALLS: puts ns a call into NS, or the reason into WHY and returns 1. Each removes its
# probes and checks that the tool has recorded every call. KXRAY_BYTES, PERF_BYTES: of an event on disk.

divide() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f\n", b ? a / b : 0 }'; }

with_empty() { empty_at "$1" "$2" "$([ "$1" = bench_endbr64_push ] && echo 4 || echo 0)"; }
with_empty_stepped() { empty_at "$1" "$2" 0; }

with_empty_entry() { empty_at "$1" "$2" "$([ "$1" = bench_endbr64_push ] && echo 4 || echo 0)" entry; }

empty_at() # FUNCTION CALLS OFFSET [entry]
{
	WHY="empty programs could not be attached"
	rm -f "$TMP/hold"
	mkfifo "$TMP/hold"
	"${on_tool_cpus[@]}" "$BUILD/tests/empty" "$target" "$1" "$3" ${4:-} \
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

# The function is counted and timed; each call must have a duration.
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
