#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The VM runner itself, and what each kernel offers for probing. kxray takes another path on each
# kernel; this says that the kernels really differ, and in what.
#
#   tests/vm/kernels.sh [SERIES...]       default 6.1 6.12
if [ $# = 0 ]; then
	set -- 6.1 6.12
fi
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# Every answer that features.c must give. 6.1 has neither fprobe (CONFIG_FPROBE is off) nor
# uprobe.multi, which came with 6.6; uprobe.session came with 6.13. Plain emulation has no
# invariant TSC.
everywhere='btf yes
perf_uprobe yes
perf_uretprobe yes
bpf_array_mmap yes
bpf_ringbuf yes
bpf_perf_uprobe yes
msr_tsc yes
bpf_msr_tsc yes
kprobe yes
rdtscp yes
constant_tsc no
nonstop_tsc no
uprobe_session no'

expected()
{
	echo "$everywhere"
	case $1 in
	6.1) printf 'uprobe_multi no\nkprobe_multi no\n' ;;
	*) printf 'uprobe_multi yes\nkprobe_multi yes\n' ;;
	esac
}

if ! command -v qemu-system-x86_64 >/dev/null || ! command -v busybox >/dev/null; then
	skip vm_kernels "needs the packages qemu-system-x86 and busybox-static"
	exit 0
fi
"${CC:-gcc}" -std=gnu11 -O2 -D_GNU_SOURCE -o "$TMP/features" tests/vm/features.c || exit 1

# Bytes that a console would change: CR, a tab, a control character, no line end at the end.
cat >"$TMP/script" <<'END'
uname -r
printf 'a\rb\tc\001d\n'
mkdir /out/sub
printf 'x\r\n' >/out/sub/file
[ ! -e /sys/kernel/tracing/events ] && [ ! -e /sys/kernel/debug/tracing ] && echo bare
/features >/out/features
exit 42
END

for series; do
	if ! vmlinuz=$(scripts/vm-kernel.sh "$series" 2>"$TMP/why"); then
		skip "vm_${series}" "$(tail -n 1 "$TMP/why")"
		continue
	fi
	rm -rf "$TMP/out"
	scripts/vm-run.sh --kernel "$vmlinuz" --files "$TMP/features:/features" \
		--script "$TMP/script" --out "$TMP/out" >"$TMP/stdout"
	code=$?

	name=vm_${series}_runner
	release=$(cat "$(dirname "$vmlinuz")/release")
	printf '%s\na\rb\tc\001d\nbare\n' "$release" >"$TMP/wanted"
	printf 'x\r\n' >"$TMP/wanted_file"
	if [ $code != 42 ]; then
		fail "$name" "exit status $code, not the script's 42"
	elif ! cmp "$TMP/stdout" "$TMP/wanted" >"$TMP/why" 2>&1; then
		fail "$name" "the output differs: $(cat "$TMP/why")"
	elif ! cmp "$TMP/out/sub/file" "$TMP/wanted_file" >"$TMP/why" 2>&1; then
		fail "$name" "the file brought back differs: $(cat "$TMP/why")"
	else
		pass "$name"
	fi

	name=vm_${series}_features
	expected "$series" | sort >"$TMP/wanted"
	sed 's/:.*//' "$TMP/out/features" | sort >"$TMP/got"
	if diff "$TMP/wanted" "$TMP/got" >"$TMP/why"; then
		pass "$name"
	else
		fail "$name" "$(tr '\n' ' ' <"$TMP/why")"
		cat "$TMP/out/features" >&2
	fi
done

# A machine that dies or hangs must not look like a script that passed.
if vmlinuz=$(scripts/vm-kernel.sh "$1" 2>/dev/null); then
	echo 'echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; exit 0' >"$TMP/script"
	scripts/vm-run.sh --kernel "$vmlinuz" --script "$TMP/script" >/dev/null 2>"$TMP/why"
	code=$?
	if [ $code = 125 ] && grep -q 'Kernel panic' "$TMP/why"; then
		pass vm_panic
	else
		fail vm_panic "exit status $code, not 125 with the panic's text"
	fi
	echo 'echo before; sleep 1000' >"$TMP/script"
	scripts/vm-run.sh --kernel "$vmlinuz" --timeout 12 --script "$TMP/script" \
		>"$TMP/stdout" 2>/dev/null
	code=$?
	if [ $code = 124 ] && [ "$(cat "$TMP/stdout")" = before ]; then
		pass vm_timeout
	else
		fail vm_timeout "exit status $code, not 124 with the output so far"
	fi
fi
