#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Writes user/select/prototypes_syscall.c, the parameters of system calls, from include/linux/syscalls.h of a kernel's source or of
# Debian's package linux-headers-VERSION-common:
#     scripts/syscall-prototypes.sh SYSCALLS.H VERSION >user/select/prototypes_syscall.c
# Left out: declarations without names of parameters, of other architectures (compat, time32, old), and by register set. "char *" that
# is no text (the buffers of read and write) becomes "void *".
set -eu
[ $# = 2 ] || { sed -n '4,8s/^# *//p' "$0" >&2; exit 2; }
cat <<END
// SPDX-License-Identifier: BSD-2-Clause
/* Made by scripts/syscall-prototypes.sh of Linux $2: do not edit. */
#include "select/prototype_table.h"

const char *const kx_syscall_prototypes[] = {
END
tr '\n\t' '  ' <"$1" | grep -oE 'asmlinkage long sys_[a-z0-9_]+\([^()]*\);' |
	sed -E 's/^asmlinkage //; s/sys_//; s/;$//; s/ *__user */ /g; s/ +/ /g; s/\* ([a-z])/*\1/g
		s/(const )?char \*(buf|buffer|u_msg_ptr|optval|page|addr|arg|type_data)\b/void *\2/g
		s/([(,] ?)char \*/\1void */g; s/uint ([a-z])/unsigned int \1/g; s/unsigned ([a-z_]+)([,)])/unsigned int \1\2/g' |
	grep -vE 'compat|time32|old_|\(struct pt_regs|^long (ni_syscall|[a-z]*16|clone|mmap_pgoff|mmap)\(' |
	awk '{ open = index($0, "("); n = split(substr($0, open + 1, length($0) - open - 1), p, /, */)
		for (i = 1; i <= n; i++) if (p[i] != "void" && p[i] !~ /[ *][a-z_0-9]+(\[[0-9]*\])?$/ || p[i] ~ /(^| )(int|long|unsigned)$|\*$/) next
		print }' |
	{ cat; echo 'long clone(unsigned long flags, void *stack, int *parent_tid, int *child_tid, unsigned long tls)'
	  echo 'long mmap(void *addr, size_t len, int prot, int flags, unsigned int fd, unsigned long off)'; } |
	LC_ALL=C sort -u | sed 's/.*/	"&",/'
cat <<END
};

const size_t kx_syscall_prototypes_count = sizeof(kx_syscall_prototypes) / sizeof(kx_syscall_prototypes[0]);
END
