// SPDX-License-Identifier: BSD-2-Clause
#include "attach/trampoline.h"

#include <stddef.h>
#include <string.h>

#include "attach/recorder_code.h"
#include "bpf/wire.h"
#include "plan/relocate.h"
#include "tracer/target_rings.h"

/* What a function may use below its stack pointer (System V ABI, AMD64, 3.2.2). */
#define RED_ZONE   128
#define PUSHED	   8 /* bytes of a pushed register */
#define KIND_SHIFT 28

/* Code that is being written. */
struct emitter {
	uint8_t *to;
	uint64_t at; /* of `to` in the target */
	unsigned n;
	bool failed; /* too long, or something is too far */
};

/* Instructions. Numbers of registers as in the encoding: a push is 50 + number. */
enum reg {
	RAX = 0,
	RCX = 1,
	RDX = 2,
	RSI = 6,
	RDI = 7,
	R8 = 8,
	R9 = 9,
	R10 = 10,
};

static void put(struct emitter *e, const void *bytes, unsigned n)
{
	if (e->n + n > KX_TRAMPOLINE_MOST) {
		e->failed = true;
		return;
	}
	memcpy(e->to + e->n, bytes, n);
	e->n += n;
}

#define PUT(e, ...) \
	put(e, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put32(struct emitter *e, uint32_t v)
{
	put(e, &v, sizeof(v));
}

/* The displacement of an instruction that ends @behind bytes after it, to @target. */
static void put_displacement(struct emitter *e, uint64_t target, unsigned behind)
{
	const int64_t distance = (int64_t)(target - (e->at + e->n + 4 + behind));

	e->failed |= distance != (int32_t)distance;
	put32(e, (uint32_t)distance);
}

#define REX_B 0x41 /* before registers from r8 on */

static void push(struct emitter *e, enum reg r)
{
	if (r >= R8)
		PUT(e, REX_B);
	PUT(e, (uint8_t)(0x50 + r % 8));
}

static void pop(struct emitter *e, enum reg r)
{
	if (r >= R8)
		PUT(e, REX_B);
	PUT(e, (uint8_t)(0x58 + r % 8));
}

/* lea @bytes(%rsp), %rsp: no flags change. */
static void move_stack(struct emitter *e, int bytes)
{
	PUT(e, 0x48, 0x8d, 0xa4, 0x24);
	put32(e, (uint32_t)bytes);
}

/* lea @bytes(%rsp), %rsi */
static void load_stack_to_rsi(struct emitter *e, uint32_t bytes)
{
	PUT(e, 0x48, 0x8d, 0xb4, 0x24);
	put32(e, bytes);
}

/* lea @address(%rip), %rdx */
static void load_address_to_rdx(struct emitter *e, uint64_t address)
{
	PUT(e, 0x48, 0x8d, 0x15);
	put_displacement(e, address, 0);
}

/* mov $@value, %edi */
static void load_constant_to_edi(struct emitter *e, uint32_t value)
{
	PUT(e, 0xbf);
	put32(e, value);
}

/* cmpl $0, @address(%rip) */
static void compare_with_zero(struct emitter *e, uint64_t address)
{
	PUT(e, 0x83, 0x3d);
	put_displacement(e, address, 1);
	PUT(e, 0);
}

/* mov @address(%rip), %ecx */
static void load_to_ecx(struct emitter *e, uint64_t address)
{
	PUT(e, 0x8b, 0x0d);
	put_displacement(e, address, 0);
}

/* mov @address(%rip), %rcx */
static void load_to_rcx(struct emitter *e, uint64_t address)
{
	PUT(e, 0x48, 0x8b, 0x0d);
	put_displacement(e, address, 0);
}

/* movl $@value, @offset(%rcx) */
static void store_at_rcx(struct emitter *e, uint32_t offset, uint32_t value)
{
	PUT(e, 0xc7, 0x81);
	put32(e, offset);
	put32(e, value);
}

/* lea -@value(@r), %ecx: 0 if the register's lower half is @value. */
static void subtract_to_ecx(struct emitter *e, enum reg r, uint32_t value)
{
	PUT(e, 0x8d, (uint8_t)(0x88 | r));
	put32(e, -value);
}

static void call(struct emitter *e, uint64_t target)
{
	PUT(e, 0xe8);
	put_displacement(e, target, 0);
}

static void jump(struct emitter *e, uint64_t target)
{
	PUT(e, 0xe9);
	put_displacement(e, target, 0);
}

/* Jumps to where land() gets the result. @condition: the low 4 bits of the opcode of a jcc. */
static unsigned jump_if(struct emitter *e, uint8_t condition)
{
	PUT(e, 0x0f, (uint8_t)(0x80 | condition));
	put32(e, 0);
	return e->n;
}

static void land(struct emitter *e, unsigned from)
{
	const uint32_t distance = e->n - from;

	if (!e->failed)
		memcpy(e->to + from - sizeof(distance), &distance, sizeof(distance));
}

#define EQUAL 4 /* je */

/* jrcxz: the only jump by a value that neither reads nor writes flags. */
static unsigned jump_if_rcx_is_zero(struct emitter *e)
{
	PUT(e, 0xe3, 0);
	return e->n;
}

static void land_short(struct emitter *e, unsigned from)
{
	const unsigned distance = e->n - from;

	e->failed |= distance > INT8_MAX;
	if (!e->failed)
		e->to[from - 1] = (uint8_t)distance;
}

/* jmp, to where land_short() gets the result. */
static unsigned jump_short(struct emitter *e)
{
	PUT(e, 0xeb, 0);
	return e->n;
}

/* lahf; seto %al; push %rax: without the cost of popf. */
static void push_flags(struct emitter *e)
{
	PUT(e, 0x9f);
	PUT(e, 0x0f, 0x90, 0xc0);
	push(e, RAX);
}

/* pop %rax; add $0x7f, %al, which overflows if it is 1; sahf, which keeps the overflow flag. */
static void pop_flags(struct emitter *e)
{
	pop(e, RAX);
	PUT(e, 0x04, 0x7f);
	PUT(e, 0x9e);
}

static uint64_t enabled_at(const struct kx_trampoline_place *p)
{
	return p->head + offsetof(struct kx_patch_head, enabled);
}

/* The stack pointer is @below bytes below its value when the call began. Registers are kept, but for rax, rcx and flags. */
static void call_recorder(struct emitter *e, const struct kx_trampoline_place *p, uint32_t what,
			  uint32_t below)
{
	push(e, RDI);
	push(e, RSI);
	push(e, RDX);
	push(e, R8);
	push(e, R9);
	push(e, R10);
	load_constant_to_edi(e, what);
	load_stack_to_rsi(e, below + 6 * PUSHED);
	load_address_to_rdx(e, p->head);
	call(e, p->recorder);
	pop(e, R10);
	pop(e, R9);
	pop(e, R8);
	pop(e, RDX);
	pop(e, RSI);
	pop(e, RDI);
}

/*
 * Calls the recorder unless recording is off, and keeps the flags: they are not touched while it is off, and saved while it is on. @below: bytes that
 * are below the stack pointer of the call's beginning.
 */
static void record_with_flags(struct emitter *e, const struct kx_trampoline_place *p, uint32_t what, uint32_t below)
{
	unsigned off;

	push(e, RCX);
	load_to_ecx(e, enabled_at(p));
	off = jump_if_rcx_is_zero(e);
	push(e, RAX);
	push_flags(e);
	call_recorder(e, p, what, below + 3 * PUSHED);
	pop_flags(e);
	pop(e, RAX);
	land_short(e, off);
	pop(e, RCX);
}

/* If the arguments are those of @c: no thread records any more. Uses rcx, and no flags. */
static void forbid_if(struct emitter *e, const struct kx_guard_call *c, const struct kx_trampoline_place *p)
{
	static const enum reg registers[KX_GUARD_ARGUMENTS] = { RDI, RSI, RDX };
	unsigned others[KX_GUARD_ARGUMENTS], child;

	for (unsigned i = 0; i < c->n; i++) {
		unsigned same;

		subtract_to_ecx(e, registers[i], c->arguments[i]);
		same = jump_if_rcx_is_zero(e);
		others[i] = jump_short(e);
		land_short(e, same);
	}
	load_to_rcx(e, p->head + offsetof(struct kx_patch_head, rings));
	/* a forked child whose head was wiped: the rings are its parent's */
	child = jump_if_rcx_is_zero(e);
	store_at_rcx(e, offsetof(struct kx_target_rings, cpu_by), KX_TARGET_FORBIDDEN);
	land_short(e, child);
	for (unsigned i = 0; i < c->n; i++)
		land_short(e, others[i]);
}

static void guard(struct emitter *e, const struct kx_trampoline_place *p)
{
	move_stack(e, -RED_ZONE);
	push(e, RCX);
	for (unsigned i = 0; i < p->guard->ncalls; i++)
		forbid_if(e, &p->guard->calls[i], p);
	pop(e, RCX);
	move_stack(e, RED_ZONE);
}

static void record_entry(struct emitter *e, const struct kx_window *w,
			 const struct kx_trampoline_place *p, uint32_t func)
{
	const uint32_t what = func | (uint32_t)KX_EVENT_ENTRY << KIND_SHIFT;
	unsigned off;

	if (w->flags_live) {
		move_stack(e, -RED_ZONE);
		record_with_flags(e, p, what, w->entry_frame + RED_ZONE);
		move_stack(e, RED_ZONE);
		return;
	}
	compare_with_zero(e, enabled_at(p));
	off = jump_if(e, EQUAL);
	move_stack(e, -RED_ZONE);
	push(e, RAX);
	push(e, RCX);
	call_recorder(e, p, what, w->entry_frame + RED_ZONE + 2 * PUSHED);
	pop(e, RCX);
	pop(e, RAX);
	move_stack(e, RED_ZONE);
	land(e, off);
}

/* When a function ends, nothing is below its stack pointer; but code in assembly may return a flag. */
static void record_exit(struct emitter *e, const struct kx_window *w, const struct kx_trampoline_place *p, uint32_t func)
{
	const uint32_t kind = w->tail ? KX_EVENT_TAIL_EXIT : KX_EVENT_EXIT;

	record_with_flags(e, p, func | kind << KIND_SHIFT, w->exit_frame);
}

/* An exit that is taken on a condition: records behind the decision. False: not a plain jcc. */
static bool put_conditional_exit(struct emitter *e, const struct kx_insn *insn,
				 const struct kx_window *w, const struct kx_trampoline_place *p,
				 uint32_t func)
{
	const uint8_t high = insn->z.opcode >> 4, inverse = (insn->z.opcode & 0xf) ^ 1;
	uint64_t target;
	unsigned stays;

	if ((high != 7 && high != 8) || !kx_insn_target(insn, &target))
		return false;
	stays = jump_if(e, inverse);
	record_exit(e, w, p, func);
	jump(e, target + p->bias);
	land(e, stays);
	return true;
}

static bool put_moved(struct emitter *e, const struct kx_insn *insn,
		      const struct kx_trampoline_place *p)
{
	uint8_t moved[KX_RELOCATED_MOST];
	const unsigned n = kx_relocate(insn, p->bias, e->at + e->n, moved);

	put(e, moved, n);
	return n;
}

/* Whether what follows the instruction is never reached from it. */
static bool leaves_for_good(const struct kx_insn *insn)
{
	const enum kx_insn_class class = kx_insn_classify(&insn->z);

	return class == KX_INSN_RET || class == KX_INSN_JUMP ||
	       (class == KX_INSN_BRANCH && insn->z.meta.category == ZYDIS_CATEGORY_UNCOND_BR);
}

unsigned kx_trampoline_make(const struct kx_code *code, const struct kx_window *w, uint32_t func,
			    const struct kx_trampoline_place *p, uint8_t *to)
{
	struct emitter e = { .to = to, .at = p->at };
	const uint64_t end = w->start + w->length;
	uint64_t at = w->start;
	bool ended = false;

	if (p->guard)
		guard(&e, p);
	if (w->entry)
		record_entry(&e, w, p, func);
	while (at < end && !ended) {
		struct kx_insn insn;

		if (!kx_code_decode(code, at, &insn))
			return 0;
		ended = leaves_for_good(&insn);
		if (at == w->exit && !ended) {
			if (!put_conditional_exit(&e, &insn, w, p, func))
				return 0;
		} else {
			if (at == w->exit)
				record_exit(&e, w, p, func);
			if (!put_moved(&e, &insn, p))
				return 0;
		}
		at += insn.z.length;
	}
	if (!ended)
		jump(&e, at + p->bias);
	return e.failed ? 0 : e.n;
}
