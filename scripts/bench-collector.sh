#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What kxray itself takes while it records: how often it wakes up for an idle process, CPU time for an idle system (-a), CPU time for a
# million events of busy threads on all CPUs, and whether any of them is lost. Called by scripts/bench.sh; needs root, a built $BUILD and its tests.
#
#     scripts/bench-collector.sh
#
# Each figure is of SECONDS_EACH (10) seconds.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
SECONDS_EACH=${SECONDS_EACH:-10}
TARGETS=$BUILD/tests/targets
need_root
for file in "$KXRAY" "$TARGETS/sleeper" "$TARGETS/counts"; do
	[ -x "$file" ] || die "$file is missing; run 'make tests'"
done
bench_folder
tool='' target=''
end_all()
{
	[ -z "$tool" ] || kill -KILL "$tool" 2>/dev/null
	[ -z "$target" ] || kill -KILL "$target" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap end_all EXIT

# start_target OUT COMMAND...: and waits until it is ready
start_target()
{
	local out=$1
	shift
	"$@" >"$out" 2>&1 <&0 &
	target=$!
	tool=$target wait_text "$out" ready || die "the target does not start: $(tail -n 1 "$out")"
}
end_target()
{
	kill -KILL "$target"
	wait "$target" 2>/dev/null
	target=''
}
# recording NAME OPTION...: starts one; status 1, and the figure NAME is missing, if it cannot record
recording()
{
	local name=$1
	shift
	start_tool "$TMP/rec.json" "$TMP/rec.err" "$KXRAY" record "$@" --json -o "$TMP/trace.xray"
	wait_text "$TMP/rec.err" 'kxray: recording ' && return
	cannot "$name" "$(tail -n 1 "$TMP/rec.err")"
	return 1
}
wakes() { cat /proc/"$tool"/task/*/status | awk '/^voluntary_ctxt_switches/ { s += $2 } END { print s }'; }
percent() { awk -v a="$1" -v b="$2" -v s="$SECONDS_EACH" 'BEGIN { printf "%.2f", (b - a) / s / 1e7 }'; }

# idle NAME LIMIT UNIT WHAT OPTION...: WHAT is wakes or cpu
idle()
{
	local name=$1 limit=$2 unit=$3 what=$4 woken used
	shift 4
	start_target "$TMP/sleeper.out" "$TARGETS/sleeper" 1000000
	if recording "$name" "${@/TARGET/$target}"; then
		sleep 2 # the start is over
		woken=$(wakes) used=$(running_ns "$tool")
		sleep "$SECONDS_EACH"
		woken=$(awk -v a="$woken" -v b="$(wakes)" -v s="$SECONDS_EACH" 'BEGIN { printf "%.1f", (b - a) / s }')
		used=$(percent "$used" "$(running_ns "$tool")")
		if [ "$what" = wakes ]; then
			verdict "$name" "$woken" "<=" "$limit" "$unit" "$used % of a CPU"
		else
			verdict "$name" "$used" "<=" "$limit" "$unit" "$woken wake-ups a second"
		fi
		end_tool
	fi
	end_target
}

busy()
{
	local name="events of busy threads on all CPUs, kxray's CPU time a million" used ms rate lost events
	start_target "$TMP/counts.out" "$TARGETS/counts" --repeat=100000000 --start=now
	if recording "$name" -p "$target" -f outer -f middle -f 'tail_*'; then
		used=$(running_ns "$tool")
		sleep "$SECONDS_EACH"
		used=$(($(running_ns "$tool") - used))
		end_tool
		python3 - "$TMP/rec.json" "$used" "$SECONDS_EACH" >"$TMP/busy" <<-'END'
			import json, sys
			d = json.load(open(sys.argv[1]))
			rate = d["events"] / d["seconds"]
			print("%.1f" % (float(sys.argv[2]) / 1e6 / (rate * float(sys.argv[3]) / 1e6)), "%.2f" % (rate / 1e6), d["lost"], d["events"])
		END
		read -r ms rate lost events <"$TMP/busy"
		verdict "$name" "$ms" "<=" 80 ms "$rate million events a second"
		verdict "events of busy threads on all CPUs, lost" "$lost" "<=" 0 "" "of $events, default rings"
	fi
	end_target
}

echo "kxray bench: what kxray itself takes, $(nproc) CPUs, $SECONDS_EACH seconds each"
echo
idle "an idle process: wake-ups of kxray a second" 5 "" wakes -p TARGET -f tick
idle "an idle system, -a: kxray's share of a CPU" 0.5 % cpu -a -f "$TARGETS/sleeper:tick"
busy
summary
