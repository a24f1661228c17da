// SPDX-License-Identifier: BSD-2-Clause
#include "binary/stack_switch.h"

#include <Zydis/Zydis.h>
#include <string.h>

#include "base/byte_match.h"
#include "base/stop_request.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define SP 4 /* register numbers as in ModRM */
#define BP 5

#define REX_W 0x48
#define REX_R 4 /* extends the register */
#define REX_X 2 /* extends the index */
#define REX_B 1 /* extends the register or base in rm */

/* Bytes before and after a candidate in which its register may get a copy of rsp. */
#define COPY_WINDOW 65536
/* Bytes before a candidate that are decoded to know whether an instruction starts there. */
#define SYNC_WINDOW 192

/* Called by a program to switch stacks. */
static const char *const imported[] = { "swapcontext", "setcontext", "makecontext" };

/*
 * Defined or called: Boost.Context, libco (byuu's and Tencent's), libaco, libcoro, greenlet, Ruby, PHP,
 * minicoro, gcc's split stacks; and what all code of GHC (Haskell) refers to, which keeps its calls on a stack of its own
 * and returns by jumps.
 */
static const char *const known[] = {
	"jump_fcontext",   "ontop_fcontext",	 "make_fcontext",
	"co_switch",	   "coctx_swap",	 "acosw",
	"coro_transfer",   "slp_switch",	 "coroutine_transfer",
	"zend_fiber_switch_context", "_mco_switch", "__morestack",
	"libucontext_swapcontext",   "libucontext_setcontext", "stg_upd_frame_info",
};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Whether the name begins like one of ours, which no C++ name does: spares most names the comparisons. */
static bool may_be(const char *name)
{
	switch (name[0]) {
	case '_':
		return name[1] == '_' || name[1] == 'm';
	case 'a':
	case 'c':
	case 'j':
	case 'l':
	case 'm':
	case 'o':
	case 's':
	case 'z':
		return true;
	default:
		return false;
	}
}

/* @ctx: whether the program is static. LLVM names __morestack weakly. */
static bool is_switch_symbol(void *ctx, const Elf64_Sym *sym, const char *name)
{
	bool is_static = *(const bool *)ctx, undefined = sym->st_shndx == SHN_UNDEF;

	if (!may_be(name))
		return false;
	if (is_one_of(name, known, COUNT(known)))
		return !undefined || ELF64_ST_BIND(sym->st_info) != STB_WEAK;
	/* a static program holds what it calls of the C library */
	return (is_static || undefined) && is_one_of(name, imported, COUNT(imported));
}

const char *kx_stack_switch_symbol(struct kx_elf *elf)
{
	struct kx_elf_section section;
	bool is_static = false;
	const char *name = kx_elf_find_symbol(elf, SHT_DYNSYM, is_switch_symbol, &is_static);

	if (name)
		return name;
	is_static = !kx_elf_get_section(elf, ".dynsym", &section);
	return kx_elf_find_symbol(elf, SHT_SYMTAB, is_switch_symbol, &is_static);
}

/* Bytes of code that are searched, some milliseconds, before a request to end is looked for. */
#define STOP_STRIDE (1u << 20)

struct scan {
	const uint8_t *code;
	size_t size;
	ZydisDecoder decoder;
};

/* What an instruction may do to rsp. */
#define WRITES_REG 1 /* the register in ModRM is rsp */
#define WRITES_RM 2  /* rm names rsp */
#define BP_REG 4     /* the same with rbp, of which leave or mov makes rsp */
#define BP_RM 8
#define XCHG_RAX 16  /* xchg rax, rsp in two bytes */
#define POP 32	     /* pop rsp, of one byte, before a return, jump or pop */
#define POP_RM 64

/*
 * The first three bytes of an instruction that may load rsp: REX.W, the opcode of mov, xchg, add or lea, and ModRM
 * with rsp as what is written; or a pop. The instruction may be one if all three have a bit in common.
 */
struct filter {
	uint8_t rex[256], opcode[256], modrm[256];
};

static void make_filter(struct filter *f)
{
	memset(f, 0, sizeof(*f));
	for (unsigned i = 0; i < 256; i++) {
		if ((i & 0xf8) == REX_W)
			f->rex[i] = (i & REX_R ? 0 : WRITES_REG | BP_REG) |
				    (i & REX_B ? 0 : WRITES_RM | BP_RM | XCHG_RAX);
		f->modrm[i] = ((i >> 3 & 7) == SP ? WRITES_REG : 0) |
			      ((i >> 3 & 7) == BP ? BP_REG : 0) |
			      (i >= 0xc0 && (i & 7) == SP ? WRITES_RM : 0) |
			      (i >= 0xc0 && (i & 7) == BP ? BP_RM : 0) | XCHG_RAX | POP | POP_RM;
	}
	f->opcode[0x8b] = WRITES_REG | BP_REG; /* mov reg, r/m */
	f->opcode[0x89] = WRITES_RM | BP_RM;   /* mov r/m, reg */
	f->opcode[0x03] = f->opcode[0x8d] = WRITES_REG; /* add, lea */
	f->opcode[0x01] = WRITES_RM;
	f->opcode[0x87] = WRITES_REG | WRITES_RM; /* xchg */
	f->opcode[0x94] = XCHG_RAX;
	f->rex[0x5c] = POP;
	f->opcode[0xc3] |= POP; /* ret */
	f->opcode[0x41] |= POP; /* pop of r8 to r15 */
	f->opcode[0xff] |= POP; /* jmp *r/m */
	for (unsigned i = 0x58; i < 0x60; i++)
		f->opcode[i] |= POP;
	f->rex[0x8f] = POP_RM;
	f->opcode[0xc4] |= POP_RM;
}

static bool decode(const struct scan *s, size_t at, ZydisDecodedInstruction *z)
{
	size_t left = s->size - at;

	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		&s->decoder, NULL, s->code + at,
		left < ZYDIS_MAX_INSTRUCTION_LENGTH ? left : ZYDIS_MAX_INSTRUCTION_LENGTH, z));
}

/* What decoding from a place before a candidate comes to. */
enum stream { UNKNOWN, HITS, MISSES };

/*
 * Decodes from @pos on to @at or past it, or to where a stream before has been: of @outcomes, one for each byte from @base on,
 * which gets what this one comes to.
 */
static enum stream follow_stream(const struct scan *s, size_t base, size_t pos, size_t at, uint8_t *outcomes)
{
	size_t path[SYNC_WINDOW], n = 0;
	enum stream result = UNKNOWN;
	bool zero = false;

	while (pos < at && !outcomes[pos - base]) {
		ZydisDecodedInstruction z;

		path[n++] = pos - base;
		/* of a table between functions, as what follows may be */
		zero = !s->code[pos];
		pos += !zero && decode(s, pos, &z) ? z.length : 1;
	}
	result = pos < at ? (enum stream)outcomes[pos - base] : pos == at && !zero ? HITS : MISSES;
	while (n)
		outcomes[path[--n]] = (uint8_t)result;
	return result;
}

/*
 * Whether decoding from different places before comes to @at: instruction streams soon fall in step. In
 * repetitive code a wrong one may stay out of step for long, so all but one must agree.
 */
static bool starts_instruction(const struct scan *s, size_t at)
{
	const size_t base = at > SYNC_WINDOW ? at - SYNC_WINDOW : 0;
	uint8_t outcomes[SYNC_WINDOW] = { UNKNOWN };
	int missed = 0;

	for (size_t from = base; from < base + 8 && from < at && missed < 2; from++)
		missed += follow_stream(s, base, from, at, outcomes) == MISSES;
	return missed < 2;
}

/* A copy of rsp in @reg, whatever its form: mov reg, rsp or lea reg, [rsp + n]. */
static bool is_copy(const uint8_t *p, unsigned reg)
{
	uint8_t rex_reg = reg & 8 ? REX_W | REX_R : REX_W, rex_rm = reg & 8 ? REX_W | REX_B : REX_W;

	if (p[0] == rex_rm && p[1] == 0x89 && p[2] == (0xc0 | SP << 3 | (reg & 7)))
		return true;
	if (p[0] == rex_reg && p[1] == 0x8b && p[2] == (0xc0 | (reg & 7) << 3 | SP))
		return true;
	return p[0] == rex_reg && p[1] == 0x8d && (p[2] & 0x3f) == ((reg & 7) << 3 | SP) &&
	       p[2] < 0xc0 && (p[3] & 7) == SP;
}

/* A load of @reg from the frame, where rsp may have been saved: mov reg, [rsp or rbp + n]. */
static bool is_reload(const uint8_t *p, unsigned reg)
{
	uint8_t rex = reg & 8 ? REX_W | REX_R : REX_W;

	if ((p[0] & ~REX_X) != rex || p[1] != 0x8b || (p[2] & 0x38) != (reg & 7) << 3 ||
	    p[2] >= 0xc0)
		return false;
	return ((p[2] & 7) == BP && p[2] >= 0x40) || ((p[2] & 7) == SP && (p[3] & 7) == SP) ||
	       ((p[2] & 7) == SP && (p[3] & 7) == BP && p[2] >= 0x40);
}

/* A return, or a jump that nothing follows: most functions end so. */
static bool ends_function(const uint8_t *p, size_t at)
{
	return p[0] == 0xc3 && (p[1] == 0x90 || p[1] == 0xcc || p[1] == 0x66 || p[1] == 0x0f ||
				!((at + 1) & 15));
}

/*
 * Whether @reg may hold an address of the function's own frame at @at. rdi, rsi and rdx are arguments
 * unless they are set in the same function; in other registers a loop may have the copy further down.
 */
static bool is_of_frame(const struct scan *s, size_t at, unsigned reg)
{
	size_t from = at > COPY_WINDOW ? at - COPY_WINDOW : 0;
	size_t to = s->size - at > COPY_WINDOW + 3 ? at + COPY_WINDOW : s->size - 3;
	bool is_argument = reg == 2 || reg == 6 || reg == 7;

	for (size_t pos = at; pos-- > from;) {
		const uint8_t *p = s->code + pos;

		if (is_copy(p, reg) || is_reload(p, reg))
			return true;
		if (is_argument && ends_function(p, pos))
			return false;
	}
	for (size_t pos = at; !is_argument && pos < to; pos++)
		if (is_copy(s->code + pos, reg) || is_reload(s->code + pos, reg))
			return true;
	return false;
}

/* `mov %rcx, %rsp; pop %rcx; jmp *%rcx` or `...; ret`: where gcc resumes after an exception. */
static bool is_eh_return(const struct scan *s, size_t at)
{
	const uint8_t *p = s->code + at;

	return p[0] == REX_W && p[1] == 0x89 && p[2] == 0xcc &&
	       (p[3] == 0xc3 ||
		(p[3] == 0x59 && s->size - at >= 6 && p[4] == 0xff && p[5] == 0xe1));
}

/* rsp = the address of a memory operand: lea, of an aligned frame or of a variable one, or a load. */
static bool is_elsewhere(const struct scan *s, size_t at)
{
	const uint8_t *p = s->code + at;
	unsigned rm = (p[2] & 7) | (p[0] & REX_B ? 8 : 0);

	if ((p[2] & 7) == SP) { /* with a SIB byte */
		rm = (p[3] & 7) | (p[0] & REX_B ? 8 : 0);
		if (p[1] == 0x8d && !(p[0] & REX_X) && (p[3] >> 3 & 7) == BP)
			return false;
	} else if (p[2] < 0x40 && (p[2] & 7) == BP) {
		return true; /* rip + n */
	}
	return rm != BP && rm != SP && !is_of_frame(s, at, rm);
}

/* leave, or mov %rbp, %rsp. */
static bool takes_rbp(const uint8_t *p)
{
	return p[0] == 0xc9 || (p[0] == REX_W && ((p[1] == 0x89 && p[2] == 0xec) || (p[1] == 0x8b && p[2] == 0xe5)));
}

/*
 * rbp = a value from elsewhere, which the next instruction makes rsp: leave, or mov. A function that leaves its
 * own frame has set rbp long before.
 */
static bool is_leave(const struct scan *s, size_t at)
{
	const uint8_t *p = s->code + at;
	unsigned reg = (p[2] >> 3 & 7) | (p[0] & REX_R ? 8 : 0), length = 3;
	ZydisDecodedInstruction z;

	/* a mov has 3 to 8 bytes; few are followed by that, and decoding each takes long */
	while (length <= 8 && s->size - at >= length + 3u && !takes_rbp(p + length))
		length++;
	if (length > 8 || s->size - at < length + 3u)
		return false;

	if (p[1] == 0x89 || p[2] >= 0xc0) {
		if (p[1] == 0x8b)
			reg = (p[2] & 7) | (p[0] & REX_B ? 8 : 0);
		if (reg == SP || reg == BP)
			return false;
	}
	if (!decode(s, at, &z) || s->size - at < z.length + 3u || !takes_rbp(p + z.length))
		return false;
	return p[1] == 0x89 || p[2] >= 0xc0 ? !is_of_frame(s, at, reg) : is_elsewhere(s, at);
}

/*
 * Whether the `pop rsp` at @at takes what the function itself has saved at the beginning of its frame, as SIMD code
 * in assembly does that aligns it: behind `mov rsp, rbp`, `lea rsp, [rbp + n]` or `add rsp, n`.
 */
static bool is_saved(const struct scan *s, size_t at)
{
	const uint8_t *p = s->code + at;

	if (at >= 3 && p[-3] == REX_W &&
	    ((p[-2] == 0x89 && p[-1] == 0xec) || (p[-2] == 0x8b && p[-1] == 0xe5)))
		return true;
	if (at >= 4 && p[-4] == REX_W &&
	    ((p[-3] == 0x83 && p[-2] == 0xc4) || (p[-3] == 0x8d && p[-2] == 0x65)))
		return true;
	return at >= 7 && p[-7] == REX_W &&
	       ((p[-6] == 0x81 && p[-5] == 0xc4) || (p[-6] == 0x8d && p[-5] == 0xa5));
}

/* Whether the instruction at @at, one that passes the filter by @why, takes rsp from another place than the frame. */
static bool is_switch(const struct scan *s, size_t at, unsigned why)
{
	const uint8_t *p = s->code + at;
	unsigned rm = (p[2] & 7) | (p[0] & REX_B ? 8 : 0);
	unsigned reg = (p[2] >> 3 & 7) | (p[0] & REX_R ? 8 : 0);

	if (why & XCHG_RAX)
		return true;
	if (why & POP_RM)
		return !is_saved(s, at);
	if (why & POP) /* with REX.B before it is pop r12; `ff /4` jumps */
		return !(at && (p[-1] & 0xf1) == 0x41) && (p[1] != 0x41 || (p[2] & 0xf8) == 0x58) &&
		       (p[1] != 0xff || (p[2] & 0x38) == 0x20) && !is_saved(s, at);
	if (why & (BP_REG | BP_RM))
		return is_leave(s, at);
	switch (p[1]) {
	case 0x87:
		return true;
	case 0x89:
	case 0x01:
		return reg != BP && reg != SP && !is_eh_return(s, at) && !is_of_frame(s, at, reg);
	case 0x03:
		if (p[2] < 0xc0) /* adds a variable: the frame's size */
			return false;
		break;
	case 0x8d:
		if (p[2] >= 0xc0) /* not an instruction */
			return false;
		break;
	default:
		break;
	}
	if (p[2] >= 0xc0) /* mov or add rsp, reg */
		return rm != BP && rm != SP && !is_of_frame(s, at, rm);
	return is_elsewhere(s, at);
}

/* Whether an instruction at @at loads rsp from another stack. */
static inline __attribute__((always_inline)) bool switches_at(const struct scan *s, const struct filter *f, size_t at)
{
	const unsigned why = f->rex[s->code[at]] & f->opcode[s->code[at + 1]] & f->modrm[s->code[at + 2]];

	return why && is_switch(s, at, why) && starts_instruction(s, at);
}

#define BLOCK 16 /* bytes */

/*
 * Where in the block at @p an instruction may begin that passes the filter, a bit each: 48 to 4f with a ModRM that names
 * rsp or rbp as what the filter asks for and an opcode that may load it, or with the opcode 94; 5c; 8f. Reads two bytes
 * more.
 */
static unsigned candidates(const uint8_t *p)
{
	const __m128i first = _mm_loadu_si128((const __m128i *)p);
	const __m128i opcode = _mm_loadu_si128((const __m128i *)(p + 1));
	const __m128i modrm = _mm_loadu_si128((const __m128i *)(p + 2));
	const __m128i rsp_or_rbp = _mm_or_si128(kx_byte_match(modrm, 0x30, SP << 3), kx_byte_match(modrm, 0xc6, 0xc0 | SP));
	/* 01, 03; 87; 89, 8b, 8d, 8f */
	const __m128i loads = _mm_or_si128(_mm_or_si128(kx_byte_match(opcode, 0xfd, 0x01), kx_byte_match(opcode, 0xff, 0x87)),
					   kx_byte_match(opcode, 0xf9, 0x89));
	const __m128i rex = _mm_and_si128(kx_byte_match(first, 0xf8, REX_W),
					  _mm_or_si128(_mm_and_si128(loads, rsp_or_rbp), kx_byte_match(opcode, 0xff, 0x94)));
	const __m128i pop = _mm_or_si128(kx_byte_match(first, 0xff, 0x5c), kx_byte_match(first, 0xff, 0x8f));

	return (unsigned)_mm_movemask_epi8(_mm_or_si128(rex, pop));
}

bool kx_stack_switch_in(const uint8_t *code, size_t size, size_t *offset)
{
	struct scan s = { .code = code, .size = size };
	struct filter f;
	size_t i = 0;

	make_filter(&f);
	ZydisDecoderInit(&s.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (; i + BLOCK + 3 <= size; i += BLOCK) {
		if (!(i % STOP_STRIDE) && kx_stop_requested())
			return false;
		for (unsigned bits = candidates(code + i); bits; bits &= bits - 1) {
			*offset = i + (unsigned)__builtin_ctz(bits);
			if (switches_at(&s, &f, *offset))
				return true;
		}
	}
	/* the shortest, and a return */
	for (; i + 4 <= size; i++) {
		*offset = i;
		if (switches_at(&s, &f, i))
			return true;
	}
	return false;
}

bool kx_stack_switch_code(struct kx_elf *elf, uint64_t *addr)
{
	struct kx_elf_section seg;
	Elf_Scn *scn = NULL;
	bool any = false;
	size_t at;

	while ((scn = elf_nextscn(kx_elf_handle(elf), scn))) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		Elf_Data *data;

		if (!sh || sh->sh_type == SHT_NOBITS || !(sh->sh_flags & SHF_EXECINSTR))
			continue;
		any = true;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf || !kx_stack_switch_in(data->d_buf, data->d_size, &at))
			continue;
		*addr = sh->sh_addr + at;
		return true;
	}
	for (size_t i = 0; !any && kx_elf_exec_segment(elf, i, &seg); i++) {
		if (!seg.data || !kx_stack_switch_in(seg.data, seg.size, &at))
			continue;
		*addr = seg.addr + at;
		return true;
	}
	return false;
}
