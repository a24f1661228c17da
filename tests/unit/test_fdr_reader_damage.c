// SPDX-License-Identifier: BSD-2-Clause
/* Truncated and damaged traces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>

#include "trace/fdr_reader.h"
#include "fdr_bytes.h"
#include "fdr_reader_rig.h"
#include "llvm_xray.h"

static void headers_that_are_none(void **state)
{
	struct bytes b = { 0 };
	struct kx_fdr_file *f = NULL;
	struct kx_err err = { 0 };

	(void)state;
	golden(&b, 5);
	b.data[0] = 6;
	rejected(&b, "is an FDR trace of unknown version 6");
	b.data[0] = 0;
	rejected(&b, "is an FDR trace of unknown version 0");
	b.data[0] = 4;
	b.data[2] = 0;
	rejected(&b, "is a basic mode trace of unknown version 4");
	b.data[2] = 2;
	rejected(&b, "is not an XRay trace");
	memcpy(b.data, "\0\5\0\1", 4);
	rejected(&b, "is a big-endian trace (version 5, type 1)");
	memcpy(b.data, "\0\3\0\0", 4);
	rejected(&b, "is a big-endian trace (version 3, type 0)");
	memcpy(b.data, "\177ELF", 4);
	rejected(&b, "is not an XRay trace");
	b.size = 31;
	rejected(&b, "it has 31 bytes");
	b.size = 0;
	rejected(&b, "is empty");
	assert_int_equal(kx_fdr_open("/nonexistent/x", &f, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x: cannot be opened: No such file"));
	assert_int_equal(kx_fdr_open(folder, &f, &err), -EISDIR);
	release(&b);
}

/* Truncated at every byte: complete records are read, and the message gives the offset of the end. */
static void cut_everywhere(void **state)
{
	(void)state;
	for (unsigned version = 0; version <= 5; version++) {
		struct bytes b = { 0 };
		struct kx_fdr_record *all = NULL;
		struct kx_fdr_file *f;
		size_t n, size;

		if (version) {
			golden(&b, version);
		} else {
			header(&b, 3, 0, 1000, 0);
			naive(&b, 3, 2, 7, 100, 5, 4);
			naive_argument(&b, 7, 5, 4, 42);
			naive(&b, 1, 2, 7, 101, 5, 4);
		}
		size = b.size;
		f = open_ok(&b);
		n = read_file(f, &all);
		kx_fdr_close(f);
		for (b.size = 1; b.size < size; b.size++) {
			const struct kx_fdr_info *info;
			struct kx_fdr_record *some = NULL;
			struct kx_err err = { 0 };
			size_t got;

			if (b.size < 32) {
				save(path, b.data, b.size);
				assert_int_equal(kx_fdr_open(path, &f, &err), -EBADMSG);
				continue;
			}
			f = open_ok(&b);
			info = kx_fdr_get_info(f);
			got = read_file(f, &some);
			assert_true(got < n);
			for (size_t i = 0; i < got; i++) {
				assert_int_equal(some[i].offset, all[i].offset);
				assert_int_equal(some[i].kind, all[i].kind);
				assert_int_equal(some[i].tsc, all[i].tsc);
			}
			/* all records that end before the cut are read, if the preamble is complete */
			if (got)
				assert_true(all[got].offset + (version ? 16 : 32) > b.size ||
					    all[got].kind == KX_RECORD_CUSTOM ||
					    all[got].kind == KX_RECORD_TYPED);
			if (version >= 3)
				assert_true(info->truncated);
			if (info->truncated) {
				assert_true(info->truncated_at <= b.size);
				assert_true(!got || info->truncated_at > some[got - 1].offset);
			} else {
				assert_int_equal(b.size % 2, 0); /* a cut between two records */
			}
			free(some);
			kx_fdr_close(f);
		}
		free(all);
		release(&b);
	}
}

static void damaged_files_up_to_the_damage(void **state)
{
	struct bytes b = { 0 };
	struct kx_fdr_file *f = NULL;
	struct kx_fdr_cursor *c = NULL;
	struct kx_fdr_record rec, *r = NULL;
	struct kx_err err = { 0 };

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	preamble(&b, 5, 1, 2, 0, 10);
	function(&b, ENTRY, 1, 1);
	function(&b, EXIT, 1, 1);
	function(&b, 6, 1, 1);
	end_block(&b, 5);
	save(path, b.data, b.size);
	assert_int_equal(kx_fdr_open_damaged(path, &f, &err), 0);
	assert_true(kx_fdr_get_info(f)->damaged);
	assert_int_equal(read_thread(f, 0, &r), 4);
	free(r);
	assert_int_equal(kx_fdr_file_cursor(f, &c), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(kx_fdr_next(c, &rec, &err), 1);
	assert_int_equal(rec.func, 1);
	assert_int_equal(kx_fdr_next(c, &rec, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "offset 128: a function record has the unknown action 6"));
	assert_int_equal(kx_fdr_next(c, &rec, &err), -EBADMSG);
	kx_fdr_cursor_free(c);
	kx_fdr_close(f);
	release(&b);
}

/* With any bytes, reading ends; the sanitizers find invalid accesses. */
static void random_damage(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15u;
	unsigned opened = 0;

	(void)state;
	for (unsigned round = 0; round < 6000; round++) {
		struct bytes b = { 0 };
		struct kx_fdr_file *f = NULL;
		struct kx_err err = { 0 };
		struct kx_fdr_record *r = NULL;

		golden(&b, round % 5 + 1);
		if (round % 5 == 0)
			put_byte(&b, 0, 64);
		for (unsigned i = 0; i < round % 7 + 1; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			b.data[(seed >> 33) % b.size] = (uint8_t)(seed >> 20);
		}
		if (round % 3 == 0)
			b.size -= (seed >> 40) % 40;
		save(path, b.data, b.size);
		if (!kx_fdr_open(path, &f, &err)) {
			size_t n = read_file(f, &r), parts = 0;

			check_fast_path(f, r, n);
			free(r);
			for (size_t t = 0; t < kx_fdr_nthreads(f); t++) {
				parts += read_thread(f, t, &r);
				free(r);
			}
			assert_int_equal(parts, n);
			kx_fdr_close(f);
			opened++;
		} else {
			assert_int_equal(err.code, -EBADMSG);
			if (!kx_fdr_open_damaged(path, &f, &err)) {
				struct kx_fdr_cursor *c = NULL;
				struct kx_fdr_record rec;
				int e;

				assert_int_equal(kx_fdr_file_cursor(f, &c), 0);
				while ((e = kx_fdr_next(c, &rec, &err)) > 0)
					;
				assert_int_equal(e, -EBADMSG);
				kx_fdr_cursor_free(c);
				kx_fdr_close(f);
			}
		}
		release(&b);
	}
	assert_in_range(opened, 1000, 5900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_that_are_none),
		cmocka_unit_test(cut_everywhere),
		cmocka_unit_test(damaged_files_up_to_the_damage),
		cmocka_unit_test(random_damage),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
