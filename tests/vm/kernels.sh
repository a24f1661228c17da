#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 30 s
#
# The VM runner itself, and the probing mechanisms of each kernel. kxray uses different mechanisms on each
# kernel; this proves that the kernels really differ.
#
#   tests/vm/kernels.sh [SERIES...]       default 6.1 6.12
if [ $# = 0 ]; then
	set -- 6.1 6.12
fi
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# The expected output of features.c. 6.1 has neither fprobe (CONFIG_FPROBE is off) nor
# uprobe.multi, which came with 6.6; uprobe.session came with 6.13. Plain emulation has no
# invariant TSC.
everywhere='btf yes
perf_uprobe yes
perf_uretprobe yes
bpf_array_mmap yes
bpf_ringbuf yes
bpf_perf_uprobe yes
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

vm_needs vm_kernels || exit 0
${CC:-gcc} -std=gnu11 -O2 -D_GNU_SOURCE -o "$TMP/features" tests/vm/features.c || exit 1

# Bytes that a console might change: CR, a tab, a control character; and no newline at the end.
cat >"$TMP/script" <<'END'
uname -r
printf 'a\rb\tc\001d\n'
mkdir /out/sub
printf 'x\r\n' >/out/sub/file
[ ! -e /sys/kernel/tracing/events ] && [ ! -e /sys/kernel/debug/tracing ] && echo bare
/features >/out/features
exit 42
END

check_kernel()	# check_kernel SERIES FOLDER
{
	local name=vm_${1}_runner release

	release=$(cat "$(dirname "$(scripts/vm-kernel.sh "$1")")/release")
	printf '%s\na\rb\tc\001d\nbare\n' "$release" >"$TMP/wanted"
	printf 'x\r\n' >"$TMP/wanted_file"
	if [ "$STATUS" != 42 ]; then
		fail "$name" "exit status $STATUS, not the script's 42"
	elif ! cmp "$TMP/run.out" "$TMP/wanted" >"$TMP/why" 2>&1; then
		fail "$name" "the output differs: $(cat "$TMP/why")"
	elif ! cmp "$2/sub/file" "$TMP/wanted_file" >"$TMP/why" 2>&1; then
		fail "$name" "the file brought back differs: $(cat "$TMP/why")"
	else
		pass "$name"
	fi

	name=vm_${1}_features
	expected "$1" | sort >"$TMP/wanted"
	sed 's/:.*//' "$2/features" | sort >"$TMP/got"
	if diff "$TMP/wanted" "$TMP/got" >"$TMP/why"; then
		pass "$name"
	else
		fail "$name" "$(tr '\n' ' ' <"$TMP/why")"
		cat "$2/features" >&2
	fi
}
vm_each "$*" "$TMP/script" check_kernel "$TMP/features:/features"

# A guest that crashes or hangs must not look like a script that passed.
if vmlinuz=$(scripts/vm-kernel.sh "$1" 2>/dev/null); then
	echo 'echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; exit 0' >"$TMP/script"
	scripts/vm-run.sh --kernel "$vmlinuz" --timeout 1700 --script "$TMP/script" >/dev/null 2>"$TMP/why"
	code=$?
	if [ $code = 125 ] && grep -q 'Kernel panic' "$TMP/why"; then
		pass vm_panic
	else
		fail vm_panic "exit status $code, not 125 with the panic's text"
	fi
	echo 'echo before; sleep 1000' >"$TMP/script"
	# On a busy machine it boots more slowly.
	for limit in 12 60 300 1500; do
		scripts/vm-run.sh --kernel "$vmlinuz" --timeout $limit --script "$TMP/script" \
			>"$TMP/stdout" 2>/dev/null
		code=$?
		[ ! -s "$TMP/stdout" ] || break
	done
	if [ $code = 124 ] && [ "$(cat "$TMP/stdout")" = before ]; then
		pass vm_timeout
	else
		fail vm_timeout "exit status $code, not 124 with the output so far"
	fi
fi
