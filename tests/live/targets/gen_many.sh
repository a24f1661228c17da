#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gen_many.sh N: prints the source of a program with N functions many_00000 ...; it calls each
# of them once per round. The functions are what gcc -O1 makes of
#     long many_00000(long x) { asm volatile ("" ::: "rbx"); sink = x; return x + 0; }
# and begin with a push; as C they would take a compiler ten seconds.
awk -v n="${1:-10000}" 'BEGIN {
	print "#include \"target.h\""
	print "static long calls;"
	print "__asm__(\".local sink\\n.comm sink, 8, 8\\n.text\\n\""
	for (i = 0; i < n; i++) {
		name = sprintf("many_%05d", i)
		printf "\".globl %s\\n.type %s, @function\\n%s: .cfi_startproc\\n\"\n", name, name, name
		print "\"push %rbp\\n.cfi_def_cfa_offset 16\\n.cfi_offset 6, -16\\n\""
		print "\"mov %rsp, %rbp\\n.cfi_def_cfa_register 6\\npush %rbx\\n.cfi_offset 3, -24\\n\""
		printf "\"mov %%rdi, sink(%%rip)\\nlea %d(%%rdi), %%rax\\nmov -8(%%rbp), %%rbx\\n\"\n", i
		printf "\"leave\\n.cfi_def_cfa 7, 8\\nret\\n.cfi_endproc\\n.size %s, .-%s\\n\"\n", name, name
	}
	print "\".section .data.rel.ro, \\\"aw\\\"\\n.balign 8\\nall:\\n\""
	for (i = 0; i < n; i++)
		printf "\".quad many_%05d\\n\"\n", i
	print "\".text\\n\");"
	print "extern long (*const all[])(long) __attribute__((visibility(\"hidden\")));"
	print "int main(int argc, char **argv)"
	print "{"
	print "	struct target_options o = target_parse(argc, argv);"
	print "	target_ready(&o);"
	print "	for (long r = 0; r < o.repeat; r++)"
	printf "		for (size_t i = 0; i < %d; i++, calls++)\n", n
	print "			all[i](r);"
	printf "	printf(\"{\\\"functions\\\":%d,\\\"calls\\\":%%ld}\\n\", calls);\n", n
	print "	return target_done(&o, 1);"
	print "}"
}'
