#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What recording takes of a program's CPU time with --max-overhead, by the program's own work: CPU time for a piece of
# work (a request) while it is recorded against that of the pieces just before and after, in turns, so that a machine's other load
# concerns both alike. Called by scripts/bench.sh; needs root, a built $BUILD and its tests.
#
#     hostile   a piece: about half a second of work with 10 million calls a second, then half a second of sleep
#     redis     GET by redis-benchmark, all functions of redis-server (if it is installed)
#
# ROUNDS turns (3) of SECONDS (10) each with recording, for each of BUDGETS (1 5 20, percent).
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
TARGETS=$BUILD/tests/targets
ROUNDS=${ROUNDS:-3}
SECONDS_EACH=${SECONDS_EACH:-10}
BUDGETS=${BUDGETS:-1 5 20}

need_root
for file in "$KXRAY" "$TARGETS/bursts"; do
	[ -e "$file" ] || die "$file is missing; run 'make tests'"
done
bench_folder
tool='' target=''
cleanup()
{
	local pid
	for pid in $tool $target; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap cleanup EXIT

cpu_ns() { awk '{ print $1 }' /proc/"$1"/task/*/schedstat | awk '{ s += $1 } END { printf "%.0f\n", s }'; }

# A piece of each target; $pieces is how much work it was.
hostile()
{
	local n
	n=$(wc -l <"$TMP/bursts.out")
	echo "5000 500" >&"$input"
	until [ "$(wc -l <"$TMP/bursts.out")" -gt "$n" ]; do
		sleep 0.01
	done
	pieces=1
}
redis()
{
	redis-benchmark -p "$port" -t get -n 20000 -c 20 -q >/dev/null
	pieces=20000
}

# work TARGET SECONDS: works so long, in $cpu: ns of CPU time for a piece
work()
{
	local end=$((SECONDS + $2)) done=0 before
	before=$(cpu_ns "$target")
	while [ "$done" = 0 ] || [ $SECONDS -lt "$end" ]; do
		"$1"
		done=$((done + pieces))
	done
	cpu=$(awk -v b="$before" -v a="$(cpu_ns "$target")" -v n="$done" 'BEGIN { printf "%.1f", (a - b) / n }')
}

# measure TARGET PATTERN: a line for each budget
measure()
{
	local budget round plain recorded
	for budget in $BUDGETS; do
		: >"$TMP/overheads"
		for ((round = 0; round < ROUNDS; round++)); do
			work "$1" $((SECONDS_EACH / 2))
			plain=$cpu
			start_tool "$TMP/rec.json" "$TMP/rec.err" "$KXRAY" record -p "$target" -f "$2" \
				--max-overhead "$budget" --json -o "$TMP/trace.xray"
			wait_text "$TMP/rec.err" 'kxray: recording ' || return 1
			work "$1" "$SECONDS_EACH"
			recorded=$cpu
			end_tool
			work "$1" $((SECONDS_EACH / 2))
			awk -v p="$plain" -v q="$cpu" -v r="$recorded" 'BEGIN { print (r / ((p + q) / 2) - 1) * 100 }' >>"$TMP/overheads"
			python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["budget_taken_percent"])' "$TMP/rec.json" >>"$TMP/own.$1.$budget"
		done
		verdict "$1: CPU time beyond the work, --max-overhead $budget" \
			"$(median <"$TMP/overheads" | awk '{ printf "%.1f", $1 }')" '<=' $((budget + 2)) % \
			"($(least <"$TMP/overheads" | awk '{ printf "%.1f", $1 }') to $(greatest <"$TMP/overheads" | awk '{ printf "%.1f", $1 }'); kxray's own estimate $(median <"$TMP/own.$1.$budget" | awk '{ printf "%.1f", $1 }'))"
	done
}

mkfifo "$TMP/in"
"${on_target_cpu[@]}" "$TARGETS/bursts" --calls=1000 <"$TMP/in" >"$TMP/bursts.out" &
target=$!
exec {input}>"$TMP/in"
tool=$target wait_text "$TMP/bursts.out" ready || die "bursts does not start"
measure hostile '*' || cannot "hostile: CPU time with --max-overhead" "$(tail -n 1 "$TMP/rec.err")"
kill -KILL "$target"
wait "$target" 2>/dev/null
target=
if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	port=$((20000 + $$ % 20000))
	"${on_target_cpu[@]}" redis-server --port "$port" --save '' --appendonly no >"$TMP/redis.out" 2>&1 &
	target=$!
	tool=$target wait_text "$TMP/redis.out" 'eady to accept' || die "redis-server does not start"
	measure redis '*' || cannot "redis: CPU time with --max-overhead" "$(tail -n 1 "$TMP/rec.err")"
else
	cannot "redis: CPU time with --max-overhead" "redis-server and redis-benchmark are not installed"
fi
summary
