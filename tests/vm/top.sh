#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 40 s
#
# kxray top on other kernels: counts and durations of exactly the calls that the target makes, and of its system calls.
#
#   tests/vm/top.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/counts_common.sh
. tests/vm/counts_common.sh

vm_needs vm_top || exit 0

guest_beside_counts top watching "top -p \$target --json -i 0.5 -f leaf_a -f outer -f recursive -f 'tail_*' -f syscall:clock_nanosleep"

check() {
	local name=vm_$1 out=$2
	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	assert_eq "${name}_status: $(tail -n 1 "$out/top.err")" "$(cat "$out/status")" 0
	tail -n 1 "$out/top.json" >"$TMP/last.json"
	assert_eq "${name}_calls" \
		"$(json "$TMP/last.json" '" ".join(sorted("%s:%d:%d" % (f["name"], f["total_calls"], f["total_timed"]) for f in d["functions"] if f["module"] == "counts"))')" \
		"leaf_a:4600:4600 outer:920:920 recursive:2060:2060 tail_first:430:430 tail_last:430:430"
	assert_eq "${name}_system_calls" \
		"$(json "$TMP/last.json" '[(f["total_calls"] == f["total_timed"], f["total_calls"] >= 26) for f in d["functions"] if f["module"] == "syscall"]')" \
		"[(True, True)]"
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/counts:/counts"
