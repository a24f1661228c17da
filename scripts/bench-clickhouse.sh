#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Loads 50 million calls of two hosts into two ClickHouse servers, each of which is killed while it loads, and compares what is
# there with the reports of the traces:
#     scripts/bench-clickhouse.sh
# Needs a built $BUILD (default build), clickhouse-server, python3, and in $TMPDIR 50 bytes a call. Some minutes; no root.
# CALLS=N for fewer calls.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
. scripts/clickhouse-servers.sh
CALLS=${CALLS:-50000000}
ROUNDS=${ROUNDS:-3}
FUNCTIONS=1000
HOSTS=(one other)

[ -x "$KXRAY" ] || die "$KXRAY is missing; run 'make'"
[ -e "$BUILD/libkxray.a" ] || die "$BUILD/libkxray.a is missing; run 'make tests'"
have_clickhouse || die "clickhouse-server is not installed; run 'scripts/setup.sh test'"
bench_folder
trap 'clickhouse_end; rm -rf "$TMP"' EXIT
export KXRAY

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { print b - a }'; }
divided() { awk -v a="$1" -v b="$2" -v d="${3:-1}" 'BEGIN { printf "%.*f", d, a / b }'; }
figure() { # NAME VALUE UNIT DETAIL
	printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "$1" "$2" "$3" "" "$4"
	printf 'bench name="%s" value=%s unit=%s result=NOTE\n' "$1" "$2" "$3" >>"$TMP/lines"
}
in_server() { clickhouse "$1" -q "SELECT count() FROM kxray.calls"; }

[ -x "$BUILD/tests/make_trace" ] || die "$BUILD/tests/make_trace is missing; run 'make tests'"
for i in 0 1; do
	# Different numbers of threads, so that the hosts' calls differ.
	"$BUILD/tests/make_trace" write "$TMP/${HOSTS[i]}.xray" "$CALLS" $((4 + i)) $FUNCTIONS $FUNCTIONS || die "a trace cannot be made"
done
clickhouse_make 2
for i in 0 1; do
	clickhouse_start $i || die "a server does not start: $(tail -n 1 "$TMP/clickhouse$i/out")"
	clickhouse $i -n <exporters/clickhouse/schema.sql && clickhouse $i -n <exporters/clickhouse/distributed.sql ||
		die "the schema cannot be made"
done

echo "kxray bench: $CALLS calls of two hosts in ClickHouse $(clickhouse 0 -q 'SELECT version()'), $(nproc) CPUs"
echo
printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"

# load SERVER: kills it when it has a third of the calls, and starts it again; leaves seconds of its end
load()
{
	local loader begun
	begun=$(now)
	exporters/clickhouse/load.sh "$TMP/${HOSTS[$1]}.xray" host="${HOSTS[$1]}" trace=176400000000000000"$1" \
		--host 127.0.0.1 --port "${CLICKHOUSE_PORTS[$1]}" >"$TMP/load$1" 2>&1 &
	loader=$!
	until [ "$(in_server "$1")" -ge $((CALLS / 6)) ]; do
		kill -0 $loader 2>/dev/null || break
		sleep 0.2
	done
	clickhouse_kill "$1"
	clickhouse_start "$1"
	KILLED_AT=$(in_server "$1")
	wait $loader || die "load: $(tail -n 1 "$TMP/load$1")"
	SECONDS_TAKEN=$(since "$begun")
}
: >"$TMP/rates"
for i in 0 1; do
	load $i
	divided $((CALLS / 2)) "$SECONDS_TAKEN" 0 >>"$TMP/rates"
	echo >>"$TMP/rates"
	echo "# server $i was killed; when it was back it had $KILLED_AT of $((CALLS / 2)) calls; loaded in $SECONDS_TAKEN s"
done
verdict "calls there that are not in the traces, or missing" \
	"$(($(clickhouse 0 -q 'SELECT count() FROM kxray_all.calls') - CALLS))" "<=" 0 "" ""
figure "calls loaded a second, a kill included" "$(median <"$TMP/rates")" "" ""

# Count and p99 of each function: as the reports say.
begun=$(now)
python3 - exporters/clickhouse/questions.sql >"$TMP/question" <<'END'
import re, sys
print(re.search(r"^-- calls: [^\n]*\n(.*?);$", open(sys.argv[1]).read(), re.M | re.S).group(1))
END
clickhouse 0 -d kxray_all --max_memory_usage=0 <"$TMP/question" >"$TMP/answer" || die "the question has no answer"
figure "seconds for count and p99 of each function" "$(divided "$(since "$begun")" 1)" s "$CALLS calls"
for host in "${HOSTS[@]}"; do
	"$KXRAY" report --json "$TMP/$host.xray" >"$TMP/$host.json"
done
compared=$(python3 - "$TMP" "${HOSTS[@]}" <<'END'
import json, sys
want = {(h, f["name"]): f for h in sys.argv[2:] for f in json.load(open(f"{sys.argv[1]}/{h}.json"))["functions"]}
rows = {tuple(r[:2]): (int(r[2]), int(r[3])) for r in (line.rstrip("\n").split("\t") for line in open(sys.argv[1] + "/answer"))}
counts = sum(rows.get(k, (0, 0))[0] != f["count"] for k, f in want.items()) + len(rows.keys() - want.keys())
# report's are within 1 % of the nearest rank
p99s = sum(abs(rows.get(k, (0, 0))[1] - f["p99_ns"]) > 1 + f["p99_ns"] / 100 for k, f in want.items())
print(counts, p99s, len(want))
END
)
read -r counts p99s functions <<<"$compared"
verdict "functions with another count than report's" "$counts" "<=" 0 "" "of $functions"
verdict "functions with another p99 than report's" "$p99s" "<=" 0 "" "within 1 %"
figure "bytes of a call on disk" "$(divided "$(clickhouse 0 -q "SELECT sum(bytes) FROM system.parts
	WHERE active AND table = 'calls'")" "$(in_server 0)")" B ""

# CSV against the server's binary format for rows, of two million calls: the same rows, in a file, into the same table.
names=$(clickhouse 0 -q "SELECT arrayStringConcat(groupArray(name), ',') FROM system.columns
	WHERE database = 'kxray' AND table = 'calls' AND default_kind = ''")
clickhouse 0 -q "SELECT $names FROM kxray.calls LIMIT 2000000 FORMAT CSVWithNames" >"$TMP/csv"
clickhouse 0 -q "SELECT $names FROM kxray.calls LIMIT 2000000 FORMAT RowBinary" >"$TMP/binary"
# server_seconds: CPU time that server 0 has used
server_seconds()
{
	local stat
	read -r -d '' stat <"/proc/${CLICKHOUSE_PIDS[0]}/stat"
	# shellcheck disable=SC2086
	set -- ${stat##*) }
	divided $((${12} + ${13})) "$(getconf CLK_TCK)" 2
}
# cpu FORMAT FILE: CPU time of client and server while they load it, into an empty table that is not merged meanwhile
cpu()
{
	local before
	clickhouse 0 -n -q "DROP TABLE IF EXISTS kxray.some; CREATE TABLE kxray.some AS kxray.calls; SYSTEM STOP MERGES"
	before=$(server_seconds)
	TIMEFORMAT='%U %S'
	{ time clickhouse 0 -q "INSERT INTO kxray.some ($names) FORMAT $1" <"$2"; } 2>"$TMP/client" || die "$1 is refused"
	awk -v before="$before" -v after="$(server_seconds)" 'END { print $1 + $2 + after - before }' "$TMP/client"
}
: >"$TMP/pairs"
rows=$(clickhouse 0 -q "SELECT least(2000000, count()) FROM kxray.calls")
for ((i = 0; i < ROUNDS; i++)); do
	echo "$(cpu CSVWithNames "$TMP/csv") $(cpu RowBinary "$TMP/binary")" >>"$TMP/pairs"
done
figure "load of CSV / RowBinary, CPU time" "$(awk '{ print $1 / $2 }' "$TMP/pairs" | median | xargs printf %.2f)" x \
	"$(awk '{ print $1 }' "$TMP/pairs" | median) / $(awk '{ print $2 }' "$TMP/pairs" | median) s for $rows calls"
figure "bytes of a call, CSV / RowBinary" "$(divided "$(stat -c %s "$TMP/csv")" "$(stat -c %s "$TMP/binary")" 2)" x \
	"$(divided "$(stat -c %s "$TMP/csv")" "$rows") / $(divided "$(stat -c %s "$TMP/binary")" "$rows") B"
summary
