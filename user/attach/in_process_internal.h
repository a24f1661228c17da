// SPDX-License-Identifier: BSD-2-Clause
/*
 * Shared by in_process.c (which functions, life), in_process_late.c (modules that come and go), in_process_guard.c (guards of the C library's
 * functions), in_process_area.c (one module's area) and in_process_refusal.c (what is not recorded); private to them.
 */
#ifndef KX_IN_PROCESS_INTERNAL_H
#define KX_IN_PROCESS_INTERNAL_H

#include "attach/in_process.h"
#include "attach/jump_space.h"
#include "attach/tsc_guard.h"
#include "binary/process_code.h"
#include "plan/windows.h"
#include "tracer/patch_area.h"
#include "tracer/patch_family.h"

/* A function that is recorded in process. */
struct kx_patched_function {
	uint32_t id;
	struct kx_windows windows;
};

/* One of the selection's modules. Its functions and their windows are kept while it is unloaded. */
struct kx_patched_module {
	const struct kx_select_module *m;
	const struct kx_module *now; /* as the process has it; valid while it is planned and mapped */
	bool is_late;		     /* what is in memory is compared with the file when the jumps are written */
	bool planned;		     /* its functions are those below, or all have uprobes */
	bool installed;		     /* its jumps are in, or could not be written */
	bool counted;		     /* in counts.sites, when it was loaded first */
	bool said;		     /* that another copy of it has no jumps */
	uint64_t bias;
	uint64_t text, text_end; /* from the first to the last of its executable mappings */
	struct kx_window_planner *planner;
	struct kx_patched_function *functions;
	size_t nfunctions, room;
	size_t nwindows;
	struct kx_window guards[KX_GUARDS]; /* of kx_guards; .length 0: not in this module, or not possible */
	bool only_guards; /* then no more of its code is made writable than their pages */
	struct kx_patch_area area; /* .table NULL: not mapped. The process can change what is in it: nothing is read back */
	struct kx_patch_table *layout; /* what the table begins with; owned */
	size_t nsites;
	size_t code_size, far_size; /* of area.code and area.far */
	struct kx_jump_space *space;
	uint32_t *site_ids; /* by site: the function's id; 0: only a guard */
	uint8_t *site_lengths; /* by site: bytes of the window */
};

/* Where the guards are. */
struct kx_guarded {
	/* The C library, unless the selection has it */
	struct kx_module file;		 /* no path */
	struct kx_select_module library; /* owned */
	struct kx_patched_module module;
	char why[256];			 /* a clause: what is not guarded; "" */
};

struct kx_in_process {
	struct kx_in_process_options o;
	int mem; /* /proc/PID/mem */
	bool handles_faults; /* it has handlers of SIGSEGV and the like, which may look at addresses */
	bool *has;     /* by id - 1 */
	size_t nhas;
	size_t nprobed; /* functions that are refused since somebody else has a probe in them */
	char refused_for[256]; /* the reason for each refused function; "": there are several */
	size_t has_room;
	struct kx_patched_module *modules; /* as many as the selection has, in its order */
	size_t nmodules;
	struct kx_guarded guarded;
	bool enabled;
	uint64_t *leaving; /* code areas of unloaded modules that are still mapped */
	size_t nleaving, leaving_room;
	struct kx_target_rings *memory; /* mapped here */
	uint64_t rings_at;		/* in the target; 0: not mapped */
	size_t rings_size;
	uint32_t tid_offset;
	struct kx_patch_family family;	/* with o.follow */
	struct kx_rings *rings;
	struct kx_in_process_counts counts;
};

/*
 * Maps what the module needs into the process, and makes the trampolines of its functions; those for which there is no room are refused. Errors: those of
 * kx_remote_calls; -ENOMEM, -EOPNOTSUPP (no room near it).
 */
int kx_patched_module_map(struct kx_in_process *p, struct kx_patched_module *m, struct kx_err *err);
/*
 * Makes the texts of @n modules writable and writes the jumps of all in the same stops. Those that have been unloaded are removed. Errors: those of
 * kx_patch_make_writable and kx_patch_install.
 */
int kx_patched_modules_install(struct kx_in_process *p, struct kx_patched_module *modules, size_t n, struct kx_err *err);
/* The module was unloaded, or gets no jumps after all: removes its area from the process, or puts it on p->leaving. */
void kx_patched_module_remove(struct kx_in_process *p, struct kx_patched_module *m);
/* Removes the code area at @code; false: it stays, for now. */
bool kx_in_process_remove_area(struct kx_in_process *p, uint64_t code);
/*
 * Whether the windows' code in memory is the file's: a probe or a change of the program itself in a window refuses the function. *@probed: what
 * differs first is a breakpoint.
 */
bool kx_in_process_is_unchanged(struct kx_process_code *memory, const struct kx_patched_module *m, const struct kx_windows *windows,
				bool *probed);
/* For kx_in_process_unguarded: the first of them is said. */
void kx_in_process_note_unguarded(struct kx_in_process *p, const char *function, const char *why);
/* Forgets its area; the process keeps what it has. */
void kx_patched_module_forget(struct kx_patched_module *m);
void kx_patched_module_free(struct kx_patched_module *m);

static inline void kx_in_process_note_stop(struct kx_in_process *p, double ms)
{
	if (p->counts.stopped_ms < ms)
		p->counts.stopped_ms = ms;
}

/* in_process.c */
/* There are as many as the selection has. Errors: -ENOMEM. */
int kx_in_process_make_room(struct kx_in_process *p, struct kx_err *err);
/*
 * Plans the functions of a module that the process has as @now; one that is refused as a whole has none. @memory: of the process, whose code
 * has to be the file's; NULL: that is looked at later, as the module may be gone at any moment. Errors: -ENOMEM, those of
 * kx_in_process_check_module.
 */
int kx_in_process_plan_module(struct kx_in_process *p, uint32_t module, const struct kx_module *now,
			      struct kx_process_code *memory, struct kx_err *err);

/* in_process_guard.c. What cannot be guarded is no error: kx_in_process_unguarded says it. */
/* After the functions were planned. */
void kx_in_process_plan_guards(struct kx_in_process *p, struct kx_process_code *memory);
/* Once the rings are there: the area of the C library, if it has nothing but guards; and its jumps. */
void kx_in_process_map_guards(struct kx_in_process *p);
void kx_in_process_install_guards(struct kx_in_process *p);
/* Whether a module of the selection is the library whose functions have guards and nothing else. */
bool kx_in_process_is_guarded(const struct kx_in_process *p, const struct kx_module *m);
void kx_in_process_free_guards(struct kx_in_process *p);

/* Sets p->handles_faults. Errors: those of kx_process_state_read. */
int kx_in_process_look_for_handlers(struct kx_in_process *p, struct kx_err *err);

/* Maps shared memory of the process at [at, at + size) here; NULL with the reason in @err. */
void *kx_in_process_share(pid_t pid, uint64_t at, size_t size, struct kx_err *err);

/* in_process_refusal.c */
/* The process got the error @code from mmap(2) for @size bytes. Returns it, or -EOPNOTSUPP where no recording in process is possible. */
int kx_in_process_unmapped(pid_t pid, int code, size_t size, const char *what, struct kx_err *err);

/* The function gets no jumps after all. */
void kx_in_process_refuse(struct kx_in_process *p, const struct kx_function *f, const char *reason);
/* The same of all functions of a module that were to be recorded in process. */
void kx_patched_module_refuse(struct kx_in_process *p, const struct kx_patched_module *m, const char *reason);
/* -EOPNOTSUPP if functions were refused and none is left. */
int kx_in_process_check_any(const struct kx_in_process *p, struct kx_err *err);

#endif
