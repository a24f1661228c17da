#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 60 s
#
# Kernel functions on kernels that allow tracing them: with each mechanism, the counts of `kxray report`
# and `llvm-xray account` are those of the target, and the calls are nested under the user functions
# that made them.
#
#   tests/vm/kernel_functions.sh [SERIES...]        default $KX_VM_SERIES, or 6.12, which has every mechanism
#
# One CPU: with more, qemu's emulation sometimes executes stale code after the kernel has patched it.
series_list=${*:-${KX_VM_SERIES:-6.12}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/table.sh
. tests/vm/table.sh

# shellcheck source=tests/vm/kernel_common.sh
. tests/vm/kernel_common.sh
vm_needs vm_kernel_functions || exit 0

cat >>"$TMP/guest" <<'END'
# tracefs and debugfs are not mounted, and kxray must not mount them.
grep -c -E 'tracefs|debugfs' /proc/mounts >/out/mounts.before
/kxray doctor --json >/out/doctor.json 2>/out/doctor.err
best=$(sed -n 's/.*"kernel_mechanism": "\(kprobe\.\)*\([a-z]*\)".*/\2/p' /out/doctor.json)
for m in session multi fentry single; do
	how=--kernel-mechanism=$m
	# The best one is not asked for: kxray must choose it.
	[ $m != "$best" ] || how=
	# Also functions that process a packet, in softirqs with their own stack; not with mechanisms that
	# take long to attach each function.
	[ $m = session ] && [ "$best" = session ] && how=$more
	record $m $how --args 3 --results $patterns -f kernel:bpf_map_update_elem
done
/kxray functions -f 'kernel:tcp_sendmsg' --json >/out/functions.json 2>/out/functions.err
/kxray record -o /out/none.xray -f 'kernel:bpf_map_update_elem' -- /target --start=now \
	>/out/denied.out 2>/out/denied.err
echo $? >/out/denied.status
echo 2 >/proc/sys/kernel/kptr_restrict
/kxray record -o /out/none.xray -f 'kernel:tcp_sendmsg' -- /target --start=now \
	>/out/hidden.out 2>/out/hidden.err
echo $? >/out/hidden.status
ls /out/none.xray* >/out/leftover 2>/dev/null
grep -c -E 'tracefs|debugfs' /proc/mounts >/out/mounts.after
true # grep -c ends with 1 if it counts 0
END

check_kernel()	# check_kernel SERIES FOLDER
{
	local vm=vm_$1 out=$2 have m best why

	have=$(mechanisms_of "$1")
	best=${have%% *}
	assert_eq "${vm}_run" "$STATUS" 0
	assert_eq "${vm}_kernel_log" "$ERR" ''
	for m in session multi fentry single; do
		why=$(json "$out/doctor.json" "d['checks']['$(name_of "$m" | tr . _)']['why']")
		if [[ " $have " != *" $m "* ]]; then
			assert_eq "${vm}_${m}_refused" "$(cat "$out/$m/record.status")" 1
			assert_contains "${vm}_${m}_sentence" "$(cat "$out/$m/record.err")" \
				"kernel functions cannot be traced by $(name_of "$m") here: $why;"
			assert "${vm}_${m}_nothing_written" "there is a trace" \
				test ! -e "$out/$m/trace.xray"
			documented "$1" "kernel functions, $m" no
			continue
		fi
		assert_eq "${vm}_${m}_doctor" "$why" ''
		check_recording "${vm}_$m" "$out/$m" "$m"
		assert_contains "${vm}_${m}_denied" "$(cat "$out/$m/record.err")" \
			"left out bpf_map_update_elem: the recorder's own BPF programs run through it"
		# tcp_sendmsg(sk, msg, size): each message has one byte
		assert_eq "${vm}_${m}_args" "$("$KXRAY" dump "$out/$m/trace.xray" |
			grep -c -E 'entry +tcp_sendmsg \(0xff[0-9a-f]+, 0xff[0-9a-f]+, 0x1\)')" \
			"$(json <(tail -n 1 "$out/$m/target.out") 'd["calls"]["tcp_sendmsg"]')"
		# each message and each write has one byte
		"$KXRAY" export -f csv -o "$out/$m/calls.csv" "$out/$m/trace.xray" 2>/dev/null
		for f in tcp_sendmsg write_null; do
			assert_eq "${vm}_${m}_results_of_$f" "$(awk -F, -v f=$f '$4 == f { print $14 + 0 }' \
				"$out/$m/calls.csv" | sort | uniq -c | awk '{ print $2, $1 }')" \
				"1 $(json <(tail -n 1 "$out/$m/target.out") "d['calls']['$f']")"
		done
		documented "$1" "kernel functions, $m" yes
	done
	assert_eq "${vm}_doctor_best" "$(json "$out/doctor.json" 'd["kernel_mechanism"]')" \
		"$(name_of "$best")"
	assert_eq "${vm}_functions" "$(json "$out/functions.json" \
		'[(f["name"], f["module"], f["address"][:6]) for f in d]')" \
		"[('tcp_sendmsg', 'kernel', '0xffff')]"
	assert_eq "${vm}_functions_quiet" "$(cat "$out/functions.err")" "1 function: 1 in the kernel"
	assert_eq "${vm}_denied_status" "$(cat "$out/denied.status")" 1
	assert_contains "${vm}_denied_alone" "$(cat "$out/denied.err")" \
		"bpf_map_update_elem in kernel cannot be traced: the recorder's own BPF programs"
	assert_eq "${vm}_hidden_status" "$(cat "$out/hidden.status")" 1
	assert_contains "${vm}_hidden" "$(cat "$out/hidden.err")" "kptr_restrict"
	assert_eq "${vm}_nothing_left" "$(cat "$out/leftover")" ''
	assert_eq "${vm}_nothing_mounted" "$(cat "$out/mounts.before" "$out/mounts.after" | tr '\n' ' ')" \
		'0 0 '
}

vm_each "$series_list" "$TMP/guest" check_kernel "$KXRAY:/kxray $TARGETS/kernelcalls:/target" --smp 1
