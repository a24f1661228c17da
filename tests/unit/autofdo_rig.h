// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of AutoFDO, as gcov and by the reader of the tests. Include it after cmocka's headers. */
#ifndef KX_TEST_AUTOFDO_RIG_H
#define KX_TEST_AUTOFDO_RIG_H

#include "binary/elf_image.h"
#include "binary/source_lines.h"
#include "binary/symbols.h"
#include "exporters/autofdo/modules.h"
#include "exporters/autofdo/write.h"
#include "export_run.h"

static inline uint32_t symbol(struct kx_afdo *a, const char *name, const char *file, bool top,
			      uint64_t head)
{
	uint32_t f, s;

	assert_int_equal(kx_afdo_file(a, file, &f), 0);
	assert_int_equal(kx_afdo_get_symbol(a, name, f, &s), 0);
	if (top) {
		a->symbols[s].top = true;
		a->symbols[s].head = head;
		a->symbols[s].first_ns = head ? 77 : 0;
	}
	return s;
}

#endif
