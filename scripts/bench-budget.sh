#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What recording takes of a program's CPU time with --max-overhead, by the program's own work: CPU time for the same pieces of work (requests) of
# a program that is recorded and of its twin that is not, by turns, as a machine's speed changes within seconds; what the two differ by without a
# recording is taken off. Called by scripts/bench.sh; needs root, a built $BUILD and its tests.
#
#     hostile   a piece: about half a second of work with 10 million calls a second, then half a second of sleep
#     all       the same, recorded with -a; the budget is that of all processes, of which the twin is half, and others must be idle
#     redis     GET by redis-benchmark, all functions of redis-server
#     postgres  SELECT by pgbench, all functions of all its processes
#     nginx     requests by ab, all functions of all its processes
#     compile   make -j2 of a small tree, functions of the compiler, from each process's first instruction on; there is no twin, but
#               a build before and one after
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
tool=''
targets=() # the recorded one, its twin
cleanup()
{
	local pid
	for pid in $tool "${targets[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap cleanup EXIT

# start_target OUT COMMAND...: as the next of $targets. It does not outlive this script, however that ends.
start_target()
{
	local out=$1
	shift
	"${on_target_cpu[@]}" setpriv --pdeathsig KILL "$@" <&0 >"$out" 2>&1 &
	targets+=($!)
}
end_targets()
{
	kill -"${1:-KILL}" "${targets[@]}"
	wait "${targets[@]}" 2>/dev/null
	targets=()
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
		running_ns "$1"
	fi
}
pids() { of_tree "${targets[0]}" | awk '{ printf "%s%s", n++ ? "," : "", $1 }'; }

# A piece of work for each kind of target: for $targets[$1]
hostile()
{
	local n
	n=$(wc -l <"$TMP/out.$1")
	echo "5000 500" >&"${input[$1]}"
	until [ "$(wc -l <"$TMP/out.$1")" -gt "$n" ]; do
		sleep 0.01
	done
}
all() { hostile "$1"; }
redis() { redis-benchmark -p $((port + $1)) -t get -n 10000 -c 20 -q >/dev/null; }
postgres()
{
	"${as_postgres[@]}" pgbench -h "$TMP/pg" -p $((port + $1)) -S -n -c 4 -t 1000 postgres >/dev/null 2>&1
}
nginx() { ab -q -n 10000 -c 20 "http://127.0.0.1:$((port + $1))/" >/dev/null 2>&1; }

# work TARGET SECONDS: works so long, by turns, in $ratio: CPU time of the first for that of its twin
work()
{
	local end=$((SECONDS + $2)) of used=(0 0) before
	until [ "${used[0]}" != 0 ] && [ $SECONDS -ge "$end" ]; do
		for of in 0 1; do
			before=$(cpu_ns "${targets[of]}")
			"$1" "$of"
			used[of]=$((used[of] + $(cpu_ns "${targets[of]}") - before))
		done
	done
	ratio=$(awk -v r="${used[0]}" -v t="${used[1]}" 'BEGIN { print r / t }')
}

# overhead BEFORE RECORDED AFTER [SHARE]: adds a turn's figure, percent, of which the budget's share is that
overhead()
{
	awk -v p="$1" -v r="$2" -v q="$3" -v s="${4:-1}" 'BEGIN { print (r / ((p + q) / 2) - 1) * 100 * s }' >>"$TMP/overheads"
}
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

# measure TARGET SEVERAL SHARE OPTION...: a line for each budget; SEVERAL 1: it has several processes
measure()
{
	local name=$1 several=$2 share=$3 budget round before recorded
	shift 3
	for budget in $BUDGETS; do
		: >"$TMP/overheads"
		: >"$TMP/own.$name"
		for ((round = 0; round < ROUNDS; round++)); do
			work "$name" $((SECONDS_EACH / 2))
			before=$ratio
			start_tool "$TMP/rec.json" "$TMP/rec.err" "$KXRAY" record "$@" \
				--max-overhead "$budget" --json -o "$TMP/trace.xray"
			if ! wait_text "$TMP/rec.err" 'kxray: recording '; then
				cannot "$name: CPU time with --max-overhead $budget" "$(tail -n 1 "$TMP/rec.err")"
				return
			fi
			work "$name" "$SECONDS_EACH"
			recorded=$ratio
			end_tool
			own_estimate "$name"
			work "$name" $((SECONDS_EACH / 2))
			overhead "$before" "$recorded" "$ratio" "$share"
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
# ready FILE TEXT: waits for the newest target's text
ready() { tool=${targets[-1]} wait_text "$1" "$2" || die "the target does not start: $(tail -n 1 "$1")"; }

run_hostile() # TARGET
{
	local of
	# the twin is another file, which -a does not record
	cp "$TARGETS/bursts" "$TMP/twin"
	input=()
	for of in 0 1; do
		mkfifo "$TMP/in.$of"
		start_target "$TMP/out.$of" "$([ $of = 0 ] && echo "$TARGETS/bursts" || echo "$TMP/twin")" --calls=1000 <>"$TMP/in.$of"
		exec {input[of]}>"$TMP/in.$of"
		ready "$TMP/out.$of" ready
	done
	case $1 in
	hostile) measure hostile 0 1 -p "${targets[0]}" -f '*' ;;
	all) measure all 0 0.5 -a -f "$(realpath "$TARGETS/bursts"):*" ;;
	esac
	for of in 0 1; do
		exec {input[of]}>&-
		rm "$TMP/in.$of"
	done
	end_targets
}
run_redis()
{
	local of
	missing redis redis-server redis-benchmark && return
	for of in 0 1; do
		start_target "$TMP/redis.out.$of" redis-server --port $((port + of)) --save '' --appendonly no
		ready "$TMP/redis.out.$of" 'eady to accept'
	done
	measure redis 0 1 -p "${targets[0]}" -f '*'
	end_targets
}
run_postgres()
{
	local of
	missing postgres postgres initdb pgbench && return
	id postgres >/dev/null 2>&1 || { cannot "postgres: CPU time with --max-overhead" "there is no user postgres"; return; }
	# it does not run as root
	as_postgres=(setpriv --reuid=postgres --regid=postgres --init-groups)
	chmod 755 "$TMP"
	mkdir "$TMP/pg"
	chown postgres: "$TMP/pg"
	for of in 0 1; do
		(cd "$TMP/pg" && "${as_postgres[@]}" initdb -A trust -D "$TMP/pg/data.$of") >"$TMP/initdb.out" 2>&1 ||
			{ cannot "postgres: CPU time with --max-overhead" "$(tail -n 1 "$TMP/initdb.out")"; return; }
		# a change of the user takes the signal away
		start_target "$TMP/postgres.out.$of" "${as_postgres[@]}" setpriv --pdeathsig KILL "$(type -P postgres)" \
			-D "$TMP/pg/data.$of" -k "$TMP/pg" -p $((port + of)) -c listen_addresses= -c fsync=off -c autovacuum=off
		ready "$TMP/postgres.out.$of" 'ready to accept'
		"${as_postgres[@]}" pgbench -h "$TMP/pg" -p $((port + of)) -i -q postgres >"$TMP/pgbench.out" 2>&1
	done
	until [ "$(pids)" = "$(sleep 0.2 && pids)" ]; do :; done # what served pgbench ends
	measure postgres 1 1 -p "$(pids)" --follow -f '*'
	end_targets INT
}
run_nginx()
{
	local of
	missing nginx nginx ab && return
	for of in 0 1; do
		mkdir -p "$TMP/nginx.$of/logs"
		echo it works >"$TMP/nginx.$of/index.html"
		cat >"$TMP/nginx.$of/nginx.conf" <<-END
		daemon off;
		pid $TMP/nginx.$of/pid;
		error_log stderr notice;
		events {}
		http { access_log off; server { listen 127.0.0.1:$((port + of)); root $TMP/nginx.$of; } }
		END
	done
	chmod -R a+rX "$TMP"
	for of in 0 1; do
		start_target "$TMP/nginx.out.$of" nginx -p "$TMP/nginx.$of" -c nginx.conf
		ready "$TMP/nginx.out.$of" 'start worker process '
	done
	measure nginx 1 1 -p "$(pids)" --follow -f '*'
	end_targets TERM
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
