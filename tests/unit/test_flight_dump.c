// SPDX-License-Identifier: BSD-2-Clause
/* Synthetic records through a store into a trace, which kxray's reader reads back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/fdr_reader.h"
#include "collect/flight_dump.h"
#include "record/dump_cause.h"
#include "trace/notes.h"

#define T0  1000000ULL
#define HZ  1000000000ULL
#define TID 0x500001u /* no thread of this machine can have it */
#define PID 0x500000u

static char path[] = "/tmp/kx_flight_XXXXXX";

static struct kx_flight_store *new_store(uint64_t bytes)
{
	const unsigned char online[2] = { 1, 1 };
	struct kx_flight_store *s = NULL;

	assert_int_equal(kx_flight_store_new(online, 2, bytes, &s, NULL), 0);
	return s;
}

static void put(struct kx_flight_store *s, unsigned cpu, enum kx_event_kind kind, uint64_t tsc,
		uint32_t func, uint64_t sp)
{
	const struct kx_wire_record rec = { .sp = sp, .tid = TID, .func = func,
					    .cpu = (uint16_t)cpu, .kind = (uint8_t)kind };

	kx_flight_store_put(s, cpu, &rec, tsc, NULL);
}

static void put_end(struct kx_flight_store *s, unsigned cpu, uint64_t tsc, const char *name)
{
	const struct kx_wire_record rec = { .tid = TID, .func = PID, .cpu = (uint16_t)cpu,
					    .kind = KX_EVENT_THREAD_EXIT, .words = 2 };
	char comm[16] = "";
	uint64_t words[2];

	strncpy(comm, name, sizeof(comm) - 1);
	memcpy(words, comm, sizeof(words));
	kx_flight_store_put(s, cpu, &rec, tsc, words);
}

struct summary {
	uint64_t entries, exits, first, last, hits[4]; /* hits: by function */
	uint64_t lost;
	int depth, deepest;
	char name[32];
	size_t threads;
};

static void dump(const struct kx_flight_store *s, uint64_t from, uint64_t to,
		 struct kx_flight_dump_counts *counts, struct summary *got)
{
	const uint8_t traits[4] = { 0 };
	struct kx_flight_dump d = { .store = s, .from = from, .to = to, .final = true, .tsc_hz = HZ,
				    .fdr = { .tsc_hz = HZ, .start_tsc = T0, .wall_sec = 5 } };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct kx_fdr_cursor *c;
	struct kx_fdr_file *f;
	struct kx_fdr_record rec;
	struct kx_err err = { 0 };

	d.threads.traits = traits;
	d.threads.ntraits = 4;
	d.threads.patient = true;
	d.threads.linger = 1000;
	d.threads.processes = kx_process_table_new();
	if (kx_flight_dump_write(fd, &d, counts, &err))
		fail_msg("%s", err.text);
	close(fd);
	kx_process_table_free(d.threads.processes);

	memset(got, 0, sizeof(*got));
	if (kx_fdr_open(path, &f, &err))
		fail_msg("%s", err.text);
	assert_int_equal(kx_fdr_get_info(f)->start_tsc, from);
	got->threads = kx_fdr_nthreads(f);
	assert_int_equal(kx_fdr_file_cursor(f, &c), 0);
	while (kx_fdr_next(c, &rec, &err) > 0) {
		struct kx_note note;

		if (kx_note_read(&rec, &note)) {
			if (note.kind == KX_NOTE_THREAD)
				strcpy(got->name, note.thread.name);
			if (note.kind == KX_NOTE_LOSS)
				got->lost += note.loss.entries + note.loss.exits;
			kx_note_release(&note);
		}
		if (rec.kind > KX_RECORD_TAIL_EXIT)
			continue;
		if (!got->first)
			got->first = rec.tsc;
		assert_true(rec.tsc >= got->last && rec.tsc >= from);
		got->last = rec.tsc;
		got->hits[rec.func]++;
		got->entries += rec.kind == KX_RECORD_ENTRY;
		got->exits += rec.kind != KX_RECORD_ENTRY;
		got->depth += rec.kind == KX_RECORD_ENTRY ? 1 : -1;
		assert_true(got->depth >= 0);
		if (got->depth > got->deepest)
			got->deepest = got->depth;
	}
	kx_fdr_cursor_free(c);
	kx_fdr_close(f);
	unlink(path);
}

/* The thread migrates inside its calls; the rings are replayed block by block. */
static void test_order_over_cpus(void **state)
{
	struct kx_flight_store *s = new_store(1 << 20);
	struct kx_flight_dump_counts n;
	struct summary got;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		put(s, i & 1, KX_EVENT_ENTRY, T0 + 10 + i * 40, 1, 0x7000);
		put(s, ~i & 1, KX_EVENT_ENTRY, T0 + 20 + i * 40, 2, 0x6000);
		put(s, i & 1, KX_EVENT_EXIT, T0 + 30 + i * 40, 2, 0x6000);
		put(s, ~i & 1, KX_EVENT_EXIT, T0 + 40 + i * 40, 1, 0x7000);
	}
	put_end(s, 0, T0 + 50000, "worker");
	dump(s, T0, T0 + 100000, &n, &got);
	assert_int_equal(n.events, 4000);
	assert_int_equal(n.orphans + n.repaired + n.lost, 0);
	assert_int_equal(got.entries, 2000);
	assert_int_equal(got.exits, 2000);
	assert_int_equal(got.hits[2], 2000);
	assert_int_equal(got.deepest, 2);
	assert_int_equal(got.first, T0 + 10);
	assert_int_equal(n.first, T0 + 10);
	assert_int_equal(n.last, T0 + 40 + 999 * 40);
	/* the exit record, which has the name, follows long after the first events */
	assert_string_equal(got.name, "worker");
	assert_int_equal(got.threads, 1);
	kx_flight_store_free(s);
}

/* A window that begins and ends inside calls: older calls' exits are left out, open calls are closed. */
static void test_window(void **state)
{
	struct kx_flight_store *s = new_store(1 << 20);
	struct kx_flight_dump_counts n;
	struct summary got;

	(void)state;
	put(s, 0, KX_EVENT_ENTRY, T0 + 10, 1, 0x7000);
	put(s, 0, KX_EVENT_ENTRY, T0 + 20, 2, 0x6000);
	put(s, 0, KX_EVENT_EXIT, T0 + 100, 2, 0x6000);
	put(s, 0, KX_EVENT_ENTRY, T0 + 110, 3, 0x6000);
	put(s, 0, KX_EVENT_EXIT, T0 + 120, 3, 0x6000);
	put(s, 0, KX_EVENT_EXIT, T0 + 130, 1, 0x7000);
	put(s, 0, KX_EVENT_ENTRY, T0 + 140, 1, 0x7000);
	put(s, 0, KX_EVENT_EXIT, T0 + 200, 1, 0x7000);
	dump(s, T0 + 100, T0 + 200, &n, &got);
	assert_int_equal(n.orphans, 2);
	assert_int_equal(n.repaired, 1);
	assert_int_equal(n.events, 3);
	assert_int_equal(got.hits[3], 2);
	assert_int_equal(got.hits[1], 2);
	assert_int_equal(got.depth, 0);
	kx_flight_store_free(s);
}

/* The rings are overwritten, on one CPU more than on the other: only the complete time is dumped. */
static void test_overwritten(void **state)
{
	struct kx_flight_store *s = new_store(KX_FLIGHT_MIN_BYTES);
	struct kx_flight_dump_counts n;
	struct summary got;
	uint64_t from;

	(void)state;
	for (uint64_t i = 0; i < 20000; i++) {
		put(s, 0, KX_EVENT_ENTRY, T0 + 10 + i * 40, 1, 0x7000);
		put(s, i % 8 == 0, KX_EVENT_ENTRY, T0 + 20 + i * 40, 2, 0x6000);
		put(s, 0, KX_EVENT_EXIT, T0 + 30 + i * 40, 2, 0x6000);
		put(s, 0, KX_EVENT_EXIT, T0 + 40 + i * 40, 1, 0x7000);
	}
	from = kx_flight_store_complete_from(s);
	assert_true(from > T0);
	dump(s, from, T0 + 10 + 20000 * 40, &n, &got);
	assert_true(n.events > 1000 && n.events < 10000);
	assert_true(n.orphans <= 2);
	assert_int_equal(n.repaired, 0);
	assert_int_equal(got.entries, got.exits);
	assert_in_range(got.hits[1], got.hits[2] - 1, got.hits[2] + 1);
	assert_int_equal(got.deepest, 2);
	kx_flight_store_free(s);
}

/* Each increase of a total becomes one gap; an exit whose entry is in a gap is a loss, too. */
static void test_losses(void **state)
{
	struct kx_flight_store *s = new_store(1 << 20);
	struct kx_flight_dump_counts n;
	struct summary got;

	(void)state;
	put(s, 0, KX_EVENT_ENTRY, T0 + 10, 1, 0x7000);
	kx_flight_store_put_loss(s, TID, 3, 2, T0 + 20, T0 + 30, 0);
	kx_flight_store_put_loss(s, TID, 3, 2, T0 + 20, T0 + 30, 0);
	put(s, 0, KX_EVENT_EXIT, T0 + 40, 2, 0x6000);
	kx_flight_store_put_loss(s, TID, 4, 2, T0 + 50, T0 + 60, 1);
	put(s, 0, KX_EVENT_EXIT, T0 + 70, 1, 0x7000);
	dump(s, T0, T0 + 100, &n, &got);
	assert_int_equal(n.events, 2);
	assert_int_equal(n.lost, 6 + 1);
	assert_int_equal(got.lost, 6 + 1);
	assert_int_equal(n.orphans, 0);
	kx_flight_store_free(s);
}

static void test_nothing(void **state)
{
	struct kx_flight_store *s = new_store(1 << 20);
	struct kx_flight_dump_counts n;
	struct summary got;

	(void)state;
	dump(s, T0, T0 + 100, &n, &got);
	assert_int_equal(n.events, 0);
	assert_int_equal(n.first, 0);
	assert_int_equal(got.threads, 1); /* llvm-xray takes no trace without any */
	kx_flight_store_free(s);
}

static void test_reasons(void **state)
{
	struct kx_symbol sym = { .name = "f", .pretty = "ns::f" };
	struct kx_function function = { .id = 1, .sym = &sym };
	const struct kx_selection sel = { .functions = &function, .nfunctions = 1 };
	struct kx_reason why = { .kind = KX_REASON_SLOW, .limit_ns = 10000000, .status_known = true };
	char text[256];

	(void)state;
	why.event = (struct kx_trigger_event){ .func = 1, .tid = 7, .tgid = 6, .value = 12345678,
					       .comm = "sixteen letters" };
	assert_string_equal(kx_reason_text(&why, &sel, text, sizeof(text)),
			    "slow: ns::f took 12.3 ms > 10 ms in thread 7 (sixteen letters)");
	why.kind = KX_REASON_ENTRY;
	assert_string_equal(kx_reason_text(&why, &sel, text, sizeof(text)),
			    "entry: ns::f in thread 7 (sixteen letters)");
	why.kind = KX_REASON_CRASH;
	why.event.status = 11 | 0x80;
	assert_string_equal(kx_reason_text(&why, &sel, text, sizeof(text)),
			    "crash: process 6 (sixteen letters) was killed by SIGSEGV");
	why.kind = KX_REASON_EXIT;
	why.event.status = 7 << 8;
	assert_string_equal(kx_reason_text(&why, &sel, text, sizeof(text)),
			    "exit: process 6 (sixteen letters) ended with status 7");
	assert_true(kx_reason_is_crash(11));
	assert_true(kx_reason_is_crash(6 | 0x80));
	assert_false(kx_reason_is_crash(9));
	assert_false(kx_reason_is_crash(15));
	assert_false(kx_reason_is_crash(11 << 8));
	assert_false(kx_reason_is_crash(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_over_cpus), cmocka_unit_test(test_window),
		cmocka_unit_test(test_overwritten),	cmocka_unit_test(test_losses),
		cmocka_unit_test(test_nothing),		cmocka_unit_test(test_reasons),
	};
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
