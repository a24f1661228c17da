// SPDX-License-Identifier: BSD-2-Clause
/* The functions that hold call sites, each decoded once. */
#include "base/array.h"
#include "plan/call_sites_internal.h"

struct kx_decoded_function *kx_call_sites_function(struct kx_call_sites *s, uint64_t addr, int *error)
{
	uint64_t from, to;

	*error = 0;
	for (size_t i = 0; i < s->nfunctions; i++)
		if (kx_decoded_function_has(&s->functions[i], addr))
			return &s->functions[i];
	if (!kx_frame_table_find(&s->frames, addr, &from, &to))
		return NULL;
	*error = KX_ARRAY_RESERVE(s->functions, s->function_room, s->nfunctions);
	if (!*error)
		*error = kx_decoded_function_read(s->elf, from, to, &s->functions[s->nfunctions]);
	if (!*error)
		return &s->functions[s->nfunctions++];
	if (*error == -ENOEXEC)
		*error = 0;
	return NULL;
}
