// SPDX-License-Identifier: BSD-2-Clause
/* Notes of USDT markers: the input is a section .note.stapsdt. */
#include <string.h>

#include "binary/usdt_notes.h"
#include "fuzz.h"

static void check(const struct kx_usdt_note *note)
{
	struct kx_usdt_argument a[KX_USDT_MAX_ARGUMENTS];
	const char *end = note->arguments + strlen(note->arguments);
	size_t n = kx_usdt_arguments_parse(note->arguments, a);

	if (!*note->provider || !*note->name || n > KX_USDT_MAX_ARGUMENTS)
		abort();
	for (size_t i = 0; i < n; i++) {
		if (a[i].unknown)
			continue;
		/* the kernel side reads so many bytes, and follows so many pointers */
		if (a[i].fetch.from >= KX_FROM_COUNT || a[i].fetch.hops > 1 || a[i].fetch.size != a[i].size)
			abort();
		if (a[i].size != 1 && a[i].size != 2 && a[i].size != 4 && a[i].size != 8)
			abort();
		if ((a[i].fetch.from == KX_FROM_IP) != (a[i].symbol != NULL))
			abort();
		if (a[i].symbol && (a[i].symbol < note->arguments || a[i].symbol + a[i].symbol_length > end))
			abort();
		if (!*kx_usdt_argument_type(&a[i]))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kx_usdt_note note;
	size_t at = 0;
	/* exact allocation, so that AddressSanitizer finds any access outside */
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	while (kx_usdt_note_next(copy, size, &at, &note) > 0)
		check(&note);
	free(copy);
	return 0;
}
