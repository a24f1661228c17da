#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Values of calls (-f 'f(req->path, n) -> ret') of real programs: against what they were asked to do, and against what perf probe and
# bpftrace see of the same calls.
#
#   scripts/check-values.sh [REDIS-SERVER [SQLITE3]]     programs with debug information (built with -g); without, that part is left out
#
# Prints a line for each comparison; status 1 if one differs. Needs root, and linux-perf, bpftrace, openssl, redis-tools.
set -eu
cd "$(dirname "$0")/.."
redis=${1:-}
sqlite=${2:-}
kxray=${KXRAY:-$PWD/build/kxray}
tmp=$(mktemp -d)
failed=0
pids=()
trap 'for p in "${pids[@]}"; do kill "$p" 2>/dev/null || :; done; perf probe -q -d "kxcheck:*" 2>/dev/null || :; rm -rf "$tmp"' EXIT

same() { # WHAT EXPECTED GOT: files
	if cmp -s "$2" "$3" && [ -s "$2" ]; then
		echo "same: $1, $(wc -l <"$2") calls"
	else
		echo "DIFFERENT: $1"
		diff "$2" "$3" | head -n 10
		failed=1
	fi
}

until_true() { # COMMAND...: at most a minute
	for _ in $(seq 600); do
		"$@" 2>/dev/null && return
		sleep 0.1
	done
	echo "waited in vain: $*"
	exit 1
}

# record PID OPTION...: runs in the background until SIGINT
record() {
	local pid=$1
	shift
	rm -f "$tmp/rec.err"
	"$kxray" record -p "$pid" -o "$tmp/trace.xray" "$@" 2>"$tmp/rec.err" &
	recorder=$!
	pids+=("$recorder")
	until_true grep -q 'recording ' "$tmp/rec.err"
}
stop() {
	kill -INT "$recorder"
	wait "$recorder" || cat "$tmp/rec.err"
}

# values FUNCTION LABEL...: of its calls in order, as JSON
values() {
	"$kxray" export -f csv -o "$tmp/calls.csv" "$tmp/trace.xray" 2>/dev/null
	python3 - "$tmp/calls.csv" "$@" <<'END'
import csv, json, sys
path, function, *labels = sys.argv[1:]
for row in csv.DictReader(open(path, newline="")):
    if row["function"] == function:
        v = json.loads(row["values"])
        print(json.dumps([v[label] for label in labels]))
END
}

of_last() {
	python3 -c 'import json, sys
rows = [json.loads(line) for line in sys.stdin]
for row in rows:
    if row[0] == rows[-1][0]:
        print(row)'
}

check_redis() {
	local server address=7398
	"$redis" --port $address --save '' --dir "$tmp" >"$tmp/redis.log" 2>&1 &
	server=$!
	pids+=("$server")
	until_true redis-cli -p $address ping >/dev/null
	perf probe -q -x "$redis" 'kxcheck:command=processCommand argc=c->argc id=c->id db=c->db->id'
	record "$server" -f 'processCommand(c->id, c->argc, c->argv[0]->ptr:str, c->db->id) -> ret'
	mkfifo "$tmp/control" "$tmp/ack"
	perf record -q -D -1 --control "fifo:$tmp/control,$tmp/ack" -e 'kxcheck:command' -p "$server" -o "$tmp/perf.data" 2>"$tmp/perf.err" &
	local perf=$!
	pids+=("$perf")
	# its events count from the acknowledgement on
	exec 7<>"$tmp/control" 8<>"$tmp/ack"
	echo enable >&7
	read -r -t 60 _ <&8
	for i in $(seq 1 40); do
		echo "SET key$i value$i"
		echo "LPUSH list$((i % 5)) a$i b c"
	done >"$tmp/commands"
	echo 'SELECT 3' >>"$tmp/commands"
	echo 'GET key1' >>"$tmp/commands"
	redis-cli -p $address <"$tmp/commands" >/dev/null
	kill -INT "$perf"
	wait "$perf" || :
	stop
	kill "$server"
	# redis-cli asks for COMMAND DOCS first
	values processCommand 'c->argc' 'c->argv[0]->ptr' 'c->db->id' ret | grep -v -e COMMAND -e ping >"$tmp/got"
	python3 - "$tmp/commands" >"$tmp/want" <<'END'
import json, sys
db = 0
for line in open(sys.argv[1]):
    words = line.split()
    print(json.dumps([len(words), words[0], db, 0]))
    if words[0] == "SELECT":
        db = int(words[1])
END
	same "redis-server: commands, by what redis-cli sent" "$tmp/want" "$tmp/got"
	# of the last client
	values processCommand 'c->id' 'c->argc' 'c->db->id' | of_last >"$tmp/got"
	perf script -i "$tmp/perf.data" 2>"$tmp/script.err" | python3 -c 'import json, re, sys
for line in sys.stdin:
    f = dict(re.findall(r"(\w+)=(\"[^\"]*\"|\S+)", line))
    print(json.dumps([int(f["id"], 0), int(f["argc"], 0), int(f["db"], 0)]))' | of_last >"$tmp/perf"
	[ -s "$tmp/perf" ] || cat "$tmp/perf.err" "$tmp/script.err"
	same "redis-server: client, words and database, by perf probe" "$tmp/perf" "$tmp/got"
}

check_sqlite() {
	python3 - >"$tmp/sql" <<'END'
print("create table t(a integer, b text);")
for i in range(50):
    print(f"insert into t values({i}, 'text {i}');")
print("select count(*) from t where b like 'text 4%';")
END
	"$kxray" record -o "$tmp/trace.xray" -f 'sqlite3_prepare_v2(db->nTotalChange, zSql:str[80]) -> ret' \
		-f 'sqlite3_step -> ret' -- "$sqlite" :memory: <"$tmp/sql" >/dev/null 2>"$tmp/rec.err" || cat "$tmp/rec.err"
	values sqlite3_prepare_v2 zSql ret | grep -F -e insert -e create -e select | grep -v -i -e sqlite_ -e pragma >"$tmp/got"
	python3 -c 'import json, sys
for line in open(sys.argv[1]):
    print(json.dumps([line.strip(), 0]))' "$tmp/sql" >"$tmp/want"
	same "sqlite3: statements, by what was typed" "$tmp/want" "$tmp/got"
}

check_openssl() {
	local port=7397 server
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/key" -out "$tmp/cert" -days 1 -subj /CN=x 2>/dev/null
	openssl s_server -accept $port -key "$tmp/key" -cert "$tmp/cert" -quiet >"$tmp/received" 2>/dev/null </dev/zero &
	server=$!
	pids+=("$server")
	until_true openssl s_client -connect "127.0.0.1:$port" -brief </dev/null >/dev/null 2>&1
	mkfifo "$tmp/in"
	openssl s_client -connect "127.0.0.1:$port" -quiet -no_ign_eof <"$tmp/in" >/dev/null 2>&1 &
	local client=$!
	pids+=("$client")
	exec 9>"$tmp/in"
	until_true grep -q libssl "/proc/$client/maps"
	bpftrace -p "$client" -e 'BEGIN { printf("ready\n") } uprobe:'"$(grep -o '/[^ ]*libssl[^ ]*' "/proc/$client/maps" | head -n 1)"':SSL_write
{ printf("%d %s\n", arg2, str(arg1, arg2)) }' >"$tmp/bpftrace.out" 2>&1 &
	local bpftrace=$!
	pids+=("$bpftrace")
	until_true grep -q ready "$tmp/bpftrace.out"
	record "$client" -f 'libssl.so*:SSL_write(ssl, buf:str[num], num) -> ret'
	: >"$tmp/sent"
	for i in $(seq 20); do
		echo "line $i of the client" | tee -a "$tmp/sent" >&9
		until_true grep -q "^line $i of" "$tmp/received"
	done
	stop
	kill -INT "$bpftrace"
	wait "$bpftrace" || :
	exec 9>&-
	kill "$server" "$client" 2>/dev/null || :
	values SSL_write buf num ret >"$tmp/got"
	python3 -c 'import json, sys
for line in open(sys.argv[1]):
    print(json.dumps([line, len(line), len(line)]))' "$tmp/sent" >"$tmp/want"
	same "openssl s_client: what SSL_write wrote, by what was typed" "$tmp/want" "$tmp/got"
	values SSL_write num buf >"$tmp/got"
	python3 -c 'import json, re, sys
text = open(sys.argv[1]).read()
for n, line in re.findall(r"^(\d+) (line .*\n)", text, re.M):
    print(json.dumps([int(n), line]))' "$tmp/bpftrace.out" >"$tmp/want"
	same "openssl s_client: what SSL_write wrote, by bpftrace" "$tmp/want" "$tmp/got"
}

check_openssl
if [ -n "$sqlite" ]; then check_sqlite; fi
if [ -n "$redis" ]; then check_redis; fi
exit "$failed"
