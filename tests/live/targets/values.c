// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls functions with known values and prints what it called them with, and what they returned, in order:
 * {"calls": [{"function": F, "result": R}, ...]}.
 */
#include <inttypes.h>
#include <stdint.h>

#include "target.h"

static volatile long sink;
static char did[1 << 16];
static size_t used;

static void add(const char *function, const char *arguments, const char *result)
{
	used += (size_t)snprintf(did + used, sizeof(did) - used, "%s{\"function\": \"%s\", \"args\": {%s}, \"result\": %s}",
				 used ? ", " : "", function, arguments, result);
}

static void add_result(const char *function, long result)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", result);
	add(function, "", text);
}

TRACED long result_leaf(long x)
{
	sink = x;
	return x * 3 + 1;
}

/* Two ways out, each with the result written between the jump and the ret. */
long result_behind_jump(long x);
__asm__(".p2align 4\n.type result_behind_jump,@function\n.globl result_behind_jump\nresult_behind_jump:\n"
	" nop\n mov $7,%eax\n test %rdi,%rdi\n jle 1f\n lea 5(%rdi),%rax\n ret\n1: mov $-1,%rax\n ret\n"
	".size result_behind_jump,.-result_behind_jump\n");

TRACED long result_caller(long x)
{
	long y = result_leaf(x);

	return y < 0 ? y : result_leaf(y) - 1;
}

TRACED long result_tail(long x)
{
	sink = x;
	return result_leaf(x + 1);
}

static void call_results(long x)
{
	add_result("result_leaf", result_leaf(x));
	add_result("result_behind_jump", result_behind_jump(x));
	add_result("result_tail", result_tail(x));
	add_result("result_leaf", (x + 1) * 3 + 1);
	add_result("result_caller", result_caller(x));
	/* what that calls */
	add_result("result_leaf", x * 3 + 1);
	if (x * 3 + 1 >= 0)
		add_result("result_leaf", (x * 3 + 1) * 3 + 1);
}

int main(int argc, char **argv)
{
	static const long inputs[] = { 0, 1, -1, 2147483647, -2147483648, 4294967296, INT64_MAX / 16, INT64_MIN / 16 };
	struct target_options o = target_parse(argc, argv);

	target_ready(&o);
	for (long i = 0; i < o.repeat; i++)
		for (size_t k = 0; k < sizeof(inputs) / sizeof(inputs[0]); k++)
			call_results(inputs[k]);
	printf("{\"calls\": [%s]}\n", did);
	return target_done(&o, 1);
}
