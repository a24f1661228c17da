#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A flight recorder under heavy load for a long time: its memory and disk usage must stay constant, and
# every dump must be complete and reach up to its trigger.
#
#   scripts/soak-flight.sh [SECONDS [SIZE]]      default 600 16M
#
# Two threads call a function without a pause; SIGUSR1 is sent ten times. Prints kxray's resident
# memory (KiB) at intervals, then a table. Status 1 if a check fails.
seconds=${1:-600} size=${2:-16M}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
. scripts/soak-common.sh

out=$TMP/trace.xray
dumps=3

started() { grep -q '^kxray: recording' "$TMP/err"; }
written() { [ "$(grep -c '^kxray: wrote ' "$TMP/err")" -ge "$1" ]; }
newest() { sed -n 's/^kxray: wrote \([^ ]*\) .*/\1/p' "$TMP/err" | tail -n 1; }

start_target flight --threads=2 --load=0
target=$PID
"$KXRAY" record -p "$target" -f busy -f maybe_slow --args 2 --flight-recorder "$size" \
	--dumps $dumps -o "$out" --json >"$TMP/json" 2>"$TMP/err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for started || {
	cat "$TMP/err"
	exit 1
}

step=$(awk "BEGIN { print $seconds / 10 }")
sleep "$step" # the first tenth fills the store and everything else that is allocated once
kill -USR1 "$KX_PID"
wait_for written 1
first=$(field VmRSS) lowest=$(field VmRSS) highest=$lowest disk=0 stale=0 wrong=0
echo "seconds  resident KiB  swapped KiB  dumps KiB  newest event before the trigger"
for ((i = 2; i <= 10; i++)); do
	end=$((SECONDS + ${step%.*}))
	while [ $SECONDS -lt $end ]; do
		rss=$(field VmRSS)
		[ "$rss" -lt "$lowest" ] && lowest=$rss
		[ "$rss" -gt "$highest" ] && highest=$rss
		sleep 0.5
	done
	kill -USR1 "$KX_PID"
	wait_for written $i || break
	used=$(du -sk "$TMP"/trace.* | awk '{ n += $1 } END { print n }')
	[ "$used" -gt "$disk" ] && disk=$used
	age=$(python3 - "$(newest)" "$BUILD/.." <<-'END'
	import json, sys
	sys.path.insert(0, sys.argv[2] + "/tests/live")
	import fdr
	trace = fdr.Trace(sys.argv[1], allow_open=True)
	with open(sys.argv[1] + ".map", "rb") as f:
	    data = f.read()
	session = json.JSONDecoder().raw_decode(data[data.index(b'{"kxray":'):].decode(errors="replace"))[0]["session"]
	newest = max(r.tsc for t in trace.threads.values() for r in t.records
	             if r.kind in ("entry", "exit"))
	print("%.3f ms" % ((session["trigger"]["tsc"] - newest) / trace.hz * 1e3))
	END
	)
	awk "BEGIN { exit !(${age% ms} <= 100) }" || stale=1
	for tool in $(llvm_xrays); do
		"$tool" account -m "$(newest).map" "$(newest)" >/dev/null 2>"$TMP/why" || wrong=1
	done
	printf '%7.0f  %12d  %11d  %9d  %s\n' "$(awk "BEGIN { print $step * $i }")" \
		"$(field VmRSS)" "$(field VmSwap)" "$used" "$age"
done
kill -INT "$KX_PID"
status=0
wait "$KX_PID" || status=$?
go_target q
grep '^kxray: [0-9]* dump' "$TMP/err"
python3 - "$TMP/json" <<-'END'
	import json, sys
	d = json.loads(open(sys.argv[1]).read())
	print("%d events in %.0f s (%.0f a second), %d lost; store of %d KiB, %.1f times overwritten"
	      % (d["events"], d["seconds"], d["events"] / d["seconds"], d["lost"],
	         d["store_bytes"] >> 10, d["events"] * 48 / d["store_bytes"]))
	END
echo "resident: $first KiB after the first tenth, then $lowest to $highest KiB"
check "it ends with status 0" [ $status = 0 ]
check "11 dumps, none failed, of which $dumps are kept" [ \
	"$(json "$TMP/json" 'd["dumps"], d["dumps_kept"], d["dumps_failed"]')" = "(11, $dumps, 0)" ]
check "$((dumps * 2)) files on disk, never more" [ "$(find "$TMP" -name 'trace.*' | wc -l)" = $((dumps * 2)) ]
check "memory after the first tenth is constant (5 %)" [ $((highest * 100)) -le $((first * 105)) ]
check "newest event younger than the trigger minus 100 ms" [ $stale = 0 ]
check "every llvm-xray accounts every dump" [ $wrong = 0 ]
exit $bad
