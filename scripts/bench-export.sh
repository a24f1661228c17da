#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures report and export against llvm-xray, on generated traces:
#     scripts/bench-export.sh
# Needs a built $BUILD (default build), python3, llvm-xray 19, 500 MB in $TMPDIR and 2 GB of
# memory. About two minutes; no root.
#
# A figure is the ratio of two consecutive runs on the same trace in a warm cache: CPU seconds, seconds
# (llvm-xray has one thread, report several for many functions) or maximum resident memory; all output goes to
# /dev/null. The table shows the median, minimum and maximum of ROUNDS such pairs.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
LLVM_XRAY=${LLVM_XRAY:-/usr/lib/llvm-19/bin/llvm-xray}
ROUNDS=${ROUNDS:-3}
EVENTS=${EVENTS:-4000000}
THREADS=4
FUNCTIONS=200000
STACKS=1000

[ -x "$KXRAY" ] || die "$KXRAY is missing; run 'make'"
[ -e "$BUILD/libkxray.a" ] || die "$BUILD/libkxray.a is missing; run 'make tests'"
bench_folder
trap 'rm -rf "$TMP"' EXIT
MAKE_TRACE=$BUILD/tests/make_trace

# ratio NAME OPERATOR LIMIT A B UNIT: prints the ratio of columns A and B of $TMP/pairs
ratio()
{
	local value=("${@:4:2}")
	awk -v a="$4" -v b="$5" '{ print $a / $b }' "$TMP/pairs" >"$TMP/ratios"
	verdict "$1" "$(median <"$TMP/ratios" | xargs printf %.2f)" "$2" "$3" x \
		"$(sort -g "$TMP/ratios" | awk 'NR == 1 { l = $1 } { g = $1 }
			END { printf "%.2f to %.2f", l, g }'); $(column "${value[0]}") / $(column "${value[1]}") $6"
}
column() { awk -v n="$1" '{ print $n }' "$TMP/pairs" | median; }

# cost COMMAND...: prints "CPU_SECONDS MEGABYTES SECONDS"; status 1, and the reason in $TMP/why, if it fails
cost()
{
	python3 -c 'import os, sys, time
start = time.monotonic()
pid = os.fork()
if not pid:
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print("%.3f %.1f %.3f" % (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, time.monotonic() - start))
sys.exit(status != 0)' "$@" 2>"$TMP/why"
}

# pairs LLVM_XRAY_ARGS -- KXRAY_ARGS: writes lines of two costs (llvm-xray's, then kxray's) to $TMP/pairs
pairs()
{
	local theirs=() i
	while [ "$1" != -- ]; do
		theirs+=("$1")
		shift
	done
	shift
	: >"$TMP/pairs"
	for ((i = 0; i < ROUNDS; i++)); do
		cost "$LLVM_XRAY" "${theirs[@]}" >"$TMP/theirs" || return 1
		cost "$KXRAY" "$@" >"$TMP/ours" || return 1
		paste -d' ' "$TMP/theirs" "$TMP/ours" >>"$TMP/pairs"
	done
}

# compared NAME LIMIT MEMORY: prints the verdicts on $TMP/pairs; MEMORY, the limit of its ratio, may be empty
compared()
{
	ratio "$1: llvm-xray / kxray, CPU time" ">=" "$2" 1 4 s
	[ -z "$3" ] || ratio "$1: llvm-xray / kxray, memory" ">=" "$3" 2 5 MB
}
why() { tail -n 1 "$TMP/why" | tr -d '"'; }

make_trace() # NAME EVENTS [STACKS [SWITCH]]
{
	"$MAKE_TRACE" write "$TMP/$1.xray" "$2" "$THREADS" "$FUNCTIONS" "${@:3}" ||
		die "the trace '$1' cannot be made"
	[ "$("$KXRAY" report --json "$TMP/$1.xray" 2>/dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)["calls"])')" = $(($2 / 2)) ] || die "trace '$1' has a wrong number of calls"
}

[ -x "$MAKE_TRACE" ] || die "$MAKE_TRACE is missing; run 'make tests'"
make_trace unique "$EVENTS"
make_trace repeated "$EVENTS" "$STACKS"
map=-instr_map=$TMP/unique.xray.map

echo "kxray bench: report and export of $EVENTS events, $THREADS threads, $FUNCTIONS functions;" \
	"median of $ROUNDS pairs"
echo
printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"

for ((i = 0; i < 5; i++)); do
	"$MAKE_TRACE" read "$TMP/unique.xray" || die "the trace cannot be read"
done | awk -v calls=$((EVENTS / 2)) '$3 != calls { exit 1 } { print $1 / $2 / 1e6 }' >"$TMP/speeds" ||
	die "reading finds a wrong number of calls"
verdict "records read a second, in millions" "$(median <"$TMP/speeds" | xargs printf %.0f)" ">=" 40 M \
	"$(sort -g "$TMP/speeds" | awk 'NR == 1 { l = $1 } { g = $1 } END { printf "%.0f to %.0f", l, g }')"

if ! [ -x "$LLVM_XRAY" ]; then
	for name in "report" "folded, unique stacks" "folded, $STACKS stacks" "chrome"; do
		cannot "$name" "$LLVM_XRAY is not installed"
	done
else
	if pairs account "$map" "$TMP/unique.xray" -- report "$TMP/unique.xray"; then
		compared "report" 12 20
		ratio "report: llvm-xray / kxray, time on $(nproc) CPUs" ">=" 12 3 6 s
	else
		cannot "report" "$(why)"
	fi
	flame=(stack -all-stacks -stack-format=flame -aggregation-type=time)
	if pairs "${flame[@]}" "$map" "$TMP/unique.xray" -- \
		export -f folded -o - "$TMP/unique.xray"; then
		compared "folded, unique stacks" 8 ""
	else
		cannot "folded, unique stacks" "$(why)"
	fi
	map=-instr_map=$TMP/repeated.xray.map
	if pairs "${flame[@]}" "$map" "$TMP/repeated.xray" -- \
		export -f folded -o - "$TMP/repeated.xray"; then
		compared "folded, $STACKS stacks" 20 10
	else
		cannot "folded, $STACKS stacks" "$(why)"
	fi
	if pairs convert -f trace_event -symbolize "$map" -o - "$TMP/repeated.xray" -- \
		export -f chrome -o - "$TMP/repeated.xray"; then
		compared "chrome, $STACKS stacks" 4 10
	else
		cannot "chrome, $STACKS stacks" "$(why)"
	fi
fi

# speed FORMAT NAME TRACE: megabytes of trace a second of CPU time
speed()
{
	local i name="$1, $2: trace read a second"
	for ((i = 0; i < ROUNDS; i++)); do
		cost "$KXRAY" export -f "$1" -o - "$TMP/$3.xray" || break
	done | awk -v bytes="$(stat -c %s "$TMP/$3.xray")" '{ print bytes / $1 / 1e6 }' >"$TMP/speeds"
	if [ -s "$TMP/speeds" ]; then
		verdict "$name" "$(median <"$TMP/speeds" | xargs printf %.0f)" ">=" 100 MB \
			"$(sort -g "$TMP/speeds" | awk 'NR == 1 { l = $1 } { g = $1 } END { printf "%.0f to %.0f", l, g }')"
	else
		cannot "$name" "$(why)"
	fi
}
speed perfetto "$STACKS stacks" repeated
speed csv "$STACKS stacks" repeated
make_trace switches $((EVENTS / 4)) "$STACKS" 2
speed perfetto "a switch for two events" switches
rm -f "$TMP"/switches.xray*

# A trace ten times as long: memory may depend only on the number of functions, threads and open calls.
rm -f "$TMP"/repeated.xray*
make_trace long $((EVENTS * 10))
: >"$TMP/pairs"
for ((i = 0; i < ROUNDS; i++)); do
	if cost "$KXRAY" report "$TMP/long.xray" >"$TMP/theirs" &&
		cost "$KXRAY" report "$TMP/unique.xray" >"$TMP/ours"; then
		paste -d' ' "$TMP/theirs" "$TMP/ours" >>"$TMP/pairs"
	fi
done
if [ -s "$TMP/pairs" ]; then
	ratio "report: ten times the events / memory" "<=" 1.1 2 5 MB
else
	cannot "report: ten times the events / memory" "$(why)"
fi

summary
