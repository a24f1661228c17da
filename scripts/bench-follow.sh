#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures how long code that nobody had mapped before runs untraced: from the dlopen of a library,
# from the exec of a program, until the first call of it that is recorded. Both are named without a
# path, under --follow and under -a.
#     scripts/bench-follow.sh
# Needs root and built targets (make tests) in $BUILD (default build). The table shows the median of
# TRIES (15), the least and the greatest in ms. As in bench.sh noise shows there and not in the exit
# status: that is 1 only if something could not be measured. Lines that begin with "bench " are for
# machines.
set -u

cd "$(dirname "$0")/.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
KXRAY=$BUILD/kxray
TARGETS=$BUILD/tests/targets
TRIES=${TRIES:-15}

die()
{
	echo "bench: $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || die "tracing needs root; run it with sudo"
for file in "$KXRAY" "$TARGETS/late" "$TARGETS/late-child" "$TARGETS/treeplug.so"; do
	[ -e "$file" ] || die "$file is missing; run 'make tests'"
done

TMP=$(mktemp -d "${TMPDIR:-/tmp}/kxray-bench.XXXXXX")
kxray=
target=
cleanup()
{
	local pid
	for pid in $kxray $target; do
		kill -KILL "$pid" 2>/dev/null
	done
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# wait_for COMMAND...: until it succeeds, 30 s
wait_for()
{
	local tries=1500
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.02
	done
}

# once SCOPE FUNCTION PATTERN ARGUMENT...: the first recorded call's argument, in ns since the
# dlopen or exec
once()
{
	local scope=$1 function=$2 pattern=$3 which
	shift 3
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	: >"$TMP/out"
	"$TARGETS/late" "$@" 1000 <"$TMP/in" >"$TMP/out" &
	target=$!
	exec 3>"$TMP/in"
	wait_for grep -q ready "$TMP/out" || return 1
	which=(-a -d 60)
	[ "$scope" = -a ] || which=(--follow -p "$target" -f main)
	"$KXRAY" record "${which[@]}" -o "$TMP/trace.xray" -f "$pattern" --args 1 2>"$TMP/err" &
	kxray=$!
	wait_for grep -q '^kxray: recording ' "$TMP/err" || return 1
	printf g >&3
	exec 3>&-
	wait "$target"
	target=
	[ "$scope" = -a ] && kill -INT "$kxray"
	wait "$kxray" || return 1
	kxray=
	python3 - "$TMP/trace.xray" "$function" <<-'END'
	import sys
	sys.path.insert(0, "tests/live")
	import fdr
	trace, names = fdr.Trace(sys.argv[1]), fdr.map_names(sys.argv[1] + ".map")
	print(min(r.args[0] for t in trace.threads.values() for r in t.records
	          if r.kind == "entry" and names[r.func] == sys.argv[2]))
	END
}

# measure NAME SCOPE FUNCTION PATTERN ARGUMENT...
missing=0
measure()
{
	local name=$1 n
	shift
	for n in $(seq "$TRIES"); do
		once "$@" || echo "try $n: $(tail -n 1 "$TMP/err")" >&2
	done >"$TMP/delays"
	if [ "$(wc -l <"$TMP/delays")" -lt "$TRIES" ]; then
		echo "bench: $name could not be measured" >&2
		missing=1
		return
	fi
	sort -n "$TMP/delays" | awk -v name="$name" '
		{ ms[NR] = $1 / 1e6 }
		END {
			printf "| %-34s | %8.1f | %8.1f | %8.1f |\n", name, ms[int((NR + 1) / 2)], ms[1], ms[NR]
			printf "bench follow %s median %.3f ms\n", name, ms[int((NR + 1) / 2)] >"/dev/stderr"
		}' 2>>"$TMP/lines"
}

: >"$TMP/lines"
echo "Untraced at first: ms from dlopen or exec to the first recorded call, $TRIES tries"
echo "| what comes                         |   median |    least | greatest |"
echo "|------------------------------------|----------|----------|----------|"
for scope in --follow -a; do
	measure "library by dlopen, $scope" $scope plug_work 'treeplug.so:plug_*' \
		"$TARGETS/treeplug.so"
	measure "program by exec, $scope" $scope late_work 'late-child:late_*' \
		--exec "$TARGETS/late-child"
done
cat "$TMP/lines"
exit $missing
