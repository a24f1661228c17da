// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls functions with known values and prints what it called them with, and what they returned, in order:
 * {"calls": [{"function": F, "args": {"arg1": A, ...}, "result": R}, ...]}. A string is null if it cannot be read, as a traced call has
 * it without reading: its page is not mapped, or its end is in a page that is not.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

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

/* Arguments of less than a register have other bytes above them, so that only their own are right. */
#define DIRT 0x5a5a5a5a5a5a5a5aul
#define WITH_DIRT(value, type) ((DIRT & ~(unsigned long)(type)-1) | (type)(value))

TRACED signed char take_integers(signed char a, unsigned char b, short c, unsigned short d, int e, unsigned f)
{
	sink = a + b + c + d + e + (long)f;
	return (signed char)(a + 1);
}

TRACED unsigned long take_longs(long a, unsigned long b, bool c, char d, void *e, unsigned long f)
{
	sink = a + (long)b + c + d + (long)e + (long)f;
	return b;
}

TRACED const char *take_string(const char *s)
{
	sink = (long)s;
	return s;
}

TRACED int take_bytes(const char *s, long n, int twice)
{
	sink = (long)s + n + twice;
	return twice * 2;
}

static const char *json_of(const char *s, long n, char *to)
{
	char *p = to;

	*p++ = '"';
	for (long i = 0; i < n; i++)
		p += sprintf(p, (unsigned char)s[i] >= ' ' && s[i] > 0 && s[i] != '"' && s[i] != '\\' && s[i] != 0x7f ? "%c" : "\\u%04x",
			     (unsigned char)s[i]);
	strcpy(p, "\"");
	return to;
}

static void call_integers(long a, long b)
{
	typedef long (*any)(unsigned long, unsigned long, unsigned long, unsigned long, unsigned long, unsigned long);
	static void *volatile function = (void *)take_integers;
	unsigned long result = (unsigned long)((any)function)(
		WITH_DIRT(a, unsigned char), WITH_DIRT(b, unsigned char), WITH_DIRT(a, unsigned short),
		WITH_DIRT(b, unsigned short), WITH_DIRT(a, unsigned), WITH_DIRT(b, unsigned));
	char text[256], out[32];

	snprintf(text, sizeof(text), "\"arg1\": %d, \"arg2\": %u, \"arg3\": %d, \"arg4\": %u, \"arg5\": %d, \"arg6\": %u", (signed char)a,
		 (unsigned char)b, (short)a, (unsigned short)b, (int)a, (unsigned)b);
	snprintf(out, sizeof(out), "%d", (signed char)result);
	add("take_integers", text, out);
}

static void call_longs(long a, unsigned long b, bool c, char d, void *e, unsigned long f)
{
	char text[256], out[32];

	snprintf(out, sizeof(out), "%lu", take_longs(a, b, c, d, e, f));
	snprintf(text, sizeof(text), "\"arg1\": %ld, \"arg2\": %lu, \"arg3\": %s, \"arg4\": \"%c\", \"arg5\": \"0x%lx\", \"arg6\": \"0x%lx\"", a, b,
		 c ? "true" : "false", d, (unsigned long)e, f);
	add("take_longs", text, out);
}

/* @seen: what of it is to be recorded, NULL if it cannot be read. */
static void call_string(const char *s, const char *seen, bool cut)
{
	char text[1024] = "\"arg1\": null", out[32], json[900];
	const char *result;

	/* programs' pages come in when they are read */
	sink = seen ? *(const volatile char *)seen : 0;
	result = take_string(s);

	if (seen) {
		json_of(seen, cut ? 64 : (long)strlen(seen), json);
		if (cut)
			strcpy(json + strlen(json) - 1, "\xe2\x80\xa6\"");
		snprintf(text, sizeof(text), "\"arg1\": %s", json);
	}
	snprintf(out, sizeof(out), "\"0x%lx\"", (unsigned long)result);
	add("take_string", text, out);
}

static void call_bytes(const char *s, long n, bool readable)
{
	char text[1024], json[900];

	sink = readable ? *(const volatile char *)s : 0;
	take_bytes(s, n, 4);
	if (!readable || n < 0)
		strcpy(json, "null");
	else
		json_of(s, n > 64 ? 64 : n, json);
	if (readable && n > 64)
		strcpy(json + strlen(json) - 1, "\xe2\x80\xa6\"");
	snprintf(text, sizeof(text), "\"arg1\": %s, \"arg2\": %ld, \"arg3\": 4", json, n);
	add("take_bytes", text, "8");
}

static void call_strings(void)
{
	/* two pages, of which the second is not mapped, and one that is mapped and never touched */
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *absent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char many[80];

	munmap(two + 4096, 4096);
	memset(many, 'x', sizeof(many) - 1);
	call_string("", "", false);
	call_string("short", "short", false);
	for (int n = 63; n <= 65; n++)
		call_string(many + sizeof(many) - 1 - n, many + sizeof(many) - 1 - n, n > 64);
	call_string("\"quoted\", =cmd|'\\'\n\t\x1b[31m<b>&\r", "\"quoted\", =cmd|'\\'\n\t\x1b[31m<b>&\r", false);
	memset(two, 'y', 4096);
	two[4095] = 0;
	call_string(two + 4090, "yyyyy", false);
	call_string(two + 4095, "", false);
	two[4095] = 'z';
	call_string(two + 4090, NULL, false);
	call_string(NULL, NULL, false);
	call_string((const char *)8, NULL, false);
	call_string((const char *)0xffffffff81000000, NULL, false);
	call_string(absent, NULL, false);
	call_bytes("a\"b", 3, true);
	call_bytes(many, 0, true);
	call_bytes(many, 64, true);
	call_bytes(many, 65, true);
	call_bytes(many, -1, true);
	call_bytes(two + 4090, 6, true);
	call_bytes(two + 4090, 7, false);
	call_bytes(NULL, 4, false);
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
	for (size_t k = 0; k < sizeof(inputs) / sizeof(inputs[0]); k++)
		for (size_t j = 0; j < sizeof(inputs) / sizeof(inputs[0]); j++)
			call_integers(inputs[k], inputs[j]);
	call_integers(0x80, 0x8000);
	call_integers(0x7fff, 0xffff);
	call_longs(INT64_MIN, UINT64_MAX, true, 'q', did, 0x1234);
	call_longs(INT64_MAX, 1ul << 53, false, ' ', NULL, UINT64_MAX);
	call_longs(-1, (1ul << 53) + 1, true, '~', (void *)-1l, 0);
	call_strings();
	printf("{\"calls\": [%s]}\n", did);
	return target_done(&o, 1);
}
