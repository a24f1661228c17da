// SPDX-License-Identifier: BSD-2-Clause
/* Program counters of stopped threads, also those that signals have saved on their stacks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "binary/mappings.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_threads.h"

#define USER_CS		0x33 /* of 64-bit code */
#define RED_ZONE	128
#define MOST_OF_A_STACK (8ul << 20)
#define PAGE		4096ul
#define CHUNK_WORDS	8192ul

/* Memory that may be a stack: writable mappings, in order of address. */
struct stacks {
	struct kx_remote_range *items;
	size_t n, room;
	struct kx_remote_range main; /* that of the process */
};

/* Of the flags: a bit that is always set, and above the highest that there is. */
#define FLAGS_ALWAYS 0x2
#define FLAGS_MOST   0x3fffff

struct scan {
	int mem;
	const struct kx_remote_range *ranges;
	size_t nranges;
	uint64_t lowest, highest; /* of the ranges */
	void (*counter)(void *ctx, uint64_t value);
	void *ctx;
	uint64_t *chunk;
};

static int add_stack(void *ctx, const struct kx_mapping *m)
{
	struct stacks *s = ctx;

	if (!m->writable)
		return 0;
	if (KX_ARRAY_RESERVE(s->items, s->room, s->n))
		return -ENOMEM;
	s->items[s->n] = (struct kx_remote_range){ m->start, m->end };
	if (!strcmp(m->path, "[stack]"))
		s->main = s->items[s->n];
	s->n++;
	return 0;
}

/* The writable mapping that @address is in; NULL: there is none. */
static const struct kx_remote_range *stack_at(const struct stacks *s, uint64_t address)
{
	const size_t at = KX_COUNT_LEADING(s->n, i, s->items[i].to <= address);

	return at < s->n && s->items[at].from <= address ? &s->items[at] : NULL;
}

static void check_counter(const struct scan *s, uint64_t value)
{
	if (value < s->lowest || value >= s->highest)
		return;
	for (size_t i = 0; i < s->nranges; i++)
		if (value >= s->ranges[i].from && value < s->ranges[i].to) {
			s->counter(s->ctx, value);
			return;
		}
}

/*
 * Whether the word is the program counter in what a signal has interrupted: struct sigcontext has
 * the flags and then the segments behind it (Linux, arch/x86/include/uapi/asm/sigcontext.h). Other
 * words of that value, such as return addresses that a call has left behind, mean nothing.
 */
static bool is_saved_counter(const uint64_t *word, size_t words)
{
	return words < 3 ||
	       (word[1] & FLAGS_ALWAYS && word[1] <= FLAGS_MOST && (uint16_t)word[2] == USER_CS);
}

/* Pages that cannot be read (of a guard that is no mapping of its own) hold nothing. False: nothing
 * can be read. */
static bool scan_memory(const struct scan *s, uint64_t from, uint64_t to)
{
	bool any = false;

	from = (from + 7) & ~7ul;
	if (to > from + MOST_OF_A_STACK)
		to = from + MOST_OF_A_STACK;
	while (from + 8 <= to) {
		const uint64_t words =
			(to - from) / 8 < CHUNK_WORDS ? (to - from) / 8 : CHUNK_WORDS;
		const ssize_t got = pread(s->mem, s->chunk, words * 8, (off_t)from);
		const size_t n = got > 0 ? (size_t)got / 8 : 0;
		/* the last two have their followers in the next chunk */
		const size_t whole = n == words && from + n * 8 + 8 <= to ? n - 2 : n;

		for (size_t i = 0; i < whole; i++)
			if (is_saved_counter(s->chunk + i, n - i))
				check_counter(s, s->chunk[i]);
		any |= n > 0;
		from = n ? from + whole * 8 : (from & ~(PAGE - 1)) + PAGE;
	}
	return any;
}

static int scan_thread(const struct scan *s, const struct stacks *stacks,
		       const struct kx_remote_thread *t, bool is_main)
{
	const struct kx_remote_range *now = stack_at(stacks, t->regs.rsp - 1);
	/* glibc has a thread's control block in the stack that it allocates */
	const struct kx_remote_range *own =
		is_main ? stack_at(stacks, stacks->main.from) : stack_at(stacks, t->regs.fs_base);
	uint64_t from = t->regs.rsp - RED_ZONE;
	bool seen = true;

	check_counter(s, t->regs.rip);
	if (now) {
		from = from > now->from ? from : now->from;
		seen = scan_memory(s, from, now->to);
	}
	if (own && own != now)
		seen &= scan_memory(s,
				    own->to - own->from > MOST_OF_A_STACK
					    ? own->to - MOST_OF_A_STACK
					    : own->from,
				    own->to);
	return seen ? 0 : -EIO;
}

int kx_remote_threads_scan(const struct kx_remote_threads *t, pid_t pid, int mem,
			   const struct kx_remote_range *ranges, size_t nranges,
			   void (*counter)(void *ctx, uint64_t value), void *ctx,
			   struct kx_err *err)
{
	struct scan s = { .mem = mem,
			  .ranges = ranges,
			  .nranges = nranges,
			  .lowest = UINT64_MAX,
			  .counter = counter,
			  .ctx = ctx };
	struct stacks stacks = { 0 };
	int code;

	for (size_t i = 0; i < nranges; i++) {
		s.lowest = ranges[i].from < s.lowest ? ranges[i].from : s.lowest;
		s.highest = ranges[i].to > s.highest ? ranges[i].to : s.highest;
	}
	s.chunk = malloc(CHUNK_WORDS * 8);
	code = s.chunk ? kx_mappings_each(kx_remote_view(pid), add_stack, &stacks) : -ENOMEM;
	for (size_t i = 0; !code && i < t->n; i++)
		code = scan_thread(&s, &stacks, &t->items[i], t->items[i].tid == pid);
	free(s.chunk);
	free(stacks.items);
	return code ? kx_err_set(err, code, "the stacks of process %d cannot be read: %s", (int)pid,
				 strerror(-code))
		    : 0;
}
