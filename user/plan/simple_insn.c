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
