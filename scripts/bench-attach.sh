#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# How long attaching to 10,000 functions takes, and detaching.
# Called by scripts/bench.sh; needs root and a built $BUILD with its tests. Prints a table, then lines "bench ...".
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-5}
many=$BUILD/tests/targets/many
need_root
[ -x "$KXRAY" ] || die "$KXRAY is missing; run 'make'"
bench_folder
tool='' target=''
cleanup()
{
	[ -z "$tool$target" ] || kill -KILL ${tool:+"$tool"} ${target:+"$target"} 2>/dev/null
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap cleanup EXIT

[ -x "$many" ] || die "$many is missing; run 'make tests'"
printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"
: >"$TMP/attach"
: >"$TMP/detach"
for ((i = 0; i < ROUNDS; i++)); do
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	"${on_target_cpu[@]}" "$many" <"$TMP/in" >"$TMP/many.out" 2>&1 &
	target=$!
	exec 5>"$TMP/in"
	tool=$target
	wait_text "$TMP/many.out" ready || die "$many does not start"
	start_tool "$TMP/record.json" "$TMP/tool.err" "$KXRAY" record -p "$target" \
		-f 'many_*' -o "$TMP/trace.xray" --json
	WHY=
	wait_text "$TMP/tool.err" '^kxray: recording' || WHY="kxray did not start"
	# Call every function once, so that probes in use are detached.
	echo g >&5
	wait "$target"
	target=
	exec 5>&-
	end_tool
	if [ -z "$WHY" ] && [ "$(field "$TMP/record.json" functions)" != 10000 ]; then
		WHY="$(field "$TMP/record.json" functions) functions were traced"
	fi
	if [ -n "$WHY" ]; then
		cannot "10,000 functions attached" "$WHY: $(head -n 1 "$TMP/tool.err")"
		summary
		exit
	fi
	field "$TMP/record.json" attach_seconds >>"$TMP/attach"
	field "$TMP/record.json" detach_seconds >>"$TMP/detach"
done
for i in attach detach; do
	verdict "10,000 functions ${i}ed" \
		"$(median <"$TMP/$i" | awk '{ printf "%.1f", $1 * 1000 }')" "<=" \
		"$([ $i = attach ] && echo 100 || echo 200)" ms \
		"$(least <"$TMP/$i" | awk '{ printf "%.1f", $1 * 1000 }') to $(greatest <"$TMP/$i" |
			awk '{ printf "%.1f ms", $1 * 1000 }')"
done
summary
