// SPDX-License-Identifier: BSD-2-Clause
#include "trace/off_cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trace/fdr.h"

/* Of the kernel's include/linux/sched.h; the first that is set names the state. */
static const struct {
	uint32_t bits;
	char letter;
} states[] = {
	{ 0x400, 'I' },  /* TASK_NOLOAD: an idle kernel thread */
	{ 0x1, 'S' },    /* TASK_INTERRUPTIBLE */
	{ 0x1002, 'D' }, /* TASK_UNINTERRUPTIBLE, TASK_RTLOCK_WAIT */
	{ 0x4, 'T' },    /* __TASK_STOPPED */
	{ 0x8, 't' },    /* __TASK_TRACED */
	{ 0x40, 'P' },   /* TASK_PARKED */
	{ 0x8000, 'F' }, /* TASK_FROZEN */
	{ 0xb0, 'X' },   /* EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD */
};

char kx_sched_state(uint32_t bits)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (bits & states[i].bits)
			return states[i].letter;
	return bits ? '?' : 'R';
}

const char *kx_sched_state_name(char state)
{
	switch (state) {
	case 'R':
		return "runnable";
	case 'N':
		return "new";
	case 'S':
		return "sleeping";
	case 'D':
		return "blocked";
	case 'I':
		return "idle";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	case 'P':
		return "parked";
	case 'F':
		return "frozen";
	case 'X':
		return "ended";
	default:
		return "off the CPU";
	}
}

/* Whether a thread that left its CPU so could run all the time. */
static bool could_run(char state)
{
	return state == 'R' || state == 'N';
}

size_t kx_sched_note(char text[KX_SCHED_NOTE_SIZE], const struct kx_sched_interval *i)
{
	size_t room = KX_SCHED_NOTE_SIZE;
	size_t n = (size_t)snprintf(text, room,
				    KX_FDR_NOTE_PREFIX "sched {\"off\":%" PRIu64 ",\"state\":\"%c\"",
				    i->to - i->from, i->state);

	if (!could_run(i->state) && i->wake < i->to)
		n += (size_t)snprintf(text + n, room - n, ",\"wait\":%" PRIu64, i->to - i->wake);
	if (i->has_waker)
		n += (size_t)snprintf(text + n, room - n, ",\"by\":%" PRIu32, i->waker);
	if (i->open)
		n += (size_t)snprintf(text + n, room - n, ",\"open\":true");
	n += (size_t)snprintf(text + n, room - n, "}");
	return n;
}

/* What follows "@key": in a flat JSON object without blanks, which is how it is written. */
static const char *find(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : NULL;
}

static bool number(const char *at, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!at || *at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	*out = value;
	return value <= max;
}

bool kx_sched_parse(const uint8_t *body, uint32_t size, uint64_t tsc, struct kx_sched_interval *i)
{
	char text[KX_SCHED_NOTE_SIZE];
	uint64_t off, wait, waker;
	const char *state;

	if (size >= sizeof(text))
		return false;
	memcpy(text, body, size);
	text[size] = 0;
	state = find(text, "\"state\":\"");
	if (!state || !*state || !number(find(text, "\"off\":"), UINT64_MAX, &off))
		return false;
	memset(i, 0, sizeof(*i));
	i->to = tsc;
	i->from = off < tsc ? tsc - off : 0;
	i->state = *state > ' ' && *state < 0x7f && *state != '"' ? *state : '?';
	i->wake = could_run(i->state) ? i->from : i->to;
	if (!could_run(i->state) && number(find(text, "\"wait\":"), i->to - i->from, &wait))
		i->wake = i->to - wait;
	i->has_waker = number(find(text, "\"by\":"), UINT32_MAX, &waker);
	i->waker = i->has_waker ? (uint32_t)waker : 0;
	i->open = find(text, "\"open\":true") != NULL;
	return true;
}

bool kx_sched_cut(struct kx_sched_interval *i, uint64_t begin, uint64_t end)
{
	if (i->from < begin)
		i->from = begin;
	if (i->to > end)
		i->to = end;
	if (i->wake > end)
		i->has_waker = false;
	if (i->wake < i->from)
		i->wake = i->from;
	if (i->wake > i->to)
		i->wake = i->to;
	return i->from < i->to;
}

void kx_off_cpu_add(struct kx_off_cpu *c, const struct kx_sched_interval *i)
{
	c->off += i->to - i->from;
	c->wait += i->to - i->wake;
}

struct kx_off_cpu kx_sched_since(const struct kx_off_cpu *c,
				     const struct kx_off_cpu *mark, uint64_t took)
{
	struct kx_off_cpu d = { c->off - mark->off, c->wait - mark->wait };

	if (d.off > took)
		d.off = took;
	if (d.wait > d.off)
		d.wait = d.off;
	return d;
}
