// SPDX-License-Identifier: BSD-2-Clause
/* Traces byte by byte, read by every way, and by llvm-xray. Include it after cmocka's headers. */
#ifndef KX_TEST_FDR_READER_RIG_H
#define KX_TEST_FDR_READER_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <unistd.h>

#include "trace/fdr_reader.h"
#include "fdr_bytes.h"
#include "folder.h"
#include "llvm_xray.h"

static char path[64];

static inline struct kx_fdr_file *open_ok(const struct bytes *b)
{
	struct kx_fdr_file *f = NULL;
	struct kx_err err = { 0 };

	save(path, b->data, b->size);
	if (kx_fdr_open(path, &f, &err))
		fail_msg("rejected: %s", err.text);
	return f;
}

/* All records of a cursor, which it frees. */
static inline size_t read_all(struct kx_fdr_cursor *c, struct kx_fdr_record **out)
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

static inline size_t read_file(struct kx_fdr_file *f, struct kx_fdr_record **out)
{
	struct kx_fdr_cursor *c = NULL;

	assert_int_equal(kx_fdr_file_cursor(f, &c), 0);
	return read_all(c, out);
}

static inline size_t read_thread(struct kx_fdr_file *f, size_t thread, struct kx_fdr_record **out)
{
	struct kx_fdr_cursor *c = NULL;

	assert_int_equal(kx_fdr_thread_cursor(f, thread, &c), 0);
	return read_all(c, out);
}

/* The fast path must give the same records. */
static inline void check_fast_path(struct kx_fdr_file *f, const struct kx_fdr_record *want, size_t n)
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

static inline const char *llvm_kind(const struct kx_fdr_record *rec)
{
	static const char *const names[] = { "function-enter", "function-exit",
					     "function-tail-exit", "custom-event", "typed-event" };

	return rec->kind <= KX_RECORD_TYPED ? names[rec->kind] : NULL;
}

/* llvm-xray prints the same records in the same order for every thread. */
static inline void check_llvm(struct kx_fdr_file *f, const char *xray)
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
static inline size_t check_accepted(const struct bytes *b, struct kx_fdr_record **out)
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

static inline size_t accepted(const struct bytes *b)
{
	struct kx_fdr_record *records = NULL;
	size_t n = check_accepted(b, &records);

	free(records);
	return n;
}

static inline void check_rejected(const struct bytes *b, const char *reason, bool llvm_too)
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

static inline void rejected(const struct bytes *b, const char *reason)
{
	check_rejected(b, reason, true);
}

/* Every kind of record, with the largest values. */
static inline void golden(struct bytes *b, unsigned version)
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

static inline int name_files(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(path, sizeof(path), "%s/t.xray", folder);
	return 0;
}

/* Nothing else may be left. */
static inline int remove_files(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

#endif
