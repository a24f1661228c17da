// SPDX-License-Identifier: BSD-2-Clause
/* Shared by probes.c, probe_*.c and process_probes*.c; private to them. */
#ifndef KX_PROBES_INTERNAL_H
#define KX_PROBES_INTERNAL_H

#include "attach/probes.h"

/* Probes of one module that go into one link. */
struct kx_batch {
	struct kx_probe *items;
	size_t count, room;
};

/* The probes of one module, by the programs that they are for. */
struct kx_module_batches {
	struct kx_batch exits;	 /* KX_PROG_EXIT */
	struct kx_batch leaves;	 /* KX_PROG_RETURN, of functions that make no calls */
	struct kx_batch returns; /* KX_PROG_RETURN, of the others */
	struct kx_batch entries; /* KX_PROG_ENTRY: those that no session has */
	/*
	 * Of a private module's switch, in place of the return probes: instruction exits of the functions above, and their entries
	 * if a session has these. On standby until the module's group is replaced.
	 */
	struct kx_batch standby_exits, standby_entries;
	/* Instruction exits of the functions in returns and in leaves, for processes where these are not
	 * hijacked. */
	unsigned risky_planned; /* KX_DROP_... */
	struct kx_batch risky_exits, risky_leaf_exits;
};

/* Links of the probes that are not those of single processes. */
struct kx_probe_links {
	struct kx_links leaf_returns; /* of functions that make no calls */
	struct kx_links returns;
	struct kx_links others;
};

/* The probes of a function, or of a few, which go in and out together. */
struct kx_switch {
	uint32_t module;
	size_t index; /* in switches */
	bool out;     /* it should have no links */
	int closing;  /* kx_links_close_soon's number: links of its functions are being closed, meanwhile it gets none */
	struct kx_module_batches batches;
	struct kx_probe_links links; /* of a private module: those of its processes, see process_probes.c */
};

/* How a module is attached. */
struct kx_probed_module {
	bool attached;
	/* Each process has links of its own, since others that nobody asked for map the module. */
	bool is_private;
	bool has_standby; /* its switches have */
	bool replaced;	/* kx_tracer_replace_session */
	size_t holders; /* private: processes that have links */
	struct kx_module_batches *batches; /* kept where processes may get links later */
	struct kx_module_batches *withheld; /* functions with links of single processes only; NULL: there are none */
};

/* A traced marker's place that has a semaphore. */
struct kx_guarded_place {
	const struct kx_module *file;
	uint64_t offset, semaphore; /* in the file */
};

struct kx_probes {
	struct kx_tracer *tracer;
	const struct kx_selection *sel;
	struct kx_probes_options options;
	bool *has; /* by id - 1 */
	size_t has_room;
	struct kx_probed_module *modules; /* KX_SELECT_MAX_MODULES of them */
	size_t nfunctions, nprobes;
	struct kx_probe_links links;
	struct kx_switch **switches; /* of modules that are private, and with options.apart of all */
	size_t nswitches, switches_room;
	uint32_t *switch_of; /* by id - 1: index + 1 in switches; 0: none */
	size_t switch_of_room;
	bool settling; /* see kx_probes_settle */
	bool returns_dropped, returns_closed, leaf_returns_closed;
	struct kx_process_probes *processes;
	struct kx_links ended; /* of processes that have ended */
	struct kx_guarded_place *guarded; /* of the first guarded_functions functions of the selection */
	size_t nguarded, guarded_room, guarded_functions;
	size_t files_left;	/* open files that the limit was last raised for */
	int oom;
};

/* The function's switch; NULL: it has none. */
static inline struct kx_switch *kx_switch_of(const struct kx_probes *p, uint32_t id)
{
	uint32_t index = p->switch_of && id - 1 < p->switch_of_room ? p->switch_of[id - 1] : 0;

	return index ? p->switches[index - 1] : NULL;
}

/* Whether it has its links, and keeps them. */
static inline bool kx_switch_is_in(const struct kx_switch *s)
{
	return !s->out && !s->closing;
}

/* probe_batches.c */
/* One link, or more where the kernel refuses some probes; none for an empty batch. */
int kx_probes_link(struct kx_probes *p, uint32_t module, enum kx_tracer_prog prog, pid_t pid,
		   const struct kx_batch *b, struct kx_links *links, struct kx_err *err);
/* The batch for all processes that have the module, by one link or one for each. */
int kx_probes_attach_batch(struct kx_probes *p, enum kx_tracer_prog prog, uint32_t module,
			   const struct kx_batch *b, struct kx_links *links, struct kx_err *err);
/* The module's probes in the order that they need. Errors: those of kx_uprobe_link. */
int kx_probes_attach_batches(struct kx_probes *p, uint32_t module, struct kx_module_batches *b,
			     struct kx_probe_links *to, struct kx_err *err);
/* Adds the instruction exits of @plan. @flags: of the cookie. */
void kx_probes_add_exits(struct kx_probes *p, struct kx_batch *b, const struct kx_function *f,
			 const struct kx_plan *plan, uint64_t flags);
/*
 * One without a semaphore gets that of the marker at the same place: the kernel refuses two probes there of which one has another
 * semaphore or none, and a function may begin with a marker.
 */
void kx_probes_add(struct kx_probes *p, struct kx_batch *b, struct kx_probe probe);
/* Learns the places of markers that have joined the selection. Errors: -ENOMEM. */
int kx_probes_find_guarded(struct kx_probes *p);
/* Removes the probes of functions that were refused meanwhile. */
void kx_probes_keep_attachable(const struct kx_probes *p, struct kx_batch *b);
/* Adds the probes of @f by its plan, and counts it. */
void kx_module_batches_add(struct kx_probes *p, struct kx_module_batches *b,
			   const struct kx_function *f);
void kx_module_batches_free(struct kx_module_batches *b);
/* Tells who asked for it that exits have moved. */
void kx_probes_say_moved(const struct kx_probes *p, pid_t pid, uint32_t module, unsigned which);

/* probe_switches.c */
/*
 * Makes switches for the functions of the module's batches, and attaches those of a module that is not private. Errors: as above.
 */
int kx_switches_attach(struct kx_probes *p, uint32_t module, const struct kx_module_batches *b,
		       struct kx_err *err);
/* There are ids up to @room. Errors: -ENOMEM. */
int kx_switches_make_room(struct kx_probes *p, size_t room);
/* Detaches and forgets the switches from index @count on. */
void kx_switches_truncate(struct kx_probes *p, size_t count);
/* True also for what has no switch. */
bool kx_switches_are_in(const struct kx_probes *p, uint32_t id);
/* From now on no switch of a module that is not private is turned. @close: return probes end, of leaves too with @leaves. */
void kx_switches_drop_returns(struct kx_probes *p, bool close, bool leaves);
/* Hands all links over to p->links. */
void kx_switches_join(struct kx_probes *p);
void kx_switches_free(struct kx_probes *p);

/* process_probes.c */
/* Links for all of options.procs that have the module, which is private. */
int kx_process_probes_hold_all(struct kx_probes *p, uint32_t module, struct kx_err *err);
/* Closes and frees what process_probes.c has. */
void kx_process_probes_close_all(struct kx_probes *p);

/* process_probes_switch.c */
/* Links of a private module's switch, for each process that holds the module. Errors: those of kx_uprobe_link; then there are none. */
int kx_process_probes_link_switch(struct kx_probes *p, struct kx_switch *s, struct kx_err *err);
/* Hands them over to @closing. */
void kx_process_probes_unlink_switch(struct kx_probes *p, const struct kx_switch *s, struct kx_links *closing);

/* process_probes_standby.c */
/* Gives up the return probes of a private module, in favour of its return instructions. */
int kx_process_probes_replace(struct kx_probes *p, uint32_t module, struct kx_err *err);

#endif
