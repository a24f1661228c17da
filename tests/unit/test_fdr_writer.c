// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 20 s
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/fdr.h"
#include "trace/fdr_writer.h"
#include "fast_size.h"
#include "llvm_xray.h"

#define T0 1000000ULL
#define HZ 1000000000ULL

static char folder[] = "/tmp/kx_fdr_XXXXXX";

static struct kx_fdr_options defaults(int version)
{
	return (struct kx_fdr_options){
		.version = version,
		.tsc_hz = HZ,
		.constant_tsc = true,
		.nonstop_tsc = true,
		.start_tsc = T0,
		.wall_sec = 5,
		.wall_usec = 7,
	};
}

struct file {
	char path[128];
	int fd;
	struct kx_fdr_writer *w;
};

static void start_with(struct file *f, const struct kx_fdr_options *o)
{
	struct kx_err err = { 0 };

	snprintf(f->path, sizeof(f->path), "%s/trace", folder);
	f->fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	assert_true(f->fd >= 0);
	if (kx_fdr_writer_new(f->fd, o, &f->w, &err) != 0)
		fail_msg("%s", err.text);
}

static void start(struct file *f, int version, uint32_t buffer_size)
{
	struct kx_fdr_options o = defaults(version);

	o.buffer_size = buffer_size;
	start_with(f, &o);
}

static void end(struct file *f)
{
	struct kx_err err = { 0 };

	if (kx_fdr_finish(f->w, 0, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(kx_fdr_writer_bytes(f->w), lseek(f->fd, 0, SEEK_END));
	kx_fdr_writer_free(f->w);
	close(f->fd);
}

static uint8_t *read_back(const struct file *f, size_t *size)
{
	struct stat st;
	uint8_t *data;
	int fd = open(f->path, O_RDONLY);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	*size = (size_t)st.st_size;
	data = malloc(*size + 1);
	assert_non_null(data);
	assert_int_equal(read(fd, data, *size), *size);
	close(fd);
	return data;
}

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

#define AT_ONCE 64u

/* @together: each AT_ONCE calls by one kx_fdr_calls. */
static uint8_t *write_calls(int version, const struct kx_fdr_call *calls, uint32_t n, bool together, size_t *size)
{
	struct kx_fdr_thread *t;
	uint32_t written;
	struct file f;

	start(&f, version, 1024);
	t = kx_fdr_writer_thread(f.w, 10, 20, "w", "p");
	assert_non_null(t);
	for (uint32_t i = 0; i < n; i += AT_ONCE) {
		const uint32_t most = n - i < AT_ONCE ? n - i : AT_ONCE;

		if (together) {
			assert_int_equal(kx_fdr_calls(t, calls + i, most, &written), 0);
			assert_int_equal(written, most);
		}
		for (const struct kx_fdr_call *c = calls + i; !together && c < calls + i + most; c++)
			assert_int_equal(c->action == KX_FDR_ENTRY ? kx_fdr_entry(t, c->tsc, c->cpu, c->func, NULL, 0)
								   : kx_fdr_exit(t, c->tsc, c->cpu, c->func,
										 c->action == KX_FDR_TAIL_EXIT),
					 0);
		if (i % 320 == 0)
			assert_int_equal(kx_fdr_custom(t, calls[i + most - 1].tsc + 50, "note", 4), 0);
	}
	assert_int_equal(kx_fdr_flush(f.w, NULL), 0);
	assert_int_equal(kx_fdr_writer_hits(f.w), n);
	end(&f);
	return read_back(&f, size);
}

/* The same bytes with pauses, other CPUs, full buffers, times that go back. */
static void test_many_calls(void **state)
{
	enum { N = 5000 };
	static struct kx_fdr_call calls[N];
	uint64_t tsc = T0;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		tsc += i % 701 == 700 ? 5ull << 32 : 7 + i % 13;
		calls[i] = (struct kx_fdr_call){ tsc - (i % 97 == 96 ? 30 : 0), 1 + i % 77, (uint16_t)(i / 211 % 3), (uint16_t)(i % 3) };
	}
	for (int version = 1; version <= 5; version++) {
		size_t size, same;
		uint8_t *one = write_calls(version, calls, N, false, &size), *many = write_calls(version, calls, N, true, &same);

		assert_true(size > 8 * N);
		assert_int_equal(size, same);
		assert_memory_equal(one, many, size);
		free(one);
		free(many);
	}
}

/* Those before the one that cannot be written are. */
static void test_many_calls_until_an_error(void **state)
{
	struct kx_fdr_call calls[5];
	struct kx_fdr_thread *t;
	uint32_t written = 99;
	struct file f;

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		calls[i] = (struct kx_fdr_call){ T0 + i, i == 3 ? KX_FDR_MAX_FUNC + 1 : 1, 1, KX_FDR_ENTRY };
	start(&f, 5, 1024);
	t = kx_fdr_writer_thread(f.w, 10, 20, "w", "p");
	assert_non_null(t);
	assert_int_equal(kx_fdr_calls(t, calls, 5, &written), -EINVAL);
	assert_int_equal(written, 3);
	assert_int_equal(kx_fdr_calls(t, calls, 0, &written), 0);
	assert_int_equal(written, 0);
	end(&f);
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
			static const char *const lines[] = {
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
			char *out, *dump;
			const char *at;

			if (access(llvm_xrays[v], X_OK) != 0)
				continue;
			out = run_okf("%s convert -f yaml %s | sed \"s/'268435455', args/268435455, "
				      "args/\"", llvm_xrays[v], f.path);
			at = out;
			for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
				char line[512];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
				/* version 1 has no Pid record */
				snprintf(line, sizeof(line), lines[i],
					 version == 1 ? "" : "process: 77, ");
#pragma GCC diagnostic pop
				at = strstr(at, line);
				if (!at)
					fail_msg("version %d: no line %s in\n%s", version, line, out);
			}
			free(out);
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

static void test_time_does_not_go_back(void **state)
{
	struct kx_fdr_thread *t;
	struct file f;
	char *out;

	(void)state;
	start(&f, 5, 0);
	t = kx_fdr_writer_thread(f.w, 1, 1, NULL, NULL);
	assert_int_equal(kx_fdr_entry(t, 5, 0, 1, NULL, 0), 0); /* before T0 */
	assert_int_equal(kx_fdr_entry(t, T0 + 50, 0, 2, NULL, 0), 0);
	assert_int_equal(kx_fdr_exit(t, T0 + 40, 0, 2, false), 0);
	assert_int_equal(kx_fdr_custom(t, T0 + 30, "a", 1), 0);
	assert_int_equal(kx_fdr_cpu(t, T0 + 20, 1), 0);
	assert_int_equal(kx_fdr_exit(t, T0 + 10, 1, 1, false), 0);
	end(&f);
	out = run_okf("%s convert -f yaml %s | grep -o 'tsc: [0-9][0-9]*' | tr '\\n' ' '",
		      llvm_xrays[0], f.path);
	assert_string_equal(out, "tsc: 1000000 tsc: 1000000 tsc: 1000050 tsc: 1000050 "
				 "tsc: 1000050 tsc: 1000050 ");
	free(out);
}

/* Unusual names: quotes, control characters, invalid UTF-8, incomplete characters. */
static void test_thread_names(void **state)
{
	static const char *const names[][2] = {
		{ "plain", "plain" },
		{ "a\"b\\c\n\x01", "a\"b\\c\n\x01" },
		{ "\xff\xfe"
		  "abcdef", "??abcdef" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "half\xc3", "half" },
		{ "half\xf0\x9f\x98", "half" },
		{ "", "" },
		{ NULL, "" },
		{ "0123456789012345678901234567890123456789012345678901234567890123456789",
		  "0123456789012345678901234567890123456789012345678901234567890123" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct kx_fdr_thread *t;
		struct file f;
		uint8_t *data;
		uint32_t len;
		size_t size;
		json_t *json;

		start(&f, 5, 0);
		t = kx_fdr_writer_thread(f.w, -1, 3, names[i][0], "p");
		assert_ptr_equal(kx_fdr_writer_thread(f.w, -1, 3, "other", "q"), t);
		assert_int_equal(kx_fdr_entry(t, T0, 0, 1, NULL, 0), 0);
		end(&f);
		data = read_back(&f, &size);
		memcpy(&len, data + 32 + 80 + 1, 4);
		assert_memory_equal(data + 32 + 96, "kxray:thread {", 14);
		json = json_loadb((char *)data + 32 + 96 + 13, len - 13, 0, NULL);
		assert_non_null(json);
		assert_string_equal(json_string_value(json_object_get(json, "name")), names[i][1]);
		assert_int_equal(json_integer_value(json_object_get(json, "pid")), -1);
		json_decref(json);
		free(data);
	}
}

static void test_thread_id_is_reused(void **state)
{
	struct kx_fdr_thread *t;
	struct file f;
	char *out;

	(void)state;
	start(&f, 5, 0);
	for (int i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "life%d", i);
		t = kx_fdr_writer_thread(f.w, 9, 9, name, "p");
		assert_int_equal(kx_fdr_entry(t, T0 + 100 + 10 * (uint64_t)i, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(t, T0 + 101 + 10 * (uint64_t)i, 0, 1, false), 0);
		assert_int_equal(kx_fdr_thread_end(t), 0);
	}
	assert_int_equal(kx_fdr_writer_threads(f.w), 20);
	assert_int_equal(kx_fdr_writer_live(f.w), 0);
	end(&f);
	llvm_xray_accepts(f.path, NULL, 0);
	out = run_okf("%s fdr-dump %s | grep -c '\"name\":\"life'", llvm_xrays[0], f.path);
	assert_string_equal(out, "20\n");
	free(out);
}

static void test_empty_trace(void **state)
{
	(void)state;
	for (int version = 1; version <= 5; version++) {
		struct file f;

		start(&f, version, 0);
		assert_non_null(kx_fdr_writer_thread(f.w, 1, 2, "idle", "p"));
		end(&f);
		for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
			char *out;

			if (access(llvm_xrays[v], X_OK) != 0)
				continue;
			out = run_okf("%s fdr-dump --verify %s", llvm_xrays[v], f.path);
			assert_non_null(strstr(out, "kxray:session {}"));
			free(out);
			free(run_okf("%s convert -f yaml %s", llvm_xrays[v], f.path));
			free(run_okf("%s account %s", llvm_xrays[v], f.path));
		}
	}
}

/* The file is complete after every flush, and small buffers free their memory. */
/* What a recorder that is killed early leaves: it can be read, and later records replace it. */
static void test_placeholder(void **state)
{
	for (int version = 1; version <= 5; version++) {
		uint8_t *with = NULL, *without = NULL;
		size_t sizes[2];
		struct file f;

		for (int placeholder = 0; placeholder < 2; placeholder++) {
			struct kx_fdr_thread *t;

			start(&f, version, 0);
			if (placeholder) {
				assert_int_equal(kx_fdr_write_placeholder(f.w, NULL), 0);
				for (size_t i = 0; i < N_LLVM_XRAYS; i++)
					if (access(llvm_xrays[i], X_OK) == 0)
						free(run_okf("%s account %s", llvm_xrays[i], f.path));
				assert_int_equal(kx_fdr_writer_threads(f.w), 0);
			}
			t = kx_fdr_writer_thread(f.w, 0, 0, "swapper", "");
			assert_int_equal(kx_fdr_entry(t, T0 + 1, 0, 1, NULL, 0), 0);
			assert_int_equal(kx_fdr_exit(t, T0 + 2, 0, 1, false), 0);
			end(&f);
			*(placeholder ? &with : &without) = read_back(&f, &sizes[placeholder]);
		}
		assert_int_equal(sizes[0], sizes[1]);
		assert_memory_equal(with, without, sizes[0]);
		free(with);
		/* no record ever came */
		start(&f, version, 0);
		assert_int_equal(kx_fdr_write_placeholder(f.w, NULL), 0);
		end(&f);
		with = read_back(&f, &sizes[1]);
		free(without);
		start(&f, version, 0);
		end(&f);
		without = read_back(&f, &sizes[0]);
		assert_int_equal(sizes[0], sizes[1]);
		assert_memory_equal(with, without, sizes[0]);
		free(with);
		free(without);
	}
	(void)state;
}

static void test_flush(void **state)
{
	struct kx_fdr_thread *t[10];
	struct file f;

	(void)state;
	for (int version = 1; version <= 5; version++) {
		size_t before;

		start(&f, version, 0);
		before = kx_fdr_writer_memory(f.w);
		for (int i = 0; i < 10; i++)
			t[i] = kx_fdr_writer_thread(f.w, 1, 1 + i, "x", "y");
		for (uint64_t n = 0; n < 6; n++) {
			for (int i = 0; i < 10; i++) {
				assert_int_equal(kx_fdr_entry(t[i], T0 + n, 0, 1, NULL, 0), 0);
				assert_int_equal(kx_fdr_exit(t[i], T0 + n, 0, 1, false), 0);
			}
			assert_true(kx_fdr_writer_memory(f.w) > before);
			assert_true(kx_fdr_writer_memory(f.w) - before <= 10 * 1024);
			assert_int_equal(kx_fdr_flush(f.w, NULL), 0);
			assert_int_equal(kx_fdr_writer_memory(f.w), before);
			assert_int_equal(kx_fdr_writer_bytes(f.w), lseek(f.fd, 0, SEEK_END));
			if (n == 0 || n == 5)
				llvm_xray_accepts(f.path, NULL, 1);
		}
		end(&f);
	}
}

static void test_memory_of_ten_thousand_threads(void **state)
{
	struct file f;

	(void)state;
	start(&f, 5, 0);
	for (int i = 0; i < 10000; i++) {
		struct kx_fdr_thread *t = kx_fdr_writer_thread(f.w, 1, 1 + i, "thread", "server");

		assert_int_equal(kx_fdr_entry(t, T0 + 1, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(t, T0 + 2, 0, 1, false), 0);
	}
	assert_true(kx_fdr_writer_memory(f.w) <= 10000 * 1024);
	assert_int_equal(kx_fdr_writer_threads(f.w), 10000);
	end(&f);
}

/* The table of threads is compacted when threads end, in any order. */
static void test_threads_end_in_any_order(void **state)
{
	enum { N = 1000, STEP = 7 * 11 };
	static struct kx_fdr_thread *t[N];
	struct file f;

	(void)state;
	start(&f, 5, 0);
	for (int32_t i = 0; i < N; i++)
		t[i] = kx_fdr_writer_thread(f.w, i / 3, i, NULL, NULL);
	for (int i = 0, at = 0; i < N; i++, at = (at + STEP) % N) {
		assert_int_equal(kx_fdr_writer_live(f.w), N - i);
		for (int32_t k = at; k < N; k += 97)
			if (t[k])
				assert_ptr_equal(kx_fdr_writer_thread(f.w, k / 3, k, NULL, NULL), t[k]);
		assert_int_equal(kx_fdr_thread_end(t[at]), 0);
		t[at] = NULL;
	}
	assert_int_equal(kx_fdr_writer_live(f.w), 0);
	end(&f);
}

static void test_memory_of_many_short_threads(void **state)
{
	enum { N = 100000, ALIVE = 50 };
	struct kx_fdr_thread *t[ALIVE] = { NULL };
	struct kx_fdr_identity who = { .name = "thread", .process = "server" };
	struct file f;
	size_t most = 0;

	(void)state;
	start(&f, 5, 0);
	for (int i = 0; i < N; i++) {
		struct kx_fdr_thread **place = &t[i % ALIVE];

		if (*place)
			assert_int_equal(kx_fdr_thread_end(*place), 0);
		who.pid = 1 + i / 3 % 10000; /* ids come again, in pairs and alone */
		who.tid = 1 + i % 30000;
		*place = kx_fdr_writer_thread_of(f.w, &who);
		assert_int_equal(kx_fdr_entry(*place, T0 + (uint64_t)i, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(*place, T0 + (uint64_t)i, 0, 1, false), 0);
		assert_true(kx_fdr_writer_live(f.w) <= ALIVE);
		if (kx_fdr_writer_memory(f.w) > most)
			most = kx_fdr_writer_memory(f.w);
	}
	assert_true(most <= ALIVE * 1024);
	assert_int_equal(kx_fdr_writer_threads(f.w), N);
	end(&f);
}

static void test_ids_in_a_namespace(void **state)
{
	const struct kx_fdr_identity who = {
		.pid = 1234, .tid = 1240, .ns_pid = 7, .ns_tid = 9, .name = "w", .process = "p",
	};
	struct kx_fdr_thread *t;
	struct file f;
	char *out;

	(void)state;
	start(&f, 5, 0);
	t = kx_fdr_writer_thread_of(f.w, &who);
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1, NULL, 0), 0);
	end(&f);
	out = run_okf("grep -ao '{\"tid.*}' %s", f.path);
	assert_string_equal(out, "{\"tid\":1240,\"pid\":1234,\"name\":\"w\",\"process\":\"p\","
				 "\"ns_pid\":7,\"ns_tid\":9}\n");
	free(out);
}

static void test_frequency_is_corrected(void **state)
{
	struct kx_fdr_thread *t;
	struct file f;
	uint8_t *data;
	uint64_t hz;
	size_t size;

	(void)state;
	start(&f, 5, 0);
	t = kx_fdr_writer_thread(f.w, 1, 1, NULL, NULL);
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1, NULL, 0), 0);
	assert_int_equal(kx_fdr_finish(f.w, 2599998765, NULL), 0);
	end(&f);
	data = read_back(&f, &size);
	memcpy(&hz, data + 8, 8);
	assert_int_equal(hz, 2599998765);
	free(data);
}

static void test_custom_event_sizes(void **state)
{
	char payload[4097];

	(void)state;
	memset(payload, 'p', sizeof(payload));
	for (int version = 1; version <= 5; version++) {
		struct kx_fdr_thread *t;
		struct file f;

		start(&f, version, 1024);
		t = kx_fdr_writer_thread(f.w, 1, 1, NULL, NULL);
		assert_int_equal(kx_fdr_custom(t, T0, payload, 0), -EINVAL);
		assert_int_equal(kx_fdr_custom(t, T0, payload, 4097), -EINVAL);
		/* larger than a buffer: it gets its own buffer, except in version 1 */
		assert_int_equal(kx_fdr_custom(t, T0, payload, 4096), version > 1 ? 0 : -EMSGSIZE);
		assert_int_equal(kx_fdr_custom(t, T0, payload, 1), 0);
		/* the maximum in version 1: without preamble 48, marker 16, EndOfBuffer 16 */
		assert_int_equal(kx_fdr_custom(t, T0, payload, 1024 - 80 + (version > 1)), 0);
		assert_int_equal(kx_fdr_entry(t, T0 + 1, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(t, T0 + 2, 0, 1, false), 0);
		end(&f);
		llvm_xray_accepts(f.path, NULL, 1);
	}
}

static void test_wrong_options(void **state)
{
	struct kx_fdr_writer *w = NULL;
	struct kx_fdr_options o;
	struct kx_err err;

	(void)state;
	o = defaults(6);
	assert_int_equal(kx_fdr_writer_new(1, &o, &w, &err), -EINVAL);
	assert_non_null(strstr(err.text, "version 6"));
	o = defaults(-1);
	assert_int_equal(kx_fdr_writer_new(1, &o, &w, &err), -EINVAL);
	o = defaults(5);
	o.buffer_size = 1000;
	assert_int_equal(kx_fdr_writer_new(1, &o, &w, &err), -EINVAL);
	o.buffer_size = 4097;
	assert_int_equal(kx_fdr_writer_new(1, &o, &w, &err), -EINVAL);
	o = defaults(5);
	o.start_tsc = 0;
	assert_int_equal(kx_fdr_writer_new(1, &o, &w, &err), -EINVAL);
	assert_null(w);
}

static void test_wrong_records(void **state)
{
	struct kx_fdr_thread *t;
	uint64_t args[9] = { 0 };
	struct file f;

	(void)state;
	start(&f, 0, 0);
	t = kx_fdr_writer_thread(f.w, 1, 1, NULL, NULL);
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1u << 28, NULL, 0), -EINVAL);
	assert_int_equal(kx_fdr_exit(t, T0, 0, 1u << 28, false), -EINVAL);
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1, args, 9), -EINVAL);
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1, args, 8), 0);
	end(&f);
	llvm_xray_accepts(f.path, NULL, 1);
}

/*
 * A disk that becomes full inside a buffer: the file ends after a complete buffer and can be read.
 * A file size limit has the same effect.
 */
static void test_full_disk(void **state)
{
	struct rlimit old, small = { 100000, 100000 };

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	for (int version = 1; version <= 5; version += 4) {
		struct kx_fdr_thread *a, *b;
		struct kx_err err = { 0 };
		struct file f;
		uint64_t tsc = T0, bytes;
		int ret = 0;

		start(&f, version, 4096);
		a = kx_fdr_writer_thread(f.w, 1, 1, NULL, NULL);
		b = kx_fdr_writer_thread(f.w, 1, 2, NULL, NULL);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		for (int i = 0; i < 100000 && ret == 0; i++) {
			ret = kx_fdr_entry(a, ++tsc, 0, 1, NULL, 0);
			if (ret == 0)
				ret = kx_fdr_exit(a, ++tsc, 0, 1, false);
			if (i == 0)
				assert_int_equal(kx_fdr_entry(b, tsc, 0, 1, NULL, 0), 0);
		}
		assert_int_equal(ret, -EFBIG);
		/* every call fails, for every thread */
		assert_int_equal(kx_fdr_entry(a, ++tsc, 0, 1, NULL, 0), -EFBIG);
		assert_int_equal(kx_fdr_entry(b, ++tsc, 0, 1, NULL, 0), -EFBIG);
		assert_int_equal(kx_fdr_custom(b, ++tsc, "x", 1), -EFBIG);
		assert_int_equal(kx_fdr_cpu(b, ++tsc, 0), -EFBIG);
		assert_int_equal(kx_fdr_thread_end(b), -EFBIG);
		assert_int_equal(kx_fdr_flush(f.w, &err), -EFBIG);
		assert_non_null(strstr(err.text, "File too large"));
		assert_int_equal(kx_fdr_finish(f.w, HZ, &err), -EFBIG);
		bytes = kx_fdr_writer_bytes(f.w);
		assert_true(bytes > 90000 && bytes <= 100000);
		assert_int_equal(lseek(f.fd, 0, SEEK_END), bytes);
		kx_fdr_writer_free(f.w);
		close(f.fd);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		free(run_okf("%s fdr-dump --verify %s", llvm_xrays[0], f.path));
	}
}

static void test_dev_full(void **state)
{
	struct kx_fdr_options o = defaults(5);
	struct kx_fdr_writer *w;
	struct kx_err err = { 0 };
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(kx_fdr_writer_new(fd, &o, &w, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "No space left on device"));
	close(fd);
}

/* A slow reader of a pipe: short writes and EAGAIN. */
static void *slow_reader(void *arg)
{
	int *fds = arg;
	char path[128], chunk[3001];
	int out;

	snprintf(path, sizeof(path), "%s/piped", folder);
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	for (;;) {
		ssize_t n = read(fds[0], chunk, sizeof(chunk));

		if (n <= 0)
			break;
		if (write(out, chunk, (size_t)n) != n)
			break;
	}
	close(out);
	return NULL;
}

static void test_pipe(void **state)
{
	struct kx_fdr_options o = defaults(5);
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	pthread_t reader;
	char path[128];
	int fds[2];
	char *out;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(pthread_create(&reader, NULL, slow_reader, fds), 0);
	assert_int_equal(kx_fdr_writer_new(fds[1], &o, &w, NULL), 0);
	t = kx_fdr_writer_thread(w, 1, 1, NULL, NULL);
	for (uint64_t i = 0; i < 100000; i++) {
		assert_int_equal(kx_fdr_entry(t, T0 + i, 0, 1, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(t, T0 + i, 0, 1, false), 0);
	}
	assert_int_equal(kx_fdr_finish(w, HZ + 1, NULL), 0);
	kx_fdr_writer_free(w);
	close(fds[1]);
	pthread_join(reader, NULL);
	close(fds[0]);
	snprintf(path, sizeof(path), "%s/piped", folder);
	out = run_okf("%s account -f csv %s | tail -1 | cut -d, -f1,2", llvm_xrays[0], path);
	assert_string_equal(out, "1,100000\n");
	free(out);
}

static void test_broken_pipe(void **state)
{
	struct kx_fdr_options o = defaults(5);
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	struct kx_err err = { 0 };
	int fds[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(kx_fdr_writer_new(fds[1], &o, &w, NULL), 0);
	t = kx_fdr_writer_thread(w, 1, 1, NULL, NULL);
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1, NULL, 0), 0);
	close(fds[0]);
	assert_int_equal(kx_fdr_flush(w, &err), -EPIPE);
	assert_non_null(strstr(err.text, "Broken pipe"));
	assert_int_equal(kx_fdr_entry(t, T0, 0, 1, NULL, 0), -EPIPE);
	kx_fdr_writer_free(w);
	close(fds[1]);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	free(run_okf("rm -r %s", folder));
	return 0;
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
		cmocka_unit_test(test_time_does_not_go_back),
		cmocka_unit_test(test_thread_names),
		cmocka_unit_test(test_thread_id_is_reused),
		cmocka_unit_test(test_empty_trace),
		cmocka_unit_test(test_placeholder),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_memory_of_ten_thousand_threads),
		cmocka_unit_test(test_threads_end_in_any_order),
		cmocka_unit_test(test_memory_of_many_short_threads),
		cmocka_unit_test(test_ids_in_a_namespace),
		cmocka_unit_test(test_frequency_is_corrected),
		cmocka_unit_test(test_custom_event_sizes),
		cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_wrong_records),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_dev_full),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_broken_pipe),
		cmocka_unit_test(test_many_calls),
		cmocka_unit_test(test_many_calls_until_an_error),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
