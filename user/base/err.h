// SPDX-License-Identifier: BSD-2-Clause
/*
 * Errors: a negative errno for the caller, one sentence for the user. Library code never prints and
 * never exits: it returns the code and fills a struct kx_err, which the command prints.
 */
#ifndef KX_ERR_H
#define KX_ERR_H

/*
 * Filled where the error occurs. The text is one sentence without a final newline: what
 * failed, on what, why, and what to do. A function that returns 0 leaves it untouched.
 */
struct kx_err {
	int code; /* negative errno, the same that was returned */
	char text[1024];
};

/*
 * Fills @err (may be NULL) and returns @code, so that a failing function can
 * end with `return kx_err_set(err, -ENOENT, "...", ...)`. Texts that are too long are truncated.
 */
int kx_err_set(struct kx_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Prepends "PREFIX: " to the text in @err; returns err->code. */
int kx_err_prefix(struct kx_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
