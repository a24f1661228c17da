// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an in-process recording maps into its target, and how its jumps are found and taken out again, by kxray, its keeper or a later
 * `kxray detach`. All of it is plain memory; nothing in it is a library, a thread or a file.
 *
 *     head     one page a code area: whether calls are recorded. Private, with MADV_WIPEONFORK: a forked child finds zeros, and
 *              records nothing. With --follow shared, and mapped here: one flag for the process and the children that it forks.
 *     code     shared memory, executable in the target and writable here: kx_patch_table at its start, the recorder's code,
 *              trampolines, stubs. Sparse: only touched pages take memory.
 *     far      the same, for stubs of the last byte of jumps (attach/jump_space.h); one a code area
 *     rings    shared memory: struct kx_target_rings (target_rings.h); one a process
 *
 * Shared memory is anonymous, and reached through /proc/PID/map_files: the target opens nothing.
 */
#ifndef KX_PATCH_AREA_H
#define KX_PATCH_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "binary/generated_code.h"

#define KX_PATCH_MAGIC KX_OWN_CODE_MAGIC

/* In the head page. The target's code reads it, kxray writes it through /proc/PID/mem. */
struct kx_patch_head {
	uint64_t magic;
	uint32_t enabled; /* 0: calls are not recorded */
	uint32_t pad;
	uint64_t rings;	  /* address of struct kx_target_rings in the target */
};

/* One jump. */
struct kx_patch_site {
	uint64_t at;	 /* in the target */
	uint8_t old[5], jump[5];
	uint8_t pad[6];
};

/*
 * An executable mapping of a module that is writable while it is patched. Which file's it is, as in struct kx_mapping: what
 * takes its place when the module is unloaded is left alone.
 */
struct kx_patch_text {
	uint64_t from, to;
	uint64_t device, inode, offset;
};

#define KX_PATCH_MAX_TEXTS 64

/* At the start of the code area. Written before the first jump; a site whose bytes are not `jump` is not installed. */
struct kx_patch_table {
	uint64_t magic;
	uint64_t head;		    /* address of the head page */
	uint64_t code, code_size;   /* this area */
	uint64_t far, far_size;	    /* 0: none */
	uint64_t rings, rings_size;
	uint64_t texts_writable;    /* 1: texts[] may have been made writable */
	uint64_t ntexts;
	struct kx_patch_text texts[KX_PATCH_MAX_TEXTS];
	uint64_t nsites;
	struct kx_patch_site sites[]; /* in order of address */
};

/* One code area, as seen from here. */
struct kx_patch_area {
	pid_t pid;
	int mem;		     /* /proc/PID/mem */
	struct kx_patch_head *head;   /* mapped here if it is shared; NULL: it is private */
	struct kx_patch_table *table; /* mapped here; the start of `code` */
	uint8_t *code, *far;	     /* mapped here */
	/* Of the module, borrowed: nothing is written unless they are there (patch_texts.h). NULL: they stay for sure. */
	const struct kx_patch_text *texts;
	size_t ntexts;
};

struct kx_patch_times {
	double stopped_ms; /* how long the first thread was stopped, at most */
	unsigned tries;
};

/* The sites of one area. All pointers are borrowed. */
struct kx_patch_job {
	struct kx_patch_area *area; /* head->enabled must be 0 */
	size_t nsites;		    /* the first ones of the table are meant */
	const uint8_t *window_length; /* by site, bytes */
	bool *left_out;		    /* by site */
	bool gone;		    /* the module was unloaded, or loaded again: it is passed over */
};

/*
 * Makes the texts of some areas of one process writable, with all threads stopped: as many as 2.5 ms allow, then again. Those of a job whose module is no
 * longer there are not changed: it becomes .gone. Errors: -EOPNOTSUPP (the process may not), -EBUSY (no thread can make the call), those of
 * kx_remote_threads_stop and kx_remote_threads_call. *@stopped_ms becomes the time of the longest stop, if that is more.
 */
int kx_patch_make_writable(struct kx_patch_job *jobs, size_t njobs, double *stopped_ms, struct kx_err *err);

/*
 * Makes the sites of some areas of one process as .left_out says: jumps where it is false, the old bytes where it is true. Stops all threads, and
 * writes, a page at a time, the jumps of those sites in which no thread and no stack is; then again, until all are written. After 2.5 ms of a
 * stop it begins no further 256 sites: they follow in the next one. What has taken the place of a job's module is not touched: it becomes .gone.
 *
 * Returns 0 too if some cannot be written: a thread or a stack stays inside for KX_PATCH_TRIES tries, or the code is not the old one. They become true in
 * .left_out. A function's sites belong together, which is not known here: the caller then marks all sites of that function, and calls again, which
 * takes the others of them out. Errors: -ESRCH, -EBUSY (threads that cannot be stopped), -EPERM, -ENOMEM, -EIO; some jumps may be written then.
 */
#define KX_PATCH_TRIES 50
int kx_patch_install(struct kx_patch_job *jobs, size_t njobs, struct kx_patch_times *times, struct kx_err *err);

/* Sets head->enabled; where it is shared, for all processes that have it. Errors: -ESRCH (the process has ended, or calls execve). */
int kx_patch_enable(const struct kx_patch_area *area, bool enabled);

struct kx_patch_removal {
	size_t areas;	   /* code areas that were found, and rings that belong to none */
	size_t restored;   /* sites that have their old bytes again */
	size_t foreign;	   /* sites that hold other bytes than the jump and the old ones: they stay */
	bool shared;	   /* their flag is shared with forked children: see patch_family.h */
	bool stays;	   /* something stays mapped, inert, or writable: see why */
	bool frozen;	   /* it stays because the process is in a frozen group: nothing else is in the way */
	char why[256];	   /* a sentence without a full stop: "a thread is inside one of its functions" */
	double stopped_ms; /* the longest time for which threads were stopped */
};

/*
 * Takes all jumps out of the process that any kxray has put there, whoever lives: finds the areas in /proc/PID/maps by their magic. Disables them, stops all
 * threads, writes the old bytes back where the jumps still are, makes the texts read-only and unmaps the areas if no thread can be inside.
 * Nothing of kxray there is no error (areas is 0). May be called again where something stays.
 *
 * Errors: -ESRCH; -EPERM; -ENOMEM; -EBUSY: a debugger has it, another process shares its memory (vfork), or threads cannot be stopped. Nothing
 * but `enabled` has changed then; try again later. This process may be killed at any step: the target goes on, and a later call does the rest.
 */
int kx_patch_remove(pid_t pid, struct kx_patch_removal *out, struct kx_err *err);
/* The same, tried again for a second after -EBUSY, and for 10 s while a keeper (tracer/keeper.h) does the same; not while another debugger has the process. */
int kx_patch_remove_soon(pid_t pid, struct kx_patch_removal *out, struct kx_err *err);
/* The same for the code area at @code alone, and not for its rings, when its module was unloaded. */
int kx_patch_remove_area(pid_t pid, uint64_t code, struct kx_patch_removal *out, struct kx_err *err);
/* The same, while other processes that share the areas go on recording: a shared flag stays as it is. */
int kx_patch_remove_alone(pid_t pid, struct kx_patch_removal *out, struct kx_err *err);

/* Whether a living recorder reads the process's rings: a heartbeat in them is younger than @seconds. Takes 10 ms. */
bool kx_patch_is_read(pid_t pid, double seconds);

#endif
