// SPDX-License-Identifier: BSD-2-Clause
#include "plan/simple_insn.h"

bool kx_insn_is_simple(const struct kx_insn *insn)
{
	const ZydisDecodedInstruction *z = &insn->z;

	if (z->attributes & (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
			     ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_IS_PRIVILEGED))
		return false;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_LEA:
		return true;
	case ZYDIS_MNEMONIC_XCHG: /* locks the bus if it is one with memory */
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV: /* trap on zero */
		return false;
	default:
		break;
	}
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_ADOX_ADCX:
	case ZYDIS_CATEGORY_AVX:
	case ZYDIS_CATEGORY_AVX2:
	case ZYDIS_CATEGORY_AVX512:
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_BMI1:
	case ZYDIS_CATEGORY_BMI2:
	case ZYDIS_CATEGORY_BROADCAST:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_LOGICAL_FP:
	case ZYDIS_CATEGORY_LZCNT:
	case ZYDIS_CATEGORY_MMX:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_SSE:
	case ZYDIS_CATEGORY_VFMA:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_X87_ALU:
		return true;
	default:
		return false;
	}
}

#define SIMPLE_ALU 1, 1, 1, 1, 1, 1, 0, 0
#define SIMPLE8 1, 1, 1, 1, 1, 1, 1, 1

/* Opcodes that mean a simple instruction whatever follows them. */
static const bool simple_one_byte[256] = {
	SIMPLE_ALU, SIMPLE_ALU, SIMPLE_ALU, SIMPLE_ALU, SIMPLE_ALU, SIMPLE_ALU, SIMPLE_ALU, SIMPLE_ALU,
	[0x63] = 1, [0x69] = 1, [0x6b] = 1, [0x80] = 1, [0x81] = 1, [0x83] = 1, [0x84] = 1, [0x85] = 1,
	[0x88] = 1, [0x89] = 1, [0x8a] = 1, [0x8b] = 1, [0x8d] = 1, [0xb0] = SIMPLE8, SIMPLE8,
};

/* The same behind 0f: cmov, setcc, imul, movzx, movsx. */
static const bool simple_two_byte[256] = {
	[0x40] = SIMPLE8, SIMPLE8, [0x90] = SIMPLE8, SIMPLE8, [0xaf] = 1, [0xb6] = 1, [0xb7] = 1, [0xbe] = 1, [0xbf] = 1,
};

bool kx_bytes_are_simple(const uint8_t *bytes)
{
	bytes += bytes[0] >> 4 == 4; /* REX */
	return bytes[0] == 0x0f ? simple_two_byte[bytes[1]] : simple_one_byte[bytes[0]];
}
