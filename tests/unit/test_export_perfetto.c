// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "known_trace.h"

extern const struct kx_exporter kx_exporter_perfetto;

static const char *exported(const char *trace, json_t *session, bool no_map)
{
	const char *out = in_dir("out");

	assert_int_equal(known_export(&kx_exporter_perfetto, trace, out, session, no_map), 0);
	json_decref(session);
	return out;
}

static void test_known_trace(void **state)
{
	(void)state;
	known_write(in_dir("trace"));
	assert_string_equal(known_read("perfetto.py", "",
				       exported(in_dir("trace"), NULL, false)), KNOWN_TIMELINE);
}

/* The lines of protoc's output that contain @word. */
static size_t lines_with(const char *file, const char *word)
{
	const char *count = line_of("protoc --decode=perfetto.protos.Trace -I$OLDPWD/tests/readers "
				    "perfetto.proto < %s | grep -cF '%s'", file, word);

	return strtoul(count, NULL, 10);
}

static void test_names_are_written_once(void **state)
{
	const char *out;

	(void)state;
	known_write(in_dir("trace"));
	out = exported(in_dir("trace"), NULL, false);
	assert_int_equal(lines_with(out, "name: \"main\""), 1);
	assert_int_equal(lines_with(out, "name: \"foo::bar()\""), 1);
	assert_int_equal(lines_with(out, "name: \"prog\""), 1);
	assert_int_equal(lines_with(out, "TYPE_SLICE_BEGIN"), 9 + 1); /* and the gap */
	assert_int_equal(lines_with(out, "TYPE_SLICE_END"), 9 + 1);
	assert_int_equal(lines_with(out, "timestamp_clock_id"), 0);
	/* a process without an id would be the kernel's idle process to Perfetto */
	assert_int_equal(lines_with(out, "pid: 0"), 0);
}

/* The trace has a CLOCK_MONOTONIC reference: 1000 ticks are 7,000,000,000 ns less 500 ns. */
static void test_clock(void **state)
{
	json_t *session = json_pack("{s:{s:I,s:I}}", "clock", "monotonic_ns",
				    (json_int_t)7000000000, "monotonic_ticks", (json_int_t)2000);
	const char *out;

	(void)state;
	known_write(in_dir("trace"));
	out = exported(in_dir("trace"), session, false);
	assert_int_equal(lines_with(out, "timestamp_clock_id: 3"), 1);
	assert_int_equal(lines_with(out, "primary_trace_clock: 3"), 1);
	assert_int_equal(lines_with(out, "timestamp: 6999999500"), 3); /* clock, CPU, main */
	assert_int_equal(lines_with(out, "timestamp: 6999999502"), 1);
	assert_string_equal(known_read("perfetto.py", "", out), KNOWN_TIMELINE);
}

/* The lines of the reader's output that begin with a word of @words. */
static const char *lines_of(const char *text, const char *words)
{
	static char kept[1 << 20]; /* known_read returns less */
	const char *end;
	size_t n = 0;

	for (; (end = strchr(text, '\n')); text = end + 1) {
		char word[16];

		sscanf(text, "%15s", word);
		if (!strstr(words, word))
			continue;
		memcpy(kept + n, text, (size_t)(end + 1 - text));
		n += (size_t)(end + 1 - text);
	}
	kept[n] = 0;
	return kept;
}

#define SESSION_START 1200, 5000000000, 5300000000, 1700000000000000000
#define SESSION_END 201200, 5000100000, 5300100000, 1700000000000101000

static json_t *snapshot(json_int_t tsc, json_int_t monotonic, json_int_t boottime, json_int_t realtime)
{
	return json_pack("{s:I,s:I,s:I,s:I}", "tsc", tsc, "monotonic_ns", monotonic, "boottime_ns",
			 boottime, "realtime_ns", realtime);
}

/* REALTIME is set forward by 1000 ns in the 200000 ticks between the session's snapshots. */
static void test_clock_snapshots(void **state)
{
	json_t *session = json_pack("{s:{s:[o,o]}}", "clock", "snapshots", snapshot(SESSION_START),
				    snapshot(SESSION_END));
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	const char *out;
	int fd;

	(void)state;
	w = known_writer(in_dir("trace"), &fd);
	t = kx_fdr_writer_thread(w, 1, 1, "t", "p");
	must(kx_fdr_entry(t, 1000, 0, 1, NULL, 0), NULL);
	must(kx_fdr_exit(t, 101000, 0, 1, false), NULL);
	known_end(w, fd);
	out = exported(in_dir("trace"), session, false);
	/* 200 ticks before and 99800 ticks after the first snapshot, on the line through both */
	assert_string_equal(lines_of(known_read("perfetto.py", "", out), "clocks"),
			    "clocks 5299999900 4999999900 1699999999999999899\n"
			    "clocks 5300000000 5000000000 1700000000000000000\n"
			    "clocks 5300049900 5000049900 1700000000000050399\n");
	assert_int_equal(lines_with(out, "primary_trace_clock: 6"), 3);
	assert_int_equal(lines_with(out, "timestamp_clock_id"), 0);

	/* set forward between the first two of three: each part has its own line, times stay the trace's ticks */
	session = json_pack("{s:{s:[o,o,o]}}", "clock", "snapshots", snapshot(SESSION_START),
			    snapshot(51200, 5000025000, 5300025000, 1700000000000026000), snapshot(SESSION_END));
	out = exported(in_dir("trace"), session, false);
	assert_string_equal(lines_of(known_read("perfetto.py", "", out), "clocks"),
			    "clocks 5299999900 4999999900 1699999999999999899\n"
			    "clocks 5300000000 5000000000 1700000000000000000\n"
			    "clocks 5300025000 5000025000 1700000000000026000\n"
			    "clocks 5300049900 5000049900 1700000000000050900\n");

	/* only the start is known: no second snapshot */
	session = json_pack("{s:{s:[o]}}", "clock", "snapshots", snapshot(SESSION_START));
	out = exported(in_dir("trace"), session, false);
	assert_string_equal(lines_of(known_read("perfetto.py", "", out), "clocks"),
			    "clocks 5299999900 4999999900 1699999999999999900\n");

	/* damaged: times begin at 0 */
	session = json_pack("{s:{s:[o,o]}}", "clock", "snapshots", snapshot(1, INT64_MAX / 2, 3, 4),
			    snapshot(INT64_MAX, INT64_MAX, -1, INT64_MAX));
	out = exported(in_dir("trace"), session, false);
	assert_string_equal(lines_of(known_read("perfetto.py", "", out), "clocks"), "");
}

static void test_labels(void **state)
{
	json_t *session = json_pack("{s:{s:s,s:s},s:{s:s}}", "host", "name", "web1", "boot_id", "b-1", "labels", "env",
				    "production");
	const char *out;

	(void)state;
	known_write(in_dir("trace"));
	out = exported(in_dir("trace"), session, false);
	known_read("perfetto.py", "", out);
	assert_int_equal(lines_with(out, "machine_name: \"web1\""), 1);
	assert_int_equal(lines_with(out, "trace_attributes {"), 1);
	assert_int_equal(lines_with(out, "attribute {"), 3);
	assert_int_equal(lines_with(out, "key: \"boot_id\""), 1);
	assert_int_equal(lines_with(out, "string_value: \"production\""), 1);
	out = exported(in_dir("trace"), NULL, false);
	assert_int_equal(lines_with(out, "trace_attributes {") + lines_with(out, "system_info {"), 0);
}

static void enter_and_leave(struct kx_fdr_thread *t, uint64_t from, uint64_t to, uint16_t cpu)
{
	must(kx_fdr_entry(t, from, cpu, 1, NULL, 0), NULL);
	must(kx_fdr_exit(t, to, cpu, 1, false), NULL);
}

/* Back on CPU @cpu at @tsc. */
static void back(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, const char *note)
{
	must(kx_fdr_cpu(t, tsc, cpu), NULL);
	known_note(t, tsc, note);
}

/* Thread 10 on CPUs 0 and 1, thread 11 on CPU 1; 2 ticks a nanosecond from 1000 on. */
static void write_sched(const char *path)
{
	struct kx_fdr_thread *a, *b, *c;
	struct kx_fdr_writer *w;
	int fd;

	w = known_writer(path, &fd);
	a = kx_fdr_writer_thread(w, 9, 10, "a", "prog");
	b = kx_fdr_writer_thread(w, 9, 11, "b", "prog");
	c = kx_fdr_writer_thread(w, 9, 12, "c", "prog");
	/* runs on 0 in 0-100 ns, asleep until 300, runnable until 340, woken by thread 11 on CPU 1 */
	enter_and_leave(a, 1000, 1200, 0);
	back(a, 1680, 0, "kxray:sched {\"off\":480,\"state\":\"S\",\"wait\":80,\"by\":11,\"on\":1}");
	/* runs in 340-400, blocked until 500, runnable until 520; an interrupt on CPU 3 wakes it */
	enter_and_leave(a, 1700, 1710, 0);
	back(a, 2040, 1, "kxray:sched {\"off\":240,\"state\":\"D\",\"wait\":40,\"by\":0,\"on\":3}");
	/* runs on 1 in 520-600, parked until 700, woken by a thread outside of the trace on CPU 0 */
	enter_and_leave(a, 2050, 2060, 1);
	back(a, 2400, 1, "kxray:sched {\"off\":200,\"state\":\"P\",\"wait\":0,\"by\":77,\"on\":0}");
	/* runs in 700-750, woken by thread 11 in a recording that does not say where; and once while 11 is off */
	enter_and_leave(a, 2410, 2420, 1);
	back(a, 2700, 0, "kxray:sched {\"off\":200,\"state\":\"S\",\"wait\":20,\"by\":11}");
	enter_and_leave(a, 2710, 2720, 0);
	back(a, 3000, 0, "kxray:sched {\"off\":200,\"state\":\"S\",\"wait\":20,\"by\":11}");
	/* runs in 1000-1100, lost events in 1050-1080, preempted until the end */
	enter_and_leave(a, 3010, 3020, 0);
	known_note(a, 3160, "kxray:loss {\"entries\":1,\"exits\":1,\"from\":3100,\"to\":3160}");
	known_note(a, 3400, "kxray:sched {\"off\":200,\"state\":\"R\",\"open\":true}");

	/* new at 50 ns, runs on 1 in 100-510; thread 10 takes the CPU at 520, runs again from 610 on CPU 1 */
	back(b, 1200, 1, "kxray:sched {\"off\":100,\"state\":\"N\",\"by\":10,\"on\":0}");
	enter_and_leave(b, 1210, 1220, 1);
	back(b, 2220, 2, "kxray:sched {\"off\":200,\"state\":\"R\"}");
	/* on 2 in 610-870, idle (a kernel thread's state) until 1100 */
	enter_and_leave(b, 2230, 2240, 2);
	back(b, 3200, 2, "kxray:sched {\"off\":460,\"state\":\"I\"}");
	/* moves without a record of it, and ends */
	enter_and_leave(b, 3210, 3220, 2);
	enter_and_leave(b, 3300, 3400, 0);

	/* on CPUs that Perfetto does not take */
	enter_and_leave(c, 1000, 1100, 5000);
	back(c, 1300, 5000, "kxray:sched {\"off\":100,\"state\":\"S\",\"by\":10,\"on\":5000}");
	enter_and_leave(c, 1310, 1320, 5000);
	known_end(w, fd);
}

#define SWITCHES(parked, idle) \
	"switch 0 0 - 3\n" "switch 0 0 10 3\n" "switch 0 100 - 1\n" "switch 0 340 10 3\n" \
	"switch 0 400 - 2\n" "switch 0 850 10 3\n" "switch 0 900 - 1\n" "switch 0 1000 10 3\n" \
	"switch 0 1050 - 3\n" "switch 0 1080 10 3\n" "switch 0 1100 - 0\n" "switch 0 1150 11 3\n" \
	"switch 0 1200 - 3\n" \
	"switch 1 0 - 3\n" "switch 1 100 11 3\n" "switch 1 510 - 0\n" "switch 1 520 10 3\n" \
	"switch 1 600 - " parked "\n" "switch 1 700 10 3\n" "switch 1 750 - 1\n" \
	"switch 2 0 - 3\n" "switch 2 610 11 3\n" "switch 2 870 - " idle "\n" "switch 2 1100 11 3\n" \
	"switch 2 1150 - 3\n" \
	"switch 3 0 - 3\n" \
	"waking 0 700 10 by 77\n" \
	"waking 1 300 10 by 11\n" \
	"waking 2 840 10 by 11\n" \
	"waking 3 500 10 by interrupt\n" \
	"flow 50 10 to 11\n" "flow 150 10 to 12\n" "flow 300 11 to 10\n" "flow 840 11 to 10\n" \
	"flow 990 11 to 10\n"

/* What ran on the CPUs, as far as the trace says, who woke whom, and from where. */
static void test_cpu_tracks(void **state)
{
	json_t *session = json_pack("{s:{s:s,s:s}}", "host", "system", "Linux", "release", "6.1.0-1");
	const char *out;

	(void)state;
	write_sched(in_dir("trace"));
	out = exported(in_dir("trace"), session, false);
	assert_string_equal(lines_of(known_read("perfetto.py", "", out), "switch waking flow"),
			    SWITCHES("64", "128"));
	assert_string_equal(known_notice, "CPUs from 1024 on have no track: Perfetto does not take them");
	assert_int_equal(lines_with(out, "release: \"6.1.0-1\""), 1);

	/* Perfetto takes an unknown kernel for one before 4.14 */
	out = exported(in_dir("trace"), NULL, false);
	assert_string_equal(lines_of(known_read("perfetto.py", "", out), "switch waking flow"),
			    SWITCHES("512", "1026"));
	assert_int_equal(lines_with(out, "release:"), 0);

	/* CLOCK_MONOTONIC alone is not named: Perfetto takes ftrace's times for CLOCK_BOOTTIME's */
	session = json_pack("{s:{s:I,s:I}}", "clock", "monotonic_ns", (json_int_t)7000000000,
			    "monotonic_ticks", (json_int_t)1000);
	out = exported(in_dir("trace"), session, false);
	assert_int_equal(lines_with(out, "clock_snapshot"), 0);
	assert_non_null(strstr(known_read("perfetto.py", "", out), "\nswitch 1 7000000100 11 3\n"));
}

/* Ids that no thread can have, and times that go back, are in no lists whose differences would wrap. */
static void test_damaged_notes(void **state)
{
	struct kx_fdr_thread *a, *b;
	struct kx_fdr_writer *w;
	const char *out, *text;
	int fd;

	(void)state;
	w = known_writer(in_dir("trace"), &fd);
	a = kx_fdr_writer_thread(w, 9, INT32_MAX, "a", "prog");
	b = kx_fdr_writer_thread(w, 9, 11, "b", "prog");
	enter_and_leave(a, 1000, 1100, 0);
	back(a, 1300, 0, "kxray:sched {\"off\":100,\"state\":\"S\",\"wait\":10,\"by\":11,\"on\":0}");
	enter_and_leave(b, 1000, 1100, 1);
	back(b, 1400, 1, "kxray:sched {\"off\":200,\"state\":\"S\",\"wait\":10,\"by\":4294967295,\"on\":1}");
	/* asleep before it was back */
	back(b, 1402, 1, "kxray:sched {\"off\":300,\"state\":\"S\",\"wait\":250,\"by\":0,\"on\":1}");
	enter_and_leave(b, 1500, 1600, 1);
	known_end(w, fd);
	out = exported(in_dir("trace"), NULL, false);
	text = line_of("protoc --decode=perfetto.protos.Trace -I$OLDPWD/tests/readers perfetto.proto < %s | "
		       "awk '/_timestamp: / && $2 > 1000 || /(waking|next)_pid: / && $2 > 4194305 || / pid: / && $2 == 4294967295' | wc -l # %s",
		       out, "");
	assert_int_equal(strtoul(text, NULL, 10), 0);
	assert_int_equal(lines_with(out, "waking_pid: 11"), 1);
}

/* A gap whose note comes before that of the time off the CPU around it: states do not overlap. */
static void test_gap_while_off(void **state)
{
	struct kx_fdr_thread *a;
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	w = known_writer(in_dir("trace"), &fd);
	a = kx_fdr_writer_thread(w, 9, 10, "a", "prog");
	enter_and_leave(a, 1000, 1100, 0);
	back(a, 1300, 0, "kxray:sched {\"off\":100,\"state\":\"S\"}");
	known_note(a, 1800, "kxray:loss {\"entries\":1,\"exits\":1,\"from\":1600,\"to\":1800}");
	back(a, 2000, 0, "kxray:sched {\"off\":600,\"state\":\"S\"}");
	enter_and_leave(a, 2010, 2100, 0);
	known_end(w, fd);
	assert_string_equal(lines_of(known_read("perfetto.py", "",
						exported(in_dir("trace"), NULL, false)), "sched"),
			    "sched 9 10 0 100 \"running\" cpu=0\n"
			    "sched 9 10 100 50 \"sleeping\"\n"
			    "sched 9 10 150 50 \"running\" cpu=0\n"
			    "sched 9 10 200 300 \"sleeping\"\n"
			    "sched 9 10 500 50 \"running\" cpu=0\n");
}

/* Many switches and threads: more than a bundle and a buffer of the temporary file hold. */
static void test_many_switches(void **state)
{
	const int threads = 50, rounds = 40;
	struct kx_fdr_writer *w;
	const char *out, *text;
	size_t switches = 0;
	int fd;

	(void)state;
	w = known_writer(in_dir("trace"), &fd);
	for (int i = 0; i < threads; i++) {
		struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 1, 1000 + i, "many", "of them");

		/* thread i runs on its CPU at every 1000th tick for 5 ns */
		for (int n = 0; n < rounds; n++) {
			uint64_t at = 1000 + (uint64_t)n * 1000 + (uint64_t)i * 20;

			if (n)
				back(t, at, (uint16_t)(i % 4),
				     "kxray:sched {\"off\":990,\"state\":\"S\",\"wait\":10,\"by\":0,\"on\":0}");
			enter_and_leave(t, at, at + 10, (uint16_t)(i % 4));
		}
	}
	known_end(w, fd);
	out = exported(in_dir("trace"), NULL, false);
	text = lines_of(known_read("perfetto.py", "", out), "switch");
	for (; (text = strchr(text, '\n')); text++)
		switches++;
	/* to each run and from it, and each CPU's first */
	assert_int_equal(switches, threads * rounds * 2 + 4);
	assert_true(lines_with(out, "ftrace_events {") >= 8);
	assert_string_equal(known_read("perfetto.py", "--functions", out), "2000 10000 \"main\"\n");
}

static void test_empty(void **state)
{
	(void)state;
	known_write_empty(in_dir("trace"));
	assert_string_equal(known_read("perfetto.py", "",
				       exported(in_dir("trace"), NULL, false)), "");
}

static void test_many_threads(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 10000);
	assert_string_equal(known_read("perfetto.py", "--functions",
				       exported(in_dir("trace"), NULL, false)),
			    "10000 100000 \"main\"\n");
}

static void test_disk_full(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 2000);
	assert_int_equal(known_export(&kx_exporter_perfetto, in_dir("trace"), "/dev/full", NULL,
				      false), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_trace),
		cmocka_unit_test(test_names_are_written_once),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_clock_snapshots),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_cpu_tracks),
		cmocka_unit_test(test_damaged_notes),
		cmocka_unit_test(test_gap_while_off),
		cmocka_unit_test(test_many_switches),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
