// SPDX-License-Identifier: BSD-2-Clause
#include "plan/new_threads.h"

/* The first one has a name that only glibc has, unlike the others. */
static const char *const names[KX_NEW_THREAD_FUNCTIONS] = { "__ctype_init", "start_thread", "__lll_lock_wait_private" };

void kx_new_threads_find(const struct kx_symbols *syms, struct kx_new_thread_functions *out)
{
	out->n = 0;
	for (size_t i = 0; i < KX_NEW_THREAD_FUNCTIONS && (!i || out->n); i++) {
		const struct kx_symbol *sym = kx_symbols_find_name(syms, names[i]);

		if (sym)
			out->items[out->n++] = sym;
	}
}

bool kx_new_threads_have(const struct kx_new_thread_functions *f, const struct kx_symbol *sym)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->items[i]->addr == sym->addr)
			return true;
	return false;
}
