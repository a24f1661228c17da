// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 20 s
/* The bytes that a writer makes, by the document of the format and by llvm-xray. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/fdr.h"
#include "trace/fdr_writer.h"
#include "fast_size.h"
#include "fdr_writer_rig.h"
#include "llvm_xray.h"

/* Bytes from hexadecimal text; blanks are ignored. */
static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = 0;
	unsigned byte;

	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		assert_int_equal(sscanf(hex, "%2x", &byte), 1);
		out[n++] = (uint8_t)byte;
		hex++;
	}
	return n;
}

#define Z3 "000000"
#define Z7 "00000000000000"
#define Z11 "0000000000000000000000"
/* kxray:thread {"tid":20,"pid":10,"name":"w","process":"p"} : 13 + 44 = 57 bytes */
#define NOTE                                                                              \
	"6b78726179 3a 746872656164 20"                                                   \
	"7b 22746964223a3230 2c 22706964223a3130 2c 226e616d65223a227722 2c"             \
	"2270726f63657373223a227022 7d"

static void tiny(int version, struct file *f)
{
	struct kx_fdr_thread *t;
	uint64_t args[1] = { 0x1122334455667788 };

	start(f, version, 1024);
	t = kx_fdr_writer_thread(f->w, 10, 20, "w", "p");
	assert_non_null(t);
	assert_int_equal(kx_fdr_entry(t, T0 + 16, 2, 0xabcdef1, args, 1), 0);
	assert_int_equal(kx_fdr_exit(t, T0 + 48, 2, 0xabcdef1, false), 0);
	end(f);
}

static void same_bytes(const struct file *f, const char *hex, size_t zeros)
{
	uint8_t want[4096] = { 0 }, *got;
	size_t n = from_hex(hex, want) + zeros, size;

	got = read_back(f, &size);
	assert_int_equal(size, n);
	assert_memory_equal(got, want, n);
	free(got);
}

/* Written by hand from the document and, where it is incomplete, from llvm-xray's behaviour. */
static void test_golden_version_1(void **state)
{
	struct file f;

	(void)state;
	tiny(1, &f);
	same_bytes(&f,
		   /* header: version, type, flags, hertz, buffer size, reserved */
		   "0100 0100 03000000 00ca9a3b00000000 0004000000000000 0000000000000000"
		   /* NewBuffer, WallTime, NewCPUId */
		   "01 14000000" Z11
		   "09 0500000000000000 07000000" Z3
		   "05 0200 40420f0000000000 0000000000"
		   /* the payload of 57 bytes is padded to 64 */
		   "0b 40000000 40420f0000000000" Z3
		   NOTE "20202020202020"
		   /* Entry_Args + 16, CallArgument, Exit + 32, EndOfBuffer */
		   "16efcdab 10000000"
		   "0d 8877665544332211" Z7
		   "12efcdab 20000000"
		   "03 00000000" Z11,
		   1024 - (3 * 16 + 16 + 64 + 8 + 16 + 8 + 16));
}

static void test_golden_version_5(void **state)
{
	struct file f;

	(void)state;
	tiny(5, &f);
	same_bytes(&f,
		   "0500 0100 03000000 00ca9a3b00000000 0004000000000000 0000000000000000"
		   /* BufferExtents: 4 * 16 + 16 + 57 + 8 + 16 + 8 = 169 */
		   "0f a900000000000000" Z7
		   "01 14000000" Z11
		   "09 0500000000000000 07000000" Z3
		   "13 0a000000" Z11
		   "05 0200 40420f0000000000 0000000000"
		   "0b 39000000 00000000" Z7
		   NOTE
		   "16efcdab 10000000"
		   "0d 8877665544332211" Z7
		   "12efcdab 20000000",
		   0);
}

/*
 * A random program of 8 threads in 4 processes, with arguments, tail exits, custom
 * events, migrations and pauses; it counts its calls for the comparison.
 */
#define NFUNCS 50

struct work {
	int64_t calls[NFUNCS]; /* complete calls */
	uint32_t seed;
};

static uint32_t rnd(struct work *w, uint32_t n)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(w->seed >> 4) * n) >> 28);
}

struct worker {
	struct kx_fdr_thread *t;
	uint64_t tsc;
	uint16_t cpu;
	unsigned depth;
	uint32_t stack[20];
};

static void step(struct work *w, struct worker *k)
{
	static const uint64_t pauses[] = { 1ULL << 32, (1ULL << 32) - 1, (1ULL << 31) - 1,
					   1ULL << 31, 1ULL << 40 };
	static const uint16_t cpus[] = { 0, 1, 255, 256, 65535 };
	uint64_t args[6] = { 0, 1, UINT64_MAX, T0, 1ULL << 63, 5 };
	uint32_t what = rnd(w, 1000);

	k->tsc += rnd(w, 500);
	if (what < 5)
		k->tsc += pauses[rnd(w, 5)] - (k->depth & 1);
	if (what < 15)
		k->cpu = cpus[rnd(w, 5)];
	if (what < 10)
		assert_int_equal(kx_fdr_cpu(k->t, k->tsc, k->cpu), 0);
	if (what > 980) {
		char payload[300];
		size_t n = 1 + rnd(w, sizeof(payload));

		memset(payload, 'x', n);
		assert_int_equal(kx_fdr_custom(k->t, k->tsc, payload, n), 0);
	} else if (k->depth < 20 && what % 2) {
		uint32_t f = 1 + rnd(w, NFUNCS - 1);

		k->stack[k->depth++] = f;
		assert_int_equal(kx_fdr_entry(k->t, k->tsc, k->cpu, f, args,
					      what % 16 == 1 ? rnd(w, 7) : 0), 0);
	} else if (k->depth) {
		uint32_t f = k->stack[--k->depth];

		w->calls[f]++;
		assert_int_equal(kx_fdr_exit(k->t, k->tsc, k->cpu, f, what % 8 == 0), 0);
	}
}

static void random_trace(struct file *f, int version, unsigned buffers, struct work *w)
{
	const uint32_t size = 1024;
	struct worker k[8] = { 0 };

	memset(w, 0, sizeof(*w));
	w->seed = (uint32_t)version * 2654435761u + buffers;
	start(f, version, size);
	for (int i = 0; i < 8; i++) {
		/* the largest thread id there is on Linux */
		k[i].t = kx_fdr_writer_thread(f->w, 100 + i / 2, i ? 1000 + i : 4194303, "worker",
					      "server");
		assert_non_null(k[i].t);
		k[i].tsc = T0 + 100;
	}
	while (kx_fdr_writer_bytes(f->w) < 8ULL * buffers * size)
		for (int i = 0; i < 8; i++)
			step(w, &k[i]);
	for (int i = 0; i < 8; i++) {
		while (k[i].depth) {
			uint32_t func = k[i].stack[--k[i].depth];

			w->calls[func]++;
			assert_int_equal(kx_fdr_exit(k[i].t, ++k[i].tsc, k[i].cpu, func, false), 0);
		}
		assert_int_equal(kx_fdr_thread_end(k[i].t), 0);
	}
	assert_int_equal(kx_fdr_writer_threads(f->w), 8);
	end(f);
}

static void compare_counts(const struct file *f, const struct work *w)
{
	for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
		int64_t counted[NFUNCS];

		if (access(llvm_xrays[v], X_OK) != 0)
			continue;
		llvm_xray_counts(llvm_xrays[v], f->path, counted, NFUNCS);
		assert_int_equal(counted[0], -1);
		for (size_t i = 1; i < NFUNCS; i++)
			assert_int_equal(counted[i], w->calls[i]);
	}
}

static void test_llvm_xray_40_buffers(void **state)
{
	(void)state;
	for (int version = 1; version <= 5; version++) {
		struct work w;
		struct file f;

		random_trace(&f, version, 40, &w);
		assert_true(w.calls[1] > 100);
		compare_counts(&f, &w);
		llvm_xray_accepts(f.path, NULL, 0);
	}
}

static void test_llvm_xray_many_buffers(void **state)
{
	(void)state;
	for (int version = 1; version <= 5; version += 2) {
		struct work w;
		struct file f;

		random_trace(&f, version, (unsigned)fast_size(400, 100), &w);
		compare_counts(&f, &w);
		llvm_xray_accepts(f.path, NULL, 1);
	}
}

/* One thread with known records; llvm-xray convert must print exactly these. */
/* What llvm-xray makes of the file that test_llvm_xray_reads_what_was_written writes. */
static const char *const converted[] = {
	"function: 268435455, args: [ 7, 18446744073709551615 ], cpu: "
	"65535, thread: 4194303, %skind: function-enter-arg, "
	"tsc: 4295967296,",
	"func-id: 2, function: '2', cpu: 65535, thread: 4194303, "
	"%skind: function-enter, tsc: 8590934591,",
	"func-id: 2, function: '2', cpu: 65535, thread: 4194303, "
	"%skind: function-tail-exit, tsc: 12885901887,",
	"kind: custom-event, tsc: 15033385535,",
	"func-id: 268435455, function: '268435455', cpu: 4, thread: 4194303, "
	"%skind: function-exit, tsc: 15033385538,",
};
static void check_converted(const char *llvm_xray, const char *path, int version)
{
	char *out = run_okf("%s convert -f yaml %s | sed \"s/'268435455', args/268435455, args/\"", llvm_xray, path);
	const char *at = out;

	for (size_t i = 0; i < sizeof(converted) / sizeof(converted[0]); i++) {
		char line[512];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		/* version 1 has no Pid record */
		snprintf(line, sizeof(line), converted[i], version == 1 ? "" : "process: 77, ");
#pragma GCC diagnostic pop
		at = strstr(at, line);
		if (!at)
			fail_msg("version %d: no line %s in\n%s", version, line, out);
	}
	free(out);
}

static void test_llvm_xray_reads_what_was_written(void **state)
{
	(void)state;
	for (int version = 1; version <= 5; version++) {
		struct kx_fdr_thread *t;
		struct file f;
		uint64_t args[2] = { 7, UINT64_MAX };
		uint64_t tsc = T0 + (1ULL << 32); /* first delta: one too many */

		start(&f, version, 0);
		t = kx_fdr_writer_thread(f.w, 77, 4194303, NULL, NULL);
		assert_int_equal(kx_fdr_entry(t, tsc, 65535, KX_FDR_MAX_FUNC, args, 2), 0);
		tsc += UINT32_MAX; /* just fits */
		assert_int_equal(kx_fdr_entry(t, tsc, 65535, 2, NULL, 0), 0);
		tsc += 1ULL << 32; /* does not */
		assert_int_equal(kx_fdr_exit(t, tsc, 65535, 2, true), 0);
		assert_int_equal(kx_fdr_custom(t, tsc + 0x80000000, "0123456789", 10), 0);
		assert_int_equal(kx_fdr_cpu(t, tsc + 0x80000001, 3), 0);
		assert_int_equal(kx_fdr_cpu(t, tsc + 0x80000002, 4), 0);
		assert_int_equal(kx_fdr_exit(t, tsc + 0x80000003, 4, KX_FDR_MAX_FUNC, false), 0);
		end(&f);
		for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
			char *dump;

			if (access(llvm_xrays[v], X_OK) != 0)
				continue;
			check_converted(llvm_xrays[v], f.path, version);
			dump = run_okf("%s fdr-dump --verify %s", llvm_xrays[v], f.path);
			/* both migrations are present, each at its own time */
			assert_non_null(strstr(dump, "<CPU: id = 3, tsc = 15033385536>"));
			assert_non_null(strstr(dump, "<CPU: id = 4, tsc = 15033385537>"));
			assert_non_null(strstr(dump, "<TSC Wrap: base = 4295967296>"));
			assert_non_null(strstr(dump, "<TSC Wrap: base = 12885901887>"));
			assert_non_null(strstr(dump, "<Wall Time: seconds = 5.000007>"));
			free(dump);
		}
		llvm_xray_accepts(f.path, NULL, 1);
	}
}

/* A walk over the buffers by the rules of the version, stricter than llvm-xray. */
static unsigned walk_version_5(const uint8_t *p, size_t size, uint32_t limit)
{
	uint64_t sec[8] = { 0 };
	uint32_t usec[8] = { 0 };
	unsigned buffers = 0;
	size_t at = 32;

	while (at < size) {
		uint64_t extents, s;
		uint32_t tid, u;

		assert_int_equal(p[at], 0x0f);
		memcpy(&extents, p + at + 1, 8);
		assert_true(extents >= 4 * 16 && extents + 16 <= limit);
		assert_int_equal(p[at + 16], 0x01);
		memcpy(&tid, p + at + 17, 4);
		assert_int_equal(p[at + 32], 0x09);
		memcpy(&s, p + at + 33, 8);
		memcpy(&u, p + at + 41, 4);
		assert_true(tid < 8);
		assert_true(s > sec[tid] && u > usec[tid]);
		sec[tid] = s;
		usec[tid] = u;
		assert_int_equal(p[at + 48], 0x13);
		assert_int_equal(p[at + 64], 0x05);
		at += 16 + extents;
		buffers++;
	}
	assert_int_equal(at, size);
	return buffers;
}

static void test_records_never_straddle_buffers(void **state)
{
	struct work w = { .seed = 3 };
	struct worker k[4] = { 0 };
	unsigned buffers;
	struct file f;
	uint8_t *data;
	size_t size;

	(void)state;
	start(&f, 5, 1024);
	for (int i = 0; i < 4; i++) {
		k[i].t = kx_fdr_writer_thread(f.w, 1, i, "x", "y");
		k[i].tsc = T0;
	}
	for (int n = 0; n < 100000; n++)
		step(&w, &k[n & 3]);
	end(&f);
	data = read_back(&f, &size);
	buffers = walk_version_5(data, size, 1024);
	assert_true(buffers > 100);
	free(data);
}

static void test_version_1_buffers_are_of_one_size(void **state)
{
	struct work w = { .seed = 3 };
	struct worker k[2] = { 0 };
	struct file f;
	uint8_t *data;
	size_t size;

	(void)state;
	start(&f, 1, 2048);
	for (int i = 0; i < 2; i++) {
		k[i].t = kx_fdr_writer_thread(f.w, 1, 70000 + i, "x", "y");
		k[i].tsc = T0;
	}
	for (int n = 0; n < 20000; n++) {
		step(&w, &k[n & 1]);
		if (n % 5000 == 0)
			assert_int_equal(kx_fdr_flush(f.w, NULL), 0);
	}
	end(&f);
	data = read_back(&f, &size);
	assert_int_equal((size - 32) % 2048, 0);
	for (size_t at = 32; at < size; at += 2048) {
		size_t i = at;

		/* walk the records up to EndOfBuffer: only zeros may follow it */
		assert_int_equal(data[i], 0x01);
		while (data[i] != 0x03) {
			uint32_t payload = 0;

			if (data[i] == 0x0b)
				memcpy(&payload, data + i + 1, 4);
			assert_int_equal(payload % 8, 0);
			i += (data[i] & 1 ? 16 : 8) + payload;
			assert_true(i <= at + 2048 - 16);
		}
		for (i += 16; i < at + 2048; i++)
			assert_int_equal(data[i], 0);
	}
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_version_1),
		cmocka_unit_test(test_golden_version_5),
		cmocka_unit_test(test_llvm_xray_reads_what_was_written),
		cmocka_unit_test(test_llvm_xray_40_buffers),
		cmocka_unit_test(test_llvm_xray_many_buffers),
		cmocka_unit_test(test_records_never_straddle_buffers),
		cmocka_unit_test(test_version_1_buffers_are_of_one_size),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
