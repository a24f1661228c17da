// SPDX-License-Identifier: BSD-2-Clause
/* The notes of a selection: facts for the user that are not errors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "select/select_internal.h"

int kx_select_note(struct kx_selection *out, const char *fmt, ...)
{
	char **grown = reallocarray(out->notes, out->nnotes + 1, sizeof(*grown));
	va_list ap;
	int n;

	if (!grown)
		return -ENOMEM;
	out->notes = grown;
	va_start(ap, fmt);
	n = vasprintf(&out->notes[out->nnotes], fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	out->nnotes++;
	return 0;
}
