// SPDX-License-Identifier: BSD-2-Clause
/* Time lines, machines and their offsets, pairs of calls, the manifest and tar: what `kxray merge` is made of. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/merge/merge.h"
#include "exporters/merge/pairs.h"
#include "exporters/merge/tar.h"

#define SECOND 1000000000ll
#define HZ (2 * SECOND)
#define BOOT (1700000000 * SECOND)

/* Snapshots that are @ticks apart; the clock runs @ns in each. */
static void snapshots(struct kx_snapshots *s, const int64_t *ns, size_t n, int64_t ticks)
{
	int64_t boottime = 100 * SECOND;

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i <= n; i++) {
		s->items[s->n++] = (struct kx_snapshot){ 1000 + (int64_t)i * ticks, boottime - 5, boottime, BOOT + boottime, 3 };
		boottime += i < n ? ns[i] : 0;
	}
}

static void test_line(void **state)
{
	/* at the nominal rate, 50 ppm fast, suspended for a second */
	static const int64_t ns[] = { SECOND, SECOND + 50000, 2 * SECOND };
	struct kx_time_line line;
	struct kx_snapshots s;
	uint64_t last = 0;

	(void)state;
	snapshots(&s, ns, 3, HZ);
	assert_true(kx_time_line_init(&line, &s, HZ, 7, 1000, 1000 + 4 * HZ));
	assert_int_equal(kx_time_line_ns(&line, 1000), 100 * SECOND + 7);
	assert_int_equal(kx_time_line_ns(&line, 1000 + HZ / 2), 100 * SECOND + SECOND / 2 + 7);
	assert_in_range(kx_time_line_ns(&line, 1000 + HZ + HZ / 2), 101 * SECOND + SECOND / 2 + 25006,
			101 * SECOND + SECOND / 2 + 25007); /* rounded down */
	assert_int_equal(kx_time_line_ns(&line, 1000 + 3 * HZ), 104 * SECOND + 50000 + 7);
	/* before and after, in any order */
	assert_int_equal(kx_time_line_ns(&line, 0), 100 * SECOND - 500 + 7);
	assert_in_range(kx_time_line_ns(&line, 1000 + 6 * HZ), 108 * SECOND + 100000 + 4, 108 * SECOND + 100000 + 7);
	assert_int_equal(kx_time_line_ns(&line, 1000), 100 * SECOND + 7);
	for (uint64_t tsc = 0; tsc < 1000 + 5 * HZ; tsc += 999983) {
		uint64_t now = kx_time_line_ns(&line, tsc);

		assert_true(now >= last);
		last = now;
	}
	/* one snapshot only: the nominal rate */
	s.n = 1;
	assert_true(kx_time_line_init(&line, &s, HZ, 0, 1000, 1000 + HZ));
	assert_int_equal(kx_time_line_ns(&line, 1000 + HZ), 101 * SECOND);
	/* nothing, negative times, damaged maps */
	assert_false(kx_time_line_init(&line, &s, HZ, -100 * SECOND, 1000, 1000));
	assert_false(kx_time_line_init(&line, &s, 1, 0, 1000, 1000));
	assert_false(kx_time_line_init(&line, &s, HZ, 0, 1000, UINT64_MAX));
	s.items[0].tsc = INT64_MAX / 4;
	assert_false(kx_time_line_init(&line, &s, HZ, 0, 1000, 2000));
	s.n = 0;
	assert_false(kx_time_line_init(&line, &s, HZ, 0, 1000, 1000));
}

static void test_snapshots(void **state)
{
	json_t *session = json_loads("{\"clock\":{\"snapshots\":["
				     "{\"tsc\":10,\"monotonic_ns\":1,\"boottime_ns\":2,\"realtime_ns\":3,\"error_ns\":4,\"line_error_ns\":5},"
				     "{\"tsc\":9,\"monotonic_ns\":1,\"boottime_ns\":2,\"realtime_ns\":3},\"x\",{\"tsc\":\"a\"},"
				     "{\"tsc\":30,\"monotonic_ns\":1,\"boottime_ns\":1,\"realtime_ns\":3},"
				     "{\"tsc\":20,\"monotonic_ns\":11,\"boottime_ns\":12,\"realtime_ns\":1}]}}",
				     0, NULL);
	json_t *all = json_object_get(json_object_get(session, "clock"), "snapshots");
	struct kx_snapshots s;
	struct kx_snapshot at;

	(void)state;
	kx_snapshots_read(session, &s);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.items[0].error, 9);
	assert_int_equal(s.items[1].tsc, 20);
	assert_true(kx_snapshots_at(&s, HZ, 15, &at));
	assert_int_equal(at.boottime, 7);
	assert_int_equal(at.realtime, 2); /* set back in between */
	assert_false(kx_snapshots_at(&s, HZ, UINT64_MAX, &at));
	/* too many: the last one stays */
	for (int i = 0; i < 100; i++)
		json_array_append_new(all, json_pack("{s:i,s:i,s:i,s:i}", "tsc", 100 + i, "monotonic_ns", 100 + i,
						     "boottime_ns", 100 + i, "realtime_ns", 5));
	kx_snapshots_read(session, &s);
	assert_int_equal(s.n, KX_MAX_SNAPSHOTS);
	assert_int_equal(s.items[s.n - 1].tsc, 199);
	json_decref(session);
	kx_snapshots_read(NULL, &s);
	assert_int_equal(s.n, 0);
}

/* A host as kx_merge_host_read leaves it. */
static struct kx_merge_host host(const char *path, const char *name, const char *boot_id, int64_t booted, uint64_t first)
{
	static const int64_t ns[] = { SECOND };
	struct kx_merge_host h = { .path = path, .tsc_hz = HZ, .first_tsc = first, .last_tsc = first + 10 };

	snprintf(h.host, sizeof(h.host), "%s", name);
	snprintf(h.boot_id, sizeof(h.boot_id), "%s", boot_id);
	snapshots(&h.snapshots, ns, 1, HZ);
	for (size_t i = 0; i < 2; i++)
		h.snapshots.items[i].realtime += booted;
	return h;
}

/* Numbers of a damaged map whose sums and products would leave the range. */
static void test_hostile_snapshots(void **state)
{
	struct kx_snapshots s = { .items = { { 1000, 1, 1, 1, 0 }, { 1003, 1ll << 61, 1ll << 61, 1ll << 61, 0 } },
				  .n = 2 };
	struct kx_snapshot at;
	json_t *session = json_loads("{\"clock\":{\"snapshots\":[{\"tsc\":10,\"monotonic_ns\":1,\"boottime_ns\":2,"
				     "\"realtime_ns\":3,\"error_ns\":9223372036854775807,\"line_error_ns\":1}]}}",
				     0, NULL);

	(void)state;
	assert_true(kx_snapshots_at(&s, HZ, 1006, &at));
	assert_int_equal(at.realtime, 2 * ((1ll << 61) - 1) + 1);
	assert_false(kx_snapshots_at(&s, HZ, 1030, &at)); /* ten times 2^61 has 2^62 in its low 64 bits */
	assert_false(kx_snapshots_at(&s, HZ, 990, &at));
	kx_snapshots_read(session, &s);
	assert_int_equal(s.n, 0);
	json_decref(session);
}

static void test_hosts(void **state)
{
	struct kx_merge_host h[] = {
		host("a", "web1", "1111111111", 0, 5000),      host("b", "db1", "22222222", -SECOND, 5000),
		host("c", "web1", "1111111111", 40, 9000),     host("d", "web1", "3333333333", 3 * SECOND, 5000),
		host("e", "web1", "", 3 * SECOND + 500, 6000), host("f", "web1", "", 9 * SECOND, 6000),
	};
	const size_t n = sizeof(h) / sizeof(h[0]);
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(kx_merge_hosts_align(h, n, &err), 0);
	assert_string_equal(h[0].machine, "web1");
	assert_string_equal(h[1].machine, "db1");
	assert_string_equal(h[2].machine, "web1");
	assert_int_equal(h[2].same, 0);
	assert_int_equal(h[2].boot, h[0].boot); /* 40 ns were an error of reading */
	assert_string_equal(h[3].machine, "web1 (boot 33333333)");
	assert_int_equal(h[4].same, 3); /* no boot id, but booted at that time */
	assert_string_equal(h[5].machine, "web1 (2)");
	/* on the time line of the host that was booted first */
	assert_int_equal(kx_merge_hosts_reference(h, n), 1);
	assert_int_equal(kx_merge_hosts_shift(h, n, 0), SECOND);
	assert_int_equal(kx_merge_hosts_shift(h, n, 3), 4 * SECOND);
	assert_int_equal(h[0].error, 3);
	assert_int_equal(h[0].stepped, 0);

	/* the same recording again */
	h[2].first_tsc = 5000;
	h[2].last_tsc = 5010;
	assert_int_equal(kx_merge_hosts_align(h, n, &err), -EEXIST);
	assert_string_equal(err.text, "'a' and 'c' are the same recording: name it once");
	/* other machines of one name */
	snprintf(h[0].machine_id, sizeof(h[0].machine_id), "m1");
	snprintf(h[2].machine_id, sizeof(h[2].machine_id), "m2");
	assert_int_equal(kx_merge_hosts_align(h, 3, &err), 0);
	assert_string_equal(h[2].machine, "web1 (2)");
	/* CLOCK_REALTIME was set */
	h[1].snapshots.items[1].realtime += 2000000;
	assert_int_equal(kx_merge_hosts_align(h, 2, &err), 0);
	assert_int_equal(h[1].stepped, 2000000);
	assert_int_equal(h[1].error, 1000003);
	assert_int_equal(h[1].boot, BOOT - SECOND + 1000000);
}

static void test_offsets(void **state)
{
	static const char *const bad[] = { "", "web1", "=1ms", "web1=", "web1=x", "web1=--1ms", "web2=1ms", "we=1ms", "web1=999999999h" };
	struct kx_merge_host h[] = { host("/t/a.xray", "web1", "1", 0, 1), host("b", "db1", "2", 0, 1),
				     host("c", "web1", "1", 0, 9), host("d", "web1", "3", 0, 1) };
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(kx_merge_hosts_align(h, 3, &err), 0);
	assert_int_equal(kx_merge_hosts_offset(h, 3, "web1=-250ms", &err), 0);
	assert_int_equal(h[0].offset, -250000000);
	assert_int_equal(h[2].offset, -250000000);
	assert_int_equal(kx_merge_hosts_offset(h, 3, "/t/a.xray=+50ms", &err), 0);
	assert_int_equal(h[2].offset, -200000000);
	assert_int_equal(h[1].offset, 0);
	assert_int_equal(kx_merge_hosts_reference(h, 3), 0);
	assert_int_equal(kx_merge_hosts_shift(h, 3, 1), 200000000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(kx_merge_hosts_offset(h, 3, bad[i], &err), -EINVAL);
	/* two boots of one host: its name alone is that of the first one's machine, which is the host's */
	assert_int_equal(kx_merge_hosts_align(h, 4, &err), 0);
	assert_int_equal(kx_merge_hosts_offset(h, 4, "web1=1ms", &err), -EINVAL);
	assert_string_equal(err.text, "--offset web1=1ms: 'web1' is both 'web1' and 'web1 (boot 3)'; name one of these");
	assert_int_equal(kx_merge_hosts_offset(h, 4, "web1 (boot 3)=1ms", &err), 0);
	assert_int_equal(h[3].offset, 1000000);
	/* out of all clocks */
	h[1].offset = INT64_MAX / 2;
	assert_int_equal(kx_merge_hosts_lines(h, 3, false, &err), -ERANGE);
}

static void add(struct kx_merge_calls *c, const uint64_t (*calls)[2], size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(kx_merge_calls_add(c, calls[i][0], calls[i][1]), 0);
}

static void test_pairs(void **state)
{
	static const uint64_t client[][2] = { { 3000, 3500 }, { 1000, 1400 }, { 2000, INT64_MAX / 2 } };
	static const uint64_t server[][2] = { { 100, 300 }, { 1050, 1200 }, { 2200, 2400 } };
	struct kx_merge_calls c = { 0 }, s = { 0 };
	struct kx_err err = { 0 };
	int64_t least, most;

	(void)state;
	assert_int_equal(kx_merge_pair(&c, &s, &least, &most, &err), -EINVAL);
	add(&c, client, 3);
	add(&s, server, 2);
	assert_int_equal(kx_merge_pair(&c, &s, &least, &most, &err), -EINVAL);
	assert_non_null(strstr(err.text, "3 calls and the server's 2"));
	add(&s, server + 2, 1);
	/* 100 to 1000 at least, 2400 to 3500 at most */
	assert_int_equal(kx_merge_pair(&c, &s, &least, &most, &err), 0);
	assert_int_equal(least, 950);
	assert_int_equal(most, 1100);
	assert_int_equal(kx_merge_pair_offset(least, most), 1025);
	assert_int_equal(kx_merge_pair_offset(-1100, -950), -1025);
	assert_int_equal(kx_merge_pair_offset(-5, 5), 0);
	assert_int_equal(kx_merge_pair_offset(0, 8), 0);
	s.items[1].enter = 600;
	assert_int_equal(kx_merge_pair(&c, &s, &least, &most, &err), -ERANGE);
	assert_non_null(strstr(err.text, "number 2 would have to be moved by more than 0.001 ms and number 1 by less than 0.001"));
	kx_merge_calls_free(&c);
	kx_merge_calls_free(&s);
}

static void test_manifest(void **state)
{
	struct kx_merge_host h[] = { host("a", "..web/1 \"x\"", "1", 0, 1), host("b", "db1", "2", -SECOND, 1),
				     host("c", "db1", "2", -SECOND, 9) };
	struct kx_err err = { 0 };
	json_t *manifest, *want;
	char **names;

	(void)state;
	assert_int_equal(kx_merge_hosts_align(h, 3, &err), 0);
	names = kx_merge_member_names(h, 3);
	assert_string_equal(names[0], "_.web_1__x_.pftrace");
	assert_string_equal(names[1], "db1.pftrace");
	assert_string_equal(names[2], "db1.2.pftrace");
	manifest = kx_merge_manifest(h, 3, names);
	want = json_loads("{\"perfetto_manifest\":{\"version\":1,\"trace_time\":{\"clock\":\"BOOTTIME\",\"file\":\"db1.pftrace\"},\"files\":["
			  "{\"path\":\"_.web_1__x_.pftrace\",\"machine\":{\"name\":\"..web/1 \\\"x\\\"\"},\"clocks\":{\"clock\":\"BOOTTIME\","
			  "\"sync_to\":{\"file\":\"db1.pftrace\",\"clock\":\"BOOTTIME\"},\"offset_ns\":1000000000}},"
			  "{\"path\":\"db1.pftrace\",\"machine\":{\"name\":\"db1\"}},"
"{\"path\":\"db1.2.pftrace\",\"machine\":{\"name\":\"db1\"}}]}}",
			  0, NULL);
	assert_non_null(want);
	assert_true(json_equal(manifest, want));
	json_decref(manifest);
	json_decref(want);
	kx_merge_free_names(names, 3);
}

/* What @command prints, of the archive at @path. */
static void prints(const char *command, const char *path, const char *want)
{
	char line[256], got[1024] = "";
	FILE *f;

	snprintf(line, sizeof(line), command, path);
	f = popen(line, "r");
	assert_non_null(f);
	got[fread(got, 1, sizeof(got) - 1, f)] = 0;
	assert_int_equal(pclose(f), 0);
	assert_string_equal(got, want);
}

static void test_tar(void **state)
{
	static const size_t sizes[] = { 0, 1, 511, 512, 513 };
	char path[] = "/tmp/kx_merge_XXXXXX", name[KX_TAR_NAME], bytes[513];
	struct kx_tar tar = { .fd = mkstemp(path), .modified = 1700000000 };

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(kx_tar_begin(&tar), 0);
		assert_int_equal(write(tar.fd, bytes, sizes[i]), sizes[i]);
		snprintf(name, sizeof(name), "f%zu", sizes[i]);
		if (!i)
			memset(name, 'a', sizeof(name) - 1);
		name[sizeof(name) - 1] = 0;
		assert_int_equal(kx_tar_end(&tar, name), 0);
	}
	/* a member of more than 8 GiB, sparse */
	assert_int_equal(kx_tar_begin(&tar), 0);
	assert_true(lseek(tar.fd, 9ll << 30, SEEK_CUR) > 0);
	assert_int_equal(kx_tar_end(&tar, "large"), 0);
	assert_int_equal(ftruncate(tar.fd, lseek(tar.fd, 0, SEEK_CUR)), 0);
	assert_int_equal(kx_tar_finish(&tar), 0);
	close(tar.fd);
	prints("tar --utc -tvf %s | awk '{ print $1, $2, $3, $4, $5, (length($6) > 20 ? length($6) : $6) }'", path,
	       "-rw-r--r-- 0/0 0 2023-11-14 22:13 99\n-rw-r--r-- 0/0 1 2023-11-14 22:13 f1\n-rw-r--r-- 0/0 511 2023-11-14 22:13 f511\n"
	       "-rw-r--r-- 0/0 512 2023-11-14 22:13 f512\n-rw-r--r-- 0/0 513 2023-11-14 22:13 f513\n"
	       "-rw-r--r-- 0/0 9663676416 2023-11-14 22:13 large\n");
	prints("tar xOf %s f513 | tr -d x | wc -c", path, "0\n");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),	 cmocka_unit_test(test_snapshots), cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_hostile_snapshots),
		cmocka_unit_test(test_offsets),	 cmocka_unit_test(test_pairs),	   cmocka_unit_test(test_manifest),
		cmocka_unit_test(test_tar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
