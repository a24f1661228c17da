#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 25 s
#
# Nesting in one thread: a user function, the system call that it makes, the kernel functions under
# that; 300 times each, nested in time, in llvm-xray stack and in Perfetto's format.
#
#   tests/vm/nested.sh [SERIES...]        default 6.1 6.12
#
# One CPU: with more, qemu's emulation sometimes executes stale code after the kernel has patched it.
series_list=${*:-6.1 6.12}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

vm_needs vm_nested || exit 0

cat >"$TMP/guest" <<'END'
/kxray record --ring-size 4M -f shout -f syscall:write -f kernel:ksys_write -f kernel:vfs_write -o /out/trace.xray \
	--json -- /syscalls --start=now --alone >/out/record.out 2>/out/record.err
echo $? >/out/status
END

check()
{
	local name=vm_$1 out=$2 tool version stacks difference

	assert_eq "${name}_run" "$STATUS $(cat "$out/status" 2>/dev/null)" "0 0"
	assert_eq "${name}_kernel_log" "$ERR" ''
	if [ ! -s "$out/trace.xray" ]; then
		fail "${name}_trace" "$(cat "$out/record.err")"
		return
	fi
	tail -n 1 "$out/record.out" >"$TMP/record.json"
	assert_eq "${name}_lost" "$(json "$TMP/record.json" '[d["lost"], d["repaired"], d["orphans"]]')" \
		"[0, 0, 0]"
	for tool in $(llvm_xrays); do
		version=${tool#/usr/lib/llvm-}
		stacks=$("$tool" stack -all-stacks -stack-format=flame -aggregation-type=count \
			-instr_map="$out/trace.xray.map" "$out/trace.xray" 2>&1)
		assert_contains "${name}_llvm_xray_${version%%/*}_stack" "$stacks" \
			"shout;write;ksys_write;vfs_write; 300"
	done
	"$KXRAY" export -f perfetto -o "$TMP/pftrace" "$out/trace.xray" 2>"$TMP/export.err"
	difference=$(python3 tests/readers/perfetto.py "$TMP/pftrace" >"$TMP/calls" &&
		python3 tests/live/syscalls.py nested "$TMP/calls" 300 shout write ksys_write vfs_write 2>&1)
	assert_eq "${name}_perfetto" "$difference" ''
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/syscalls:/syscalls" --smp 1
