// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_code.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/byte_find.h"
#include "binary/mappings.h"

#define MOST_CODE (64ul << 20) /* bytes of a library that is searched */

/* getpid, getuid and others that cannot fail end so: nothing reads or sets errno behind it. */
static const uint8_t call_code[] = { 0x0f, 0x05, 0xc3 };
/* __restore_rt: mov $15, %rax; syscall */
static const uint8_t back_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

struct search {
	int mem;
	struct kx_remote_code found;
	struct kx_remote_code last; /* of a search before */
};

static struct {
	pthread_mutex_t mutex;
	pid_t view;
	struct kx_remote_code code;
} last = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static uint64_t find(const struct kx_mapping *m, const uint8_t *code, size_t size,
		     const uint8_t *what, size_t length)
{
	const uint8_t *at = kx_byte_find(code, size, what, length);

	return at ? m->start + (uint64_t)(at - code) : 0;
}

static bool is_at(const struct search *s, const struct kx_mapping *m, uint64_t at,
		  const uint8_t *what, size_t length)
{
	uint8_t code[sizeof(back_code)];

	return at >= m->start && at + length <= m->end &&
	       pread(s->mem, code, length, (off_t)at) == (ssize_t)length &&
	       !memcmp(code, what, length);
}

/* Where a search has found them before: libc may be mapped in parts since. */
static int look_again(void *ctx, const struct kx_mapping *m)
{
	struct search *s = ctx;

	if (!m->executable)
		return 0;
	if (is_at(s, m, s->last.call, call_code, sizeof(call_code)))
		s->found.call = s->last.call;
	if (is_at(s, m, s->last.back, back_code, sizeof(back_code)))
		s->found.back = s->last.back;
	return s->found.call && s->found.back;
}

/* libc.so.6, libc-2.31.so, libc.musl-x86_64.so.1; not libcrypto */
static bool is_libc(const struct kx_mapping *m)
{
	const char *name = strrchr(m->path, '/');

	return name && (!strncmp(name, "/libc.", 6) || !strncmp(name, "/libc-", 6));
}

static int search(void *ctx, const struct kx_mapping *m)
{
	const uint64_t size = m->end - m->start;
	struct search *s = ctx;
	uint8_t *code;
	ssize_t got;

	if (!m->executable || !is_libc(m) || size > MOST_CODE)
		return 0;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	got = pread(s->mem, code, size, (off_t)m->start);
	if (got > 0 && !s->found.call)
		s->found.call = find(m, code, (size_t)got, call_code, sizeof(call_code));
	if (got > 0 && !s->found.back)
		s->found.back = find(m, code, (size_t)got, back_code, sizeof(back_code));
	free(code);
	return s->found.call && s->found.back;
}

/* 1: both have been found. -ESRCH, -ENOMEM. */
static int find_both(pid_t view, struct search *s)
{
	int code = s->last.call ? kx_mappings_each(view, look_again, s) : 0;

	if (code)
		return code;
	s->found = (struct kx_remote_code){ 0 };
	return kx_mappings_each(view, search, s);
}

int kx_remote_code_find(pid_t view, int mem, struct kx_remote_code *out, struct kx_err *err)
{
	struct search s = { .mem = mem };
	int code;

	pthread_mutex_lock(&last.mutex);
	if (last.view == view)
		s.last = last.code;
	pthread_mutex_unlock(&last.mutex);
	code = find_both(view, &s);
	if (code < 0)
		return kx_err_set(err, code, "process %d: %s", (int)view, strerror(-code));
	if (!code)
		return kx_err_set(err, -EOPNOTSUPP,
				  "process %d has no libc with an instruction that can be borrowed "
				  "for system calls",
				  (int)view);
	*out = s.found;
	pthread_mutex_lock(&last.mutex);
	last.view = view;
	last.code = s.found;
	pthread_mutex_unlock(&last.mutex);
	return 0;
}
