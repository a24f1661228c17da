// SPDX-License-Identifier: BSD-2-Clause
/* Messages to the user while a recording runs. */
#ifndef KX_NOTICE_H
#define KX_NOTICE_H

struct kx_notices {
	void (*each)(void *ctx, const char *text); /* one clause, without a newline; or NULL */
	void *ctx;
};

/* Formats a notice, cut at 1023 bytes, and passes it on. */
void kx_notice(const struct kx_notices *n, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
