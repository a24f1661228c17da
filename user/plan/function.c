// SPDX-License-Identifier: BSD-2-Clause
#include "plan/function.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "plan/quick_decode.h"
#include "plan/walk.h"

static int add_way(struct kx_function_code *f, const struct kx_way_out *way)
{
	/* Grows at the powers of two from 4 on. */
	if (!(f->nways & (f->nways - 1)) && (f->nways >= 4 || !f->nways)) {
		struct kx_way_out *grown = realloc(f->ways, (f->nways ? f->nways * 2 : 4) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		f->ways = grown;
	}
	f->ways[f->nways++] = *way;
	return 0;
}

static int note_branch(struct kx_function_code *f, const struct kx_part *part, uint64_t addr)
{
	struct kx_way_out way = { .addr = addr, .class = KX_INSN_BRANCH };
	uint64_t target;

	f->branches++;
	if (!kx_range_branch(part->range, addr, &way.target, &way.conditional) &&
	    !kx_code_branch(f->code, addr, &way.target, &way.conditional))
		return 0;
	target = way.target;
	if (target >= part->from && target <= addr)
		f->has_loop = true;
	if (target == f->parts[0].from)
		f->loops_at_entry = true;
	else if (kx_function_contains(f, target))
		return 0;
	f->leaves = true;
	return add_way(f, &way);
}

/* Whether the KX_INSN_ODD instruction at @addr is a nop or int3; -ENOEXEC if it is none at all. */
static int is_padding(const struct kx_function_code *f, const struct kx_code_range *r, uint64_t addr)
{
	const uint8_t *b = kx_range_bytes(r, addr);
	struct kx_insn insn;

	if (*b == 0xcc || kx_quick_nop(b, r->size - (addr - r->addr)))
		return 1;
	return kx_code_decode(f->code, addr, &insn) ? kx_insn_is_padding(&insn) : -ENOEXEC;
}

/* The instruction of @class, not KX_INSN_PLAIN, at @pos. @padding: instructions of padding before it. */
static int note(struct kx_function_code *f, const struct kx_part *part, uint64_t pos,
		enum kx_insn_class class, uint32_t *padding)
{
	int ret;

	switch (class) {
	case KX_INSN_BRANCH:
		return note_branch(f, part, pos);
	case KX_INSN_JUMP:
		f->jumps++;
		/* fall through */
	case KX_INSN_RET:
		return add_way(f, &(struct kx_way_out){ .addr = pos, .class = (uint8_t)class });
	case KX_INSN_CALL:
	case KX_INSN_SYSTEM:
		f->calls = true;
		return 0;
	case KX_INSN_ODD:
		ret = is_padding(f, part->range, pos);
		*padding = ret > 0 ? *padding + 1 : 0;
		return ret < 0 ? ret : 0;
	default:
		return 0;
	}
}

/* Of a regular part: only what has a class that is noted is looked at. */
static int scan_regular(struct kx_function_code *f, struct kx_part *part, uint64_t *pos)
{
	uint64_t padding_end = 0;
	uint32_t padding = 0;
	struct kx_walk w;
	int ret = 0;

	kx_walk_begin(&w, part, KX_INSN_STACK + 1, false);
	while (!ret && kx_walk_next(&w, pos)) {
		const enum kx_insn_class class = kx_range_class(part->range, *pos);

		if (*pos != padding_end)
			padding = 0;
		ret = note(f, part, *pos, class, &padding);
		if (class == KX_INSN_ODD)
			padding_end = *pos + kx_range_length(part->range, *pos);
	}
	if (!ret)
		*pos = part->to;
	f->instructions -= padding_end == part->to ? padding : 0;
	return ret;
}

static int scan_irregular(struct kx_function_code *f, struct kx_part *part, uint64_t *pos)
{
	const struct kx_code_range *r = part->range;
	const uint64_t end = !r ? part->from :
			     part->to - r->addr < r->size ? part->to : r->addr + r->size;
	uint32_t padding = 0;
	int ret = 0;

	while (*pos < end && !ret) {
		const enum kx_insn_class class = kx_range_class(r, *pos);
		const unsigned length = kx_range_length(r, *pos);

		if (!length || length > part->to - *pos)
			break;
		f->instructions++;
		if (class != KX_INSN_ODD)
			padding = 0;
		if (class > KX_INSN_STACK)
			ret = note(f, part, *pos, class, &padding);
		if (!ret)
			*pos += length;
	}
	f->instructions -= padding;
	return ret;
}

static int scan_part(struct kx_function_code *f, struct kx_part *part, struct kx_err *err)
{
	const uint64_t offset = part->range ? part->from - part->range->addr : 0;
	const uint32_t instructions = kx_walk_count(part->range, offset, part->to - part->from, &part->regular);
	uint64_t pos = part->from;
	int ret;

	f->instructions += part->regular ? instructions : 0;
	ret = part->regular ? scan_regular(f, part, &pos) : scan_irregular(f, part, &pos);
	if (ret == -ENOMEM)
		return kx_err_set(err, ret, "out of memory for its code");
	if (pos < part->to)
		return kx_err_set(err, -ENOEXEC, "cannot be decoded at +0x%" PRIx64,
				  pos - f->parts[0].from);
	return 0;
}

int kx_function_scan(const struct kx_code *code, const struct kx_symbols *syms,
		     const struct kx_symbol *sym, struct kx_function_code *out, struct kx_err *err)
{
	int ret;

	*out = (struct kx_function_code){ .code = code, .syms = syms, .nparts = 1 };
	out->parts[0] = (struct kx_part){ sym->addr, sym->addr + sym->size, kx_code_range(code, sym->addr), false };
	if (sym->cold_addr) {
		out->parts[1] = (struct kx_part){ sym->cold_addr, sym->cold_addr + sym->cold_size,
						  kx_code_range(code, sym->cold_addr), false };
		out->nparts = 2;
	}
	for (size_t i = 0; i < out->nparts; i++) {
		ret = scan_part(out, &out->parts[i], err);
		if (ret) {
			kx_function_free(out);
			return ret;
		}
	}
	return 0;
}

void kx_function_free(struct kx_function_code *f)
{
	free(f->ways);
	f->ways = NULL;
	f->nways = 0;
}

/* Whether the instruction at @addr, the last one of a part, goes on to the next. */
static bool falls_through(const struct kx_function_code *f, uint64_t addr)
{
	uint64_t target;
	bool conditional;

	switch (kx_code_class(f->code, addr)) {
	case KX_INSN_RET:
	case KX_INSN_JUMP:
	case KX_INSN_CALL:
	case KX_INSN_ODD:
		return false;
	case KX_INSN_BRANCH:
		return !kx_code_branch(f->code, addr, &target, &conditional) || conditional;
	default:
		return true;
	}
}

static bool part_runs_on(const struct kx_function_code *f, const struct kx_part *part)
{
	uint64_t last = part->to;

	do {
		last = kx_code_previous(f->code, last);
		if (!last || last < part->from)
			return true;
	} while (kx_code_class(f->code, last) == KX_INSN_ODD && is_padding(f, part->range, last));
	return falls_through(f, last);
}

bool kx_function_runs_on(const struct kx_function_code *f)
{
	for (size_t i = 0; i < f->nparts; i++)
		if (part_runs_on(f, &f->parts[i]))
			return true;
	return false;
}
