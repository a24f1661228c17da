// SPDX-License-Identifier: BSD-2-Clause
#include "trace/off_cpu.h"

/* From the kernel's include/linux/sched.h; the first row with a set bit gives the state. */
static const struct {
	uint32_t bits;
	char letter;
} states[] = {
	{ 0x400, 'I' },	 /* TASK_NOLOAD: an idle kernel thread */
	{ 0x1, 'S' },	 /* TASK_INTERRUPTIBLE */
	{ 0x1002, 'D' }, /* TASK_UNINTERRUPTIBLE, TASK_RTLOCK_WAIT */
	{ 0x4, 'T' },	 /* __TASK_STOPPED */
	{ 0x8, 't' },	 /* __TASK_TRACED */
	{ 0x40, 'P' },	 /* TASK_PARKED */
	{ 0x8000, 'F' }, /* TASK_FROZEN */
	{ 0xb0, 'X' },	 /* EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD */
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

bool kx_sched_could_run(char state)
{
	return state == 'R' || state == 'N';
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

struct kx_off_cpu kx_sched_since(const struct kx_off_cpu *c, const struct kx_off_cpu *mark,
				 uint64_t took)
{
	struct kx_off_cpu d = { c->off - mark->off, c->wait - mark->wait };

	if (d.off > took)
		d.off = took;
	if (d.wait > d.off)
		d.wait = d.off;
	return d;
}
