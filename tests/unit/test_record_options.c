// SPDX-License-Identifier: BSD-2-Clause
/* The command line of record, and the filters of report and export: combinations of options. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/filter_options.h"
#include "cmd/record_arguments.h"

static struct kx_record_arguments a;
static struct kx_err err;

/* Splits @line at blanks into @argv, which begins with @name; returns argc. */
static int split(const char *name, const char *line, char **argv)
{
	static char copy[512];
	char *save = NULL;
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s %s", name, line);
	for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save))
		argv[argc++] = p;
	argv[argc] = NULL;
	return argc;
}

static int parse(const char *line)
{
	static char *argv[32];

	kx_record_arguments_free(&kx_command_record, &a);
	memset(&a, 0, sizeof(a));
	memset(&err, 0, sizeof(err));
	a.o.mechanism = -1;
	return kx_record_parse(&kx_command_record, &a, split("record", line, argv), argv, &err);
}

static void accepted(const char *line)
{
	int r = parse(line);

	if (r)
		fail_msg("%s: %d, %s", line, r, err.text);
}

static void refused(const char *line, const char *text)
{
	int r = parse(line);

	if (r != -EINVAL || !strstr(err.text, text))
		fail_msg("%s: %d, '%s', not '%s'", line, r, err.text, text);
}

static void test_targets(void **state)
{
	(void)state;
	accepted("-p 5,6 -p 7");
	assert_int_equal(a.o.npids, 3);
	assert_int_equal(a.o.pids[2], 7);
	assert_false(a.o.follow || a.o.select.match_later || a.o.all);
	assert_string_equal(a.o.output, "trace.xray");
	accepted("-p 5 --follow");
	assert_true(a.o.follow && a.o.select.match_later);
	assert_false(a.o.follow_exact);
	accepted("-p 5 --follow=exact");
	assert_true(a.o.follow && a.o.follow_exact);
	accepted("--follow=exact -- true");
	assert_true(a.o.follow && a.o.follow_exact);
	refused("-p 5 --follow=near", "--follow takes exact, not 'near'");
	accepted("-- true -a");
	assert_string_equal(a.o.command[1], "-a");
	assert_true(a.o.follow);
	assert_false(a.o.select.match_later);
	accepted("--follow --no-follow -- true");
	assert_false(a.o.follow || a.o.select.match_later);
	accepted("--no-follow --follow -- true");
	assert_true(a.o.follow && a.o.select.match_later);
	accepted("-a -f f* -f g -x h");
	assert_true(a.o.all && a.o.follow && a.o.select.match_later);
	assert_int_equal(a.o.select.ninclude, 2);
	assert_string_equal(a.o.select.include[1], "g");
	assert_int_equal(a.o.select.nexclude, 1);
	assert_string_equal(a.o.select.exclude[0], "h");
	refused("", "nothing to trace: give -p PID, -a or -- COMMAND");
	refused("--", "nothing to trace");
	refused("-p 5 -- true", "either -p or a command after '--', not both");
	refused("-a -f f -p 5", "leave out -p");
	refused("-a -f f -- true", "leave out the command");
	refused("-a", "-a needs -f");
	refused("-a -f f --no-follow", "leave out --no-follow");
	refused("-p 5 now", "'now' is not an option");
	refused("-p 0", "-p takes process ids");
	refused("-p 5 -o -", "a recording needs a file to write");
}

static void test_values(void **state)
{
	(void)state;
	accepted("-p 5 --exits instruction --clock ktime --mechanism auto --kernel-mechanism fentry");
	assert_int_equal(a.o.select.exits, KX_EXITS_INSTRUCTION);
	assert_int_equal(a.o.clock, KX_CLOCK_KTIME);
	assert_int_equal(a.o.mechanism, -1);
	assert_int_equal(a.o.kernel_mechanism, KX_KERNEL_FENTRY);
	accepted("-p 5 --mechanism single --args 6 --sample 99 --sched --callers --depth 96");
	assert_int_equal(a.o.mechanism, 2);
	assert_int_equal(a.o.nargs, 6);
	assert_int_equal(a.o.sample_hz, 99);
	assert_int_equal(a.o.max_depth, 96);
	assert_true(a.o.sources[KX_SOURCE_SCHED] && a.o.callers);
	accepted("-p 5 -d 0.5 --min-duration 5us --ring-size 4M --fdr-version 3 -qo x");
	assert_true(a.o.seconds == 0.5 && a.quiet);
	assert_int_equal(a.o.min_duration_ns, 5000);
	assert_int_equal(a.o.ring_bytes, 4 << 20);
	assert_int_equal(a.o.fdr_version, 3);
	assert_string_equal(a.o.output, "x");
	refused("-p 5 --depth 97", "--depth takes 1 to 96, not '97'");
	refused("-p 5 --sample 100001", "--sample takes 1 to 100000 times per second, not '100001'");
	refused("-p 5 --args 7", "--args takes 0 to 6, or auto, not '7'");
	refused("-p 5 --fdr-version 6", "--fdr-version takes 1 to 5, not '6'");
	refused("-p 5 --ring-size 0", "--ring-size takes bytes, as in 512K or 16M, not '0'");
	refused("-p 5 --min-duration 0", "--min-duration takes a time of 1ns to 3600s");
	refused("-p 5 --min-duration 1us --exits none", "leave out --exits=none");
	refused("-p 5 --comm a --comm b", "--comm is given twice");
	assert_int_equal(parse("-p 5 --uid no-such-user-here"), -ENOENT);
	assert_non_null(strstr(err.text, "no-such-user-here"));
}

static void test_count_and_heat(void **state)
{
	static const char *const vain[] = { "-o x", "--keep 1", "--min-duration 1us", "--depth 1",
					    "--args 1", "--callers", "--sample 1", "--sched",
					    "--fdr-version 5", "--ring-size 1M", "--exits return" };
	char line[128];

	(void)state;
	accepted("-p 5 --count");
	assert_int_equal(a.o.select.exits, KX_EXITS_NONE);
	assert_null(a.o.output);
	for (size_t i = 0; i < sizeof(vain) / sizeof(vain[0]); i++) {
		snprintf(line, sizeof(line), "-p 5 --count %s", vain[i]);
		refused(line, "--count writes no trace, it only counts calls: leave out ");
	}
	accepted("-p 5 --by-heat 1.5");
	assert_true(a.heat_seconds == 1.5 && a.max_overhead == 0);
	accepted("-p 5 --by-heat 1 --max-overhead 12.5%");
	assert_true(a.max_overhead == 12.5);
	accepted("-p 5 --max-overhead 1 --yes");
	assert_true(a.max_overhead == 1 && a.yes);
	accepted("-f x --max-overhead 1 -- true");
	assert_true(a.o.max_overhead == 1);
	accepted("-f x -- true");
	assert_true(a.o.max_overhead == 0);
	accepted("-- true");
	assert_true(a.o.max_overhead == KX_DEFAULT_OVERHEAD);
	accepted("-p 5 --count");
	assert_true(a.o.max_overhead == KX_DEFAULT_OVERHEAD);
	accepted("-p 5 --count -f x --max-overhead 1");
	assert_true(a.o.max_overhead == 1);
	accepted("-p 5 --count -f x");
	assert_true(a.o.max_overhead == 0);
	refused("--by-heat 1 -- true", "-p PID");
	refused("-p 5 --by-heat 1 --count", "either --count or --by-heat, not both");
}

static void test_flight(void **state)
{
	(void)state;
	accepted("-p 5");
	assert_null(a.o.flight);
	accepted("-p 5 --flight-recorder 64K --trigger f>10ms --trigger m:g@entry");
	assert_ptr_equal(a.o.flight, &a.flight);
	assert_int_equal(a.flight.bytes, 64 << 10);
	assert_int_equal(a.flight.dumps, KX_FLIGHT_DUMPS);
	assert_true(a.flight.interval == KX_FLIGHT_INTERVAL && a.flight.keep == 0);
	assert_int_equal(a.o.flight->ntriggers, 2);
	assert_int_equal(a.o.flight->triggers[0].over_ns, 10000000);
	assert_true(a.o.flight->triggers[1].on_entry);
	/* what triggers is traced */
	assert_int_equal(a.o.select.ninclude, 2);
	assert_string_equal(a.o.select.include[0], "f");
	assert_string_equal(a.o.select.include[1], "m:g");
	accepted("-p 5 --keep 2.5 --dumps 3 --dump-interval .1");
	assert_true(a.o.flight && a.flight.keep == 2.5 && a.flight.interval == .1);
	assert_int_equal(a.flight.dumps, 3);
	refused("-p 5 --flight-recorder 63K", "--flight-recorder takes bytes, 64K at least");
	refused("-p 5 --trigger f@entry", "add --flight-recorder SIZE or --keep TIME");
	refused("-p 5 --dumps 3", "add --flight-recorder");
	refused("-p 5 --dump-interval 3", "add --flight-recorder");
	refused("-p 5 --keep 1 --trigger f", "the trigger 'f'");
	refused("-p 5 --keep 1 --trigger f@entry --trigger g>10", "needs a unit");
	assert_int_equal(a.flight.ntriggers, 1);
}

static void test_rotation(void **state)
{
	(void)state;
	accepted("-p 5 --rotate 100M");
	assert_int_equal(a.o.rotation.bytes, 100 << 20);
	assert_true(a.o.rotation.seconds == 0 && !a.o.rotation.keep);
	accepted("-p 5 --rotate 1.5min --rotate 64K --keep-files 3");
	assert_true(a.o.rotation.seconds == 90 && a.o.rotation.bytes == 64 << 10);
	assert_int_equal(a.o.rotation.keep, 3);
	accepted("-p 5 --rotate 2h");
	assert_true(a.o.rotation.seconds == 7200);
	refused("-p 5 --rotate 63K", "--rotate takes bytes, 64K at least, or a time with its unit");
	refused("-p 5 --rotate 10m", "not '10m'");
	refused("-p 5 --rotate 0s", "not '0s'");
	refused("-p 5 --rotate s", "not 's'");
	refused("-p 5 --rotate 5", "not '5'");
	refused("-p 5 --rotate nan", "not 'nan'");
	refused("-p 5 --keep-files 3", "--keep-files is for --rotate");
	refused("-p 5 --rotate 1M --keep 5", "either --rotate or a flight recorder");
	refused("-p 5 --rotate 1M --count", "leave out --rotate");
}

/* Filters of calls */

static const struct kx_option_group filter_groups[] = { { .options = kx_filter_options }, { 0 } };
static const struct kx_command filters = { .name = "filters", .groups = filter_groups };
static struct kx_call_filter filter;

static int parse_filters(const char *line)
{
	static char *argv[32];

	kx_options_free(&filters, &filter);
	memset(&filter, 0, sizeof(filter));
	memset(&err, 0, sizeof(err));
	return kx_options_parse(&filters, &filter, split("filters", line, argv), argv, &err);
}

static void refused_filter(const char *line, const char *text)
{
	int r = parse_filters(line);

	if (r != -EINVAL || !strstr(err.text, text))
		fail_msg("%s: %d, '%s', not '%s'", line, r, err.text, text);
}

static void test_filters(void **state)
{
	static const char *const each[] = { "--time 1..", "--time ..1", "--pid 0", "--tid 1",
					    "-f a", "-x a", "--min-duration 1", "--depth 1" };

	(void)state;
	assert_int_equal(parse_filters(""), 0);
	assert_false(kx_filter_is_set(&filter));
	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		assert_int_equal(parse_filters(each[i]), 0);
		assert_true(kx_filter_is_set(&filter));
	}
	assert_int_equal(parse_filters("--time 10ms..1.5s --pid 1,2 --tid 3 --tid 4 --function a --function b "
				       "--exclude c --min-duration 2us --depth 7"), 0);
	assert_int_equal(filter.from_ns, 10000000);
	assert_int_equal(filter.to_ns, 1500000000);
	assert_int_equal(filter.npids, 2);
	assert_int_equal(filter.pids[1], 2);
	assert_int_equal(filter.ntids, 2);
	assert_int_equal(filter.tids[0], 3);
	assert_int_equal(filter.ninclude, 2);
	assert_string_equal(filter.include[1], "b");
	assert_string_equal(filter.exclude[0], "c");
	assert_int_equal(filter.min_duration_ns, 2000);
	assert_int_equal(filter.max_depth, 7);
	refused_filter("--time 1", "--time takes FROM..TO");
	refused_filter("--time ..", "--time takes FROM..TO");
	refused_filter("--time 1..x", "--time takes FROM..TO");
	refused_filter("--time 2..2", "--time 2..2 is empty");
	refused_filter("--pid 1,-2", "--pid takes numbers separated by commas, as in 12,34, not '1,-2'");
	refused_filter("--depth 0", "--depth takes a number above 0, not '0'");
	refused_filter("--depth 4294967296", "--depth takes a number above 0");
	refused_filter("--min-duration fast", "--min-duration takes a time such as 10us");
	refused_filter("-f :", "pattern");
}

static int free_all(void **state)
{
	(void)state;
	kx_record_arguments_free(&kx_command_record, &a);
	kx_options_free(&filters, &filter);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets), cmocka_unit_test(test_values),
		cmocka_unit_test(test_count_and_heat), cmocka_unit_test(test_flight),
		cmocka_unit_test(test_rotation),
		cmocka_unit_test(test_filters),
	};

	return cmocka_run_group_tests(tests, NULL, free_all);
}
