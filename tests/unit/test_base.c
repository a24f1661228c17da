// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bisect.h"
#include "base/edit_distance.h"
#include "base/huge_page.h"
#include "base/kernel_files.h"
#include "base/monotonic.h"
#include "base/proc_stat.h"
#include "base/string_set.h"
#include "base/temporary_file.h"

static void edit_distances(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned max, distance;
	} cases[] = {
		{ "", "", 0, 0 },
		{ "chrome", "chrome", 0, 0 },
		{ "chrome", "Chrome", 0, 0 },
		{ "chrome", "chorme", 1, 1 }, /* neighbours swapped */
		{ "chrome", "chrme", 1, 1 },
		{ "chrme", "chrome", 1, 1 },
		{ "chrome", "chroma", 1, 1 },
		{ "chrome", "chroma", 0, UINT_MAX },
		{ "", "abc", 3, 3 },
		{ "abc", "", 3, 3 },
		{ "abc", "", 2, UINT_MAX },
		{ "kitten", "sitting", 3, 3 },
		{ "kitten", "sitting", 2, UINT_MAX },
	};
	char longest[KX_EDIT_DISTANCE_LENGTH + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (kx_edit_distance(cases[i].a, cases[i].b, cases[i].max) != cases[i].distance)
			fail_msg("'%s', '%s' within %u", cases[i].a, cases[i].b, cases[i].max);
	memset(longest, 'a', sizeof(longest));
	longest[KX_EDIT_DISTANCE_LENGTH - 1] = 0;
	assert_int_equal(kx_edit_distance(longest, longest, 0), 0);
	longest[KX_EDIT_DISTANCE_LENGTH - 1] = 'a';
	longest[KX_EDIT_DISTANCE_LENGTH] = 0;
	assert_int_equal(kx_edit_distance(longest, longest, 0), UINT_MAX);
	assert_int_equal(kx_edit_distance("a", longest, UINT_MAX), UINT_MAX);
}

static int read_from(const char *text, uint64_t *value)
{
	char path[] = "/tmp/kx-number-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	r = kx_read_number(path, value);
	unlink(path);
	return r;
}

static void numbers_of_the_kernel(void **state)
{
	struct sysinfo si;
	uint64_t value;

	(void)state;
	assert_int_equal(read_from("42\n", &value), 0);
	assert_int_equal(value, 42);
	assert_int_equal(read_from("18446744073709551615", &value), 0);
	assert_int_equal(value, UINT64_MAX);
	assert_int_equal(read_from("none\n", &value), -EINVAL);
	assert_int_equal(read_from("", &value), -EINVAL);
	assert_int_equal(kx_read_number("/nowhere/number", &value), -ENOENT);
	assert_int_equal(kx_pmu_type("software"), 1); /* PERF_TYPE_SOFTWARE */
	assert_int_equal(kx_pmu_type("no-such-pmu"), -ENOENT);
	assert_int_equal(sysinfo(&si), 0);
	assert_int_equal(kx_meminfo_bytes("MemTotal"), si.totalram * si.mem_unit);
	assert_int_equal(kx_meminfo_bytes("Mem"), 0); /* no prefix of a key */
	assert_int_equal(kx_meminfo_bytes("NoSuchKey"), 0);
}

/* Also across the parts in which it is read, whatever they begin with. */
/* The name may have blanks and brackets. */
static void fields_of_processes(void **state)
{
	static const char text[] = "12 (a) S 7 (b c) R 1 2 3 99 18446744073709551615\n";
	char path[] = "/tmp/kxray-stat.XXXXXX", buffer[KX_PROC_STAT_SIZE];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(kx_proc_stat(path, 3, buffer)[0], 'R');
	assert_string_equal(kx_proc_stat(path, 7, buffer), "99 18446744073709551615\n");
	assert_string_equal(kx_proc_stat(path, 8, buffer), "18446744073709551615\n");
	assert_null(kx_proc_stat(path, 9, buffer));
	assert_int_equal(ftruncate(fd, 8), 0); /* "12 (a) S" */
	assert_int_equal(kx_proc_stat(path, 3, buffer)[0], 'S');
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_null(kx_proc_stat(path, 3, buffer));
	close(fd);
	unlink(path);
	assert_null(kx_proc_stat(path, 3, buffer));
	assert_int_equal(atoi(kx_proc_stat("/proc/self/stat", 4, buffer)), getppid());
}

static void text_in_files(void **state)
{
	char path[] = "/tmp/kxray-text.XXXXXX", filler[200000];
	static const char text[] = "a name";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	memset(filler, 'a', sizeof(filler));
	assert_int_equal(write(fd, filler, sizeof(filler)), sizeof(filler));
	assert_false(kx_file_contains(path, text));
	for (off_t at = 65536 - 12; at <= 65536 + 2; at++) {
		assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
		assert_true(kx_file_contains(path, text));
		assert_int_equal(pwrite(fd, filler, strlen(text), at), strlen(text));
	}
	assert_int_equal(pwrite(fd, text, strlen(text), sizeof(filler) - 3), strlen(text));
	assert_true(kx_file_contains(path, text));
	assert_int_equal(ftruncate(fd, 3), 0);
	assert_false(kx_file_contains(path, text));
	close(fd);
	unlink(path);
	assert_false(kx_file_contains(path, text));
}

/* What comes in short reads. */
static void text_in_a_pipe(void **state)
{
	static const char text[] = "a name";
	char path[32], filler[200000];
	int ends[2];

	(void)state;
	for (size_t at = 65536 - 12; at <= 65536 + 2; at++) {
		pid_t child;

		memset(filler, 'a', sizeof(filler));
		memcpy(filler + at, text, strlen(text));
		assert_int_equal(pipe(ends), 0);
		child = fork();
		if (!child)
			_exit(write(ends[1], filler, at + strlen(text)) < 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
		close(ends[1]);
		assert_true(kx_file_contains(path, text));
		close(ends[0]);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
}

static void temporary_files_have_no_name(void **state)
{
	struct stat st;
	char c = 0;
	int fd;

	(void)state;
	assert_int_equal(setenv("TMPDIR", "", 1), 0);
	fd = kx_temporary_file();
	assert_true(fd > 2);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(pread(fd, &c, 1, 0), 1);
	assert_int_equal(c, 'x');
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(fd);
	assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0);
	assert_int_equal(kx_temporary_file(), -ENOENT);
}

static void time_goes_forward(void **state)
{
	double before = kx_monotonic_seconds();

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_true(kx_monotonic_seconds() >= before);
}

static void room_is_taken_until_it_is_closed(void **state)
{
	struct stat st;
	int fd = kx_reserve_room("/tmp/some.map", 100000);

	(void)state;
	if (fd == -EOPNOTSUPP)
		skip();
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_true(st.st_blocks * 512 >= 100000);
	close(fd);
	fd = kx_reserve_room("name-in-this-folder", 1);
	assert_true(fd >= 0 || fd == -EACCES || fd == -EOPNOTSUPP || fd == -EROFS);
	if (fd >= 0)
		close(fd);
	assert_int_equal(kx_reserve_room("/none/x.map", 1), -ENOENT);
}

/* Many, so that the set grows while it is in use. */
static void strings_are_counted(void **state)
{
	static char names[1000][8];
	struct kx_string_set set = { 0 };

	(void)state;
	assert_int_equal(kx_string_set_times(&set, "none"), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(names[i], sizeof(names[i]), "n%d", i);
		assert_int_equal(kx_string_set_add(&set, names[i]), 0);
		if (i % 3 == 0)
			assert_int_equal(kx_string_set_add(&set, names[i]), 0);
	}
	assert_int_equal(set.count, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(kx_string_set_times(&set, names[i]), i % 3 ? 1 : 2);
	assert_int_equal(kx_string_set_times(&set, "n1000"), 0);
	assert_int_equal(kx_string_set_times(&set, ""), 0);
	kx_string_set_free(&set);
	assert_int_equal(set.count, 0);
}

/* Through several sizes, each of which may move it. */
static void large_arrays_grow(void **state)
{
	struct item {
		uint64_t a, b, c;
	} *items = NULL, *grown;
	const size_t n = 1000000; /* 24 MB */
	size_t room = 0, before;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		if (i == room) {
			before = room;
			grown = kx_huge_array_grow(items, &room, room + room / 2 + 1,
						   sizeof(*items));
			assert_non_null(grown);
			assert_true(room > before + before / 2);
			items = grown;
			assert_int_equal(items[room - 1].c, 0);
		}
		assert_int_equal(items[i].a | items[i].b | items[i].c, 0);
		items[i] = (struct item){ i, 2 * i, 3 * i };
	}
	for (size_t i = 0; i < n; i++)
		assert_true(items[i].a == i && items[i].b == 2 * i && items[i].c == 3 * i);
	before = room;
	assert_null(kx_huge_array_grow(items, &room, SIZE_MAX / sizeof(*items), sizeof(*items)));
	assert_null(kx_huge_array_grow(items, &room, SIZE_MAX, sizeof(*items)));
	assert_int_equal(room, before);
	assert_int_equal(items[n - 1].c, 3 * (n - 1));
	kx_huge_array_free(items, room, sizeof(*items));
	kx_huge_array_free(NULL, 0, sizeof(*items));
}

static void leading_items_are_counted(void **state)
{
	static const int sorted[] = { 1, 3, 3, 3, 7 };
	size_t asked = 0;

	(void)state;
	for (int key = 0; key <= 8; key++) {
		size_t below = 0, up_to = 0;

		for (size_t i = 0; i < 5; i++) {
			below += sorted[i] < key;
			up_to += sorted[i] <= key;
		}
		assert_int_equal(KX_COUNT_LEADING(5, i, sorted[i] < key), below);
		assert_int_equal(KX_COUNT_LEADING(5, i, sorted[i] <= key), up_to);
	}
	assert_int_equal(KX_COUNT_LEADING(0, i, sorted[i] < 9), 0);
	assert_int_equal(KX_COUNT_LEADING(SIZE_MAX, i, (asked++, i < SIZE_MAX - 1)), SIZE_MAX - 1);
	assert_true(asked <= 65);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leading_items_are_counted),
		cmocka_unit_test(large_arrays_grow),
		cmocka_unit_test(edit_distances),
		cmocka_unit_test(strings_are_counted),
		cmocka_unit_test(numbers_of_the_kernel),
		cmocka_unit_test(fields_of_processes),
		cmocka_unit_test(text_in_files),
		cmocka_unit_test(text_in_a_pipe),
		cmocka_unit_test(temporary_files_have_no_name),
		cmocka_unit_test(room_is_taken_until_it_is_closed),
		cmocka_unit_test(time_goes_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
