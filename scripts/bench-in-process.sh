#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What a call recorded in process costs (--in-process), against the same call untraced, by uprobes, by LLVM XRay's FDR mode in a rebuilt
# binary, and with the recording switched off by itself; how long threads are stopped; events of two busy threads, by rate and in bursts;
# redis-server. Called by scripts/bench.sh; needs root, a built $BUILD and its tests.
#     bench-in-process.sh [rates]     only what two busy threads lose
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-5}     # of which the figure is the median
CALLS=${CALLS:-20000}   # of a run; each command runs ten, which fit into a ring of the default size
SHORT=${SHORT:-2000}    # of a run that is short enough to get through undisturbed, once in a while
REQUESTS=${REQUESTS:-100000}
RATES=${RATES:-1 2 5 10 15 20 30} # million events a second of both threads
BURSTS=${BURSTS:-5}

need_root
[ -e "$BUILD/libkxray.a" ] || die "$BUILD/libkxray.a is missing; run 'make tests'"
bench_folder
tool='' target='' server=''
cleanup()
{
	local pid
	for pid in $tool $target $server; do
		kill -CONT "$pid" 2>/dev/null
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap cleanup EXIT

mkdir -p "$BUILD/tests/bench"
${CC:-gcc} -O2 -pthread -o "$TMP/target" tests/bench/target.c || die "the target cannot be built"
${CC:-gcc} -O2 -pthread -o "$TMP/busy" tests/bench/busy.c || die "the busy target cannot be built"

# start_target COMMAND...: sets $target
start_target()
{
	rm -f "$TMP/commands" "$TMP/answers"
	mkfifo "$TMP/commands" "$TMP/answers"
	"${on_target_cpu[@]}" "$@" <"$TMP/commands" >"$TMP/answers" 2>"$TMP/target.err" &
	target=$!
	exec 5>"$TMP/commands" 6<"$TMP/answers"
}
end_target()
{
	exec 5>&- 6<&-
	wait "$target" 2>/dev/null
	target=
}
# call NAME CALLS: sets $ns, the least of ten runs
call()
{
	local rest
	echo "run $1 $2 10" >&5
	read -r rest ns rest <&6 || die "the target ended: $(cat "$TMP/target.err")"
}
# call_undisturbed NAME: sets $ns, the least of 300 short runs within two seconds: what shares the core, also outside of a virtual
# machine, adds a third for milliseconds
call_undisturbed()
{
	local i best=''
	for ((i = 0; i < 30; i++)); do
		sleep 0.05
		call "$1" "$SHORT"
		best=$(printf '%s\n' "$ns" "${best:-$ns}" | least)
	done
	ns=$best
}
# record OPTION...: starts kxray on $target, as $tool
record()
{
	start_tool "$TMP/out" "$TMP/err" "$KXRAY" record -p "$target" -o "$TMP/t.xray" "$@"
	wait_text "$TMP/err" '^kxray: recording '
}
# figure NAME FILE OPERATOR LIMIT UNIT TEXT
figure()
{
	verdict "$1" "$(median <"$2" | awk '{ printf "%.2f", $1 }')" "$3" "$4" "$5" \
		"$(least <"$2" | awk '{ printf "%.2f", $1 }') to $(greatest <"$2" | awk '{ printf "%.2f", $1 }'); $6"
}

measure_call()
{
	local plain
	start_target "$TMP/target"
	for ((i = 0; i < ROUNDS; i++)); do
		call_undisturbed bench_c
		plain=$ns
		if ! record -f bench_c --in-process; then
			cannot "a call recorded in process" "$(tail -n 1 "$TMP/err")"
			end_target
			return 1
		fi
		call bench_c "$CALLS"
		echo "$ns" >>"$TMP/long"
		call_undisturbed bench_c
		end_tool
		echo "$plain $ns" >>"$TMP/ns"
		if ! record -f bench_c --ring-size 256M; then
			cannot "a call recorded by uprobes" "$(tail -n 1 "$TMP/err")"
			end_target
			return 1
		fi
		call_undisturbed bench_c
		end_tool
		echo "$ns" >>"$TMP/uprobe"
	done
	end_target
	awk '{ print $2 - $1 }' "$TMP/ns" >"$TMP/more"
	paste -d' ' "$TMP/uprobe" "$TMP/ns" | awk '{ print ($1 - $2) / ($3 - $2) }' >"$TMP/uprobe.ratio"
	figure "a recorded call, over the untraced one" "$TMP/more" "<=" 30 ns \
		"untraced $(cut -d' ' -f1 "$TMP/ns" | median) ns; runs of $CALLS calls, as disturbed as they are, $(median <"$TMP/long") ns"
	figure "by uprobes / in process" "$TMP/uprobe.ratio" ">=" 30 x "uprobes $(median <"$TMP/uprobe") ns"
}

# Its runtime reads the TSC only if it finds the frequency, which virtual machines do not tell; any will do here.
measure_xray()
{
	local cpu=/sys/devices/system/cpu/cpu0 command=("$TMP/xray") more
	if ! ${CLANG:-clang} -O2 -pthread -DXRAY -fxray-instrument -fxray-instruction-threshold=1 -o "$TMP/xray" tests/bench/target.c; then
		cannot "LLVM XRay / in process" "clang cannot build it"
		return
	fi
	if ! [ -e "$cpu/tsc_freq_khz" ] && ! [ -e "$cpu/cpufreq/cpuinfo_max_freq" ]; then
		mkdir "$TMP/cpu0"
		echo 2500000 >"$TMP/cpu0/tsc_freq_khz"
		# shellcheck disable=SC2016
		command=(unshare -m sh -c 'mount --bind "$2" "$1" && cd "$4" && exec "$3"' sh "$cpu" "$TMP/cpu0" "$TMP/xray" "$TMP")
	fi
	for ((i = 0; i < ROUNDS; i++)); do
		start_target "${command[@]}"
		call_undisturbed bench_c
		echo "$ns" >>"$TMP/xray.ns"
		end_target
		rm -f "$TMP"/xray-log.*
	done
	more=$(median <"$TMP/more")
	awk -v more="$more" -v plain="$(cut -d' ' -f1 "$TMP/ns" | median)" '{ print ($1 - plain) / more }' "$TMP/xray.ns" >"$TMP/xray.ratio"
	figure "LLVM XRay in a rebuilt binary / in process" "$TMP/xray.ratio" ">=" 3 x "XRay $(median <"$TMP/xray.ns") ns"
}

# The recorder and the trampolines by themselves, in a program that patches itself: least of many short rounds.
measure_recorder()
{
	"$BUILD/tests/in_process" >"$TMP/recorder" || { cannot "recorder and trampolines" "they cannot be put into a program"; return; }
	part() { awk -v name="$1" '$1 == name { print $2 }' "$TMP/recorder"; }
	verdict "recorder and trampolines: a recorded call, over the untraced one" "$(part recorded_over_untraced_ns)" "<=" 30 ns \
		"untraced $(part untraced_ns) ns; of these two readings of the clock $(part two_clocks_over_untraced_ns), the least code for both records $(part least_records_over_untraced_ns)"
	verdict "recorder and trampolines: switched off, over the untraced one" "$(part disabled_over_untraced_ns)" "<=" 3 ns ""
	verdict "recorder and trampolines: entries and exits neither recorded nor counted as lost" "$(part missing)" "<=" 0 "" \
		"$(part events) events, $(part lost) lost"
	verdict "recorder and trampolines: events a second of $(part threads) threads" "$(part million_events_per_second)" ">=" 20 M ""
}

# A stopped kxray reads nothing: once the ring is full for long enough the recorder switches itself off.
measure_off()
{
	local plain end
	start_target "$TMP/target"
	call bench_c "$CALLS"
	plain=$ns
	record -f bench_c --in-process --ring-size 64K || die "$(tail -n 1 "$TMP/err")"
	kill -STOP "$tool"
	end=$((SECONDS + 60))
	while call bench_c "$CALLS" && awk -v a="$ns" -v b="$plain" 'BEGIN { exit !(a > b + 6) }' && [ $SECONDS -lt $end ]; do
		sleep 0.5
	done
	for ((i = 0; i < ROUNDS; i++)); do
		call bench_c "$CALLS"
		awk -v a="$ns" -v b="$plain" 'BEGIN { print a - b }' >>"$TMP/off"
	done
	kill -CONT "$tool"
	end_tool
	end_target
	figure "a call while recording is switched off, over the untraced one" "$TMP/off" "<=" 3 ns ""
}

# children: seconds of CPU time of all that this shell has waited for, to $seconds
children()
{
	times >"$TMP/times"
	seconds=$(awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }' "$TMP/times")
}
# busy CALLS [NS [SECONDS]]: two threads make CALLS each, one every NS, SECONDS after kxray has begun. Sets $calls, of both, $rate in million
# calls a second, kxray's $events and $lost, and $reading, its CPU time from the beginning of the recording
busy()
{
	local start now input
	rm -f "$TMP/busy.in"
	mkfifo "$TMP/busy.in"
	# what the last ones wrote is not waited for
	: >"$TMP/busy.out"
	: >"$TMP/err"
	"$TMP/busy" 2 <"$TMP/busy.in" >"$TMP/busy.out" &
	target=$!
	exec {input}>"$TMP/busy.in"
	tool=$target wait_text "$TMP/busy.out" ready || die "the busy target does not start"
	env --default-signal=INT "$KXRAY" record -p "$target" -o "$TMP/t.xray" -f busy_call --in-process --json \
		>"$TMP/record.json" 2>"$TMP/err" </dev/null {input}>&- &
	tool=$!
	wait_text "$TMP/err" '^kxray: recording ' || die "$(tail -n 1 "$TMP/err")"
	start=$(awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hz }' "/proc/$tool/stat")
	sleep "${3:-0}"
	echo "$1 ${2:-}" >&"$input"
	wait "$target"
	children
	now=$seconds
	wait "$tool"
	children
	tool='' target=''
	exec {input}>&-
	reading=$(awk -v a="$now" -v b="$seconds" -v start="$start" 'BEGIN { print b - a - start }')
	read -r calls rate < <(awk '/^calls/ { print $2, $3 }' "$TMP/busy.out")
	read -r events lost < <(python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print(j["events"], j["lost"])' "$TMP/record.json")
	missing_events=$((missing_events + 2 * calls - events - lost))
	[ $((2 * calls)) = $((events + lost)) ] || grep 'switched itself off' "$TMP/err"
	rm -f "$TMP/t.xray" "$TMP/t.xray.map"
}

# Two threads that use a CPU each, by their rate, with default rings; then kxray's counts against their own.
measure_rates()
{
	local want row made missing_events=0 none
	busy 1000
	none=$reading
	for want in $RATES; do
		busy "$(awk -v w="$want" 'BEGIN { printf "%d", w * 1e6 / 4 * 2 }')" "$(awk -v w="$want" 'BEGIN { print 4000 / w }')"
		made=$(awk -v r="$rate" 'BEGIN { printf "%.1f", 2 * r }')
		row="$made M made a second, $events recorded, $lost lost, $(awk -v r="$reading" -v n="$none" -v e="$events" \
			'BEGIN { printf "%.1f", (r - n) * 1e9 / (e ? e : 1) }') ms of CPU a million events"
		verdict "lost of $want M events a second of two busy threads" "$(awk -v l="$lost" -v c="$calls" 'BEGIN { printf "%.2f", 50 * l / c }')" \
			"<=" "$(awk -v w="$want" 'BEGIN { print (w > 20 ? 100 : 0) }')" % "$row"
	done
	busy "${BUSY_CALLS:-5000000}"
	verdict "events a second of two busy threads" "$(awk -v r="$rate" 'BEGIN { printf "%.1f", 2 * r }')" ">=" 20 M "$lost lost of $((2 * calls)) (default rings)"
	lost_of_bursts=0 row=
	for ((i = 0; i < BURSTS; i++)); do
		busy 1000000 0 2
		row="$row $lost"
		lost_of_bursts=$((lost_of_bursts + lost))
	done
	# no limit: at full speed more are made than 20 M a second
	verdict "lost of $BURSTS bursts of 4 M events at full speed" "$(awk -v l="$lost_of_bursts" -v n="$BURSTS" 'BEGIN { printf "%.2f", l / n / 4e4 }')" \
		"<=" 100 % "each after 2 s of idleness; of one after the other:$row"
	verdict "events of busy threads that are neither recorded nor counted" "$missing_events" "<=" 0 "" ""
}

# cpu: seconds of CPU time of the server
cpu() { awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hz }' "/proc/$server/stat"; }
# request NAME N: microseconds of its CPU time for a request, to $TMP/NAME
request()
{
	local before after
	before=$(cpu)
	redis-benchmark -p 7391 -t get,set,lpush,hset -n "$2" -P 8 -c 20 -q >/dev/null
	after=$(cpu)
	awk -v a="$before" -v b="$after" -v n="$2" 'BEGIN { print (b - a) * 1e6 / (4 * n) }' >>"$TMP/$1"
}
measure_redis()
{
	local patterns=()
	command -v redis-server redis-benchmark >/dev/null || { cannot "redis-server" "redis is not installed"; return; }
	(cd "$TMP" && exec "${on_target_cpu[@]}" redis-server --port 7391 --save '' --appendonly no >redis.out) &
	server=$!
	tool=$server wait_text "$TMP/redis.out" 'eady to accept' || { cannot "redis-server" "it does not start"; return; }
	target=$server
	mapfile -t patterns < <("$KXRAY" functions -p "$server" -f '*Command' -f 'dict*' -f 'sds*' -f 'add*' -f 'lookup*' -f "lp*" --in-process --json 2>/dev/null |
		python3 -c 'import json, sys; [print("-f", f["name"], sep="\n") for f in [f for f in json.load(sys.stdin) if f["in_process"] == "yes"][:200]]')
	for ((i = 0; i < ROUNDS; i++)); do
		request plain "$REQUESTS"
		record "${patterns[@]}" --in-process --ring-size 256M || { cannot "redis-server in process" "$(tail -n 1 "$TMP/err")"; return; }
		request inside "$REQUESTS"
		end_tool
		record "${patterns[@]}" --ring-size 256M || { cannot "redis-server by uprobes" "$(tail -n 1 "$TMP/err")"; return; }
		request uprobes $((REQUESTS / 10))
		end_tool
	done
	paste -d' ' "$TMP/uprobes" "$TMP/inside" | awk '{ print $1 / $2 }' >"$TMP/redis.ratio"
	figure "redis-server, 200 functions that are patched, CPU a request: uprobes / in process" "$TMP/redis.ratio" ">=" 1 x \
		"untraced $(median <"$TMP/plain") us, in process $(median <"$TMP/inside") us, uprobes $(median <"$TMP/uprobes") us"
	for ((i = 0; i < ROUNDS; i++)); do
		record -f '[a-l]*' --in-process || { cannot "threads stopped" "$(tail -n 1 "$TMP/err")"; return; }
		end_tool
		grep -o 'in process: .*' "$TMP/err" | sed 's/.*(\(.*\) jumps).*for \(.*\) ms.*/\2/' >>"$TMP/stopped"
	done
	figure "redis-server stopped while it is patched" "$TMP/stopped" "<=" 5 ms "$(grep -o 'in process: [^;]*' "$TMP/err")"
	kill "$server"
	wait "$server" 2>/dev/null
	server='' target=''
}

if [ "${1:-}" = rates ]; then
	measure_rates
	summary
	exit
fi
measure_recorder
if measure_call; then
	measure_xray
	measure_off
	measure_rates
	measure_redis
fi
summary
