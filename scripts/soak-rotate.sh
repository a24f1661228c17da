#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A rotated recording under load for a long time: memory, descriptors and disk space must stay constant,
# nothing may be lost, and the files that are kept must be readable by themselves.
#
#   scripts/soak-rotate.sh [SECONDS [SIZE]]      default 3600 16M
#
# A program with four threads calls twelve functions without a pause; eight files are kept. Prints kxray's
# resident memory, descriptors and the files' size at intervals, then a table. Status 1 if a check fails.
seconds=${1:-3600} size=${2:-16M}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
. scripts/soak-common.sh
. tests/live/tracing.sh

keep=8
descriptors() { find "/proc/$KX_PID/fd" -mindepth 1 | wc -l; }
disk() { du -ck "$TMP"/trace.* | awk 'END { print $1 }'; }

start_target counts --repeat=10000000 --limit=$((seconds + 600))
target=$PID
start_kxray "$target" "${COUNTED[@]}" --rotate "$size" --rotate 1min --keep-files $keep
go_target
step=$(awk "BEGIN { print $seconds / 10 }")
sleep "$step" # in the first tenth everything is allocated that is allocated once
first=$(field VmRSS) highest=$first lowest=$first fds=$(descriptors) most=$fds space=0
echo "seconds  resident KiB  descriptors  files KiB"
for ((i = 2; i <= 10; i++)); do
	end=$((SECONDS + ${step%.*}))
	while [ $SECONDS -lt $end ]; do
		if ! kill -0 "$KX_PID" 2>/dev/null; then
			echo "soak: kxray has ended: $(tail -n 1 "$TMP/rec.err")" >&2
			exit 1
		fi
		rss=$(field VmRSS) now=$(descriptors) used=$(disk 2>/dev/null)
		[ "$rss" -lt "$lowest" ] && lowest=$rss
		[ "$rss" -gt "$highest" ] && highest=$rss
		[ "$now" -gt "$most" ] && most=$now
		[ "${used:-0}" -gt "$space" ] && space=$used
		sleep 0.5
	done
	printf '%7.0f  %12d  %11d  %9d\n' "$(awk "BEGIN { print $step * $i }")" "$(field VmRSS)" \
		"$(descriptors)" "$(disk)"
done
kill -INT "$KX_PID"
end_kxray
kill -KILL "$target"
grep '^kxray: [0-9]* event' "$TMP/rec.err"
wrong=0
for f in "$TMP"/trace.*.xray; do
	python3 -c 'import sys; sys.path.insert(0, "tests/live"); import fdr; fdr.Trace(sys.argv[1], allow_open=True)' \
		"$f" || wrong=1
	for tool in $(llvm_xrays); do
		"$tool" account -m "$f.map" "$f" >/dev/null 2>"$TMP/why" || wrong=1
	done
done
limit=$(numfmt --from=iec "$size")
echo "resident: $first KiB after the first tenth, then $lowest to $highest KiB; at most $most descriptors, $space KiB of files"
check "it ends with status 0" [ "$STATUS" = 0 ]
check "nothing is lost" [ "$(json "$TMP/rec.json" 'd["lost"]')" = 0 ]
check "the newest $keep files are kept" [ "$(find "$TMP" -name 'trace.*.xray' | wc -l)" = $keep ]
check "every file is whole, for a strict reader and llvm-xray" [ $wrong = 0 ]
check "memory after the first tenth is constant (5 %)" [ $((highest * 100)) -le $((first * 105)) ]
check "descriptors: never more than while a file is exchanged" [ "$most" -le $((fds + 3)) ]
check "files: never more than $keep and the next, half again as large" \
	[ $((space * 1024)) -le $((limit * (keep + 1) * 3 / 2)) ]
exit $bad
