// SPDX-License-Identifier: BSD-2-Clause
/* A function of kxray's own to try probes on. */
#ifndef KX_ATTACH_SELF_H
#define KX_ATTACH_SELF_H

#include <stdbool.h>
#include <sys/types.h>

#include "tracer/uprobe_link.h"

/* Calls the function; it starts with a 5-byte nop and does nothing. */
void kx_self_hit(void);

/*
 * Attaches an empty program to it in process @pid, a kxray. The links are added to @links.
 * Errors: the kernel's.
 */
int kx_self_attach(enum kx_mechanism m, pid_t pid, bool is_return, struct kx_links *links);

#endif
