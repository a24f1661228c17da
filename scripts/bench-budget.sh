#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What recording takes of a program's CPU time with --max-overhead, by the program's own work: CPU time for a piece of
# work (a request) while it is recorded against that of the pieces just before and after, in turns, so that a machine's other load
# concerns both alike. Called by scripts/bench.sh; needs root, a built $BUILD and its tests.
#
#     hostile   a piece: about half a second of work with 10 million calls a second, then half a second of sleep
#     all       the same, recorded with -a; the budget is that of all processes, so others must be idle
#     redis     GET by redis-benchmark, all functions of redis-server
#     postgres  SELECT by pgbench, all functions of all its processes
#     nginx     requests by ab, all functions of all its processes
#     compile   make -j2 of a small tree, functions of the compiler, from each process's first instruction on
#
#     scripts/bench-budget.sh [TARGET...]     default: all; what is not installed is named and left out
#
# ROUNDS turns (3) of SECONDS_EACH (10) each with recording, for each of BUDGETS (1 5 20, percent).
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
TARGETS=$BUILD/tests/targets
ROUNDS=${ROUNDS:-3}
SECONDS_EACH=${SECONDS_EACH:-10}
BUDGETS=${BUDGETS:-1 5 20}
# Debian's postgres and initdb are on nobody's PATH.
PATH=$PATH:/usr/sbin$(printf ':%s' /usr/lib/postgresql/*/bin)
what=${*:-hostile all redis postgres nginx compile}
port=$((20000 + $$ % 20000))

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

# start_target OUT COMMAND...: as $target. It does not outlive this script, however that ends.
start_target()
{
	local out=$1
	shift
	"${on_target_cpu[@]}" setpriv --pdeathsig KILL "$@" <&0 >"$out" 2>&1 &
	target=$!
}
end_target()
{
	kill -"${1:-KILL}" "$target"
	wait "$target" 2>/dev/null
	target=
}

# of_tree PID: all lines of /proc/*/stat, each as "PID PARENT TICKS" (with those of ended children), of the process and its descendants
of_tree()
{
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$1" '
		{ pid = $1; sub(/.*\) /, ""); parent[pid] = $2; ticks[pid] = $12 + $13 + $14 + $15 }
		END { for (p in ticks) {
			for (q = p; q != root && q in parent; q = parent[q]);
			if (q == root) print p, parent[p], ticks[p] } }'
}
# A process alone is measured to the ns; of several, the kernel keeps what ended ones have used in ticks.
cpu_ns()
{
	if [ "$several" = 1 ]; then
		of_tree "$1" | awk -v hz="$(getconf CLK_TCK)" '{ s += $3 } END { printf "%.0f\n", s * 1e9 / hz }'
	else
		cat /proc/"$1"/task/*/schedstat | awk '{ s += $1 } END { printf "%.0f\n", s }'
	fi
}
pids() { of_tree "$target" | awk '{ printf "%s%s", n++ ? "," : "", $1 }'; }

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
all() { hostile; }
redis()
{
	redis-benchmark -p "$port" -t get -n 20000 -c 20 -q >/dev/null
	pieces=20000
}
postgres()
{
	"${as_postgres[@]}" pgbench -h "$TMP/pg" -p "$port" -S -n -c 4 -t 2000 postgres >/dev/null 2>&1
	pieces=8000
}
nginx()
{
	ab -q -n 20000 -c 20 "http://127.0.0.1:$port/" >/dev/null 2>&1
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

# overhead PLAIN RECORDED AFTER: adds a turn's figure, percent
overhead() { awk -v p="$1" -v r="$2" -v q="$3" 'BEGIN { print (r / ((p + q) / 2) - 1) * 100 }' >>"$TMP/overheads"; }
own_estimate()
{
	python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["budget_taken_percent"])' "$TMP/rec.json" >>"$TMP/own.$1"
}
# judge TARGET BUDGET
judge()
{
	verdict "$1: CPU time beyond the work, --max-overhead $2" \
		"$(median <"$TMP/overheads" | awk '{ printf "%.1f", $1 }')" '<=' $(($2 + 2)) % \
		"($(least <"$TMP/overheads" | awk '{ printf "%.1f", $1 }') to $(greatest <"$TMP/overheads" | awk '{ printf "%.1f", $1 }'); kxray's own estimate $(median <"$TMP/own.$1" | awk '{ printf "%.1f", $1 }'))"
}

# measure TARGET SEVERAL OPTION...: a line for each budget; SEVERAL 1: it has several processes
measure()
{
	local name=$1 several=$2 budget round plain recorded
	shift 2
	for budget in $BUDGETS; do
		: >"$TMP/overheads"
		: >"$TMP/own.$name"
		for ((round = 0; round < ROUNDS; round++)); do
			work "$name" $((SECONDS_EACH / 2))
			plain=$cpu
			start_tool "$TMP/rec.json" "$TMP/rec.err" "$KXRAY" record "$@" \
				--max-overhead "$budget" --json -o "$TMP/trace.xray"
			if ! wait_text "$TMP/rec.err" 'kxray: recording '; then
				cannot "$name: CPU time with --max-overhead $budget" "$(tail -n 1 "$TMP/rec.err")"
				return
			fi
			work "$name" "$SECONDS_EACH"
			recorded=$cpu
			end_tool
			own_estimate "$name"
			work "$name" $((SECONDS_EACH / 2))
			overhead "$plain" "$recorded" "$cpu"
		done
		judge "$name" "$budget"
	done
}

missing() # TARGET COMMAND...: whether a command is not installed, which is said
{
	local name=$1 command
	shift
	for command; do
		[ -n "$(type -P "$command")" ] && continue
		cannot "$name: CPU time with --max-overhead" "$command is not installed"
		return 0
	done
	return 1
}
# ready FILE TEXT: waits for the target's text
ready() { tool=$target wait_text "$1" "$2" || die "the target does not start: $(tail -n 1 "$1")"; }

run_hostile() # TARGET OPTION...
{
	mkfifo "$TMP/in"
	start_target "$TMP/bursts.out" "$TARGETS/bursts" --calls=1000 <>"$TMP/in"
	exec {input}>"$TMP/in"
	ready "$TMP/bursts.out" ready
	case $1 in
	hostile) measure hostile 0 -p "$target" -f '*' ;;
	all) measure all 0 -a -f "$(realpath "$TARGETS/bursts"):*" ;;
	esac
	exec {input}>&-
	end_target
	rm "$TMP/in"
}
run_redis()
{
	missing redis redis-server redis-benchmark && return
	start_target "$TMP/redis.out" redis-server --port "$port" --save '' --appendonly no
	ready "$TMP/redis.out" 'eady to accept'
	measure redis 0 -p "$target" -f '*'
	end_target
}
run_postgres()
{
	missing postgres postgres initdb pgbench && return
	id postgres >/dev/null 2>&1 || { cannot "postgres: CPU time with --max-overhead" "there is no user postgres"; return; }
	# it does not run as root
	as_postgres=(setpriv --reuid=postgres --regid=postgres --init-groups)
	chmod 755 "$TMP"
	mkdir "$TMP/pg"
	chown postgres: "$TMP/pg"
	(cd "$TMP/pg" && "${as_postgres[@]}" initdb -A trust -D "$TMP/pg/data") >"$TMP/initdb.out" 2>&1 ||
		{ cannot "postgres: CPU time with --max-overhead" "$(tail -n 1 "$TMP/initdb.out")"; return; }
	# a change of the user takes the signal away
	start_target "$TMP/postgres.out" "${as_postgres[@]}" setpriv --pdeathsig KILL "$(type -P postgres)" \
		-D "$TMP/pg/data" -k "$TMP/pg" -p "$port" -c listen_addresses= -c fsync=off -c autovacuum=off
	ready "$TMP/postgres.out" 'ready to accept'
	"${as_postgres[@]}" pgbench -h "$TMP/pg" -p "$port" -i -q postgres >"$TMP/pgbench.out" 2>&1
	until [ "$(pids)" = "$(sleep 0.2 && pids)" ]; do :; done # what served pgbench ends
	measure postgres 1 -p "$(pids)" --follow -f '*'
	end_target INT
}
run_nginx()
{
	missing nginx nginx ab && return
	mkdir -p "$TMP/nginx/logs"
	echo it works >"$TMP/nginx/index.html"
	chmod -R a+rX "$TMP"
	cat >"$TMP/nginx/nginx.conf" <<-END
	daemon off;
	pid $TMP/nginx/pid;
	error_log stderr notice;
	events {}
	http { access_log off; server { listen 127.0.0.1:$port; root $TMP/nginx; } }
	END
	start_target "$TMP/nginx.out" nginx -p "$TMP/nginx" -c nginx.conf
	ready "$TMP/nginx.out" 'start worker process '
	measure nginx 1 -p "$(pids)" --follow -f '*'
	end_target TERM
}

# build [TOOL...]: makes the tree, in $cpu: ns of CPU time of the compilers, by the shell that starts them
build()
{
	rm -f "$TMP"/tree/*.o
	# shellcheck disable=SC2016
	"$@" bash -c 'TIMEFORMAT="%U %S"; { time make -s -j2 -C "$1"; } 2>"$1/time"' build "$TMP/tree" >"$TMP/rec.json" 2>"$TMP/rec.err" ||
		return
	cpu=$(awk 'END { printf "%.0f\n", ($1 + $2) * 1e9 }' "$TMP/tree/time")
}
run_compile()
{
	local budget round plain recorded n
	missing compile make gcc && return
	mkdir "$TMP/tree"
	for n in {1..16}; do
		{
			printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n'
			for f in {1..100}; do
				echo "int f${n}_$f(int n) { char s[64]; int sum = 0; for (int i = 0; i < n; i++) sum += snprintf(s, sizeof(s), \"%d\", i * $f); return sum + (int)strlen(s); }"
			done
		} >"$TMP/tree/$n.c"
	done
	# shellcheck disable=SC2016
	printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\tgcc -O2 -c $<\n' >"$TMP/tree/Makefile"
	for budget in $BUDGETS; do
		: >"$TMP/overheads"
		: >"$TMP/own.compile"
		for ((round = 0; round < ROUNDS; round++)); do
			build && plain=$cpu
			if ! build "$KXRAY" record -f 'cc1:ggc_*' -f 'cc1:gimple_*' --max-overhead "$budget" --json \
				-o "$TMP/trace.xray" --; then
				cannot "compile: CPU time with --max-overhead $budget" "$(tail -n 1 "$TMP/rec.err")"
				return
			fi
			recorded=$cpu
			own_estimate compile
			build
			overhead "$plain" "$recorded" "$cpu"
		done
		judge compile "$budget"
	done
}

for name in $what; do
	case $name in
	hostile | all) run_hostile "$name" ;;
	redis | postgres | nginx | compile) "run_$name" ;;
	*) die "unknown target '$name': take hostile, all, redis, postgres, nginx or compile" ;;
	esac
done
summary
