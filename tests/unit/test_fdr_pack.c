// SPDX-License-Identifier: BSD-2-Clause
/* Compressed traces: what is written is, decompressed, the uncompressed file; what can be read of damaged ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "trace/fdr_reader.h"
#include "trace/fdr_writer.h"
#include "folder.h"

#define T0	1000000ULL
#define HZ	1000000000ULL
#define THREADS 7
#define CALLS	30000

struct bytes {
	uint8_t *data;
	size_t size;
};

static const char *path_of(const char *name)
{
	static char path[2][128];
	static int which;

	which = !which;
	snprintf(path[which], sizeof(path[which]), "%s/%s", folder, name);
	return path[which];
}

static struct bytes load(const char *name)
{
	FILE *f = fopen(path_of(name), "r");
	struct bytes b = { 0 };

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	b.size = (size_t)ftell(f);
	rewind(f);
	b.data = malloc(b.size + 1);
	assert_int_equal(fread(b.data, 1, b.size, f), b.size);
	fclose(f);
	return b;
}

static void save(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(path_of(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static struct kx_fdr_writer *start(const char *name, int version, bool compress, int *fd)
{
	const struct kx_fdr_options o = { .version = version, .tsc_hz = HZ, .start_tsc = T0,
					  .wall_sec = 5, .wall_usec = 7, .compress = compress };
	struct kx_fdr_writer *w;
	struct kx_err err = { 0 };

	*fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(*fd >= 0);
	if (kx_fdr_writer_new(*fd, &o, &w, &err))
		fail_msg("%s", err.text);
	return w;
}

static void end(struct kx_fdr_writer *w, int fd, uint64_t hz)
{
	struct kx_err err = { 0 };

	if (kx_fdr_finish(w, hz, &err))
		fail_msg("%s", err.text);
	assert_int_equal(kx_fdr_writer_bytes(w), lseek(fd, 0, SEEK_END));
	kx_fdr_writer_free(w);
	close(fd);
}

/* Calls of all threads, with arguments and notes; some of them flushed in between. */
static int write_calls(struct kx_fdr_writer *w, unsigned calls)
{
	struct kx_fdr_thread *t[THREADS];
	uint64_t tsc = T0, random = 88172645463325252u;
	int r = 0;

	for (int i = 0; i < THREADS; i++)
		t[i] = kx_fdr_writer_thread(w, 1, 1 + i, "worker", "program");
	for (unsigned n = 0; n < calls && !r; n++) {
		struct kx_fdr_thread *one = t[(random >> 20) % THREADS];

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		tsc += random % 1000;
		r = kx_fdr_entry(one, tsc, 0, 1 + (uint32_t)(random >> 40) % 50, &tsc, n % 97 == 0);
		if (!r)
			r = kx_fdr_exit(one, tsc + 5, 0, 1 + (uint32_t)(random >> 40) % 50, false);
		if (!r && n % 1000 == 0)
			r = kx_fdr_custom(one, tsc + 5, "hello", 5);
		if (!r && n % 10000 == 9999)
			r = kx_fdr_flush(w, NULL);
	}
	return r;
}

static void write_trace(const char *name, int version, bool compress, unsigned calls, uint64_t hz)
{
	int fd;
	struct kx_fdr_writer *w = start(name, version, compress, &fd);

	assert_int_equal(write_calls(w, calls), 0);
	end(w, fd, hz);
}

/* What is in the frames, by libzstd alone. */
static struct bytes decompress(struct bytes from)
{
	ZSTD_inBuffer in = { from.data, from.size, 0 };
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	struct bytes out = { malloc(64 << 20), 0 };

	while (in.pos < in.size) {
		ZSTD_outBuffer o = { out.data, 64 << 20, out.size };

		assert_false(ZSTD_isError(ZSTD_decompressStream(zstd, &o, &in)));
		out.size = o.pos;
	}
	ZSTD_freeDCtx(zstd);
	return out;
}

static void same(struct bytes a, struct bytes b)
{
	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.data, b.data, a.size);
}

/* The number of records, all of which are also in @whole, in the same order. */
static uint64_t compare(struct kx_fdr_file *f, struct kx_fdr_file *whole)
{
	struct kx_fdr_cursor *a, *b;
	struct kx_fdr_record x, y;
	uint64_t n = 0;

	assert_int_equal(kx_fdr_file_cursor(f, &a), 0);
	assert_int_equal(kx_fdr_file_cursor(whole, &b), 0);
	while (kx_fdr_next(a, &x, NULL) > 0) {
		assert_int_equal(kx_fdr_next(b, &y, NULL), 1);
		assert_int_equal(x.kind, y.kind);
		assert_int_equal(x.tid, y.tid);
		assert_int_equal(x.tsc, y.tsc);
		assert_int_equal(x.func, y.func);
		assert_int_equal(x.offset, y.offset);
		n++;
	}
	kx_fdr_cursor_free(a);
	kx_fdr_cursor_free(b);
	return n;
}

static struct kx_fdr_file *open_trace(const char *name)
{
	struct kx_fdr_file *f;
	struct kx_err err = { 0 };

	if (kx_fdr_open(path_of(name), &f, &err))
		fail_msg("%s", err.text);
	return f;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (int version = 1; version <= 5; version++)
		for (unsigned calls = 0; calls <= CALLS; calls += CALLS) {
			struct bytes plain, packed, out;
			struct kx_fdr_file *a, *b;
			uint64_t n;

			write_trace("plain", version, false, calls, HZ + 123);
			write_trace("packed.zst", version, true, calls, HZ + 123);
			plain = load("plain");
			packed = load("packed.zst");
			out = decompress(packed);
			same(out, plain);
			if (calls)
				assert_true(packed.size < plain.size / 2);
			a = open_trace("packed.zst");
			b = open_trace("plain");
			n = compare(a, b);
			assert_int_equal(compare(b, a), n);
			assert_true(n >= 2 * calls);
			assert_int_equal(kx_fdr_get_info(a)->tsc_hz, HZ + 123);
			assert_int_equal(kx_fdr_get_info(a)->file_size, plain.size);
			assert_false(kx_fdr_get_info(a)->truncated);
			kx_fdr_close(a);
			kx_fdr_close(b);
			free(plain.data);
			free(packed.data);
			free(out.data);
		}
}

/* The recorder's first file can be read, and what comes later replaces it. */
static void test_placeholder(void **state)
{
	struct bytes with, without;
	struct kx_fdr_writer *w;
	struct kx_fdr_file *f;
	int fd;

	(void)state;
	write_trace("without.zst", 5, true, 100, 0);
	w = start("with.zst", 5, true, &fd);
	assert_int_equal(kx_fdr_write_placeholder(w, NULL), 0);
	f = open_trace("with.zst");
	assert_int_equal(kx_fdr_nthreads(f), 1);
	kx_fdr_close(f);
	assert_int_equal(write_calls(w, 100), 0);
	end(w, fd, 0);
	with = load("with.zst");
	without = load("without.zst");
	same(with, without);
	free(with.data);
	free(without.data);
}

struct frame {
	size_t at, size, plain;
};

static size_t list_frames(struct bytes packed, struct frame *frames, size_t room)
{
	size_t n = 0, plain = 0;

	for (size_t at = 0; at < packed.size; n++) {
		size_t size = ZSTD_findFrameCompressedSize(packed.data + at, packed.size - at);

		assert_false(ZSTD_isError(size));
		assert_true(n < room);
		frames[n] = (struct frame){ at, size, plain };
		plain += (size_t)ZSTD_getFrameContentSize(packed.data + at, size);
		at += size;
	}
	return n;
}

static void test_truncated(void **state)
{
	struct frame frames[64];
	struct bytes packed;
	struct kx_fdr_file *whole;
	size_t n;

	(void)state;
	write_trace("plain", 5, false, CALLS, 0);
	write_trace("packed.zst", 5, true, CALLS, 0);
	packed = load("packed.zst");
	whole = open_trace("plain");
	n = list_frames(packed, frames, 64);
	assert_true(n > 3);
	for (size_t i = 1; i < n; i++) {
		const size_t cuts[] = { 0, 1, 4, 9, frames[i].size / 2, frames[i].size - 1 };

		for (size_t k = 0; k < sizeof(cuts) / sizeof(cuts[0]); k++) {
			struct kx_fdr_file *f;
			const struct kx_fdr_info *info;

			save("cut.zst", packed.data, frames[i].at + cuts[k]);
			f = open_trace("cut.zst");
			info = kx_fdr_get_info(f);
			/* every flush ends a frame after a whole buffer; a bare header is truncated, too */
			assert_int_equal(info->truncated, cuts[k] || i == 1);
			assert_true(info->file_size >= frames[i].plain);
			assert_true(info->file_size == frames[i].plain || cuts[k] > 9);
			assert_true(i == 1 || compare(f, whole) > 0);
			kx_fdr_close(f);
		}
	}
	kx_fdr_close(whole);
	free(packed.data);
}

static void test_corrupt(void **state)
{
	struct frame frames[64];
	struct bytes packed;
	struct kx_fdr_file *whole;
	size_t n;

	(void)state;
	write_trace("plain", 5, false, CALLS, 0);
	write_trace("packed.zst", 5, true, CALLS, 0);
	packed = load("packed.zst");
	whole = open_trace("plain");
	n = list_frames(packed, frames, 64);
	for (size_t i = 1; i < n; i++) {
		/* magic number, in the data, checksum */
		const size_t places[] = { 0, frames[i].size / 2, frames[i].size - 1 };

		for (size_t k = 0; k < 3; k++) {
			uint8_t *byte = packed.data + frames[i].at + places[k];
			struct kx_err err = { 0 };
			struct kx_fdr_file *f;

			*byte ^= 0x10;
			save("bad.zst", packed.data, packed.size);
			*byte ^= 0x10;
			assert_int_equal(kx_fdr_open(path_of("bad.zst"), &f, &err), -EBADMSG);
			assert_non_null(strstr(err.text, "is damaged"));
			assert_int_equal(kx_fdr_open_damaged(path_of("bad.zst"), &f, &err), 0);
			assert_true(kx_fdr_get_info(f)->damaged);
			assert_int_equal(kx_fdr_get_info(f)->file_size, frames[i].plain);
			assert_true(i == 1 || compare(f, whole) > 0);
			kx_fdr_close(f);
		}
	}
	/* nothing is left of a trace whose first frame is damaged */
	packed.data[5] ^= 1;
	save("bad.zst", packed.data, packed.size);
	packed.data[5] ^= 1;
	{
		struct kx_fdr_file *f;
		struct kx_err err = { 0 };

		assert_int_equal(kx_fdr_open_damaged(path_of("bad.zst"), &f, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "is damaged"));
	}
	kx_fdr_close(whole);
	free(packed.data);
}

/* What other programs write: frames without sizes, skippable ones, one frame for all. */
static void test_foreign(void **state)
{
	static const uint8_t skippable[] = { 0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3 };
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	struct kx_fdr_file *whole, *f;
	struct bytes plain, out;

	(void)state;
	write_trace("plain", 5, false, CALLS, 0);
	plain = load("plain");
	whole = open_trace("plain");
	out.data = malloc(plain.size + 4096);
	for (int pieces = 1; pieces <= 3; pieces++)
		for (int sized = 0; sized < 2; sized++) {
			memcpy(out.data, skippable, sizeof(skippable));
			out.size = sizeof(skippable);
			for (int i = 0; i < pieces; i++) {
				size_t from = plain.size * (size_t)i / (size_t)pieces;
				size_t to = plain.size * (size_t)(i + 1) / (size_t)pieces, n;

				ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, sized);
				n = ZSTD_compress2(zstd, out.data + out.size,
						   plain.size + 4096 - out.size, plain.data + from,
						   to - from);
				assert_false(ZSTD_isError(n));
				out.size += n;
			}
			save("foreign", out.data, out.size);
			f = open_trace("foreign");
			assert_int_equal(kx_fdr_get_info(f)->file_size, plain.size);
			assert_int_equal(compare(f, whole), compare(whole, f));
			kx_fdr_close(f);
		}
	kx_fdr_close(whole);
	ZSTD_freeCCtx(zstd);
	free(out.data);
	free(plain.data);
}

/* A full disk: the file ends with a whole frame, and the writer counts what is in it. */
static void test_full(void **state)
{
	const struct rlimit small = { 500000, RLIM_INFINITY };
	struct kx_fdr_writer *w;
	struct kx_fdr_cursor *c;
	struct kx_fdr_record rec;
	struct kx_fdr_file *f;
	struct rlimit old;
	uint64_t hits = 0, bytes;
	int fd;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	w = start("full.zst", 5, true, &fd);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(write_calls(w, CALLS * 10), -EFBIG);
	assert_int_equal(kx_fdr_finish(w, HZ, NULL), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	bytes = kx_fdr_writer_bytes(w);
	assert_int_equal(lseek(fd, 0, SEEK_END), bytes);
	assert_true(bytes > 100000 && bytes <= 500000);
	f = open_trace("full.zst");
	assert_false(kx_fdr_get_info(f)->truncated);
	assert_int_equal(kx_fdr_file_cursor(f, &c), 0);
	while (kx_fdr_next(c, &rec, NULL) > 0)
		hits += rec.kind <= KX_RECORD_TAIL_EXIT;
	assert_int_equal(kx_fdr_writer_hits(w), hits);
	assert_true(hits > 1000);
	kx_fdr_cursor_free(c);
	kx_fdr_close(f);
	kx_fdr_writer_free(w);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_placeholder),
		cmocka_unit_test(test_truncated),  cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_foreign),	   cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
