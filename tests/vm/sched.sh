#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 19 s
#
# record --sched on other kernels: switches, times and wakers agree with the target's and the kernel's counts.
#
#   tests/vm/sched.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/table.sh
. tests/vm/table.sh

vm_needs vm_sched || exit 0

cat >"$TMP/guest" <<'END'
mkfifo /tmp/in
/waits </tmp/in >/out/did 2>&1 &
target=$!
exec 3>/tmp/in
until grep -q ready /out/did; do sleep 0.1; done
/kxray record -p $target --ring-size 4M -f nap -f take -f give -f spin -f pass_on -f mark --sched \
	-o /out/trace.xray --json >/out/rec.json 2>/out/rec.err &
kxray=$!
until grep -q '^kxray: recording' /out/rec.err; do kill -0 $kxray || break; sleep 0.1; done
printf g >&3
wait $target
echo $? >/out/target
wait $kxray
echo $? >/out/status
END

check()
{
	local name=vm_$1 out=$2 what

	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	if [ ! -s "$out/trace.xray" ]; then
		fail "${name}_trace" "$(cat "$out/rec.err")"
		return
	fi
	assert_eq "${name}_statuses" "$(cat "$out/target" "$out/status" | tr '\n' ' ')" "0 0 "
	assert_eq "${name}_lost" "$(json "$out/rec.json" 'd["lost"]')" 0
	"$KXRAY" report --json --raw "$out/trace.xray" >"$TMP/report.json"
	for what in switches times naps wakers spins; do
		run python3 tests/live/sched.py "$what" "$out/trace.xray" "$out/did" "$TMP/report.json"
		assert_eq "${name}_$what" "$OUT$(tail -n 1 <<<"$ERR")" ''
	done
	documented "$1" 'scheduler (--sched)' yes
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/waits:/waits"
