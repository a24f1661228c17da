// SPDX-License-Identifier: BSD-2-Clause
#include "record/notice.h"

#include <stdarg.h>
#include <stdio.h>

void kx_notice(const struct kx_notices *n, const char *format, ...)
{
	char text[1024];
	va_list ap;

	if (!n->each)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	n->each(n->ctx, text);
}
