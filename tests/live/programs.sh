#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 19 s
# Third-party programs, attached by PID while they run: python3, redis-server, sqlite3 and xz. The
# expected counts come from the program's own counters, or from its input.
. "$(dirname "$0")/../lib.sh"

# Debian's python3, not that of a version manager.
PATH=/usr/bin:/bin:$PATH
PYTHON=/usr/bin/python3

# start NAME FD COMMAND...: its standard input is a pipe, written through file descriptor FD
# (7, 8 or 9), its output goes to $TMP/NAME.out; its pid is in $PID
start() {
	local name=$1 fd=$2
	shift 2
	rm -f "$TMP/$name.in"
	mkfifo "$TMP/$name.in"
	"$@" <"$TMP/$name.in" >"$TMP/$name.out" 2>"$TMP/$name.err" 7>&- 8>&- 9>&- &
	PID=$!
	_pids+=("$PID")
	eval "exec $fd>\"$TMP/$name.in\""
}

# mapped PID LIBRARY: waits until the library is mapped and the program sleeps, that is, has started up
mapped() {
	wait_for grep -q "r-xp .*/$2" "/proc/$1/maps" && wait_for is_asleep "$1" ||
		fail "$2 in process $1" "$(cat "/proc/$1/maps" 2>&1)"
}

# record NAME ARG...: returns when the recording runs; its pid is in $REC
record() {
	local name=$1
	shift
	: >"$TMP/$name.log"
	"$KXRAY" record --json -o "$TMP/$name.xray" "$@" >"$TMP/$name.json" 2>"$TMP/$name.log" \
		7>&- 8>&- 9>&- &
	REC=$!
	_pids+=("$REC")
	wait_for has_text 'kxray: recording' "$TMP/$name.log" ||
		fail "$name: the recording starts" "$(cat "$TMP/$name.log")"
}

# end_record NAME [SIGNAL]: without SIGNAL, the recording must end with its target
end_record() {
	local name=$1 status=0
	[ -z "${2:-}" ] || kill "-$2" "$REC"
	wait_for _is_over "$REC" || fail "$name: the recording ends" "it still runs"
	wait "$REC" || status=$?
	assert_eq "$name: status" "$status" 0
	"$KXRAY" report --json "$TMP/$name.xray" >"$TMP/$name.report" ||
		fail "$name: report" "it fails"
	assert_eq "$name: the report has all events" "$(json "$TMP/$name.report" 'd["events"]')" \
		"$(json "$TMP/$name.json" 'd["events"]')"
}

# ends NAME PID: waits for the program's end; its status must be 0
ends() {
	local status=0
	wait_for _is_over "$2" || kill -KILL "$2"
	wait "$2" || status=$?
	assert_eq "$1: the program's status" "$status" 0
}

# calls NAME FUNCTION: prints the function's calls in kxray report
calls() {
	json "$TMP/$1.report" "sum(f['count'] for f in d['functions'] if f['name'] == '$2')"
}

# check_counts NAME FUNCTION=COUNT...: checks these counts in the report and in both llvm-xrays,
# and that no event is lost
check_counts() {
	local name=$1 pair got tool csv
	shift
	assert_eq "$name: nothing is lost" "$(json "$TMP/$name.json" 'd["lost"]')" 0
	for pair in "$@"; do
		assert_eq "$name: ${pair%=*}" "$(calls "$name" "${pair%=*}")" "${pair#*=}"
	done
	for tool in $(llvm_xrays); do
		csv=$("$tool" account -f csv -m "$TMP/$name.xray.map" "$TMP/$name.xray" 2>&1)
		for pair in "$@"; do
			got=$(awk -F, -v f="${pair%=*}" '$NF == f { n += $2 } END { print n + 0 }' \
				<<<"${csv//\"/}")
			assert_eq "$name: ${pair%=*} in $tool account" "$got" "${pair#*=}"
		done
	done
}

# loads NAME [FUNCTION]: checks that every command of every llvm-xray reads the trace, without -k and -d,
# and prints the function's name
loads() {
	local name=$1 function=${2:-} tool command status
	for tool in $(llvm_xrays); do
		for command in account stack graph 'convert -f yaml --symbolize' \
			'convert -f trace_event --symbolize' 'fdr-dump --verify'; do
			set -- "$TMP/$name.xray"
			[ "$command" = 'fdr-dump --verify' ] || set -- -m "$TMP/$name.xray.map" "$@"
			status=0
			# shellcheck disable=SC2086
			"$tool" $command "$@" >"$TMP/tool.out" 2>"$TMP/tool.err" || status=$?
			if [ "$status" -ne 0 ] || [ -s "$TMP/tool.err" ]; then
				fail "$name: $tool $command" "status $status, $(head -n 3 "$TMP/tool.err")"
			elif [ -n "$function" ] && [[ $command = account || $command = convert* ]] &&
				! grep -q "$function" "$TMP/tool.out"; then
				fail "$name: $tool $command" "it does not name $function"
			else
				pass "$name: $tool $command"
			fi
		done
	done
}

python_calls() {
	local rounds
	cat >"$TMP/calls.py" <<-'END'
		import os
		def next_one(x):
		    return x + 1
		print("ready", flush=True)
		os.read(0, 1)
		n = 0
		for i in range(3000):
		    n += int("12345")
		s = sum(map(next_one, range(4000)))
		f = sum(float("1.5") for i in range(100))
		print(n, s, f, flush=True)
		os.read(0, 1)
		# attached to while it works
		print("busy", flush=True)
		n = rounds = 0
		while not os.path.exists(os.environ["TMP"] + "/idle"):
		    for i in range(1000):
		        n += int(str(i)) * len([i, i]) - 2 * i
		    rounds += 1
		    os.pwrite(2, b"%9d" % rounds, 0)
		print(n, flush=True)
	END
	start python 7 "$PYTHON" "$TMP/calls.py"
	wait_for has_text ready "$TMP/python.out"
	record python -p "$PID" -f 'PyLong_*' -f PyFloat_FromString -f '_PyEval_*'
	printf g >&7
	wait_for grep -q '^37035000 8002000 150.0$' "$TMP/python.out" ||
		fail "python: its sums are right" "$(cat "$TMP/python.out" "$TMP/python.err")"
	end_record python TERM
	# The interpreter enters a new C frame for each call from map, for each of the generator's 100
	# elements and for its end; calls from Python to Python need none.
	check_counts python PyLong_FromUnicodeObject=3000 PyLong_FromString=3000 \
		PyFloat_FromString=100 _PyEval_EvalFrameDefault=$((4000 + 101))
	loads python PyLong_FromUnicodeObject

	# Without -f, functions are selected by size and by how often they are called; kxray attaches and detaches while
	# the program works.
	printf g >&7
	wait_for has_text busy "$TMP/python.out"
	record busy -p "$PID"
	rounds=$(cat "$TMP/python.err")
	wait_for worked $((rounds + 5))
	end_record busy INT
	touch "$TMP/idle"
	ends busy "$PID"
	assert_eq "busy: python's result" "$(tail -n 1 "$TMP/python.out")" 0
	assert_contains "busy: the selection is printed" "$(cat "$TMP/busy.log")" "by size"
	# The most called functions are left out.
	most=$(json "$TMP/busy.report" "max(d['functions'], key=lambda f: f['count'])['name']")
	assert "busy: calls of the interpreter are in the report" "$(head -c 400 "$TMP/busy.report")" \
		[ "$(calls busy "$most")" -ge 1 ]
	loads busy "$most"
}

worked() { [ "$(cat "$TMP/python.err")" -ge "$1" ]; } # ROUNDS

# redis-server's own count of a command's calls; without COMMAND, of all but the commands that read the counts
redis_calls() { # FILE [COMMAND]
	sed -n 's/^cmdstat_\([^:]*\):calls=\([0-9]*\),.*/\1 \2/p' "$1" |
		awk -v name="${2:-}" '
			name == $1 || name == "" && $1 != "info" { n += $2 }
			END { print n + 0 }'
}

redis_benchmark() {
	local before after port=$((20000 + RANDOM % 10000))
	mkdir "$TMP/redis"
	start redis 7 redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no \
		--dir "$TMP/redis"
	if ! wait_for redis-cli -p "$port" ping; then
		fail "redis: the server starts" "$(tail -n 3 "$TMP/redis.out")"
		return
	fi
	redis-cli -p "$port" info commandstats >"$TMP/before"
	# The file's name is redis-check-rdb; redis-server is a link to it.
	record redis -p "$PID" -f setCommand -f getCommand -f incrCommand -f call -f processCommand
	redis-benchmark -p "$port" -n 2000 -c 8 -r 100 -t set,get,incr --csv >"$TMP/bench" 2>&1
	assert_eq "redis: the benchmark's rows" "$(grep -cE '^"(SET|GET|INCR)"' "$TMP/bench")" 3
	end_record redis TERM
	redis-cli -p "$port" info commandstats >"$TMP/after"
	for command in set get incr; do
		assert_between "redis: it counts $command" "$(redis_calls "$TMP/after" $command)" 2000 2100
	done
	before=$(redis_calls "$TMP/before") after=$(redis_calls "$TMP/after")
	check_counts redis setCommand="$(redis_calls "$TMP/after" set)" \
		getCommand="$(redis_calls "$TMP/after" get)" \
		incrCommand="$(redis_calls "$TMP/after" incr)" \
		call=$((after - before)) processCommand=$((after - before))
	loads redis setCommand
	redis-cli -p "$port" set last word >/dev/null
	assert_eq "redis: the server keeps running" "$(redis-cli -p "$port" get last)" word
	kill "$PID"
	ends redis "$PID"
}

sqlite_queries() {
	local i queries=20 rows=100
	for ((i = 1; i <= queries; i++)); do
		echo "with recursive c(x) as (select 1 union all select x + 1 from c where x < $rows)" \
			"select x, x * $i, 'row ' || x from c;"
	done >"$TMP/queries"
	sqlite3 -batch :memory: <"$TMP/queries" >"$TMP/sqlite.want"
	start sqlite 7 sqlite3 -batch :memory:
	printf '.shell echo ready\n' >&7
	wait_for has_text ready "$TMP/sqlite.out"
	record sqlite -p "$PID" -f 'libsqlite3.so*:sqlite3_*' -x '*:sqlite3_mutex_*'
	cat "$TMP/queries" >&7
	exec 7>&-
	end_record sqlite
	ends sqlite "$PID"
	assert "sqlite: its output is the same" "see above" \
		cmp <(tail -n +2 "$TMP/sqlite.out") "$TMP/sqlite.want"
	# one call for each row, and one for the end of each query
	check_counts sqlite sqlite3_step=$((queries * (rows + 1))) sqlite3_prepare_v2=$queries \
		sqlite3_column_text=$((queries * rows * 3)) sqlite3_mutex_enter=0
	loads sqlite sqlite3_step
}

# xz reads blocks of 8 KiB and calls lzma_code once for each and once for the end, provided that its
# output fits into one block: hence the repetitive data.
compressible() { # BLOCKS
	"$PYTHON" -c 'import hashlib, sys
block = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(64))
sys.stdout.buffer.write(block * 4 * int(sys.argv[1]))' "$1"
}

xz_compression() {
	local size
	compressible 700 >"$TMP/data"
	xz -T1 -c "$TMP/data" >"$TMP/xz.want"
	assert_between "xz: its output fits into one block" "$(stat -c %s "$TMP/xz.want")" 1 8191
	start xz 7 xz -T1 -c
	mapped "$PID" liblzma
	record xz -p "$PID" -f 'liblzma.so*:lzma_*'
	cat "$TMP/data" >&7
	exec 7>&-
	end_record xz
	ends xz "$PID"
	assert "xz: its output is the same" "see above" cmp "$TMP/xz.out" "$TMP/xz.want"
	check_counts xz lzma_code=701
	loads xz lzma_code

	# Attached and detached while it works: the data lasts until the recording has ended.
	"$PYTHON" -c 'import os, random, sys
random.seed(1)
while not os.path.exists(sys.argv[1]):
    print(*(random.randrange(1 << 32) for i in range(5000)), flush=True)' "$TMP/enough" |
		tee "$TMP/data" | xz -T1 -c >"$TMP/xz.out" &
	PID=$!
	_pids+=("$PID")
	mapped_code() { grep -q 'r-xp .*/liblzma' "/proc/$PID/maps" && [ -s "$TMP/data" ]; }
	wait_for mapped_code
	record midst -p "$PID" -f 'liblzma.so*:lzma_*'
	size=$(stat -c %s "$TMP/data")
	worked() { [ "$(stat -c %s "$TMP/data")" -gt $((size + (1 << 20))) ]; } # more than fits into the pipes
	wait_for worked
	end_record midst INT
	touch "$TMP/enough"
	ends midst "$PID"
	xz -T1 -c "$TMP/data" >"$TMP/xz.want"
	assert "midst: xz's output is the same" "see above" cmp "$TMP/xz.out" "$TMP/xz.want"
	assert_eq "midst: nothing is lost" "$(json "$TMP/midst.json" 'd["lost"]')" 0
	loads midst
}

# Two processes with the same library and one with another, in one recording.
several_processes() {
	local xz1 xz2 sqlite tool
	compressible 300 >"$TMP/data1"
	compressible 500 >"$TMP/data2"
	start xz1 7 xz -T1 -c
	xz1=$PID
	start xz2 8 xz -T1 -c
	xz2=$PID
	mapped "$xz1" liblzma
	mapped "$xz2" liblzma
	for _ in {1..30}; do echo "select 1;"; done >"$TMP/queries"
	start third 9 sqlite3 -batch :memory:
	sqlite=$PID
	mapped "$sqlite" libsqlite3
	record several -p "$xz1,$xz2,$sqlite" -f 'liblzma.so*:lzma_*' -f 'libsqlite3.so*:sqlite3_step'
	cat "$TMP/queries" >&9
	exec 9>&-
	cat "$TMP/data1" >&7
	exec 7>&-
	cat "$TMP/data2" >&8
	exec 8>&-
	end_record several
	check_counts several lzma_code=802 sqlite3_step=60
	loads several lzma_code
	for tool in $(llvm_xrays); do
		"$tool" convert -f yaml --symbolize -m "$TMP/several.xray.map" "$TMP/several.xray" |
			grep function-enter >"$TMP/calls"
		assert_eq "several: lzma_code of the first, in $tool convert" \
			"$(grep -w "process: $xz1" "$TMP/calls" | grep -cw lzma_code)" 301
		assert_eq "several: lzma_code of the second, in $tool convert" \
			"$(grep -w "process: $xz2" "$TMP/calls" | grep -cw lzma_code)" 501
		assert_eq "several: sqlite3_step, in $tool convert" \
			"$(grep -w "process: $sqlite" "$TMP/calls" | grep -cw sqlite3_step)" 60
		assert_eq "several: ids and names are pairs, in $tool convert" "$("$PYTHON" -c '
import re, sys
pairs = set(re.findall("func-id: ([0-9]+), function: ([^,]*),", sys.stdin.read()))
print(len(pairs) - len({i for i, n in pairs}), len(pairs) - len({n for i, n in pairs}),
      len(pairs) > 10)' <"$TMP/calls")" "0 0 True"
	done
	ends several "$xz1"
	ends several "$xz2"
	ends several "$sqlite"
}

python_calls
redis_benchmark
sqlite_queries
xz_compression
several_processes
