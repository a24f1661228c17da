#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# gen_many.sh N: prints the source of a program with N functions many_00000 ...; it calls each
# of them once per round.
awk -v n="${1:-10000}" 'BEGIN {
	print "#include \"target.h\""
	print "static volatile long sink;"
	# A clobbered rbx makes each function start with a push.
	print "#define PUSH __asm__ volatile (\"\" ::: \"rbx\")"
	print "static long calls;"
	for (i = 0; i < n; i++)
		printf "TRACED long many_%05d(long x) { PUSH; sink = x; return x + %d; }\n", i, i
	print "static long (*const all[])(long) = {"
	for (i = 0; i < n; i++)
		printf "many_%05d,\n", i
	print "};"
	print "int main(int argc, char **argv)"
	print "{"
	print "	struct target_options o = target_parse(argc, argv);"
	print "	target_ready(&o);"
	print "	for (long r = 0; r < o.repeat; r++)"
	print "		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++, calls++)"
	print "			all[i](r);"
	printf "	printf(\"{\\\"functions\\\":%d,\\\"calls\\\":%%ld}\\n\", calls);\n", n
	print "	return target_done(&o, 1);"
	print "}"
}'
