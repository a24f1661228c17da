#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 12 s
# USDT markers of programs as Debian builds them: audit events of python3 by name, its collections by generation; the queries of a
# PostgreSQL session with their texts, and as spans.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# values: FUNCTION, VALUES of each call in the trace, how often
values() {
	"$KXRAY" export -f csv -o - "$TRACE" 2>/dev/null | python3 -c 'import collections, csv, sys
rows = collections.Counter((r["function"], r["values"]) for r in csv.DictReader(sys.stdin))
for (name, values), n in sorted(rows.items()):
    print(n, name, values)'
}

cat >"$TMP/program.py" <<'END'
import gc, os, sys
gc.disable()
print("ready", os.getpid(), flush=True)
sys.stdin.buffer.raw.read(1)
for i in range(50):
    sys.audit(f"kxray.{i % 2}")
gc.collect(2), gc.collect(0), gc.collect(2)
os._exit(0)
END
python() {
	local program
	program=$(readlink -f /usr/bin/python3) # on PATH may be another, or a script
	if ! readelf -n "$program" | grep -q gc__start; then
		skip "python3" "$program has no USDT markers"
		return
	fi
	mkfifo "$TMP/in"
	sleep 600 >"$TMP/in" &
	_pids+=("$!")
	"$program" -S "$TMP/program.py" <"$TMP/in" >"$TMP/out" &
	PID=$!
	_pids+=("$PID")
	wait_for has_text ready "$TMP/out"
	start_kxray "$PID" -f 'usdt:python:audit(arg1:str)' -f 'usdt:python:gc__start(arg1)'
	printf g >"$TMP/in"
	end_kxray
	assert_eq "python: status, lost: $(tail -n 1 "$TMP/rec.err")" "$STATUS $(json "$TMP/rec.json" 'd["lost"]')" "0 0"
	assert_eq "python: audit events and collections" "$(values)" "25 usdt:python:audit {\"arg1\":\"kxray.0\"}
25 usdt:python:audit {\"arg1\":\"kxray.1\"}
1 usdt:python:gc__start {\"arg1\":0}
2 usdt:python:gc__start {\"arg1\":2}"
}

postgres() {
	local programs=(/usr/lib/postgresql/*/bin /usr/bin) bin='' folder=$TMP/pg backend
	for bin in "${programs[@]}" ''; do [ ! -x "$bin/postgres" ] || break; done
	if [ -z "$bin" ] || ! readelf -n "$bin/postgres" | grep -q query__start; then
		skip "postgres" "there is none that has USDT markers"
		return
	fi
	chmod 711 "$TMP"
	mkdir "$folder"
	chown postgres "$folder"
	local as_postgres=(setpriv --reuid postgres --regid postgres --init-groups)
	(cd "$folder" && "${as_postgres[@]}" "$bin/initdb" -A trust --no-sync -D "$folder/data") >"$TMP/initdb.out" 2>&1 ||
		fail "initdb" "$(tail -n 1 "$TMP/initdb.out")"
	(cd "$folder" && exec "${as_postgres[@]}" "$bin/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c autovacuum=off) \
		>"$TMP/server.out" 2>&1 &
	SERVER=$!
	_pids+=("$SERVER")
	wait_for has_text 'ready to accept connections' "$TMP/server.out"
	mkfifo "$TMP/sql"
	psql -h "$folder" -U postgres -qtA postgres <"$TMP/sql" >"$TMP/psql.out" 2>&1 &
	_pids+=("$!")
	exec 7>"$TMP/sql"
	echo 'select pg_backend_pid();' >&7
	wait_for test -s "$TMP/psql.out"
	backend=$(cat "$TMP/psql.out")
	start_kxray "$backend" -f 'usdt:postgresql:query__start(arg1:str)' -f 'usdt:postgresql:transaction__commit' \
		--span 'usdt:postgresql:query__start ~ query__done'
	{
		for _ in {1..100}; do echo 'select 1 + 1;'; done
		echo "select 'last';"
		echo '\q' # kxray has the pipe open, too
	} >&7
	exec 7>&-
	end_kxray
	assert_eq "postgres: status, lost, repaired: $(tail -n 1 "$TMP/rec.err")" "$STATUS $(json "$TMP/rec.json" '[d["lost"], d["repaired"]]')" "0 [0, 0]"
	assert_eq "postgres: queries" "$(values)" \
		"1 usdt:postgresql:query__start {\"arg1\":\"select 'last';\"}
100 usdt:postgresql:query__start {\"arg1\":\"select 1 + 1;\"}
101 usdt:postgresql:query__start ~ query__done 
101 usdt:postgresql:transaction__commit "
	kill -INT "$SERVER"
	wait "$SERVER" 2>/dev/null
}

python
postgres
