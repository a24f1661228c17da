// SPDX-License-Identifier: BSD-2-Clause
/* Shared by process_probes.c and, below it, process_probes_withheld.c; private to them. */
#ifndef KX_PROCESS_PROBES_INTERNAL_H
#define KX_PROCESS_PROBES_INTERNAL_H

#include "attach/probes_internal.h"
#include "attach/process_probes.h"

/* What a process has of one shared module. */
struct kx_held_module {
	uint32_t module;
	struct kx_links sessions; /* return probes, and with a session its entries */
	struct kx_links others;
};

struct kx_risky_module {
	uint32_t module;
	unsigned which; /* KX_DROP_... */
};

struct kx_process_probes {
	struct kx_process_probes *next;
	struct kx_probes *p;
	pid_t pid;
	struct kx_held_module *held;
	size_t nheld, held_room;
	bool *without; /* by id - 1: functions that get no probe here; NULL: none */
	size_t without_room;
	/* Modules whose return instructions have probes because return probes are harmful here. */
	struct kx_risky_module *risky;
	size_t nrisky, risky_room;
	struct kx_links risky_links;
	/* Modules whose withheld functions have probes here, nevertheless. */
	uint32_t *let_in;
	size_t nlet_in, let_in_room;
	struct kx_links withheld_links;
	unsigned moved; /* which have been said to have moved */
};

#endif
