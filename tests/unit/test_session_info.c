// SPDX-License-Identifier: BSD-2-Clause
/* The session's data: what the map and the trace's own note say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record/session_info.h"

static struct kx_clock_log taken;

static json_t *make_info(void)
{
	static const char *const labels[] = { "env=production", "team=db" };
	static char name[] = "kxray", verb[] = "record", option[] = "-f", pattern[] = "a b";
	static char *argv[] = { name, verb, option, pattern };
	struct kx_recording_options o = { .argc = 4, .argv = argv, .labels = labels, .nlabels = 2, .callers = true, .sample_hz = 99 };
	struct kx_clock clock = { .kind = KX_CLOCK_KTIME,
				  .tsc_hz = 2000000000,
				  .hz_origin = "measured",
				  .source = "tsc",
				  .first_ns = 11,
				  .first_ticks = 22 };
	struct kx_selection sel = { .risk = { .returns_harmless = true, .reason = "why" } };

	o.sources[KX_SOURCE_SCHED] = true;
	kx_clock_log_start(&taken);
	return kx_session_info(&o, &sel, &clock, "uprobe", 1234, &taken);
}

static const json_t *at(const json_t *json, const char *key)
{
	const json_t *value = json_object_get(json, key);

	assert_non_null(value);
	return value;
}

/* @n snapshots of the clocks, taken one after the other and before now. */
static void check_snapshots(const json_t *info, size_t n)
{
	static const char *const whens[] = { "start", "flush", "end" };
	static const struct {
		const char *key;
		clockid_t id;
	} clocks[] = {
		{ "monotonic_ns", CLOCK_MONOTONIC },
		{ "boottime_ns", CLOCK_BOOTTIME },
		{ "realtime_ns", CLOCK_REALTIME },
	};
	const json_t *all = at(at(info, "clock"), "snapshots"), *s;
	json_int_t tsc = 0;

	assert_int_equal(json_array_size(all), n);
	for (size_t i = 0; i < n; i++) {
		s = json_array_get(all, i);
		assert_string_equal(json_string_value(at(s, "when")), i && i == n - 1 ? whens[2] : whens[!!i]);
		assert_true(json_integer_value(at(s, "tsc")) > tsc);
		tsc = json_integer_value(at(s, "tsc"));
		assert_true((uint64_t)tsc < kx_tsc_read());
		assert_true(json_integer_value(at(s, "error_ns")) > 0);
		for (size_t c = 0; c < sizeof(clocks) / sizeof(clocks[0]); c++) {
			struct timespec now;
			json_int_t ns, age;

			clock_gettime(clocks[c].id, &now);
			ns = now.tv_sec * (json_int_t)1000000000 + now.tv_nsec;
			age = ns - json_integer_value(at(s, clocks[c].key));
			assert_true(age >= 0 && age < 600 * (json_int_t)1000000000);
		}
	}
}

/* As the files and commands of this machine say. */
static void check_host(const json_t *host)
{
	static const struct {
		const char *key, *command;
	} facts[] = {
		{ "name", "uname -n" },
		{ "boot_id", "cat /proc/sys/kernel/random/boot_id" },
		{ "machine_id", "cat /etc/machine-id 2>/dev/null" },
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		const char *value = json_string_value(json_object_get(host, facts[i].key));
		FILE *f = popen(facts[i].command, "r");
		char want[128] = "";

		assert_non_null(f);
		if (fgets(want, sizeof(want), f))
			want[strcspn(want, "\n")] = 0;
		pclose(f);
		assert_string_equal(value ? value : "", want);
	}
}

static void test_options_and_clock(void **state)
{
	json_t *info = make_info();
	const json_t *clock = at(info, "clock");

	(void)state;
	assert_int_equal(json_array_size(at(info, "kxray_command")), 4);
	assert_string_equal(json_string_value(json_array_get(at(info, "kxray_command"), 3)), "a b");
	assert_true(json_is_true(at(info, "callers")));
	assert_true(json_is_true(at(info, "sched")));
	assert_int_equal(json_integer_value(at(info, "sample_hz")), 99);
	assert_string_equal(json_string_value(at(info, "mechanism")), "uprobe");
	assert_int_equal(json_object_size(at(info, "labels")), 2);
	assert_string_equal(json_string_value(at(at(info, "labels"), "env")), "production");
	check_host(at(info, "host"));
	assert_string_equal(json_string_value(at(info, "exits_reason")), "why");
	assert_int_equal(json_integer_value(at(clock, "tsc_hz")), 2000000000);
	assert_int_equal(json_integer_value(at(clock, "start_tsc")), 1234);
	assert_int_equal(json_integer_value(at(clock, "monotonic_ns")), 11);
	assert_int_equal(json_integer_value(at(clock, "monotonic_ticks")), 22);
	assert_string_equal(json_string_value(at(clock, "source")), "tsc");
	assert_null(json_object_get(clock, "error_ticks")); /* only at the end is it known */
	check_snapshots(info, 1);
	json_decref(info);
}

static void test_note(void **state)
{
	json_t *info = make_info(), *body, *list = json_array();
	char *note, large[5000];

	(void)state;
	json_array_append_new(list, json_pack("{s:i,s:[]}", "pid", 5, "mappings"));
	json_object_set_new(info, "processes", list);
	note = kx_session_note(info);
	assert_int_equal(strncmp(note, "kxray:session {", 15), 0);
	body = json_loads(strchr(note, '{'), 0, NULL);
	assert_non_null(body);
	assert_int_equal(json_object_size(body), 5);
	/* mappings stay in the map */
	assert_int_equal(json_object_size(json_array_get(at(body, "processes"), 0)), 1);
	assert_int_equal(json_object_size(json_array_get(list, 0)), 2);
	json_decref(body);
	free(note);

	/* too long for a note: without processes */
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	json_array_append_new(list, json_pack("{s:s}", "command", large));
	note = kx_session_note(info);
	body = json_loads(strchr(note, '{'), 0, NULL);
	assert_non_null(body);
	assert_int_equal(json_object_size(body), 4);
	assert_null(json_object_get(body, "processes"));
	json_decref(body);
	free(note);
	json_decref(info);
}

static void test_end(void **state)
{
	const struct kx_collector_counts counts = { .events = 10,
						    .lost = 6,
						    .lost_by = { 1, 2, 3 },
						    .lost_missed = 4,
						    .repaired = 5,
						    .threads = 8 };
	const struct kx_clock clock = { .error = 9, .tsc_hz = 3 };
	json_t *info = make_info();

	(void)state;
	kx_session_info_end(info, 1.5, &clock, &taken, &counts);
	assert_int_equal(json_integer_value(at(at(info, "clock"), "error_ticks")), 9);
	assert_int_equal(json_integer_value(at(at(info, "clock"), "tsc_hz")), 3);
	check_snapshots(info, 2);
	/* of the next file of a rotated trace: its own end */
	kx_clock_log_add(&taken);
	kx_session_info_end(info, 1.5, &clock, &taken, &counts);
	check_snapshots(info, 3);
	assert_true(json_real_value(at(info, "seconds")) == 1.5);
	assert_int_equal(json_integer_value(at(info, "events")), 10);
	assert_int_equal(json_integer_value(at(info, "lost")), 6);
	assert_int_equal(json_integer_value(at(at(info, "lost_by"), "ring_full")), 1);
	assert_int_equal(json_integer_value(at(at(info, "lost_by"), "ring_busy")), 2);
	assert_int_equal(json_integer_value(at(at(info, "lost_by"), "no_ring")), 3);
	assert_int_equal(json_integer_value(at(at(info, "lost_by"), "kernel_missed")), 4);
	assert_int_equal(json_integer_value(at(info, "repaired")), 5);
	assert_int_equal(json_integer_value(at(info, "threads")), 8);
	at(info, "finished");
	json_decref(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_and_clock),
		cmocka_unit_test(test_note),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
