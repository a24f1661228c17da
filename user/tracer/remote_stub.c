// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_stub.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "binary/mappings.h"

#define RED_ZONE   128
#define MASK_BYTES 8
#define PAGE	   4096ul
/* At the end of the vDSO: so many bytes must be zero, so that no header of its file is among them.
 */
#define SLACK	  256
#define STUB_SIZE KX_REMOTE_STUB_MOST

/*
 * The stack pointer leads through what kx_remote_stub_build writes: of each call its number and six
 * arguments; -1; then the registers.
 */
__asm__(".pushsection .rodata\n"
	"kx_stub_begin:\n"
	"1:	pop %rax\n"
	"	test %rax, %rax\n"
	"	js 2f\n"
	"	pop %rdi\n"
	"	pop %rsi\n"
	"	pop %rdx\n"
	"	pop %r10\n"
	"	pop %r8\n"
	"	pop %r9\n"
	"	syscall\n"
	"	jmp 1b\n"
	"2:	pop %rdi\n"
	"	pop %rsi\n"
	"	pop %rdx\n"
	"	pop %r10\n"
	"	pop %r8\n"
	"	pop %r9\n"
	"	pop %rax\n"
	"	popfq\n"
	"	pop %rcx\n"
	"	pop %rsp\n"
	"	jmp *%rcx\n"
	"kx_stub_call:\n"
	"	syscall\n"
	"	ret\n"
	"kx_stub_back:\n"
	"	mov $15, %eax\n"
	"	syscall\n"
	"kx_stub_end:\n"
	".popsection\n");

extern const uint8_t kx_stub_begin[], kx_stub_call[], kx_stub_back[], kx_stub_end[];

size_t kx_remote_stub_size(void)
{
	return (size_t)(kx_stub_end - kx_stub_begin);
}

struct place {
	uint64_t at;
};

static int look_for_vdso(void *ctx, const struct kx_mapping *m)
{
	struct place *p = ctx;

	if (strcmp(m->path, "[vdso]") || !m->executable || m->end - m->start < SLACK)
		return 0;
	p->at = m->end - SLACK;
	return 1;
}

uint64_t kx_remote_stub_find(pid_t view, int mem, bool *there)
{
	uint8_t bytes[SLACK], expected[SLACK] = { 0 };
	struct place p = { 0 };

	*there = false;
	if (kx_remote_stub_size() > STUB_SIZE || kx_mappings_each(view, look_for_vdso, &p) != 1 ||
	    pread(mem, bytes, sizeof(bytes), (off_t)p.at) != (ssize_t)sizeof(bytes))
		return 0;
	p.at += SLACK / 2;
	if (!memcmp(bytes, expected, sizeof(bytes)))
		return p.at;
	memcpy(expected + SLACK / 2, kx_stub_begin, kx_remote_stub_size());
	*there = !memcmp(bytes, expected, sizeof(bytes));
	return *there ? p.at : 0;
}

uint64_t kx_remote_stub_put(pid_t view, int mem)
{
	bool there;
	const uint64_t at = kx_remote_stub_find(view, mem, &there);

	if (!at || there)
		return at;
	return pwrite(mem, kx_stub_begin, kx_remote_stub_size(), (off_t)at) == (ssize_t)kx_remote_stub_size() ? at : 0;
}

bool kx_remote_stub_put_code(pid_t view, int mem, struct kx_remote_code *out)
{
	const uint64_t at = kx_remote_stub_put(view, mem);

	if (at)
		*out = (struct kx_remote_code){ at + (uint64_t)(kx_stub_call - kx_stub_begin),
						at + (uint64_t)(kx_stub_back - kx_stub_begin) };
	return at;
}

bool kx_remote_stub_is_inside(int mem, uint64_t pc)
{
	/* where it stands in its page */
	const uint64_t stub = (pc & ~(PAGE - 1)) + PAGE - SLACK / 2;
	uint8_t bytes[STUB_SIZE];

	return kx_remote_stub_has(stub, pc) &&
	       pread(mem, bytes, kx_remote_stub_size(), (off_t)stub) == (ssize_t)kx_remote_stub_size() &&
	       !memcmp(bytes, kx_stub_begin, kx_remote_stub_size());
}

bool kx_remote_stub_has(uint64_t stub, uint64_t pc)
{
	return pc - stub < kx_remote_stub_size();
}

static uint64_t *put_call(uint64_t *to, long number, const long *args)
{
	*to++ = (uint64_t)number;
	for (int i = 0; i < 6; i++)
		*to++ = (uint64_t)args[i];
	return to;
}

void kx_remote_stub_build(const struct kx_frames_request *r, uint64_t stub, struct kx_frames *out)
{
	const struct user_regs_struct *home = r->home;
	const size_t words = (r->n + 1) * 7 + 1 + 10 + 1;
	uint64_t *to = (uint64_t *)(void *)out->bytes;
	long mask_args[6] = { SIG_SETMASK, 0, 0, MASK_BYTES };

	out->size = words * sizeof(*to);
	out->at = (home->rsp - RED_ZONE - out->size) & ~15ul;
	mask_args[1] = (long)(out->at + out->size - sizeof(*to));
	for (size_t i = 0; i < r->n; i++)
		to = put_call(to, r->calls[i].number, r->calls[i].args);
	to = put_call(to, SYS_rt_sigprocmask, mask_args);
	*to++ = UINT64_MAX;
	*to++ = home->rdi;
	*to++ = home->rsi;
	*to++ = home->rdx;
	*to++ = home->r10;
	*to++ = home->r8;
	*to++ = home->r9;
	*to++ = home->rax;
	*to++ = home->eflags;
	*to++ = home->rip;
	*to++ = home->rsp;
	*to++ = r->mask;
	out->go = *home;
	out->go.rip = stub;
	out->go.rsp = out->at;
	out->go.orig_rax = (unsigned long)-1;
}
