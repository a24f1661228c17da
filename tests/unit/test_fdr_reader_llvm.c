// SPDX-License-Identifier: BSD-2-Clause
/* What llvm-xray tolerates in a trace, and what it rejects; versions and padding. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "trace/fdr_reader.h"
#include "fdr_bytes.h"
#include "fdr_reader_rig.h"
#include "llvm_xray.h"

/* The records of golden(), in order. */
static void check_golden(const struct kx_fdr_record *r, size_t n, unsigned version)
{
	const uint64_t base = version < 5 ? 1000 : 995;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(r[i].tid, 70000);
		assert_int_equal(r[i].pid, version >= 3 ? 11 : version == 2 ? 70000 : 0);
		assert_int_equal(r[i].thread, 0);
	}
	assert_int_equal(r[0].kind, KX_RECORD_BUFFER);
	assert_int_equal(r[0].offset, version >= 3 ? 48 : 32);
	assert_int_equal(r[0].wall_sec, 7);
	assert_int_equal(r[0].wall_usec, 8);
	assert_int_equal(r[1].kind, KX_RECORD_CPU);
	assert_int_equal(r[1].cpu, 65535);
	assert_int_equal(r[1].tsc, 1000);
	assert_int_equal(r[1].offset, version >= 3 ? 96 : 64);
	assert_int_equal(r[2].kind, KX_RECORD_CUSTOM);
	assert_int_equal(r[2].tsc, 995);
	assert_int_equal(r[2].cpu, version == 4 ? 77 : 65535);
	assert_int_equal(r[2].size, 8);
	assert_int_equal(r[3].kind, KX_RECORD_ENTRY);
	assert_int_equal(r[3].func, 1);
	assert_int_equal(r[3].tsc, base + 10);
	assert_int_equal(r[4].kind, KX_RECORD_ENTRY);
	assert_int_equal(r[4].func, (1u << 28) - 1);
	assert_int_equal(r[4].nargs, 2);
	assert_true(r[4].args[0] == UINT64_MAX);
	assert_int_equal(r[4].args[1], 2);
	assert_int_equal(r[5].kind, KX_RECORD_TYPED);
	assert_int_equal(r[5].event_type, 9);
	assert_int_equal(r[5].tsc, base + 14);
	assert_int_equal(r[6].kind, KX_RECORD_EXIT);
	assert_int_equal(r[6].tsc, base + 15);
	assert_int_equal(r[7].kind, KX_RECORD_CPU);
	assert_int_equal(r[8].tsc, 5000);
	assert_int_equal(r[8].cpu, 3);
	assert_int_equal(r[9].kind, KX_RECORD_WRAP);
	assert_int_equal(r[9].tsc, 1ull << 40);
	assert_int_equal(r[10].kind, KX_RECORD_TAIL_EXIT);
	assert_int_equal(r[10].tsc, (1ull << 40) + 4);
	assert_int_equal(r[11].tsc, (1ull << 40) + 4 + UINT32_MAX);
}

static void check_info(const struct kx_fdr_info *info, unsigned version, size_t size)
{
	assert_int_equal(info->version, version);
	assert_int_equal(info->type, KX_FDR_TYPE_FDR);
	assert_int_equal(info->tsc_hz, 2600000000);
	assert_int_equal(info->buffer_size, 4096);
	assert_int_equal(info->file_size, size);
	assert_int_equal(info->start_tsc, 1000);
	assert_true(info->constant_tsc && info->nonstop_tsc);
}

static void every_record_of_every_version(void **state)
{
	(void)state;
	for (unsigned version = 1; version <= 5; version++) {
		struct bytes b = { 0 };
		struct kx_fdr_record *r = NULL;
		struct kx_fdr_file *f;
		size_t n;

		golden(&b, version);
		n = check_accepted(&b, &r);
		assert_int_equal(n, 12 + (version == 1));
		check_golden(r, n, version);
		free(r);
		f = open_ok(&b);
		n = read_file(f, &r);
		assert_memory_equal(r[2].data, "hello\n!!", 8);
		assert_memory_equal(r[5].data, "12345678", 8);
		check_info(kx_fdr_get_info(f), version, b.size);
		if (version == 1)
			assert_int_equal(r[12].kind, KX_RECORD_END);
		free(r);
		kx_fdr_close(f);
		release(&b);
	}
}

/* Before the first buffer and between two. */
static void junk_is_tolerated(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	put(&b, "junk", 4);
	preamble(&b, 5, 1, 2, 0, 10);
	function(&b, ENTRY, 1, 1);
	end_block(&b, 5);
	put_byte(&b, 0xff, 1000);
	preamble(&b, 5, 1, 2, 0, 20);
	function(&b, EXIT, 1, 1);
	end_block(&b, 5);
	assert_int_equal(accepted(&b), 6);
	/* an empty extents at the end */
	buffer_extents(&b, 0);
	assert_int_equal(accepted(&b), 6);
	/* extents of more than 32 bits count modulo 2^32 */
	b.data[36 + 5] = 1;
	b.data[36 + 8] = 0x80;
	assert_int_equal(accepted(&b), 6);
	release(&b);
}

/* Two buffers in one extents; the same buffer goes on in the next extents; extents that promise too much, in a row and inside a preamble. */
static void odd_extents_are_tolerated(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 3, 1, 1000, 4096);
	begin_extents(&b);
	new_buffer(&b, 1);
	wall_time(&b, 1, 1);
	new_cpu(&b, 1, 10);
	function(&b, ENTRY, 1, 1);
	new_buffer(&b, 2);
	wall_time(&b, 1, 2);
	pid_record(&b, 9);
	new_cpu(&b, 2, 10);
	function(&b, ENTRY, 2, 1);
	end_extents(&b);
	put_byte(&b, 0xee, 3);
	begin_extents(&b);
	function(&b, EXIT, 2, 4);
	end_extents(&b);
	buffer_extents(&b, 10000);
	function(&b, ENTRY, 3, 5);
	buffer_extents(&b, 64);
	buffer_extents(&b, 64);
	new_buffer(&b, 1);
	wall_time(&b, 1, 3);
	begin_extents(&b);
	new_cpu(&b, 1, 50);
	function(&b, EXIT, 1, 1);
	end_extents(&b);
	assert_int_equal(accepted(&b), 11);
	release(&b);
}

static void version_2_ignores_extents(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 2, 1, 1000, 4096);
	buffer_extents(&b, 3);
	preamble(&b, 2, 0, 5, 0, 10);
	function(&b, ENTRY, 1, 1);
	put_byte(&b, 0, 24);
	assert_int_equal(accepted(&b), 6);
	release(&b);
}

static void odd_arguments_are_tolerated(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	/* after the extents that cut its buffer in two */
	header(&b, 5, 1, 1000, 4096);
	preamble(&b, 5, 1, 5, 0, 10);
	function(&b, ENTRY, 1, 1);
	function(&b, ENTRY, 2, 1);
	end_extents(&b);
	begin_extents(&b);
	call_argument(&b, 6);
	end_extents(&b);
	begin_extents(&b);
	call_argument(&b, 7);
	function(&b, EXIT, 2, 1);
	end_block(&b, 5);
	assert_int_equal(accepted(&b), 5);
	release(&b);

	/* CallArgument after any function record makes an entry of it */
	header(&b, 4, 1, 1000, 4096);
	preamble(&b, 4, 1, 5, 0, 10);
	function(&b, EXIT, 1, 1);
	call_argument(&b, 6);
	function(&b, ENTRY_ARGS, 1, 1);
	end_block(&b, 4);
	assert_int_equal(accepted(&b), 4);
	release(&b);
}

static void wrong_records_are_rejected(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	preamble(&b, 5, 1, 2, 0, 10);
	function(&b, ENTRY, 1, 1);
	function(&b, EXIT, 1, 1);
	end_block(&b, 5);
	b.data[112] = 0x0a; /* action 5 */
	rejected(&b, "offset 112: a function record has the unknown action 5");
	b.data[112] = 0x15; /* kind 10 */
	rejected(&b, "offset 112: unknown metadata record kind 10");
	b.data[112] = 0xff;
	rejected(&b, "offset 112: unknown metadata record kind 127");
	b.data[112] = 0x03;
	rejected(&b, "offset 112: an EndOfBuffer record, which only version 1 has");
	b.data[112] = 0x0d;
	rejected(&b, "offset 112: a CallArgument record cannot follow a NewCPUId");
	b.data[112] = 0x0b;
	memset(b.data + 113, 0, 4);
	rejected(&b, "offset 112: a CustomEvent record has the impossible size 0");
	memset(b.data + 113, 0xff, 4);
	rejected(&b, "offset 112: a CustomEvent record has the impossible size -1");
	b.data[112] = 0x11;
	rejected(&b, "offset 112: a TypedEvent record has the impossible size -1");
	b.data[112] = 0x13;
	rejected(&b, "offset 112: a Pid record cannot follow a NewCPUId");
	release(&b);
}

static void wrong_order_is_rejected(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	preamble(&b, 5, 1, 2, 0, 10);
	function(&b, ENTRY, 1, 1);
	function(&b, EXIT, 1, 1);
	end_block(&b, 5);
	b.data[112] = 0x10;
	memset(b.data + 113, 0, 4);
	b.data[33] = 66; /* extents end inside the first function record */
	rejected(&b, "offset 112: the record needs 8 bytes but its BufferExtents leaves 2");
	b.data[33] = 64; /* just the preamble, then records outside */
	rejected(&b, "offset 112: a BufferExtents record should begin here");
	b.data[33] = 80;
	put_byte(&b, 0, 5); /* trailing bytes */
	rejected(&b, "offset 128: a BufferExtents record should begin here");
	b.size -= 5;
	b.data[96] = 0x07; /* TSCWrap instead of NewCPUId */
	rejected(&b, "offset 96: a TSCWrap record cannot follow a Pid record");
	b.data[96] = 0x13;
	rejected(&b, "offset 96: a Pid record cannot follow a Pid record");
	b.data[96] = 0x10;
	rejected(&b, "offset 96: a function record cannot follow a Pid record");
	b.data[96] = 0x01;
	rejected(&b, "offset 48: the buffer ends after a Pid record");
	b.data[64] = 0x05;
	rejected(&b, "offset 64: a NewCPUId record cannot follow a NewBuffer record");
	b.data[48] = 0x09;
	rejected(&b, "offset 48: a WallTime record cannot follow the file header");
	release(&b);
}

static void incomplete_buffers_are_rejected(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	/* only a preamble */
	header(&b, 5, 1, 1000, 4096);
	begin_extents(&b);
	new_buffer(&b, 1);
	wall_time(&b, 1, 1);
	end_extents(&b);
	rejected(&b, "offset 48: the buffer ends after a WallTime record");
	release(&b);
	/* a second file header between buffers */
	header(&b, 1, 1, 1000, 4096);
	preamble(&b, 1, 1, 2, 0, 10);
	end_of_buffer(&b);
	new_buffer(&b, 1);
	header(&b, 1, 1, 1000, 4096);
	rejected(&b, "offset 96: the buffer ends after a NewBuffer record");
	release(&b);
	header(&b, 2, 1, 1000, 4096);
	function(&b, ENTRY, 1, 1);
	rejected(&b, "offset 32: a function record cannot follow the file header");
	release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_record_of_every_version),
		cmocka_unit_test(junk_is_tolerated),
		cmocka_unit_test(odd_extents_are_tolerated),
		cmocka_unit_test(version_2_ignores_extents),
		cmocka_unit_test(odd_arguments_are_tolerated),
		cmocka_unit_test(wrong_records_are_rejected),
		cmocka_unit_test(wrong_order_is_rejected),
		cmocka_unit_test(incomplete_buffers_are_rejected),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
