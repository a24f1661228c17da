#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 53 s
#
# Kernel functions combined with system calls, --min-duration and --count. With system calls: a user function,
# the system call that it makes and the kernel functions under that are nested in time, in llvm-xray stack and in
# Perfetto's format.
#
#   tests/vm/kernel_with_syscalls.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/kernel_common.sh
. tests/vm/kernel_common.sh
vm_needs vm_kernel_with_syscalls || exit 0

# check_formats NAME FOLDER: every call of note() and all calls that it makes, as other tools see them
check_formats()
{
	local name=$1 folder=$2 notes tool version stacks difference

	notes=$(json <(grep '^{' "$folder/target.out" | tail -n 1) 'd["calls"]["note"]')
	for tool in $(llvm_xrays); do
		version=${tool#/usr/lib/llvm-}
		stacks=$("$tool" stack -all-stacks -stack-format=flame -aggregation-type=count \
			-aggregate-threads -instr_map="$folder/trace.xray.map" "$folder/trace.xray" 2>&1)
		assert_contains "${name}_llvm_xray_${version%%/*}_stack" "$stacks" \
			"note;write;__x64_sys_write;ksys_write;vfs_write;write_null; $notes"
	done
	"$KXRAY" export -f perfetto -o "$TMP/pftrace" "$folder/trace.xray" 2>"$TMP/export.err"
	difference=$(python3 tests/readers/perfetto.py "$TMP/pftrace" >"$TMP/calls" &&
		python3 tests/live/syscalls.py nested "$TMP/calls" "$notes" note write __x64_sys_write \
			ksys_write vfs_write write_null 2>&1)
	assert_eq "${name}_perfetto" "$difference" ''
}

cat >>"$TMP/guest" <<'END'
# Filtered in the kernel, but nothing is left out: every call lasts longer than a nanosecond.
record lasting --min-duration 1ns --args 3 $patterns
record syscalls -f ask -f note -f nap -f talk -f syscall:getppid -f syscall:write -f syscall:sendto \
	-f syscall:recvfrom -f syscall:*nanosleep $patterns
record counted --count $patterns
END

check_kernel()	# check_kernel SERIES FOLDER
{
	local vm=vm_$1_with out=$2 best

	best=$(mechanisms_of "$1")
	best=${best%% *}
	assert_eq "${vm}_run" "$STATUS" 0
	assert_eq "${vm}_kernel_log" "$ERR" ''
	check_recording "${vm}_lasting" "$out/lasting" "$best"
	check_recording "${vm}_syscalls" "$out/syscalls" "$best" syscalls
	check_formats "${vm}_syscalls" "$out/syscalls"
	assert_eq "${vm}_counted" "$(cat "$out/counted/record.status")" 0
	python3 -c 'import json, sys
print(json.dumps({f["name"]: f["count"] for f in json.load(sys.stdin)["functions"]}))' \
		<"$out/counted/record.json" >"$TMP/seen.json" 2>"$TMP/why"
	assert_eq "${vm}_counted_counts" "$(compare "$out/counted/target.out" "$TMP/seen.json" 2>&1)" ''
}

vm_each "$series_list" "$TMP/guest" check_kernel "$KXRAY:/kxray $TARGETS/kernelcalls:/target" --smp 1
