// SPDX-License-Identifier: BSD-2-Clause
/* Synthetic events through the writer into a file, which kxray's reader reads back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/thread_table.h"
#include "trace/fdr_reader.h"
#include "trace/notes.h"
#include "thread_table_rig.h"

/* A thread's exit record comes at 30, inside a call. */
static void start_closing(struct run *r)
{
	start(r);
	born(r, TID(1), TID(1), 77, TID(1), "closing", 10);
	enter(r, TID(1), 1, 20);
	ended(r, TID(1), TID(1), "closing", 30);
}

/* Hits in the kernel shortly after a thread's exit record are still its own. */
static void test_calls_after_the_end(void **state)
{
	struct run r;

	(void)state;
	start_closing(&r);
	release(&r, 40);
	call(&r, TID(1), 2, 50);
	release(&r, 100);
	assert_int_equal(kx_thread_table_size(r.t), 1);
	release(&r, 30 + LINGER + 1);
	assert_int_equal(kx_thread_table_size(r.t), 0);
	finish(&r, NULL);
	assert_trace("[500001/500001 closing closing 0/0 +1 +2 -2 ~-1");
}

/* Also one that takes longer, but not for ever: it may never return. */
static void test_long_calls_after_the_end(void **state)
{
	struct run r;

	(void)state;
	start_closing(&r);
	enter(&r, TID(1), 2, 50);
	release(&r, 30 + LINGER + 1);
	assert_int_equal(kx_thread_table_size(r.t), 1);
	leave(&r, TID(1), 2, 30 + 3 * LINGER);
	release(&r, 30 + 4 * LINGER);
	assert_int_equal(kx_thread_table_size(r.t), 0);
	assert_int_equal(r.counts.orphans, 0);

	born(&r, TID(1), TID(1), 77, TID(1), "sticking", 10 + 5 * LINGER);
	ended(&r, TID(1), TID(1), "sticking", 30 + 5 * LINGER);
	enter(&r, TID(1), 2, 50 + 5 * LINGER);
	release(&r, 30 + 29 * LINGER);
	assert_int_equal(kx_thread_table_size(r.t), 1);
	release(&r, 30 + 31 * LINGER);
	assert_int_equal(kx_thread_table_size(r.t), 0);
	finish(&r, NULL);
	assert_trace("[500001/500001 closing closing 0/0 +1 +2 -2 ~-1 [500001/500001 sticking sticking 0/0 +2 ~-2");
}

static void test_memory_of_many_short_threads(void **state)
{
	enum { N = 100000, ALIVE = 20 };
	size_t most = 0, held = 0, live = 0, processes = 0;
	struct run r;

	(void)state;
	start(&r);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t tid = TID(i % 30000);
		uint64_t at = 100ull * i;

		born(&r, tid, tid, 77, tid, "short", at);
		renamed(&r, tid, tid, "program", at + 1);
		push(&r, tid, KX_EVENT_MIGRATE, at + 2, 0, 0, NULL, 0);
		if (i % 4 == 0)
			call(&r, tid, 1, at + 3);
		ended(&r, tid, tid, "program", at + 10);
		if (i % ALIVE)
			continue;
		release(&r, at + 50);
		most = kx_thread_table_size(r.t) > most ? kx_thread_table_size(r.t) : most;
		held = kx_thread_table_held(r.t) > held ? kx_thread_table_held(r.t) : held;
		live = kx_fdr_writer_live(r.w) > live ? kx_fdr_writer_live(r.w) : live;
		processes = kx_process_table_size(r.processes);
	}
	/* the threads of one round, and those that have ended less than LINGER ago */
	assert_true(most <= ALIVE + LINGER / 100 + 1);
	assert_true(held <= 2 * ALIVE * 1024);
	assert_true(live <= ALIVE + LINGER / 100 + 1);
	assert_in_range(processes, N / 4 - ALIVE, N / 4 + 2 * ALIVE);
	assert_int_equal(kx_fdr_writer_threads(r.w) + 10 > N / 4, 1);
	assert_int_equal(r.counts.entries + 10 > N / 4, 1);
	finish(&r, NULL);
	assert_int_equal(r.counts.entries, N / 4);
	assert_int_equal(r.counts.exits, N / 4);
}

/* More than max_threads threads at a time: their names are dropped and counted, their calls are kept. */
static void test_fork_bomb(void **state)
{
	enum { MAX = 100, N = 1000 };
	struct run r;

	(void)state;
	start_limited(&r, MAX, 0);
	for (uint32_t i = 0; i < N; i++) {
		const struct kx_event ev = { .tsc = T0 + i, .func = TID(i), .words = 3,
						    .kind = KX_EVENT_THREAD_NEW };
		struct kx_thread *thread = kx_thread_table_get_for_metadata(r.t, TID(i));
		uint64_t words[3];

		assert_int_equal(!thread, i >= MAX);
		pack("bomb", 1, TID(i), words);
		if (thread)
			assert_int_equal(kx_thread_push(thread, &ev, words), 0);
	}
	release(&r, N);
	assert_int_equal(kx_thread_table_unnamed(r.t), N - MAX);
	assert_int_equal(kx_thread_table_size(r.t), MAX);
	for (uint32_t i = 0; i < N; i++)
		call(&r, TID(i), 1, N);
	finish(&r, NULL);
	assert_int_equal(r.counts.entries, N);
	assert_int_equal(r.counts.exits, N);
}

/* Memory of waiting events is kept for the next release, up to a limit, and given back by sweeps once it is not used. */
static void test_idle_memory(void **state)
{
	enum { EVENTS = 1u << 19 }; /* 16 MiB */
	const uint32_t tid = (uint32_t)getpid();

	(void)state;
	for (unsigned large = 0; large < 2; large++) {
		struct run r;

		start_limited(&r, 0, large ? 64u << 20 : 0);
		for (uint32_t i = 0; i < EVENTS / 2; i++)
			call(&r, tid, 1, 10 + 2ull * i);
		assert_true(kx_thread_table_held(r.t) >= EVENTS * sizeof(struct kx_event));
		release(&r, 100 + EVENTS);
		assert_int_equal(kx_thread_table_held(r.t) > 0, large);
		for (int i = 0; i < 32; i++) /* two rounds over 1,024 buckets */
			assert_int_equal(kx_thread_table_sweep(r.t), 0);
		assert_int_equal(kx_thread_table_held(r.t), 0);
		finish(&r, NULL);
		assert_int_equal(r.counts.entries, EVENTS / 2);
	}
}

/* The exit record is lost: a thread that two sweeps do not find in /proc is ended. */
static void test_sweep(void **state)
{
	int ready[2], go[2];
	struct run r;
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready) | pipe(go), 0);
	child = fork();
	if (!child) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) < 0);
	}
	close(go[0]);
	start(&r);
	born(&r, (uint32_t)child, (uint32_t)child, 77, (uint32_t)child, "child", 10);
	enter(&r, (uint32_t)child, 1, 20);
	release(&r, 30);
	for (int i = 0; i < 100; i++)
		assert_int_equal(kx_thread_table_sweep(r.t), 0);
	release(&r, 5000);
	assert_int_equal(kx_thread_table_size(r.t), 1);
	close(go[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 100; i++)
		assert_int_equal(kx_thread_table_sweep(r.t), 0);
	release(&r, 5000);
	release(&r, 5000);
	assert_int_equal(kx_thread_table_size(r.t), 0);
	assert_int_equal(kx_fdr_writer_live(r.w), 0);
	assert_int_equal(r.counts.repaired, 1);
	finish(&r, NULL);
	close(ready[0]);
	close(ready[1]);
}

/* The BPF side counts lost hits per thread id: they are not counted again for the id's next thread. */
static void test_losses_stay_with_the_id(void **state)
{
	struct run r;

	(void)state;
	start(&r);
	born(&r, TID(1), TID(1), 77, TID(1), "a", 10);
	call(&r, TID(1), 1, 20);
	assert_int_equal(kx_thread_push_loss(kx_thread_table_get(r.t, TID(1)), 5, 5, T0 + 25,
					     T0 + 26, 0), 0);
	ended(&r, TID(1), TID(1), "a", 30);
	release(&r, 40);
	release(&r, 40 + LINGER);
	assert_int_equal(kx_thread_table_size(r.t), 1);
	born(&r, TID(1), TID(1), 77, TID(1), "b", 2000);
	assert_int_equal(kx_thread_push_loss(kx_thread_table_get(r.t, TID(1)), 5, 5, T0 + 25,
					     T0 + 26, 0), 0);
	release(&r, 3000);
	assert_int_equal(kx_fdr_writer_live(r.w), 0);
	finish(&r, NULL);
	assert_trace("[500001/500001 a a 0/0 +1 -1");
}

/* Kinds that are no calls: an instant becomes a note, a migration a CPU, an unknown kind nothing. */
static void test_instants(void **state)
{
	const uint64_t words[3] = { 7, 8, 9 };
	char got[512] = "";
	struct kx_err err = { 0 };
	struct kx_fdr_cursor *c;
	struct kx_fdr_record rec;
	struct kx_fdr_file *f;
	struct run r;
	size_t n = 0;

	(void)state;
	start(&r);
	born(&r, TID(1), TID(1), 77, TID(1), "one", 10);
	push(&r, TID(1), KX_EVENT_ENTRY, 20, 1, 0x6000, words, 3);
	push(&r, TID(1), KX_EVENT_SAMPLE, 30, 0, 0xabc, NULL, 0);
	push(&r, TID(1), KX_EVENT_MIGRATE, 40, 5, 0, NULL, 0);
	push(&r, TID(1), 200, 50, 1, 0x7000, words, 2);
	push(&r, TID(1), KX_EVENT_EXIT, 60, 1, 0x6000, words + 1, 1);
	finish(&r, NULL);
	assert_int_equal(r.migrations, 1);
	assert_int_equal(r.counts.repaired, 0);
	assert_int_equal(kx_fdr_open(path, &f, &err), 0);
	assert_int_equal(kx_fdr_thread_cursor(f, 0, &c), 0);
	while (kx_fdr_next(c, &rec, &err) > 0) {
		unsigned at = (unsigned)(rec.tsc - T0);

		if (rec.tsc <= T0 || rec.kind > KX_RECORD_CPU)
			continue;
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%u:%u ", at, rec.kind);
		if (rec.kind == KX_RECORD_CPU)
			n += (size_t)snprintf(got + n, sizeof(got) - n, "cpu%u ", rec.cpu);
		if (rec.kind == KX_RECORD_CUSTOM)
			n += (size_t)snprintf(got + n, sizeof(got) - n, "%.*s ", (int)rec.size,
					      (const char *)rec.data);
		for (unsigned i = 0; i < rec.nargs && rec.kind == KX_RECORD_ENTRY; i++)
			n += (size_t)snprintf(got + n, sizeof(got) - n, "%u ",
					      (unsigned)rec.args[i]);
	}
	assert_string_equal(got, "20:0 7 8 9 30:3 kxray:sample {\"ip\":\"0xabc\"} 40:5 cpu5 "
				 "60:3 kxray:result {\"value\":8} 60:5 cpu0 60:1 ");
	kx_fdr_cursor_free(c);
	kx_fdr_close(f);
}

/* The next file of a rotated trace begins with the calls that are open, at their own times. */
static void test_switch(void **state)
{
	struct kx_fdr_options o = { .tsc_hz = 1000000000, .wall_sec = 5 };
	struct kx_err err = { 0 };
	struct kx_fdr_writer *old;
	uint64_t continued;
	struct run r;
	char text[200];
	int old_fd;

	(void)state;
	start(&r);
	born(&r, 0xa0, 0xa0, 1, 0, "main", 10);
	born(&r, 0xa1, 0xa0, 1, 0, "idle", 10);
	call(&r, 0xa1, 7, 15);
	enter(&r, 0xa0, 1, 20);
	enter(&r, 0xa0, 2, 30);
	release(&r, 100);
	/* nothing waits: the outermost call is the oldest; else the waiting event is */
	assert_int_equal(kx_thread_table_oldest(r.t, T0 + 100), T0 + 20);
	enter(&r, 0xa2, 5, 17);
	assert_int_equal(kx_thread_table_oldest(r.t, T0 + 100), T0 + 17);
	o.start_tsc = T0 + 17;
	old = r.w;
	/* the old file has no name any more */
	assert_int_equal(unlink(path), 0);
	old_fd = r.fd;
	r.fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(kx_fdr_writer_new(r.fd, &o, &r.w, &err), 0);
	assert_int_equal(kx_thread_table_switch(r.t, r.w, T0 + 100, &continued), 0);
	assert_int_equal(continued, 2);
	assert_int_equal(kx_fdr_writer_hits(old), 4);
	kx_fdr_writer_free(old);
	close(old_fd);
	leave(&r, 0xa0, 2, 110);
	enter(&r, 0xa0, 3, 120);
	leave(&r, 0xa0, 3, 130);
	leave(&r, 0xa0, 1, 140);
	ended(&r, 0xa0, 0xa0, "main", 150);
	release(&r, 1000);
	assert_int_equal(kx_thread_table_written(r.t), 2);
	finish(&r, NULL);
	as_text(text, sizeof(text));
	assert_string_equal(text, " =main +1 +2 -2 +3 -3 -1 = +5 ~-5");
}

/* As values of an entry, of every size and beside those of another thread. */
static void test_long_payloads(void **state)
{
	uint64_t words[KX_WIRE_MAX_WORDS];
	struct kx_err err = { 0 };
	struct kx_fdr_file *f;
	struct run r;
	unsigned seen = 0;

	(void)state;
	start(&r);
	for (uint32_t n = 1; n <= KX_WIRE_MAX_WORDS; n++) {
		for (uint32_t k = 0; k < 3; k++) {
			const struct kx_event ev = { .tsc = T0 + 100 + k, .sp = 0x7000 - k, .func = n, .kind = KX_EVENT_ENTRY,
						     .words = (uint8_t)n, .has_values = 1 };

			for (uint32_t i = 0; i < n; i++)
				words[i] = n * 10000 + k * 100 + i;
			assert_int_equal(kx_thread_push(kx_thread_table_get(r.t, TID(n)), &ev, words), 0);
		}
	}
	finish(&r, NULL);
	assert_int_equal(kx_fdr_open(path, &f, &err), 0);
	for (size_t i = 0; i < kx_fdr_nthreads(f); i++) {
		struct kx_fdr_cursor *c;
		struct kx_fdr_record rec;
		uint64_t expected = 0;

		assert_int_equal(kx_fdr_thread_cursor(f, i, &c), 0);
		while (kx_fdr_next(c, &rec, &err) > 0) {
			const uint32_t n = rec.tid - TID(0);
			struct kx_note note;

			if (!kx_note_read(&rec, &note) || note.kind != KX_NOTE_CALL_VALUES) {
				kx_note_release(&note);
				continue;
			}
			assert_int_equal(note.payload.size, n * sizeof(*words));
			memcpy(words, note.payload.data, note.payload.size);
			for (uint32_t k = 0; k < n; k++)
				assert_int_equal(words[k], n * 10000 + expected + k);
			expected += 100;
			seen++;
		}
		assert_int_equal(expected, 300);
		kx_fdr_cursor_free(c);
	}
	assert_int_equal(seen, 3 * KX_WIRE_MAX_WORDS);
	kx_fdr_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_after_the_end),
		cmocka_unit_test(test_long_calls_after_the_end),
		cmocka_unit_test(test_memory_of_many_short_threads),
		cmocka_unit_test(test_fork_bomb),
		cmocka_unit_test(test_idle_memory),
		cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_losses_stay_with_the_id),
		cmocka_unit_test(test_instants),
		cmocka_unit_test(test_long_payloads),
	};

	return cmocka_run_group_tests_name("thread_table", tests, set_up, tear_down);
}
