// SPDX-License-Identifier: BSD-2-Clause
/* Shared by decode.c and sweep.c, and private to them. */
#ifndef KX_DECODE_INTERNAL_H
#define KX_DECODE_INTERNAL_H

#include "plan/decode.h"

struct kx_code {
	ZydisDecoder decoder;
	struct kx_code_range *ranges; /* executable segments, few */
	size_t nranges;
	struct kx_code_memory *memory; /* taken, holds what the ranges point to; NULL: each piece was allocated */
};

#endif
