// SPDX-License-Identifier: BSD-2-Clause
#include "binary/generated_code.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "binary/mappings.h"
#include "binary/process_code.h"
#include "binary/stack_switch.h"

/* Address space of one mapping of which each page's state is asked for: some 10 ms. */
#define MAX_MAPPING (UINT64_C(4) << 30)

struct search {
	const struct kx_modules *mods;
	struct kx_process_code code;
	size_t left; /* bytes that may still be read */
	uint64_t address;
};

static bool is_module(const struct kx_modules *mods, const struct kx_mapping *m)
{
	for (size_t i = 0; i < mods->count; i++)
		if (kx_module_has_mapping(&mods->items[i], m))
			return true;
	return false;
}

static bool is_kxrays(struct search *s, const struct kx_mapping *m)
{
	uint64_t word;

	return kx_process_code_read(&s->code, m->start, &word, sizeof(word)) == sizeof(word) && word == KX_OWN_CODE_MAGIC;
}

/* Pages that are not in memory hold no code that has run; they stay 0, which is no instruction of interest. */
static size_t count_present(struct search *s, const struct kx_mapping *m)
{
	size_t n = 0;

	for (uint64_t at = m->start; at < m->end; at += KX_CODE_PAGE)
		n += kx_process_code_is_present(&s->code, at);
	return n * KX_CODE_PAGE;
}

static int scan_pages(struct search *s, uint64_t start, size_t size)
{
	uint8_t *bytes = malloc(size);
	size_t at, got;
	int found = KX_GENERATED_PLAIN;

	if (!bytes)
		return KX_GENERATED_TOO_MUCH;
	got = kx_process_code_read(&s->code, start, bytes, size);
	if (got >= 4 && kx_stack_switch_in(bytes, got, &at)) {
		s->address = start + at;
		found = KX_GENERATED_SWITCH;
	}
	free(bytes);
	return found;
}

static int scan_mapping(void *ctx, const struct kx_mapping *m)
{
	struct search *s = ctx;
	uint64_t at = m->start, from;
	size_t present;
	int found = KX_GENERATED_PLAIN;

	if (!m->executable || kx_mapping_is_kernels(m) || is_module(s->mods, m) || is_kxrays(s, m))
		return found;
	if (m->end - m->start > MAX_MAPPING)
		return KX_GENERATED_TOO_MUCH;
	present = count_present(s, m);
	if (present > s->left)
		return KX_GENERATED_TOO_MUCH;
	s->left -= present;
	while (!found && at < m->end) {
		while (at < m->end && !kx_process_code_is_present(&s->code, at))
			at += KX_CODE_PAGE;
		for (from = at; at < m->end && kx_process_code_is_present(&s->code, at);)
			at += KX_CODE_PAGE;
		if (at > from)
			found = scan_pages(s, from, (size_t)(at - from));
	}
	return found;
}

enum kx_generated kx_generated_code_scan(pid_t pid, const struct kx_modules *mods, uint64_t *address)
{
	struct search s = { .mods = mods, .left = KX_GENERATED_MAX };
	int found;

	if (kx_process_code_open(pid, &s.code))
		return KX_GENERATED_UNKNOWN;
	found = kx_mappings_each(pid, scan_mapping, &s);
	kx_process_code_close(&s.code);
	*address = s.address;
	if (found == -ENOMEM)
		return KX_GENERATED_TOO_MUCH;
	return found < 0 ? KX_GENERATED_UNKNOWN : (enum kx_generated)found;
}
