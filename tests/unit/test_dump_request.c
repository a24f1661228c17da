// SPDX-License-Identifier: BSD-2-Clause
/* Causes of a flight recorder's dumps; the child process that writes; names of dumps. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/dump_process.h"
#include "record/dump_request.h"
#include "record/notice.h"
#include "record/numbered_files.h"

static struct kx_reason reason(enum kx_reason_kind kind, uint64_t tsc)
{
	return (struct kx_reason){ .kind = kind, .tsc = tsc };
}

/* Wait statuses: exit(n) is n << 8, a signal its number. */
static struct kx_reason end_of(uint32_t tgid, uint64_t start, uint32_t status, uint64_t tsc)
{
	return (struct kx_reason){ .tsc = tsc,
				   .event = { .tgid = tgid, .value = start, .status = status } };
}

static void test_triggers_join_the_dump_that_is_due(void **state)
{
	struct kx_dump_request q;
	struct kx_reason slow = reason(KX_REASON_SLOW, 100), entry = reason(KX_REASON_ENTRY, 200),
			 signalled = reason(KX_REASON_SIGNAL, 150);

	(void)state;
	assert_int_equal(kx_dump_request_init(&q, NULL, 0), 0);
	assert_false(q.due);
	kx_dump_request_add(&q, &slow, 1.0);
	assert_true(q.due);
	assert_int_equal(q.newest, 100);
	assert_int_equal(q.merged, 0);
	/* less important: the cause stays, but the dump waits for it */
	kx_dump_request_add(&q, &entry, 2.0);
	assert_int_equal(q.why.kind, KX_REASON_SLOW);
	assert_int_equal(q.newest, 200);
	/* more important, and older */
	kx_dump_request_add(&q, &signalled, 3.0);
	assert_int_equal(q.why.kind, KX_REASON_SIGNAL);
	assert_int_equal(q.why.tsc, 150);
	assert_int_equal(q.newest, 200);
	assert_int_equal(q.merged, 2);
	assert_true(q.since == 1.0);
	assert_false(q.process_ending);
	kx_dump_request_clear(&q);
	assert_false(q.due);
	/* the next one starts anew; the count of merged triggers continues */
	kx_dump_request_add(&q, &entry, 9.0);
	assert_int_equal(q.why.kind, KX_REASON_ENTRY);
	assert_true(q.since == 9.0);
	assert_int_equal(q.merged, 2);
	kx_dump_request_free(&q);
}

/* What a trigger caught stays caught, whatever joins its dump. */
static void test_caught(void **state)
{
	struct kx_reason slow = reason(KX_REASON_SLOW, 1), asked = reason(KX_REASON_SIGNAL, 2),
			 end = reason(KX_REASON_END, 3);
	struct kx_dump_request q;

	(void)state;
	assert_int_equal(kx_dump_request_init(&q, NULL, 0), 0);
	kx_dump_request_add(&q, &slow, 0);
	kx_dump_request_add(&q, &asked, 0);
	assert_int_equal(q.why.kind, KX_REASON_SIGNAL);
	assert_true(q.caught);
	kx_dump_request_clear(&q);
	kx_dump_request_add(&q, &asked, 0);
	kx_dump_request_add(&q, &end, 0);
	assert_false(q.caught);
	kx_dump_request_add(&q, &slow, 0);
	assert_true(q.caught);
	kx_dump_request_free(&q);
}

static void test_ends_of_processes(void **state)
{
	const pid_t targets[] = { 10, 20 };
	struct kx_reason normal = end_of(10, 1, 0, 50), again = end_of(10, 1, 0, 51),
			 stranger = end_of(30, 2, 3 << 8, 60), killed = end_of(31, 3, SIGTERM, 65),
			 crash = end_of(32, 4, SIGSEGV | 0x80, 70);
	struct kx_dump_request q;

	(void)state;
	assert_int_equal(kx_dump_request_init(&q, targets, 2), 0);
	kx_dump_request_process_ended(&q, &normal, 1.0);
	assert_true(q.due);
	assert_true(q.uncovered_end);
	assert_true(q.process_ending);
	assert_int_equal(q.why.kind, KX_REASON_EXIT);
	assert_true(q.why.status_known);
	/* two threads of a process may both report its end, and the pidfd as well */
	kx_dump_request_process_ended(&q, &again, 1.0);
	kx_dump_request_target_ended(&q, 10, 52, 1.0);
	assert_int_equal(q.merged, 0);
	assert_int_equal(q.newest, 50);
	kx_dump_request_clear(&q);
	assert_false(q.uncovered_end);

	/* untargeted: only a crash starts a dump */
	kx_dump_request_process_ended(&q, &stranger, 2.0);
	kx_dump_request_process_ended(&q, &killed, 2.0);
	assert_false(q.due);
	assert_true(q.uncovered_end);
	kx_dump_request_process_ended(&q, &crash, 2.0);
	assert_true(q.due);
	assert_int_equal(q.why.kind, KX_REASON_CRASH);
	assert_int_equal(q.why.event.tgid, 32);
	kx_dump_request_clear(&q);

	/* a target without any event */
	kx_dump_request_target_ended(&q, 99, 79, 3.0);
	assert_false(q.due);
	kx_dump_request_target_ended(&q, 20, 80, 3.0);
	assert_true(q.due);
	assert_int_equal(q.why.kind, KX_REASON_EXIT);
	assert_false(q.why.status_known);
	assert_int_equal(q.why.event.tgid, 20);
	kx_dump_request_target_ended(&q, 20, 81, 3.0);
	assert_int_equal(q.merged, 0);
	kx_dump_request_free(&q);
}

/* Process ids are reused: the start time distinguishes the processes. */
static void test_remembered_ends(void **state)
{
	struct kx_dump_request q;
	struct kx_reason first = end_of(7, 1000, SIGABRT, 1);

	(void)state;
	assert_int_equal(kx_dump_request_init(&q, NULL, 0), 0);
	kx_dump_request_process_ended(&q, &first, 0);
	for (unsigned i = 1; i < KX_MAX_ENDED; i++) {
		struct kx_reason other = end_of(7, 1000 + i, SIGABRT, 1);

		kx_dump_request_process_ended(&q, &other, 0);
	}
	assert_int_equal(q.merged, KX_MAX_ENDED - 1);
	kx_dump_request_process_ended(&q, &first, 0);
	assert_int_equal(q.merged, KX_MAX_ENDED - 1);
	/* one more evicts the oldest */
	struct kx_reason more = end_of(8, 1, SIGABRT, 1);

	kx_dump_request_process_ended(&q, &more, 0);
	kx_dump_request_process_ended(&q, &first, 0);
	assert_int_equal(q.merged, KX_MAX_ENDED + 1);
	kx_dump_request_free(&q);
}

static void assert_path(const char *output, unsigned number, const char *expected)
{
	char *path = kx_numbered_path(output, number);

	assert_string_equal(path, expected);
	free(path);
}

static void test_paths(void **state)
{
	(void)state;
	assert_path("trace.xray", 3, "trace.3.xray");
	assert_path("a.b/trace", 12, "a.b/trace.12");
	assert_path("a.b/c.d.xray", 1, "a.b/c.d.1.xray");
	assert_path(".hidden", 2, ".hidden.2");
	assert_path("dir/.hidden", 2, "dir/.hidden.2");
	assert_path("./out", 1, "./out.1");
	assert_path("a.b/trace.xray.zst", 3, "a.b/trace.3.xray.zst");
	assert_path("a.b/trace.zst", 3, "a.b/trace.3.zst");
	assert_path("a.b/.zst", 3, "a.b/.zst.3");
}

static void touch(const char *path, const char *suffix)
{
	char text[300];
	FILE *f;

	snprintf(text, sizeof(text), "%s%s", path, suffix);
	f = fopen(text, "w");
	assert_non_null(f);
	fclose(f);
}

/* Files of one cause evict only files of the same cause. */
static void test_numbered_files(void **state)
{
	static const enum kx_file_cause causes[] = { KX_FILE_CAUGHT, KX_FILE_REQUESTED,
						     KX_FILE_CAUGHT, KX_FILE_REQUESTED,
						     KX_FILE_REQUESTED, KX_FILE_REQUESTED };
	static const bool stays[] = { true, false, true, false, true, true };
	char folder[] = "/tmp/kx_files_XXXXXX", output[64];
	struct kx_numbered_files files = { 0 };

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(output, sizeof(output), "%s/t.xray", folder);
	for (unsigned i = 0; i < 6; i++) {
		char *path = kx_numbered_path(output, i + 1);

		touch(path, "");
		touch(path, ".map");
		free(path);
		assert_int_equal(kx_numbered_add(&files, output, i + 1, causes[i], 2), 0);
	}
	assert_int_equal(files.count, 4);
	for (unsigned i = 0; i < 6; i++) {
		char *path = kx_numbered_path(output, i + 1);

		assert_int_equal(access(path, F_OK), stays[i] ? 0 : -1);
		kx_numbered_remove(path);
		free(path);
	}
	for (unsigned i = 7; i < 60; i++)
		assert_int_equal(kx_numbered_add(&files, output, i, KX_FILE_REQUESTED, 0), 0);
	assert_int_equal(files.count, 57);
	kx_numbered_free(&files);
	assert_int_equal(rmdir(folder), 0);
}

static int write_well(void *ctx, const char *path, struct kx_dump_outcome *out)
{
	out->counts.events = *(int *)ctx;
	out->seconds = strlen(path);
	return 0;
}

static int write_badly(void *ctx, const char *path, struct kx_dump_outcome *out)
{
	(void)ctx;
	return kx_err_set(&out->err, -ENOSPC, "no room for %s", path);
}

static int be_killed(void *ctx, const char *path, struct kx_dump_outcome *out)
{
	char suffix[32];

	(void)ctx;
	(void)out;
	snprintf(suffix, sizeof(suffix), ".%d.tmp", (int)getpid());
	touch(path, suffix);
	snprintf(suffix, sizeof(suffix), ".map.%d.tmp", (int)getpid());
	touch(path, suffix);
	raise(SIGKILL);
	return 0;
}

static void test_child_process(void **state)
{
	char folder[] = "/tmp/kx_dump_XXXXXX", path[64];
	const struct kx_dump_outcome *out;
	struct kx_dump_process *p;
	struct kx_err err;
	int events = 41;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/d.1.xray", folder);
	assert_int_equal(kx_dump_process_new(&p, &err), 0);
	assert_false(kx_dump_process_runs(p));
	assert_false(kx_dump_process_reap(p, true, &out));

	assert_int_equal(kx_dump_process_start(p, path, write_well, &events), 0);
	assert_true(kx_dump_process_runs(p));
	events = 42; /* the child has its own copy */
	assert_true(kx_dump_process_reap(p, true, &out));
	assert_int_equal(out->code, 0);
	assert_int_equal(out->counts.events, 41);
	assert_true(out->seconds == (double)strlen(path));
	assert_false(kx_dump_process_runs(p));
	assert_false(kx_dump_process_reap(p, true, &out));

	assert_int_equal(kx_dump_process_start(p, path, write_badly, NULL), 0);
	assert_true(kx_dump_process_reap(p, true, &out));
	assert_int_equal(out->code, -ENOSPC);
	assert_int_equal(strncmp(out->err.text, "no room for /tmp/", 17), 0);

	/* rmdir proves that its temporary files are gone */
	assert_int_equal(kx_dump_process_start(p, path, be_killed, NULL), 0);
	assert_true(kx_dump_process_reap(p, true, &out));
	assert_int_equal(out->code, -EIO);
	assert_string_equal(out->err.text, "its process was killed");
	kx_dump_process_free(p);
	touch(path, "");
	touch(path, ".map");
	kx_numbered_remove(path);
	assert_int_equal(rmdir(folder), 0);
}

static void keep(void *ctx, const char *text)
{
	snprintf(ctx, 2000, "%s", text);
}

static void test_notices(void **state)
{
	char text[2000] = "", large[1500];
	const struct kx_notices none = { 0 }, all = { .each = keep, .ctx = text };

	(void)state;
	kx_notice(&none, "%s", "ignored");
	kx_notice(&all, "%d of %s", 3, "four");
	assert_string_equal(text, "3 of four");
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	kx_notice(&all, "%s", large);
	assert_int_equal(strlen(text), 1023);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_triggers_join_the_dump_that_is_due),
		cmocka_unit_test(test_caught),
		cmocka_unit_test(test_ends_of_processes),
		cmocka_unit_test(test_remembered_ends),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_numbered_files),
		cmocka_unit_test(test_child_process),
		cmocka_unit_test(test_notices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
