// SPDX-License-Identifier: BSD-2-Clause
/* Whether a module's code is still what it was, for mappings of this process that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracer/patch_texts.h"

#define PAGE 4096ul

static int make_file(void)
{
	char path[] = "/tmp/kx-texts.XXXXXX";
	const int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, 8 * PAGE), 0);
	return fd;
}

static void map(uint64_t at, int fd, uint64_t offset, uint64_t size, int prot)
{
	void *p = mmap((void *)at, size, prot,
		       MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, (off_t)offset);

	assert_int_equal((uint64_t)p, at);
}

struct found {
	uint64_t at;
	struct kx_patch_text text;
};

static int take(void *ctx, const struct kx_mapping *m)
{
	struct found *f = ctx;

	if (m->start == f->at)
		f->text = kx_patch_text_of(m);
	return 0;
}

static struct kx_patch_text text_at(uint64_t at)
{
	struct found f = { .at = at };

	assert_int_equal(kx_mappings_each(getpid(), take, &f), 0);
	return f.text;
}

struct parts {
	const struct kx_patch_text *text;
	char *out;
};

static int add(void *ctx, const struct kx_mapping *m)
{
	struct parts *p = ctx;
	uint64_t from, to;

	if (kx_patch_text_meets(p->text, m, &from, &to))
		sprintf(p->out + strlen(p->out), "%lu%c ", (unsigned long)(to - from) / PAGE, m->writable ? 'w' : '-');
	return 0;
}

static const char *parts(const struct kx_patch_text *text)
{
	static char out[256];
	struct parts p = { text, out };

	*out = 0;
	assert_int_equal(kx_mappings_each(getpid(), add, &p), 0);
	return out;
}

static bool there(const struct kx_patch_text *text, bool writable)
{
	return kx_patch_texts_are_there(getpid(), text, 1, writable);
}

static void test_texts(void **state)
{
	const int code = PROT_READ | PROT_EXEC, open = code | PROT_WRITE;
	const int fd = make_file(), other = make_file();
	uint64_t at =
		(uint64_t)mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kx_patch_text text;

	(void)state;
	at += 4 * PAGE;
	map(at, fd, PAGE, 4 * PAGE, code);
	text = text_at(at);
	assert_int_equal(text.to - text.from, 4 * PAGE);
	assert_int_equal(text.offset, PAGE);
	assert_true(there(&text, false));
	assert_false(there(&text, true));
	assert_string_equal(parts(&text), "4- ");

	/* writable, at first in part */
	assert_int_equal(mprotect((void *)(at + PAGE), PAGE, open), 0);
	assert_false(there(&text, false));
	assert_false(there(&text, true));
	assert_string_equal(parts(&text), "1- 1w 2- ");
	assert_int_equal(mprotect((void *)at, 4 * PAGE, open), 0);
	assert_true(there(&text, true));
	assert_string_equal(parts(&text), "4w ");

	/* unloaded; loaded again, at the same place and at another one; another file; another part
	 * of it; data */
	map(at, -1, 0, 4 * PAGE, PROT_NONE);
	assert_false(there(&text, true) || there(&text, false));
	assert_string_equal(parts(&text), "");
	map(at, fd, PAGE, 4 * PAGE, code);
	assert_false(there(&text, true));
	assert_true(there(&text, false));
	map(at + PAGE, fd, PAGE, 4 * PAGE, open);
	assert_false(there(&text, true) || there(&text, false));
	assert_string_equal(parts(&text), "1- ");
	map(at, other, PAGE, 5 * PAGE, open);
	assert_false(there(&text, true));
	assert_string_equal(parts(&text), "");
	map(at, fd, 2 * PAGE, 4 * PAGE, open);
	assert_false(there(&text, true));
	map(at, fd, PAGE, 4 * PAGE, PROT_READ | PROT_WRITE);
	assert_false(there(&text, true));
	assert_string_equal(parts(&text), "");
	/* code that is larger than the text was */
	map(at, fd, PAGE, 5 * PAGE, open);
	assert_true(there(&text, true));
	assert_string_equal(parts(&text), "4w ");
	close(fd);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
