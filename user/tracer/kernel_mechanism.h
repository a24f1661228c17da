// SPDX-License-Identifier: BSD-2-Clause
/* The ways to a kernel function's entries and exits, and which of them works here. */
#ifndef KX_KERNEL_MECHANISM_H
#define KX_KERNEL_MECHANISM_H

#include "base/err.h"

enum kx_kernel_mechanism {
	KX_KERNEL_NONE = 0, /* kernel functions are not traced */
	/* best first */
	KX_KERNEL_SESSION,  /* kprobe.session: both ends by one link, kernel 6.10 */
	KX_KERNEL_MULTI,    /* kprobe.multi: a link for all entries, one for all returns, 5.18 */
	KX_KERNEL_FENTRY,   /* fentry and fexit: two programs for each function, cookies 5.19 */
	KX_KERNEL_SINGLE,   /* a kprobe and a kretprobe for each function, as perf events, 5.15 */
	KX_KERNEL_MECHANISMS,
};

const char *kx_kernel_mechanism_name(enum kx_kernel_mechanism m);   /* "kprobe.session", ... */

struct kx_kernel_trial {
	int err;       /* 0: it works; else a negative errno */
	char why[160]; /* "" if it works, else a clause without full stop */
};

/* Loads programs that do nothing and attaches them to a function that is never called. */
void kx_kernel_mechanism_try(enum kx_kernel_mechanism m, struct kx_kernel_trial *out);

/*
 * The best that works, or @wanted if that is not KX_KERNEL_NONE. -EOPNOTSUPP, or -EPERM if this user
 * lacks the privilege, with one sentence that has the reason for each mechanism tried.
 */
int kx_kernel_mechanism_best(enum kx_kernel_mechanism wanted, enum kx_kernel_mechanism *out,
			     struct kx_err *err);

#endif
