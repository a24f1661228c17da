#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What a process that nobody asked to trace pays while malloc and free of another one are recorded: its own
# malloc+free during `-- COMMAND`, `--follow -p` and `-a --comm`, against the same process just before. Called
# by scripts/bench.sh; needs root, a built $BUILD and its tests.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
TARGETS=$BUILD/tests/targets
ROUNDS=${ROUNDS:-5} # pairs for each way; the figure is the median of their ratios
ASKS=${ASKS:-40}    # each 100 measurements of 10,000 malloc+free; the least of all counts

need_root
for file in "$KXRAY" "$TARGETS/bystander" "$TARGETS/sleeper"; do
	[ -e "$file" ] || die "$file is missing; run 'make tests'"
done
bench_folder
tool='' bystander='' sleeper=''
cleanup()
{
	local pid
	for pid in $tool $bystander $sleeper; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap cleanup EXIT

# start_quiet NAME: starts a target whose standard input is a pipe of ours; sets $pid and $input
start_quiet()
{
	mkfifo "$TMP/$1.in"
	"${on_target_cpu[@]}" "$TARGETS/$1" <"$TMP/$1.in" >"$TMP/$1.out" &
	pid=$!
	exec {input}>"$TMP/$1.in"
	tool=$pid wait_text "$TMP/$1.out" ready || die "$1 does not start"
}

# least_ns: the least of $ASKS answers of the bystander, in ns for a malloc and a free
least_ns()
{
	local lines n
	lines=$(wc -l <"$TMP/bystander.out")
	for ((n = 1; n <= ASKS; n++)); do
		printf x >&"$asking"
		until [ "$(wc -l <"$TMP/bystander.out")" -ge $((lines + n)) ]; do
			sleep 0.01
		done
	done
	tail -n "$ASKS" "$TMP/bystander.out" | sed 's/.*, \(.*\) ns/\1/' | least
}

start_quiet bystander
bystander=$pid asking=$input
start_quiet sleeper
sleeper=$pid
memory=(-f 'libc.so*:malloc' -f 'libc.so*:free')

# measure NAME OPTION...
measure()
{
	local name=$1 before during i
	shift
	: >"$TMP/ratios"
	for ((i = 0; i < ROUNDS; i++)); do
		before=$(least_ns)
		start_tool "$TMP/out" "$TMP/err" "$KXRAY" record -o "$TMP/t.xray" "${memory[@]}" "$@"
		if ! wait_text "$TMP/err" '^kxray: recording '; then
			cannot "$name" "$(tail -n 1 "$TMP/err")"
			return
		fi
		during=$(least_ns)
		end_tool
		echo "$before $during" | awk '{ printf "%.4f %.2f %.2f\n", $2 / $1, $1, $2 }' >>"$TMP/ratios"
	done
	column() { awk -v c="$1" '{ print $c }' "$TMP/ratios"; }
	verdict "$name" "$(column 1 | median)" "<=" 1.01 "" \
		"$(column 1 | least) to $(column 1 | greatest); $(column 2 | median) and $(column 3 | median) ns"
}

measure "a bystander's malloc+free during -- COMMAND" -- sleep 60
measure "a bystander's malloc+free during --follow -p" --follow -p "$sleeper"
measure "a bystander's malloc+free during -a --comm" -a --comm chosen
summary
