// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fdr_bytes.h"
#include "trace/fdr_reader.h"
#include "llvm_xray.h"

static char folder[] = "/tmp/kx_reader_XXXXXX";
static char path[64];

static struct kx_fdr_file *open_ok(const struct bytes *b)
{
	struct kx_fdr_file *f = NULL;
	struct kx_err err = { 0 };

	save(path, b->data, b->size);
	if (kx_fdr_open(path, &f, &err))
		fail_msg("rejected: %s", err.text);
	return f;
}

/* All records of a cursor, which it frees. */
static size_t read_all(struct kx_fdr_cursor *c, struct kx_fdr_record **out)
{
	struct kx_fdr_record *records = NULL;
	struct kx_err err = { 0 };
	size_t n = 0, room = 0;
	int r = 1;

	while (r > 0) {
		if (n == room) {
			room = room ? room * 2 : 64;
			records = reallocarray(records, room, sizeof(*records));
			assert_non_null(records);
		}
		memset(&records[n], 0, sizeof(*records));
		r = kx_fdr_next(c, &records[n], &err);
		n += r > 0;
	}
	if (r < 0)
		fail_msg("%s", err.text);
	kx_fdr_cursor_free(c);
	*out = records;
	return n;
}

static size_t read_file(struct kx_fdr_file *f, struct kx_fdr_record **out)
{
	struct kx_fdr_cursor *c = NULL;

	assert_int_equal(kx_fdr_file_cursor(f, &c), 0);
	return read_all(c, out);
}

static size_t read_thread(struct kx_fdr_file *f, size_t thread, struct kx_fdr_record **out)
{
	struct kx_fdr_cursor *c = NULL;

	assert_int_equal(kx_fdr_thread_cursor(f, thread, &c), 0);
	return read_all(c, out);
}

/* The fast path must give the same records. */
static void check_fast_path(struct kx_fdr_file *f, const struct kx_fdr_record *want, size_t n)
{
	struct kx_call_record calls[7];
	struct kx_fdr_cursor *c = NULL;
	struct kx_fdr_record rec;
	uint32_t thread;
	size_t i = 0, got;

	assert_int_equal(kx_fdr_file_cursor(f, &c), 0);
	for (;;) {
		while ((got = kx_fdr_next_calls(c, calls, 7, &thread))) {
			for (size_t k = 0; k < got; k++, i++) {
				assert_true(i < n);
				assert_int_equal(calls[k].tsc, want[i].tsc);
				assert_int_equal(calls[k].func, want[i].func);
				assert_int_equal(calls[k].kind, want[i].kind);
				assert_int_equal(thread, want[i].thread);
				assert_int_equal(want[i].nargs, 0);
			}
		}
		if (kx_fdr_next(c, &rec, NULL) <= 0)
			break;
		assert_true(i < n);
		assert_int_equal(rec.offset, want[i].offset);
		assert_int_equal(rec.kind, want[i].kind);
		assert_int_equal(rec.tsc, want[i].tsc);
		i++;
	}
	assert_int_equal(i, n);
	kx_fdr_cursor_free(c);
}

static const char *llvm_kind(const struct kx_fdr_record *rec)
{
	static const char *const names[] = { "function-enter", "function-exit",
					     "function-tail-exit", "custom-event", "typed-event" };

	return rec->kind <= KX_RECORD_TYPED ? names[rec->kind] : NULL;
}

/* llvm-xray prints the same records in the same order for every thread. */
static void check_llvm(struct kx_fdr_file *f, const char *xray)
{
	char *yaml = run_okf("%s convert -f yaml -sort=false %s", xray, path);
	bool fdr_before_4 = kx_fdr_get_info(f)->type == KX_FDR_TYPE_FDR &&
			    kx_fdr_get_info(f)->version < 4;

	for (size_t t = 0; t < kx_fdr_nthreads(f); t++) {
		struct kx_fdr_record *records = NULL;
		size_t n = read_thread(f, t, &records), i = 0;
		char *line = strstr(yaml, "records:\n"), owner[80];
		int32_t pid, tid;

		kx_fdr_thread_ids(f, t, &pid, &tid);
		if (pid)
			snprintf(owner, sizeof(owner), ", thread: %u, process: %u, ",
				 (uint32_t)tid, (uint32_t)pid);
		else
			snprintf(owner, sizeof(owner), ", thread: %u, kind: ", (uint32_t)tid);
		while (line && (line = strstr(line, "\n  - {"))) {
			char *end = strchr(line + 1, '\n'), text[64];
			uint64_t args[8];
			unsigned nargs = 0;

			*end = 0;
			if (!strstr(line + 1, owner)) {
				*end = '\n';
				line = end;
				continue;
			}
			while (i < n && !llvm_kind(&records[i]))
				i++;
			if (i == n)
				fail_msg("not read: %s", line + 1);
			snprintf(text, sizeof(text), "kind: %s", llvm_kind(&records[i]));
			assert_non_null(strstr(line + 1, text));
			snprintf(text, sizeof(text), ", tsc: %" PRIu64 ",", records[i].tsc);
			if (!strstr(line + 1, text))
				fail_msg("%s in: %s", text, line + 1);
			snprintf(text, sizeof(text), " cpu: %u,", records[i].cpu);
			/* of events before version 4 llvm-xray reads the CPU from reserved bytes */
			if (records[i].kind != KX_RECORD_CUSTOM || !fdr_before_4)
				assert_non_null(strstr(line + 1, text));
			snprintf(text, sizeof(text), " func-id: %u,", records[i].func);
			if (records[i].kind <= KX_RECORD_TAIL_EXIT)
				assert_non_null(strstr(line + 1, text));
			if (strstr(line + 1, "args: ["))
				nargs = (unsigned)sscanf(strstr(line + 1, "args: ["),
					"args: [ %" SCNu64 ", %" SCNu64 ", %" SCNu64,
					&args[0], &args[1], &args[2]);
			assert_int_equal(records[i].nargs, nargs);
			for (unsigned k = 0; k < nargs; k++)
				assert_int_equal(records[i].args[k], args[k]);
			i++;
			*end = '\n';
			line = end;
		}
		for (; i < n; i++)
			assert_null(llvm_kind(&records[i]));
		free(records);
	}
	free(yaml);
}

/* Accepted here and by llvm-xray, with the same content; *@out for more checks. */
static size_t check_accepted(const struct bytes *b, struct kx_fdr_record **out)
{
	struct kx_fdr_file *f = open_ok(b);
	size_t n = read_file(f, out);

	assert_false(kx_fdr_get_info(f)->truncated);
	check_fast_path(f, *out, n);
	for (size_t v = 0; v < N_LLVM_XRAYS; v++)
		if (access(llvm_xrays[v], X_OK) == 0)
			check_llvm(f, llvm_xrays[v]);
	kx_fdr_close(f);
	return n;
}

static size_t accepted(const struct bytes *b)
{
	struct kx_fdr_record *records = NULL;
	size_t n = check_accepted(b, &records);

	free(records);
	return n;
}

static void check_rejected(const struct bytes *b, const char *reason, bool llvm_too)
{
	struct kx_fdr_file *f = NULL;
	struct kx_err err = { 0 };

	save(path, b->data, b->size);
	assert_int_equal(kx_fdr_open(path, &f, &err), -EBADMSG);
	if (!strstr(err.text, reason) || !strstr(err.text, path))
		fail_msg("expected '%s' in: %s", reason, err.text);
	assert_null(strchr(err.text, '\n'));
	for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
		char command[300];

		if (access(llvm_xrays[v], X_OK) != 0)
			continue;
		snprintf(command, sizeof(command), "%s convert -f yaml -o /dev/null %s 2>/dev/null",
			 llvm_xrays[v], path);
		assert_int_equal(system(command) != 0, llvm_too);
	}
}

static void rejected(const struct bytes *b, const char *reason)
{
	check_rejected(b, reason, true);
}

/* Every kind of record, with the largest values. */
static void golden(struct bytes *b, unsigned version)
{
	header(b, version, 1, 2600000000, 4096);
	preamble(b, version, 11, 70000, 65535, 1000);
	custom(b, version, version < 5 ? 995 : -5, 77, "hello\n!!");
	function(b, ENTRY, 1, 10);
	function(b, ENTRY_ARGS, (1u << 28) - 1, 1);
	call_argument(b, UINT64_MAX);
	call_argument(b, 2);
	typed(b, 3, 9, "12345678");
	function(b, EXIT, (1u << 28) - 1, 1);
	new_cpu(b, 3, 5000);
	function(b, ENTRY, 2, 0);
	tsc_wrap(b, 1ull << 40);
	function(b, TAIL_EXIT, 2, 4);
	function(b, EXIT, 1, UINT32_MAX);
	end_block(b, version);
}

static void every_record_of_every_version(void **state)
{
	(void)state;
	for (unsigned version = 1; version <= 5; version++) {
		uint64_t base = version < 5 ? 1000 : 995;
		struct bytes b = { 0 };
		struct kx_fdr_record *r = NULL;
		struct kx_fdr_file *f;
		size_t n;

		golden(&b, version);
		n = check_accepted(&b, &r);
		assert_int_equal(n, 12 + (version == 1));
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
		free(r);
		f = open_ok(&b);
		n = read_file(f, &r);
		assert_memory_equal(r[2].data, "hello\n!!", 8);
		assert_memory_equal(r[5].data, "12345678", 8);
		assert_int_equal(kx_fdr_get_info(f)->version, version);
		assert_int_equal(kx_fdr_get_info(f)->type, KX_FDR_TYPE_FDR);
		assert_int_equal(kx_fdr_get_info(f)->tsc_hz, 2600000000);
		assert_int_equal(kx_fdr_get_info(f)->buffer_size, 4096);
		assert_int_equal(kx_fdr_get_info(f)->file_size, b.size);
		assert_int_equal(kx_fdr_get_info(f)->start_tsc, 1000);
		assert_true(kx_fdr_get_info(f)->constant_tsc && kx_fdr_get_info(f)->nonstop_tsc);
		if (version == 1)
			assert_int_equal(r[12].kind, KX_RECORD_END);
		free(r);
		kx_fdr_close(f);
		release(&b);
	}
}

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

	/* readable only by the document's rules: fill that does not decode */
	header(&b, 1, 1, 1000, 200);
	for (int i = 0; i < 3; i++) {
		struct kx_fdr_file *f;
		struct kx_fdr_record *r = NULL;

		start = b.size;
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

	/* no EndOfBuffer at all, and empty buffers */
	header(&b, 1, 1, 1000, 0);
	preamble(&b, 1, 0, 5, 0, 10);
	function(&b, ENTRY, 1, 1);
	preamble(&b, 1, 0, 5, 0, 20);
	end_of_buffer(&b);
	preamble(&b, 1, 0, 5, 0, 20);
	assert_int_equal(accepted(&b), 8);
	release(&b);
}

static void what_llvm_xray_tolerates(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	/* junk before the first buffer and between two */
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

	/* two buffers in one extents; the same buffer goes on in the next extents; extents that
	 * promise too much, in a row and inside a preamble */
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

	/* version 2 ignores extents */
	header(&b, 2, 1, 1000, 4096);
	buffer_extents(&b, 3);
	preamble(&b, 2, 0, 5, 0, 10);
	function(&b, ENTRY, 1, 1);
	put_byte(&b, 0, 24);
	assert_int_equal(accepted(&b), 6);
	release(&b);

	/* an argument after the extents that cut its buffer in two */
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

static void what_llvm_xray_rejects(void **state)
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

	/* a complete buffer that is only a preamble */
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

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/t.xray", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_record_of_every_version),
		cmocka_unit_test(basic_mode),
		cmocka_unit_test(threads_interleaved),
		cmocka_unit_test(fill_of_version_1),
		cmocka_unit_test(what_llvm_xray_tolerates),
		cmocka_unit_test(what_llvm_xray_rejects),
		cmocka_unit_test(headers_that_are_none),
		cmocka_unit_test(cut_everywhere),
		cmocka_unit_test(damaged_files_up_to_the_damage),
		cmocka_unit_test(long_buffers),
		cmocka_unit_test(ten_thousand_threads),
		cmocka_unit_test(more_arguments_than_kept),
		cmocka_unit_test(from_a_pipe),
		cmocka_unit_test(header_alone_is_an_empty_trace),
		cmocka_unit_test(random_damage),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
