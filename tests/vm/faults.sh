#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 18 s
#
# record --faults on other kernels: the page faults that the target provokes, and the kernel counts.
#
#   tests/vm/faults.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

vm_needs vm_faults || exit 0

cat >"$TMP/guest" <<'END'
/kxray record --faults -f '*_pages' -f kernel_writes -o /out/trace.xray --json -- /touch \
	>/out/did 2>/out/rec.err
echo $? >/out/status
END

check()
{
	local name=vm_$1 out=$2

	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	if [ ! -s "$out/trace.xray" ]; then
		fail "${name}_trace" "$(cat "$out/rec.err")"
		return
	fi
	assert_eq "${name}_status" "$(cat "$out/status")" 0
	assert_eq "${name}_lost" "$(json <(tail -n 1 "$out/did") 'd["lost"]')" 0
	"$KXRAY" dump "$out/trace.xray" >"$TMP/dump"
	python3 tests/live/faults.py <(head -n 1 "$out/did") "$TMP/dump" | sed "s/ok /&${name}_/"
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/touch:/touch"
