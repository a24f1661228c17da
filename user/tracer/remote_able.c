// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_able.h"

#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "binary/mappings.h"

#define ROOM 65536 /* bytes that the frames must leave on the stack */

struct stack_search {
	uint64_t sp, fs_base, before_end; /* of the mapping before */
	bool main, before_is_guard, found;
	uint64_t from;
};

static int look_for_stack(void *ctx, const struct kx_mapping *m)
{
	struct stack_search *s = ctx;
	const bool is_here = m->start < s->sp && s->sp <= m->end && m->writable;

	if (is_here) {
		const bool guarded = s->before_is_guard && s->before_end == m->start;

		s->found = s->main ? !strcmp(m->path, "[stack]")
				   : guarded && m->start <= s->fs_base && s->fs_base < m->end;
		s->from = m->start;
		return 1;
	}
	s->before_end = m->end;
	s->before_is_guard = !m->writable && !m->executable && !*m->path;
	return 0;
}

bool kx_remote_has_room(pid_t view, bool is_main, const struct user_regs_struct *regs)
{
	struct stack_search s = { .sp = regs->rsp, .fs_base = regs->fs_base, .main = is_main };

	kx_mappings_each(view, look_for_stack, &s);
	return s.found && regs->rsp - s.from >= ROOM;
}

uint64_t kx_remote_rseq(pid_t tid)
{
	struct __ptrace_rseq_configuration conf;

	return ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, (void *)sizeof(conf), &conf) < 0 ? 0 : conf.rseq_abi_pointer;
}

bool kx_remote_is_in_sequence(int mem, pid_t tid, uint64_t pc)
{
	const uint64_t rseq = kx_remote_rseq(tid);
	uint64_t descriptor, code[2]; /* start, length */

	if (!rseq)
		return false;
	if (pread(mem, &descriptor, 8, (off_t)rseq + 8) != 8 || !descriptor)
		return false;
	if (pread(mem, code, sizeof(code), (off_t)descriptor + 8) != (ssize_t)sizeof(code))
		return true;
	return pc - code[0] < code[1];
}

/* linux/ptrace.h of Linux 6.4: struct ptrace_sud_config. The file cannot be included beside
 * sys/ptrace.h. */
#define GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
struct user_dispatch {
	uint64_t mode; /* 0: off */
	uint64_t selector, offset, len;
};

bool kx_remote_is_dispatched(pid_t tid)
{
	struct user_dispatch d = { 0 };

	return !ptrace(GET_SYSCALL_USER_DISPATCH_CONFIG, tid, (void *)sizeof(d), &d) && d.mode;
}
