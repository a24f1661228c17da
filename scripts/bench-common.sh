# SPDX-License-Identifier: BSD-2-Clause
#
# Shared by the bench scripts; bench.sh and bench-*.sh source it after `cd` to the repository.
#
# A script prints a table, then machine-readable lines that begin with "bench ". Noise shows in the
# table, not in the exit status, which is 1 only if something could not be measured.
# shellcheck shell=bash

BUILD=$(realpath "${BUILD:-build}")
KXRAY=$BUILD/kxray
failed=0  # verdicts
missing=0 # figures that could not be measured

die()
{
	echo "bench: $*" >&2
	exit 1
}

need_root() { [ "$(id -u)" = 0 ] || die "tracing needs root; run it with sudo"; }

# bench_folder: makes $TMP, with an empty $TMP/lines
bench_folder()
{
	TMP=$(mktemp -d "${TMPDIR:-/tmp}/kxray-bench.XXXXXX")
	: >"$TMP/lines"
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# use_tracefs ARGUMENT...: perf needs tracefs. If it is not mounted, starts the script again with ARGUMENTs in
# a mount namespace of its own and mounts it there.
use_tracefs()
{
	[ -e /sys/kernel/tracing/events ] && return
	[ -n "${KX_BENCH_UNSHARED:-}" ] || KX_BENCH_UNSHARED=1 exec unshare -m "$0" "$@"
	mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
}

# The target runs alone on the last CPU, the tools on the others.
last=$(($(nproc) - 1))
# shellcheck disable=SC2034
on_target_cpu=() on_tool_cpus=()
if [ "$last" -gt 0 ]; then
	# shellcheck disable=SC2034
	on_target_cpu=(taskset -c "$last")
	on_tool_cpus=(taskset -c "0-$((last - 1))")
fi

# running_ns PID: CPU time of a process until now
running_ns() { cat /proc/"$1"/task/*/schedstat | awk '{ s += $1 } END { printf "%.0f\n", s }'; }

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
least() { sort -g | head -n 1; }
greatest() { sort -g | tail -n 1; }

# verdict NAME VALUE OPERATOR LIMIT UNIT DETAIL
verdict()
{
	local state=PASS
	if ! awk -v a="$2" -v b="$4" -v op="$3" 'BEGIN { exit !(op == "<=" ? a <= b : a >= b) }'; then
		state=FAIL
		failed=$((failed + 1))
	fi
	printf '%-4s  %-52s %9s %-3s %2s %-8s %s\n' "$state" "$1" "$2" "$5" "$3" "$4" "$6"
	printf 'bench name="%s" value=%s op=%s limit=%s unit=%s result=%s\n' "$1" "$2" "$3" "$4" \
		"${5:-none}" "$state" >>"$TMP/lines"
}
cannot() # NAME WHY
{
	printf '%-4s  %-52s %s\n' "----" "$1" "not measured: $2"
	printf 'bench name="%s" result=NONE why="%s"\n' "$1" "$2" >>"$TMP/lines"
	missing=$((missing + 1))
}
# summary: prints the machine-readable lines; its status is the script's exit status
summary()
{
	echo
	cat "$TMP/lines"
	echo "bench missed=$failed unmeasured=$missing seconds=$SECONDS"
	[ "$missing" = 0 ]
}

# wait_text FILE TEXT: waits until $tool has written TEXT to FILE; status 1 if it ends first or after a minute
wait_text()
{
	local end=$((SECONDS + 60))
	while [ $SECONDS -lt $end ]; do
		grep -q "$2" "$1" 2>/dev/null && return 0
		kill -0 "$tool" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}
# start_tool OUT ERR COMMAND...: starts it as $tool, without the pipes to the target. Bash makes background jobs ignore SIGINT, so the default
# action is restored.
start_tool()
{
	local out=$1 err=$2
	shift 2
	: >"$out"
	: >"$err"
	env --default-signal=INT "${on_tool_cpus[@]}" "$@" >"$out" 2>"$err" </dev/null 5>&- 6<&- &
	tool=$!
}
# end_tool: ends $tool with SIGINT, after a minute with SIGKILL
end_tool()
{
	local end=$((SECONDS + 60))
	kill -INT "$tool" 2>/dev/null
	while kill -0 "$tool" 2>/dev/null && [ $SECONDS -lt $end ]; do
		sleep 0.02
	done
	kill -KILL "$tool" 2>/dev/null
	wait "$tool" 2>/dev/null
	tool=
}

# used COMMAND...: "CPU-SECONDS KIB ELAPSED-SECONDS" of ROUNDS runs, one line each
used()
{
	for ((i = 0; i < ROUNDS; i++)); do
		python3 - "$@" <<'END' || die "'$*' failed"
import resource, subprocess, sys, time
begin = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{u.ru_utime + u.ru_stime:.3f} {u.ru_maxrss} {time.monotonic() - begin:.3f}")
END
	done
}
# column N: of these lines, which are in $TMP/used
column() { cut -d' ' -f"$1" "$TMP/used"; }
# field FILE KEY: prints a number from a JSON object on one line
field() { sed -n "s/.*\"$2\":\([-0-9.e+]*\).*/\1/p" "$1" | tail -n 1; }
