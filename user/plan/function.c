// SPDX-License-Identifier: BSD-2-Clause
#include "plan/function.h"

#include <errno.h>
#include <inttypes.h>

bool kx_function_contains(const struct kx_function_code *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nparts; i++)
		if (addr >= f->parts[i].from && addr < f->parts[i].to)
			return true;
	return false;
}

static void note_branch(struct kx_function_code *f, const struct kx_part *part, uint64_t addr)
{
	bool conditional;
	uint64_t target;

	f->branches++;
	if (!kx_code_branch(f->code, addr, &target, &conditional))
		return;
	if (target >= part->from && target <= addr)
		f->has_loop = true;
	if (target == f->parts[0].from)
		f->loops_at_entry = true;
	if (!kx_function_contains(f, target) || target == f->parts[0].from)
		f->leaves = true;
}

static int scan_part(struct kx_function_code *f, const struct kx_part *part, struct kx_err *err)
{
	uint32_t padding = 0;
	struct kx_insn insn;
	unsigned length;

	for (uint64_t pos = part->from; pos < part->to; pos += length) {
		enum kx_insn_class class = kx_code_class(f->code, pos);

		length = kx_code_length(f->code, pos);
		if (!length || pos + length > part->to)
			return kx_err_set(err, -ENOEXEC, "cannot be decoded at +0x%" PRIx64,
					  pos - f->parts[0].from);
		f->instructions++;
		padding = class == KX_INSN_ODD ? padding + 1 : 0;
		switch (class) {
		case KX_INSN_BRANCH:
			note_branch(f, part, pos);
			break;
		case KX_INSN_JUMP:
			f->jumps++;
			break;
		case KX_INSN_CALL:
		case KX_INSN_SYSTEM:
			f->calls = true;
			break;
		case KX_INSN_ODD:
			if (!kx_code_decode(f->code, pos, &insn))
				return kx_err_set(err, -ENOEXEC, "cannot be decoded at +0x%" PRIx64,
						  pos - f->parts[0].from);
			if (!kx_insn_is_padding(&insn))
				padding = 0;
			break;
		default:
			break;
		}
	}
	f->instructions -= padding;
	return 0;
}

int kx_function_scan(const struct kx_code *code, const struct kx_symbols *syms,
		     const struct kx_symbol *sym, struct kx_function_code *out, struct kx_err *err)
{
	int ret;

	*out = (struct kx_function_code){ .code = code, .syms = syms, .nparts = 1 };
	out->parts[0] = (struct kx_part){ sym->addr, sym->addr + sym->size };
	if (sym->cold_addr) {
		out->parts[1] = (struct kx_part){ sym->cold_addr, sym->cold_addr + sym->cold_size };
		out->nparts = 2;
	}
	for (size_t i = 0; i < out->nparts; i++) {
		ret = scan_part(out, &out->parts[i], err);
		if (ret)
			return ret;
	}
	return 0;
}
