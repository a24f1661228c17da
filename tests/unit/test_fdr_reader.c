// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "trace/fdr_reader.h"
#include "fdr_bytes.h"
#include "fdr_reader_rig.h"
#include "llvm_xray.h"

static void basic_mode(void **state)
{
	(void)state;
	for (unsigned version = 1; version <= 3; version++) {
		struct bytes b = { 0 };
		struct kx_fdr_record *r = NULL;
		struct kx_fdr_file *f;

		header(&b, version, 0, 1000000000, 0);
		naive(&b, 3, 2, 7, 100, 5, 4);
		naive_argument(&b, 7, 5, 4, 42);
		naive_argument(&b, 7, 5, 4, 43);
		naive(&b, 0, 255, 8, 110, 5, 4);
		naive(&b, 0, 1, 9, 90, 6, 4);
		naive(&b, 2, 1, 8, 120, 5, 4);
		naive(&b, 1, 1, 7, 130, 5, 4);
		f = open_ok(&b);
		assert_int_equal(kx_fdr_nthreads(f), 2);
		assert_int_equal(read_file(f, &r), 5);
		assert_int_equal(r[0].kind, KX_RECORD_ENTRY);
		assert_int_equal(r[0].nargs, 2);
		assert_int_equal(r[0].args[1], 43);
		assert_int_equal(r[0].offset, 32);
		assert_int_equal(r[1].cpu, 255);
		assert_int_equal(r[1].offset, 128);
		assert_int_equal(r[2].tid, 6);
		assert_int_equal(r[2].thread, 1);
		assert_int_equal(r[2].tsc, 90);
		assert_int_equal(r[3].kind, KX_RECORD_TAIL_EXIT);
		assert_int_equal(r[4].pid, version == 3 ? 4 : 0);
		free(r);
		assert_int_equal(read_thread(f, 0, &r), 4);
		assert_int_equal(r[3].tsc, 130);
		free(r);
		assert_int_equal(read_thread(f, 1, &r), 1);
		free(r);
		for (size_t v = 0; version == 3 && v < N_LLVM_XRAYS; v++)
			if (access(llvm_xrays[v], X_OK) == 0)
				check_llvm(f, llvm_xrays[v]);
		kx_fdr_close(f);
		/* an argument of another function; a record kind; a record type */
		naive_argument(&b, 8, 5, 4, 43);
		rejected(&b, "offset 256: an argument record follows no record");
		b.data[256] = 2;
		rejected(&b, "offset 256: unknown basic mode record type 2");
		b.data[256] = 0;
		b.data[259] = 4;
		rejected(&b, "offset 256: unknown basic mode record type 0, 4");
		release(&b);
	}
}

static void threads_interleaved(void **state)
{
	static const unsigned ids[4] = { 0, 1, 0, 2 };
	struct bytes b = { 0 };
	struct kx_fdr_file *f;
	struct kx_fdr_record *r = NULL;
	int32_t pid, tid;

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	for (unsigned i = 0; i < 4; i++) {
		/* thread 2 has the tid of thread 0 in another process */
		preamble(&b, 5, ids[i] == 2 ? 2 : 1, ids[i] == 1 ? -3 : 50, 0, 100 * i + 1);
		function(&b, ENTRY, i + 1, 5);
		function(&b, EXIT, i + 1, 5);
		end_block(&b, 5);
	}
	assert_int_equal(accepted(&b), 16);
	f = open_ok(&b);
	assert_int_equal(kx_fdr_nthreads(f), 3);
	kx_fdr_thread_ids(f, 1, &pid, &tid);
	assert_int_equal(pid, 1);
	assert_int_equal(tid, -3);
	kx_fdr_thread_ids(f, 2, &pid, &tid);
	assert_int_equal(pid, 2);
	assert_int_equal(tid, 50);
	assert_int_equal(read_thread(f, 0, &r), 8);
	assert_int_equal(r[2].func, 1);
	assert_int_equal(r[2].tsc, 6);
	assert_int_equal(r[6].func, 3);
	assert_int_equal(r[7].tsc, 211);
	free(r);
	assert_int_equal(read_thread(f, 2, &r), 4);
	assert_int_equal(r[2].func, 4);
	free(r);
	assert_int_equal(read_file(f, &r), 16);
	assert_int_equal(r[5].thread, 1);
	assert_int_equal(r[15].thread, 2);
	assert_int_equal(kx_fdr_get_info(f)->start_tsc, 1);
	free(r);
	kx_fdr_close(f);
	release(&b);
}

/* Version 1 after EndOfBuffer. */
static void fill_of_version_1(void **state)
{
	struct bytes b = { 0 };
	size_t start;

	(void)state;
	/* zeros that decode, two buffers of 256 bytes */
	header(&b, 1, 1, 1000, 256);
	for (int i = 0; i < 2; i++) {
		start = b.size;
		preamble(&b, 1, 0, 5, 0, 10);
		function(&b, ENTRY, 1, 1);
		end_of_buffer(&b);
		put_byte(&b, 0, 256 - (b.size - start));
	}
	assert_int_equal(accepted(&b), 8);
	/* stale records as fill */
	for (size_t i = 0; i < 4; i++)
		b.data[32 + 256 - 16 + i] = (uint8_t)(0x13 * !i);
	assert_int_equal(accepted(&b), 8);
	/* another value in buffer_size does not matter */
	b.data[16] = 0;
	b.data[17] = 2;
	assert_int_equal(accepted(&b), 8);
	b.data[16] = 1;
	b.data[17] = 0;
	assert_int_equal(accepted(&b), 8);
	release(&b);
}

/* Readable only by the document's rules. */
static void fill_that_does_not_decode(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 1, 1, 1000, 200);
	for (int i = 0; i < 3; i++) {
		struct kx_fdr_file *f;
		struct kx_fdr_record *r = NULL;
		const size_t start = b.size;

		preamble(&b, 1, 0, 5, 0, 10);
		function(&b, ENTRY, 1, 1);
		end_of_buffer(&b);
		put_byte(&b, i == 1 ? 0 : 0xff, 200 - (b.size - start));
		if (i == 1) /* a fill of 127 zero bytes: 15 records and 7 bytes */
			b.data[b.size - 127 - 9] = 0;
		f = open_ok(&b);
		assert_int_equal(read_file(f, &r), 4 * (i + 1));
		assert_false(kx_fdr_get_info(f)->truncated);
		free(r);
		kx_fdr_close(f);
	}
	release(&b);

	/* without a buffer boundary it is an error */
	header(&b, 1, 1, 1000, 0);
	preamble(&b, 1, 0, 5, 0, 10);
	end_of_buffer(&b);
	put_byte(&b, 0xff, 16);
	rejected(&b, "the padding after the EndOfBuffer at offset 80 cannot be decoded");
	release(&b);
}

/* And empty buffers. */
static void version_1_without_end_of_buffer(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 1, 1, 1000, 0);
	preamble(&b, 1, 0, 5, 0, 10);
	function(&b, ENTRY, 1, 1);
	preamble(&b, 1, 0, 5, 0, 20);
	end_of_buffer(&b);
	preamble(&b, 1, 0, 5, 0, 20);
	assert_int_equal(accepted(&b), 8);
	release(&b);
}

static void long_buffers(void **state)
{
	const uint32_t calls = 400000;
	struct bytes b = { 0 };
	struct kx_fdr_file *f;
	struct kx_fdr_record *r = NULL;
	size_t n;

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	preamble(&b, 5, 1, 2, 0, 10);
	for (uint32_t i = 0; i < calls; i++) {
		function(&b, ENTRY_ARGS, i, 1);
		if (i % 3 == 0)
			call_argument(&b, i);
		function(&b, EXIT, i, 1);
	}
	end_block(&b, 5);
	f = open_ok(&b);
	n = read_file(f, &r);
	assert_int_equal(n, 2 + 2 * calls);
	check_fast_path(f, r, n);
	for (uint32_t i = 0; i < calls; i++) {
		assert_int_equal(r[2 + 2 * i].func, i);
		assert_int_equal(r[2 + 2 * i].nargs, i % 3 == 0);
		assert_int_equal(r[2 + 2 * i].tsc, 10 + 2 * i + 1);
	}
	free(r);
	assert_int_equal(read_thread(f, 0, &r), n);
	free(r);
	kx_fdr_close(f);
	release(&b);
}

static void ten_thousand_threads(void **state)
{
	struct bytes b = { 0 };
	struct kx_fdr_file *f;
	struct kx_fdr_record *r = NULL;

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	for (int pass = 0; pass < 2; pass++) {
		for (int32_t t = 0; t < 10000; t++) {
			preamble(&b, 5, 1, t + 1, 0, 10);
			function(&b, pass ? EXIT : ENTRY, (uint32_t)t, 1);
			end_block(&b, 5);
		}
	}
	f = open_ok(&b);
	assert_int_equal(kx_fdr_nthreads(f), 10000);
	for (uint32_t t = 0; t < 10000; t += 999) {
		assert_int_equal(read_thread(f, t, &r), 6);
		assert_int_equal(r[2].func, t);
		assert_int_equal(r[5].func, t);
		assert_int_equal(r[5].tid, t + 1);
		free(r);
	}
	kx_fdr_close(f);
	release(&b);
}

static void more_arguments_than_kept(void **state)
{
	struct bytes b = { 0 };
	struct kx_fdr_file *f;
	struct kx_fdr_record *r = NULL;

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	preamble(&b, 5, 1, 2, 0, 10);
	function(&b, ENTRY_ARGS, 1, 1);
	for (uint64_t i = 0; i < 300; i++)
		call_argument(&b, i);
	function(&b, EXIT, 1, 1);
	end_block(&b, 5);
	f = open_ok(&b);
	assert_int_equal(read_file(f, &r), 4);
	assert_int_equal(r[2].nargs, KX_FDR_READ_ARGS);
	assert_int_equal(r[2].args[7], 7);
	assert_int_equal(r[3].kind, KX_RECORD_EXIT);
	free(r);
	kx_fdr_close(f);
	release(&b);
}

/* A pipe cannot be mapped: its bytes are spooled first. */
static void from_a_pipe(void **state)
{
	struct bytes b = { 0 };
	struct kx_fdr_file *f = NULL;
	struct kx_fdr_record *r = NULL;
	struct kx_err err = { 0 };
	int fds[2], saved = dup(STDIN_FILENO);

	(void)state;
	golden(&b, 5);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], b.data, b.size), b.size);
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	assert_int_equal(kx_fdr_open("-", &f, &err), 0);
	dup2(saved, STDIN_FILENO);
	assert_int_equal(read_file(f, &r), 12);
	free(r);
	kx_fdr_close(f);
	/* standard input that is a file */
	save(path, b.data, b.size - 3);
	close(fds[0]);
	fds[0] = open(path, O_RDONLY);
	dup2(fds[0], STDIN_FILENO);
	assert_int_equal(kx_fdr_open("-", &f, &err), 0);
	dup2(saved, STDIN_FILENO);
	assert_true(kx_fdr_get_info(f)->truncated);
	kx_fdr_close(f);
	close(fds[0]);
	close(saved);
	release(&b);
}

static void header_alone_is_an_empty_trace(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 2; type++) {
		struct bytes b = { 0 };
		struct kx_fdr_record *r = NULL;
		struct kx_fdr_file *f;

		header(&b, 3, type, 1000, 4096);
		f = open_ok(&b);
		assert_true(kx_fdr_get_info(f)->truncated);
		assert_int_equal(kx_fdr_nthreads(f), 0);
		assert_int_equal(read_file(f, &r), 0);
		free(r);
		kx_fdr_close(f);
		release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(basic_mode),
		cmocka_unit_test(threads_interleaved),
		cmocka_unit_test(fill_of_version_1),
		cmocka_unit_test(fill_that_does_not_decode),
		cmocka_unit_test(version_1_without_end_of_buffer),
		cmocka_unit_test(long_buffers),
		cmocka_unit_test(ten_thousand_threads),
		cmocka_unit_test(more_arguments_than_kept),
		cmocka_unit_test(from_a_pipe),
		cmocka_unit_test(header_alone_is_an_empty_trace),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
