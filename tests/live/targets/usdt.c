// SPDX-License-Identifier: BSD-2-Clause
/*
 * Passes USDT markers of known arguments and prints them in order, as values.c does its calls: {"calls": [{"function":
 * "usdt:kxt:integers", "args": {"arg1": A, ...}}, ...], "guarded": N, "spans": N}. guarded: how often the semaphore of kxt:guarded was
 * up, and so the marker was passed. Those of this file have semaphores, those of usdt_plain.h have none.
 */
#include "usdt_plain.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include "target.h"

#define SEMAPHORE(name) unsigned short name##_semaphore __attribute__((section(".probes"), used))
SEMAPHORE(kxt_integers);
SEMAPHORE(kxt_longs);
SEMAPHORE(kxt_text);
SEMAPHORE(kxt_memory);
SEMAPHORE(kxt_constants);
SEMAPHORE(kxt_guarded);
SEMAPHORE(kxt_begin);
SEMAPHORE(kxt_end);

int kxt_counter = -5;
unsigned short kxt_shorts[4] = { 1, 2, 65535, 4 };

static char did[1 << 17];
static size_t used;
static long guarded, spans;

static void add(const char *function, const char *arguments)
{
	used += (size_t)snprintf(did + used, sizeof(did) - used, "%s{\"function\": \"usdt:%s\", \"args\": {%s}}", used ? ", " : "",
				 function, arguments);
}

/* Arguments of less than a register have other bytes above them, so that only their own are right. */
TRACED void pass_integers(long dirt_a, long dirt_b, long dirt_c)
{
	signed char a = (signed char)dirt_a;
	unsigned char b = (unsigned char)dirt_b;
	short c = (short)dirt_c;
	unsigned short d = (unsigned short)dirt_a;
	int e = (int)dirt_b;
	unsigned f = (unsigned)dirt_c;
	char text[300];

	STAP_PROBE6(kxt, integers, a, b, c, d, e, f);
	snprintf(text, sizeof(text), "\"arg1\": %d, \"arg2\": %u, \"arg3\": %d, \"arg4\": %u, \"arg5\": %d, \"arg6\": %u", a, b, c, d, e, f);
	add("kxt:integers", text);
}

TRACED void pass_longs(long a, unsigned long b, void *c)
{
	char text[300];

	STAP_PROBE3(kxt, longs, a, b, c);
	snprintf(text, sizeof(text), "\"arg1\": %ld, \"arg2\": %lu, \"arg3\": \"0x%lx\"", a, b, (unsigned long)c);
	add("kxt:longs", text);
}

TRACED void pass_text(const char *s, long n)
{
	char text[300];

	STAP_PROBE2(kxt, text, s, n);
	snprintf(text, sizeof(text), "\"arg1\": \"%.*s\", \"arg2\": %ld", (int)n, s, n);
	add("kxt:text", text);
}

/* Variables of the file, the stack and memory behind a pointer. */
TRACED void pass_memory(const unsigned short *p)
{
	volatile int local[3] = { 7, -8, 9 };
	char text[300];

	kxt_counter++;
	STAP_PROBE4(kxt, memory, kxt_counter, kxt_shorts[2], local[1], p[3]);
	snprintf(text, sizeof(text), "\"arg1\": %d, \"arg2\": %u, \"arg3\": %d, \"arg4\": %u", kxt_counter, kxt_shorts[2], local[1], p[3]);
	add("kxt:memory", text);
}

TRACED void pass_constants(void)
{
	STAP_PROBE12(kxt, constants, 1, -2, 3u, 4l, -5l, 6, 7, 8, (short)-9, (unsigned char)200, 11, INT32_MIN);
	add("kxt:constants", "\"arg1\": 1, \"arg2\": -2, \"arg5\": -5, \"arg9\": -9, \"arg10\": 200, \"arg12\": -2147483648");
}

/* As programs use them: what the arguments take is saved while nobody looks. */
TRACED void pass_guarded(long i)
{
	if (!*(volatile unsigned short *)&kxt_guarded_semaphore)
		return;
	STAP_PROBE1(kxt, guarded, i);
	guarded++;
}

TRACED void begin_request(long i)
{
	STAP_PROBE1(kxt, begin, i);
}

TRACED void end_request(long i)
{
	STAP_PROBE1(kxt, end, i);
}

/* One that a function begins and another ends, one in itself, one that ends twice, one that never ends. */
static void pass_spans(void)
{
	for (long i = 0; i < 50; i++) {
		begin_request(i);
		pass_guarded(i);
		end_request(i);
		spans++;
	}
	end_request(-1);
	begin_request(-2);
}

int main(int argc, char **argv)
{
	static const long inputs[] = { 0, 1, -1, 127, 128, 32767, 32768, 2147483647, -2147483648, 0x5a5a5a5a80808080 };
	static const size_t n = sizeof(inputs) / sizeof(inputs[0]);
	struct target_options o = target_parse(argc, argv);

	target_ready(&o);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			pass_integers(inputs[i], inputs[k], inputs[(i + k) % n]);
	for (size_t i = 0; i < n; i++)
		pass_longs(inputs[i] << 20, (unsigned long)inputs[i] << 8, (void *)inputs[i]);
	pass_text("", 0);
	pass_text("text", 4);
	pass_text("a longer text, from which a part is taken", 10);
	for (int i = 0; i < 10; i++)
		pass_memory(kxt_shorts);
	pass_constants();
	for (long i = 0; i < 20; i++)
		usdt_plain_pass(i);
	used += usdt_plain_did(did + used, sizeof(did) - used);
	for (long i = 0; i < o.repeat; i++)
		pass_spans();
	printf("{\"calls\": [%s], \"guarded\": %ld, \"spans\": %ld}\n", did, guarded, spans);
	return target_done(&o, 1);
}
