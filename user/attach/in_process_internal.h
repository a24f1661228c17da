// SPDX-License-Identifier: BSD-2-Clause
/* Shared by in_process.c (which functions, life) and in_process_area.c (one module's area); private to them. */
#ifndef KX_IN_PROCESS_INTERNAL_H
#define KX_IN_PROCESS_INTERNAL_H

#include "attach/in_process.h"
#include "attach/jump_space.h"
#include "binary/process_code.h"
#include "plan/windows.h"
#include "tracer/patch_area.h"

/* A function that is recorded in process. */
struct kx_patched_function {
	const struct kx_function *f;
	struct kx_windows windows;
};

struct kx_patched_module {
	const struct kx_select_module *m;
	uint64_t bias;
	uint64_t text, text_end; /* from the first to the last of its executable mappings */
	struct kx_window_planner *planner;
	struct kx_patched_function *functions;
	size_t nfunctions, room;
	size_t nwindows;
	struct kx_patch_area area; /* .table NULL: not mapped. The process can change what is in it: nothing is read back */
	struct kx_patch_table *layout; /* what the table begins with; owned */
	size_t nsites;
	size_t far_size;	   /* of area.far */
	struct kx_jump_space *space;
	uint32_t *site_ids; /* by site: the function's id */
	uint8_t *site_lengths; /* by site: bytes of the window */
};

struct kx_in_process {
	struct kx_in_process_options o;
	int mem; /* /proc/PID/mem */
	bool handles_faults; /* it has handlers of SIGSEGV and the like, which may look at addresses */
	bool *has;     /* by id - 1 */
	size_t nhas;
	struct kx_patched_module *modules;
	size_t nmodules;
	struct kx_target_rings *memory; /* mapped here */
	uint64_t rings_at;		/* in the target; 0: not mapped */
	size_t rings_size;
	struct kx_rings *rings;
	struct kx_in_process_counts counts;
};

/*
 * Maps what the module needs into the process, and makes the trampolines of its functions; those for which there is no room are refused. Errors: those of
 * kx_remote_calls; -ENOMEM, -EOPNOTSUPP.
 */
int kx_patched_module_map(struct kx_in_process *p, struct kx_patched_module *m, struct kx_err *err);
/* Makes the texts of @n modules writable and writes the jumps of all in the same stops. Errors: those of kx_patch_install. */
int kx_patched_modules_install(struct kx_in_process *p, struct kx_patched_module *modules, size_t n, struct kx_err *err);
/* Forgets what is mapped here; the process keeps what it has. */
void kx_patched_module_free(struct kx_patched_module *m);

/* The function gets no jumps after all. */
void kx_in_process_refuse(struct kx_in_process *p, const struct kx_function *f, const char *reason);

/* Maps shared memory of the process at [at, at + size) here; NULL with the reason in @err. */
void *kx_in_process_share(pid_t pid, uint64_t at, size_t size, struct kx_err *err);

#endif
