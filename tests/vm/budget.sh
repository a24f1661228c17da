#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 40 s
#
# --max-overhead on other kernels: system calls and kernel functions are sampled and all counted, functions sampled or without
# probes, and the trace is valid.
#
#   tests/vm/budget.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
#
# One CPU: see kernel_functions.sh.
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

vm_needs vm_budget || exit 0

cat >"$TMP/guest" <<'END'
mkfifo /tmp/in
/kxray record --max-overhead 0.00001 --ring-size 4M -f hot -f seldom -f syscall:write -f kernel:ksys_write \
	-o /out/trace.xray -- /bursts --calls=100 </tmp/in >/out/did 2>/out/rec.err &
kxray=$!
exec 3>/tmp/in
# a piece of work after the other, until all four are limited
until [ $(grep -c 'is called too often' /out/rec.err) -ge 4 ]; do
	kill -0 $kxray || break
	echo 1 >&3
	sleep 0.2
done
echo 1 >&3
echo 0 >&3
wait $kxray
echo $? >/out/status
END

check()
{
	local name=vm_$1 out=$2 writes

	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	assert_eq "${name}_status: $(tail -n 1 "$out/rec.err")" "$(cat "$out/status")" 0
	"$KXRAY" report --json "$out/trace.xray" >"$TMP/report.json" 2>/dev/null
	assert_eq "${name}_valid" "$(python3 tests/live/fdr.py "$out/trace.xray" 2>&1 >/dev/null)" ''
	# "ready", and an answer for each piece
	writes=$(wc -l <"$out/did")
	assert_eq "${name}_all_counted" "$(json "$TMP/report.json" \
		'sorted((f["name"], f["all_calls"]) for f in d["functions"] if "write" in f["name"])')" \
		"[('ksys_write', $writes), ('write', $writes)]"
	assert_eq "${name}_sampled" "$(json "$TMP/report.json" \
		'[f["recorded_one_in"] for f in d["functions"] if "write" in f["name"]]')" '[4096, 4096]'
	assert_eq "${name}_recorded" "$(json "$TMP/report.json" \
		'all(0 < f["count"] <= f["all_calls"] for f in d["functions"])')" True
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/bursts:/bursts" --smp 1
