// SPDX-License-Identifier: BSD-2-Clause
/* Errors: a negative errno for the program, one clear sentence for the person. */
#ifndef KX_ERR_H
#define KX_ERR_H

/*
 * Filled by the function that fails, at the place where it knows most. The
 * text is one sentence without a final newline: what failed, on what, why, and
 * what to do. A function that returns 0 leaves it untouched.
 */
struct kx_err {
	int code; /* negative errno, the same that was returned */
	char text[1024];
};

/*
 * Fills @err (may be NULL) and returns @code, so that a failing function can
 * end with `return kx_err_set(err, -ENOENT, "...", ...)`. Longer texts are cut.
 */
int kx_err_set(struct kx_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " before the text already in @err; returns err->code. */
int kx_err_prefix(struct kx_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
