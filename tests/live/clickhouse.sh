#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 10 s
# Traces of two hosts in databases that people have: each row is there once, also if the server is killed while it is loaded, and
# ten questions in SQL get the answers of report and dump. ClickHouse: two servers of the test's own, read as one.
# The same tables in sqlite and DuckDB.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh
. scripts/clickhouse-servers.sh

trace_command counts -f '*' --sched
assert_eq "trace of one host" "$STATUS $(json "$TMP/rec.json" 'd["lost"]')" "0 0"
for file in trace.xray trace.xray.map rec.json; do
	mv "$TMP/$file" "$TMP/one.${file#trace.}"
done
TARGET_ARGS=--repeat=4 trace_command counts -f 'leaf_*' -f outer --ring-size 4K
assert "trace of the other, with losses" "status $STATUS" [ "$(json "$TMP/rec.json" 'd["lost"]')" -gt 0 ]
mv "$TRACE" "$TMP/other.xray"
mv "$TRACE.map" "$TMP/other.xray.map"

columns() { # TABLE: that sqlite gets, beside the host
	[ "$1" = calls ] && echo function_key,function,duration_ns || echo function_key,function
}
for host in one other; do
	for table in calls functions; do
		"$KXRAY" export -f csv --csv-table $table --csv-columns "host=$host,$(columns $table)" -o - "$TMP/$host.xray" \
			>"$TMP/$host.$table.csv" || fail "table $table of $host" "status $?"
	done
done
# calls and sum of durations per function
python3 -c 'import collections, csv, sys
found = collections.defaultdict(lambda: [0, 0])
for path in sys.argv[1:]:
    for r in csv.DictReader(open(path, newline=""), strict=True):
        f = found[r["host"], r["function"]]
        f[0] += 1
        f[1] += int(r["duration_ns"])
print(*sorted("|".join(map(str, (*k, *v))) for k, v in found.items()), sep="\n")' "$TMP"/{one,other}.calls.csv >"$TMP/want"
assert_between "functions in the traces" "$(wc -l <"$TMP/want")" 15 60

# What the loader could not find again in the tables, so that it would load all rows once more

refused() { TRIES=1 CLICKHOUSE_CLIENT=false KXRAY=$KXRAY bash exporters/clickhouse/load.sh "$TMP/one.xray" "$1" 2>&1; }
assert_eq "a host that the exporter marks" "$(refused host=-one)" \
	"load.sh: host=-one: the name of a host cannot begin with =, +, - or @"
assert_eq "a value with a comma" "$(refused note=a,b)" "load.sh: note=a,b: a value cannot have a comma or a line break"
assert_eq "a value with a line break" "$(refused $'host=a\nb')" $'load.sh: host=a\nb: a value cannot have a comma or a line break'

# sqlite

sqlite3 -batch "$TMP/db" >"$TMP/sqlite" 2>&1 <<END
CREATE TABLE calls (host TEXT, function_key INTEGER, called TEXT, duration_ns INTEGER);
CREATE TABLE functions (host TEXT, function_key INTEGER, function TEXT);
.mode csv
.import --skip 1 $TMP/one.calls.csv calls
.import --skip 1 $TMP/other.calls.csv calls
.import --skip 1 $TMP/one.functions.csv functions
.import --skip 1 $TMP/other.functions.csv functions
.mode list
SELECT host, function, count(*), sum(duration_ns) FROM calls JOIN functions USING (host, function_key) GROUP BY 1, 2;
END
assert_eq "sqlite: calls per function" "$(diff <(sort "$TMP/sqlite") <(sort "$TMP/want") | head -n 3)" ''

# DuckDB

in_duckdb() {
	if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
		skip "DuckDB" "npm is not installed"
	elif ! npm install --prefix "$TMP/npm" --ignore-scripts --no-audit --no-fund @duckdb/node-api@1.5.6-r.1 >"$TMP/npm.log" 2>&1; then
		skip "DuckDB" "npm cannot install here: $(grep -m1 'npm error' "$TMP/npm.log")"
	else
		cat >"$TMP/npm/ask.js" <<-'END'
			const { DuckDBInstance } = require('@duckdb/node-api');
			(async () => {
				const db = await (await DuckDBInstance.create()).connect();
				const found = await db.runAndReadAll(`SELECT concat_ws('|', c.host, f.function, count(*), sum(duration_ns))
					FROM '${process.argv[2]}/*.calls.csv' c JOIN (SELECT DISTINCT function_key, function
					FROM '${process.argv[2]}/*.functions.csv') f USING (function_key) GROUP BY c.host, f.function`);
				for (const [line] of found.getRows())
					console.log(line);
			})();
		END
		run node "$TMP/npm/ask.js" "$TMP"
		assert_eq "DuckDB: calls per function" "$(diff <(sort <<<"$OUT") <(sort "$TMP/want") | head -n 3)$ERR" ''
	fi
}
in_duckdb

# ClickHouse

if ! have_clickhouse; then
	skip "ClickHouse" "it is not installed"
	exit
fi
trap 'clickhouse_end; _cleanup' EXIT
clickhouse_make 2
for i in 0 1; do
	clickhouse_start $i || { fail "start of a server" "$(tail -n 3 "$TMP/clickhouse$i/out")" && exit; }
	clickhouse $i -n <exporters/clickhouse/schema.sql && clickhouse $i -n <exporters/clickhouse/distributed.sql ||
		fail "schema on server $i" "status $?"
done
calls_there() { [ "$(clickhouse "$1" -q 'SELECT count() FROM kxray.calls')" -ge "$2" ]; }

# loader HOST SERVER: sets LOADER, a command that loads the host's trace in blocks of 2000 rows
loader() {
	LOADER=(env PAUSE=0.1 TRIES=3000 exporters/clickhouse/load.sh "$TMP/$1.xray" host="$1" --host 127.0.0.1
		--port "${CLICKHOUSE_PORTS[$2]}" --max_insert_block_size=2000 --min_insert_block_size_rows=2000)
}
# An export of calls that stops after 9,000 of them until something has been killed; others are as ever.
cat >"$TMP/stopping" <<'END'
#!/bin/bash
if [[ $* != *"--csv-table calls "* ]] || ! mkdir "$TMP/stopped" 2>/dev/null; then
	echo "$*" >>"$TMP/exports"
	exec "$REAL" "$@"
fi
"$REAL" "$@" >"$TMP/rows"
head -n 9001 "$TMP/rows"
until [ -e "$TMP/killed" ] || ! [ -d "$TMP" ]; do sleep 0.05; done
tail -n +9002 "$TMP/rows" || :
END
chmod +x "$TMP/stopping"
export REAL=$KXRAY
# start_load HOST SERVER: returns when some of the calls are there, and the loader waits for others
start_load() {
	loader "$@"
	rm -rf "$TMP"/{stopped,killed,exports}
	KXRAY=$TMP/stopping background setsid "${LOADER[@]}" >"$TMP/load.out" 2>"$TMP/load.err"
	wait_for calls_there "$2" 4000 || fail "some calls of $1 are loaded" "$(cat "$TMP/load.err")"
}
# loaded LABEL HOST SUMMARY: what the loader said, and where it went on
loaded() {
	assert_eq "$1" "$STATUS $(cat "$TMP/load.out" "$TMP/load.err")" "0 $TMP/$2.xray: $(json "$3" 'd["entries"]') calls of $2"
	assert_between "$1: rows that were there already" \
		"$(sed -n 's/.*--csv-table calls .*--csv-skip \([0-9]*\) .*/\1/p' "$TMP/exports" | tail -n 1)" 4000 9000
}

start_load one 0
kill -KILL -- "-$PID"
touch "$TMP/killed"
wait "$PID" 2>/dev/null
STATUS=0
KXRAY=$TMP/stopping "${LOADER[@]}" >"$TMP/load.out" 2>"$TMP/load.err" || STATUS=$?
loaded "loader and client killed" one "$TMP/one.rec.json"

start_load other 1
clickhouse_kill 1
touch "$TMP/killed"
clickhouse_start 1 || fail "the server starts again" "$(tail -n 3 "$TMP/clickhouse1/out")"
STATUS=0
wait "$PID" || STATUS=$?
loaded "server killed" other "$TMP/rec.json"
run "${LOADER[@]}"
assert_eq "loaded once more: the same" "$STATUS $OUT" "0 $(cat "$TMP/load.out")"

# What cannot be loaded
cp "$TMP/one.xray" "$TMP/bare.xray"
run exporters/clickhouse/load.sh "$TMP/bare.xray" --port "${CLICKHOUSE_PORTS[0]}"
assert_eq "a trace without a map" "$STATUS $ERR" \
	"1 load.sh: $TMP/bare.xray: the trace does not say on which host it was recorded: give the column a value, host=NAME"
run exporters/clickhouse/load.sh "$TMP/one.xray" host=x trace=yesterday --port "${CLICKHOUSE_PORTS[0]}"
assert_eq "a trace that is no number" "$STATUS $ERR" "1 load.sh: trace takes a number, not 'yesterday'"
run env TRIES=2 PAUSE=0 exporters/clickhouse/load.sh "$TMP/one.xray" --host 127.0.0.1 --port 1
assert_contains "no server" "$STATUS $ERR" "1 load.sh: $TMP/one.xray: given up after 2 tries: "

export PORT=${CLICKHOUSE_PORTS[0]}
python3 tests/live/clickhouse.py "$TMP" || fail "questions" "status $?"
