#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures how long newly mapped code runs untraced: from the dlopen of a library or the exec of a
# program until its first recorded call. The patterns name both without a path, under --follow and -a.
#     scripts/bench-follow.sh
# Needs root and built targets (make tests) in $BUILD (default build). The table shows the median, minimum
# and maximum of TRIES (15) in ms. A third of the tries may fail; failures are printed.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
TARGETS=$BUILD/tests/targets
TRIES=${TRIES:-15}

need_root
for file in "$KXRAY" "$TARGETS/late" "$TARGETS/late-child" "$TARGETS/treeplug.so"; do
	[ -e "$file" ] || die "$file is missing; run 'make tests'"
done

bench_folder
kxray=
target=
stop_try()
{
	local pid
	for pid in $kxray $target; do
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	kxray='' target=''
}
cleanup()
{
	stop_try
	rm -rf "$TMP"
}
trap cleanup EXIT

# wait_for COMMAND...: repeats it until it succeeds, at most 30 s
wait_for()
{
	local tries=1500
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.02
	done
}

# once SCOPE FUNCTION PATTERN ARGUMENT...: prints the first recorded call's argument: ns since the
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
measure()
{
	local name=$1 n
	shift
	for n in $(seq "$TRIES"); do
		once "$@" || {
			echo "try $n: $(tail -n 1 "$TMP/err")" >&2
			stop_try
		}
	done >"$TMP/delays"
	if [ $(($(wc -l <"$TMP/delays") * 3)) -lt $((TRIES * 2)) ]; then
		cannot "$name" "$(wc -l <"$TMP/delays") of $TRIES tries worked"
		return
	fi
	sort -n "$TMP/delays" | awk -v name="$name" '
		{ ms[NR] = $1 / 1e6 }
		END {
			printf "| %-34s | %8.1f | %8.1f | %8.1f |\n", name, ms[int((NR + 1) / 2)], ms[1], ms[NR]
			printf "bench name=\"%s\" value=%.3f unit=ms result=NOTE\n", name, ms[int((NR + 1) / 2)] >"/dev/stderr"
		}' 2>>"$TMP/lines"
}

echo "Untraced at first: ms from dlopen or exec to the first recorded call, $TRIES tries"
echo "| what comes                         |   median |    least | greatest |"
echo "|------------------------------------|----------|----------|----------|"
for scope in --follow -a; do
	measure "library by dlopen, $scope" $scope plug_work 'treeplug.so:plug_*' \
		"$TARGETS/treeplug.so"
	measure "program by exec, $scope" $scope late_work 'late-child:late_*' \
		--exec "$TARGETS/late-child"
done
summary
