#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures record --compress on a trace of redis-server under redis-benchmark, all functions:
#     scripts/bench-compress.sh
# Needs a built $BUILD (default build), redis-server, redis-tools, 100 MB in $TMPDIR; root. About half
# a minute.
#
# Compressing and decompressing are measured alone, in CPU seconds of ROUNDS runs over the same trace.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-5}
SECONDS_RECORDED=${SECONDS_RECORDED:-5}

need_root
[ -x "$BUILD/tests/make_trace" ] || die "$BUILD/tests/make_trace is missing; run 'make tests'"
for tool in redis-server redis-benchmark redis-cli; do
	command -v $tool >/dev/null || die "$tool is not installed"
done
bench_folder
server=
load=
trap '[ -z "$load" ] || kill $load; [ -z "$server" ] || kill $server; rm -rf "$TMP"' EXIT

redis-server --port 0 --unixsocket "$TMP/redis" --save '' --appendonly no >"$TMP/redis.out" 2>&1 &
server=$!
for ((i = 0; i < 100; i++)); do
	redis-cli -s "$TMP/redis" ping >"$TMP/ping" 2>&1 && break
	sleep 0.1
done
redis-benchmark -s "$TMP/redis" -q -l -c 20 -t get,set,lpush,zadd >"$TMP/load.out" 2>&1 &
load=$!
"$KXRAY" record -q -y -p "$server" -f '*' -d "$SECONDS_RECORDED" -o "$TMP/trace.xray" ||
	die "redis-server cannot be recorded"

for ((i = 0; i < ROUNDS; i++)); do
	"$BUILD/tests/make_trace" pack "$TMP/trace.xray" || die "the trace cannot be compressed"
done >"$TMP/runs"
events=$(head -n 1 "$TMP/runs" | cut -d' ' -f1)
[ "$events" -gt 100000 ] || die "only $events events were recorded"

# per_million COLUMN: milliseconds of CPU time for a million events, one line a run
per_million() { awk -v c="$1" '{ printf "%.1f\n", $c * 1e9 / $1 }' "$TMP/runs"; }
# range COLUMN
range() { echo "$(per_million "$1" | least) to $(per_million "$1" | greatest)"; }

echo "kxray bench: --compress on $events events of redis-server; median of $ROUNDS runs"
echo
printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"
verdict "compressed bytes per event" "$(awk 'NR == 1 { printf "%.2f", $2 / $1 }' "$TMP/runs")" "<=" 3 "" \
	"$(awk 'NR == 1 { printf "%d of %d", $2, $1 * 8 }' "$TMP/runs") bytes"
verdict "compressing a million events, CPU time" "$(per_million 3 | median)" "<=" 60 ms "$(range 3)"
verdict "decompressing a million events, CPU time" "$(per_million 4 | median)" "<=" 30 ms "$(range 4)"
summary
