#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 10 s
#
# record --in-process on other kernels: counts of exactly the calls that the target makes. One CPU, since
# the clock of a virtual machine with more may be one that kernels do not trust.
#
#   tests/vm/in_process.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/counts_common.sh
. tests/vm/counts_common.sh

vm_needs vm_in_process || exit 0

guest_beside_counts rec recording "record --in-process -p \$target --json -f leaf_a -f outer -f recursive -f 'tail_*' -o /out/trace.xray"

check() {
	local name=vm_$1 out=$2
	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	assert_eq "${name}_status: $(tail -n 1 "$out/rec.err")" "$(cat "$out/status")" 0
	assert "${name}_functions" "$(cat "$out/rec.json")" test "$(json "$out/rec.json" 'd["in_process"]["functions"]')" -ge 4
	"$KXRAY" report --json "$out/trace.xray" >"$TMP/report.json"
	assert_eq "${name}_calls" \
		"$(json "$TMP/report.json" '" ".join(sorted("%s:%d" % (f["name"], f["count"]) for f in d["functions"])), d["lost"]')" \
		"('leaf_a:4600 outer:920 recursive:2060 tail_first:430 tail_last:430', 0)"
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/counts:/counts" --smp 1
