// SPDX-License-Identifier: BSD-2-Clause
/* A writer whose options, records or output are wrong: full disks, pipes, what an early end leaves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "trace/fdr.h"
#include "trace/fdr_writer.h"
#include "fast_size.h"
#include "fdr_writer_rig.h"
#include "llvm_xray.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placeholder),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_wrong_records),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_dev_full),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_broken_pipe),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
