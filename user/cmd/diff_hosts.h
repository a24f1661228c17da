// SPDX-License-Identifier: BSD-2-Clause
/* kxray diff --by host: which of many traces are compared with each other. */
#ifndef KX_DIFF_HOSTS_H
#define KX_DIFF_HOSTS_H

#include <stddef.h>

#include "base/err.h"

struct kx_diff_host {
	char *host;
	const char *paths[2]; /* A and B; borrowed */
};

/*
 * Two traces of each host, by the sessions in their maps: the first one that is named is A, the
 * second B. Pairs are in the order of the hosts' first traces; free with kx_diff_hosts_free in any
 * case. Errors: -EINVAL (a host has not two traces, or a trace's host is not known), -ENOMEM, those
 * of kx_map_read.
 */
int kx_diff_hosts(char *const *paths, struct kx_diff_host **pairs, size_t *n, struct kx_err *err);
void kx_diff_hosts_free(struct kx_diff_host *pairs, size_t n);

#endif
