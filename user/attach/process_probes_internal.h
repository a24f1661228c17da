// SPDX-License-Identifier: BSD-2-Clause
/* Shared by process_probes.c and process_probes_*.c; private to them. */
#ifndef KX_PROCESS_PROBES_INTERNAL_H
#define KX_PROCESS_PROBES_INTERNAL_H

#include "attach/probes_internal.h"
#include "attach/process_probes.h"

/* What a process has of the functions of one switch. */
struct kx_held_links {
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
	uint32_t *held; /* shared modules that it has links of, or gets when their switches go in */
	size_t nheld, held_room;
	struct kx_held_links *links; /* by the index of their switches */
	size_t links_room;
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

/* process_probes_links.c */
bool kx_process_probes_holds(const struct kx_process_probes *pp, uint32_t module);
/* Whether kx_process_probes_leave_out was asked for. */
bool kx_process_probes_leaves_out(const struct kx_process_probes *pp, uint32_t id);
/* A link for the batch's functions that are not left out in this process. */
int kx_process_probes_link(struct kx_process_probes *pp, uint32_t module, enum kx_tracer_prog prog, struct kx_batch *b,
			   struct kx_links *links, struct kx_err *err);
/* Before a few more links are made; counting the open files takes time. */
void kx_process_probes_reserve_files(struct kx_probes *p);
/* Exits of KX_DROP_... come from return instructions in this process. */
void kx_process_probes_say_moved(struct kx_process_probes *pp, unsigned which);

/* process_probes_switch.c: the switch's links for this process. Errors: those of kx_uprobe_link; some links may have been made. */
int kx_process_probes_hold_switch(struct kx_process_probes *pp, struct kx_switch *s, struct kx_err *err);

/* process_probes_standby.c */
/* Adds instruction exits of the module's functions of @which (KX_DROP_...) that have return probes. @flags: of the cookies. Errors: -ENOMEM. */
int kx_process_probes_plan_exits(struct kx_probes *p, uint32_t module, unsigned which, struct kx_batch *b, uint64_t flags);
/* Whether the module has probes that replace return addresses and may be given up. */
bool kx_process_probes_has_sessions(const struct kx_probes *p, uint32_t module);
/* Links for what takes the place of return probes. */
int kx_process_probes_link_standby(struct kx_process_probes *pp, struct kx_switch *s, struct kx_err *err);
/* From now on the module has no sessions, in any process. Theirs are to be closed: @closing. */
int kx_process_probes_give_up_sessions(struct kx_probes *p, uint32_t module, struct kx_links *closing, struct kx_err *err);

#endif
