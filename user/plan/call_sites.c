// SPDX-License-Identifier: BSD-2-Clause
#include "plan/call_sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/byte_match.h"
#include "plan/call_sites_internal.h"
#include "plan/code_or_data.h"

static int add_site(struct kx_call_sites *s, unsigned name, uint64_t addr)
{
	for (size_t i = 0; addr && i < s->n; i++)
		if (s->items[i].name == name && s->items[i].addr == addr)
			return 0;
	if (KX_ARRAY_RESERVE(s->items, s->room, s->n))
		return -ENOMEM;
	s->items[s->n++] = (struct kx_call_site){ .name = name, .addr = addr };
	return 0;
}

/* Whether the four bytes at @addr are the displacement or constant of the instruction at @start. */
static bool is_field(const ZydisDecodedInstruction *z, uint64_t start, uint64_t addr)
{
	return (z->raw.disp.size == 32 && start + z->raw.disp.offset == addr) ||
	       (z->raw.imm[0].size == 32 && start + z->raw.imm[0].offset == addr);
}

/*
 * Whether the four bytes at @addr may belong to an instruction, where it is not known which ones there are: a branch's
 * displacement is behind its opcode, that of an address relative to the program counter behind a ModRM of mod 0 and rm 5.
 */
static bool may_be_field(const struct kx_call_sites *s, uint64_t addr)
{
	const uint8_t *before = kx_elf_code(s->elf, addr - 2, 2);

	return s->fixed || !before || before[1] == 0xe8 || before[1] == 0xe9 ||
	       (before[0] == 0x0f && before[1] >> 4 == 8) || (before[1] & 0xc7) == 5;
}

/* The address that the instruction names; 0 if none. */
static uint64_t named_address(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops, uint64_t start)
{
	ZyanU64 target;

	for (unsigned i = 0; i < z->operand_count; i++)
		if (ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(z, &ops[i], start, &target)) && target)
			return target;
	if (z->raw.imm[0].size == 32)
		return (uint32_t)z->raw.imm[0].value.u;
	return 0;
}

/*
 * The register that the instruction loads with what is in a slot; one that arguments and results are not passed in, so that
 * only its function reads it. NONE: it does something else.
 */
static ZydisRegister loaded_register(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *ops)
{
	const ZydisRegister reg = ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? ops[0].reg.value : ZYDIS_REGISTER_NONE;

	if (z->mnemonic == ZYDIS_MNEMONIC_MOV && (reg == ZYDIS_REGISTER_RBX || reg == ZYDIS_REGISTER_RBP ||
						  (reg >= ZYDIS_REGISTER_R10 && reg <= ZYDIS_REGISTER_R15)))
		return reg;
	return ZYDIS_REGISTER_NONE;
}

struct named {
	struct kx_call_sites *s;
	unsigned name;
};

static int add_named(void *ctx, uint64_t addr)
{
	const struct named *n = ctx;

	return add_site(n->s, n->name, addr);
}

/* The instruction at @addr loads the address into @reg, as for several calls by it. */
static int add_register(struct kx_call_sites *s, unsigned name, struct kx_decoded_function *f, uint64_t addr,
			ZydisRegister reg)
{
	struct named n = { s, name };

	if (kx_decoded_function_leaks(f, addr, reg))
		return add_site(s, name, 0);
	return kx_decoded_function_calls(f, reg, add_named, &n);
}

/* Four bytes of code at @addr may lead to a slot or stub: adds the site of the instruction to which they belong. */
static int add_use(struct kx_call_sites *s, uint64_t addr, const struct kx_import_slot *slot)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct kx_decoded_function *f;
	ZydisDecodedInstruction z;
	uint64_t start;
	bool calls;
	int error;

	if (kx_elf_in_plt(s->elf, addr))
		return 0;
	f = kx_call_sites_function(s, addr, &error);
	if (!f || !kx_decoded_function_at(f, addr, &start, &z, ops))
		return error || !may_be_field(s, addr) ? error : add_site(s, slot->name, 0);
	/* what only looks like it, in the middle of other bytes */
	if (!is_field(&z, start, addr) || named_address(&z, ops, start) != slot->addr)
		return 0;
	/* a test whether a weak symbol is there */
	if (!slot->stub && (z.mnemonic == ZYDIS_MNEMONIC_CMP || z.mnemonic == ZYDIS_MNEMONIC_TEST))
		return 0;
	if (!slot->stub && loaded_register(&z, ops) != ZYDIS_REGISTER_NONE)
		return add_register(s, slot->name, f, start, loaded_register(&z, ops));
	calls = z.meta.category == ZYDIS_CATEGORY_CALL || z.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		z.meta.category == ZYDIS_CATEGORY_COND_BR;
	if (slot->stub ? !z.raw.imm[0].is_relative : z.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE)
		calls = false;
	return add_site(s, slot->name, calls ? start : 0);
}

/* What lies between the first and the last slot of one kind. */
struct span {
	uint64_t from, size;
};

static struct span span_of(const struct kx_import_slots *slots, bool stub)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = 0; i < slots->n; i++) {
		const uint64_t addr = slots->items[i].addr;

		if (slots->items[i].stub != stub)
			continue;
		lo = addr < lo ? addr : lo;
		hi = addr > hi ? addr : hi;
	}
	return lo > hi ? (struct span){ 0, 0 } : (struct span){ lo, hi - lo + 1 };
}

/* Bytes of a constant that may follow a displacement. */
#define MOST_BEHIND 4

static int add_uses_in(struct kx_call_sites *s, const struct kx_elf_section *seg)
{
	const struct span stubs = span_of(&s->slots, true), got = span_of(&s->slots, false);
	int error = 0;

	for (uint64_t at = 0; !error && at + 4 <= seg->size; at++) {
		const struct kx_import_slot *slot = NULL;
		uint64_t near;
		int32_t field;

		memcpy(&field, seg->data + at, sizeof(field));
		near = seg->addr + at + 4 + (uint64_t)(int64_t)field;
		if (near - stubs.from < stubs.size)
			slot = kx_import_slots_find(&s->slots, near);
		else if (near + MOST_BEHIND - got.from < got.size + MOST_BEHIND)
			for (unsigned behind = 0; !slot && behind <= MOST_BEHIND; behind++)
				slot = kx_import_slots_find(&s->slots, near + behind);
		else if (s->fixed && ((uint32_t)field - stubs.from < stubs.size || (uint32_t)field - got.from < got.size))
			slot = kx_import_slots_find(&s->slots, (uint32_t)field);
		if (slot)
			error = add_use(s, seg->addr + at, slot);
	}
	return error;
}

/* What is at @addr reads as a system call. */
static int add_system_call(struct kx_call_sites *s, uint64_t addr)
{
	const struct kx_decoded_function *f;
	int error;

	if (kx_elf_in_plt(s->elf, addr))
		return 0;
	f = kx_call_sites_function(s, addr, &error);
	if (f ? !(f->marks[addr - f->from] & KX_DECODED_START) : kx_is_surely_data(s->elf, addr))
		return error;
	return error ? error : add_site(s, KX_SYSTEM_CALL, f ? addr : 0);
}

#define BLOCK 16 /* bytes */

/* A bit for each of the 16 bytes at @p with which `syscall` or `int $0x80` may begin; reads one byte more. */
static unsigned system_calls_at(const uint8_t *p)
{
	const __m128i first = _mm_loadu_si128((const __m128i *)p);
	const __m128i second = _mm_loadu_si128((const __m128i *)(p + 1));
	const __m128i call = _mm_and_si128(kx_byte_match(first, 0xff, 0x0f), kx_byte_match(second, 0xff, 0x05));
	const __m128i trap = _mm_and_si128(kx_byte_match(first, 0xff, 0xcd), kx_byte_match(second, 0xff, 0x80));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(call, trap));
}

static int add_system_calls_in(struct kx_call_sites *s, const struct kx_elf_section *seg)
{
	int error = 0;
	uint64_t at = 0;

	for (; !error && at + BLOCK < seg->size; at += BLOCK)
		for (unsigned bits = system_calls_at(seg->data + at); !error && bits; bits &= bits - 1)
			error = add_system_call(s, seg->addr + at + (unsigned)__builtin_ctz(bits));
	for (; !error && at + 2 <= seg->size; at++)
		if ((seg->data[at] == 0x0f && seg->data[at + 1] == 0x05) ||
		    (seg->data[at] == 0xcd && seg->data[at + 1] == 0x80))
			error = add_system_call(s, seg->addr + at);
	return error;
}

/* Sites without an address: of functions whose address is taken, or of which no use was found. */
static int add_others(struct kx_call_sites *s)
{
	uint32_t used = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->items[i].name < KX_MAX_CALLED)
			used |= 1u << s->items[i].name;
	for (size_t i = 0; i < s->slots.n; i++)
		if (!(used >> s->slots.items[i].name & 1))
			s->slots.taken |= 1u << s->slots.items[i].name;
	for (unsigned i = 0; i < KX_MAX_CALLED; i++)
		if (s->slots.taken >> i & 1 && add_site(s, i, 0))
			return -ENOMEM;
	return 0;
}

/* The sections of code: a segment may hold data as well. */
static int read_code(struct kx_call_sites *s)
{
	Elf_Scn *scn = NULL;
	size_t room = 0;

	while ((scn = elf_nextscn(kx_elf_handle(s->elf), scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);
		const uint8_t *data;

		if (!sh || sh->sh_type == SHT_NOBITS || !(sh->sh_flags & SHF_EXECINSTR) || !sh->sh_size)
			continue;
		data = kx_elf_code(s->elf, sh->sh_addr, sh->sh_size);
		if (!data)
			continue;
		if (KX_ARRAY_RESERVE(s->code, room, s->ncode))
			return -ENOMEM;
		s->code[s->ncode++] = (struct kx_elf_section){ .addr = sh->sh_addr, .size = sh->sh_size, .data = data };
	}
	return 0;
}

static int find(struct kx_call_sites *s, bool system_calls)
{
	int error = read_code(s);

	for (size_t i = 0; !error && i < s->ncode; i++) {
		if (s->slots.n)
			error = add_uses_in(s, &s->code[i]);
		if (!error && system_calls)
			error = add_system_calls_in(s, &s->code[i]);
	}
	if (!error)
		error = add_others(s);
	return error ? error : kx_call_sites_land(s);
}

int kx_call_sites_find(struct kx_elf *elf, const char *const *names, size_t n, bool system_calls,
		       struct kx_call_sites **out, struct kx_err *err)
{
	struct kx_call_sites *s;
	size_t sections = 0;
	int error;

	if (elf_getshdrnum(kx_elf_handle(elf), &sections) || !sections)
		return kx_err_set(err, -EOPNOTSUPP, "%s has no section table, so it is not known what it imports",
				  kx_elf_path(elf));
	s = calloc(1, sizeof(*s));
	if (!s)
		return kx_err_set(err, -ENOMEM, "out of memory while reading %s", kx_elf_path(elf));
	s->elf = elf;
	s->fixed = elf64_getehdr(kx_elf_handle(elf))->e_type == ET_EXEC;
	kx_frame_table_read(elf, &s->frames);
	error = kx_import_slots_read(elf, names, n, &s->slots, err);
	if (!error && find(s, system_calls))
		error = kx_err_set(err, -ENOMEM, "out of memory while reading %s", kx_elf_path(elf));
	if (error)
		kx_call_sites_free(s);
	else
		*out = s;
	return error;
}

void kx_call_sites_free(struct kx_call_sites *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nfunctions; i++)
		kx_decoded_function_free(&s->functions[i]);
	free(s->functions);
	free(s->code);
	free(s->items);
	kx_import_slots_free(&s->slots);
	free(s);
}

const struct kx_call_site *kx_call_sites_get(const struct kx_call_sites *s, size_t *n)
{
	*n = s->n;
	return s->items;
}

size_t kx_call_sites_argument(const struct kx_call_sites *s, const struct kx_call_site *site, unsigned arg,
			      uint64_t values[KX_MAX_CONSTANTS])
{
	static const ZydisRegister registers[] = { ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
						   ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9,
						   ZYDIS_REGISTER_RAX };
	ZydisRegister reg = registers[arg];

	/* the kernel's fourth argument is elsewhere: `syscall` changes rcx */
	if (site->name == KX_SYSTEM_CALL && arg == 3)
		reg = ZYDIS_REGISTER_R10;
	for (size_t i = 0; site->addr && i < s->nfunctions; i++)
		if (kx_decoded_function_has(&s->functions[i], site->addr))
			return kx_decoded_function_constants(&s->functions[i], site->addr, reg, values);
	return 0;
}
