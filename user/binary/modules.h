// SPDX-License-Identifier: BSD-2-Clause
/*
 * The binaries that a process has mapped executable, found through /proc/PID/maps.
 *
 * A module is identified by device and inode, not by its path: the path may name another file in
 * another mount namespace, or a newer file since the process started. open_path leads to the file
 * that is mapped, through /proc/PID/map_files or /proc/PID/root, and works as long as the process
 * lives; kx_module_open checks that what it opens is that file. A failure to open is
 * not a fact about the file: the process may have ended.
 */
#ifndef KX_MODULES_H
#define KX_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "binary/elf_image.h"
#include "binary/file_cache.h"
#include "binary/mappings.h"

struct kx_module {
	char *name;         /* file name, e.g. libc.so.6 */
	char *path;         /* as mapped, without " (deleted)" */
	char *called;       /* what else processes go by whose main executable this is: called_names.h; or NULL */
	char *open_path;    /* names this very file while its process lives: map_files, root, or path */
	uint64_t load_bias; /* run-time address minus ELF virtual address */
	uint64_t start;     /* first executable mapping, run-time addresses */
	uint64_t end;
	uint64_t map_offset; /* file offset of that mapping */
	uint64_t device, inode;
	uint64_t changed;   /* the file's st_ctim in nanoseconds; 0 if unknown */
	bool is_main;       /* the process's own executable */
	bool deleted;       /* unlinked or replaced since it was mapped */
};

struct kx_modules {
	struct kx_module *items;
	size_t count;
	bool has_generated; /* executable mappings that are no module: generated_code.h */
};

/*
 * Whether @pid is a process that can be looked at; @err says why it is not, and what to do. Errors: -ESRCH (also a kernel thread, a thread's
 * id, a zombie), -EACCES (another user's, says which capability is missing).
 */
int kx_process_check(pid_t pid, struct kx_err *err);

/*
 * Modules of process @pid, the main executable first; one entry per file, vdso and anonymous
 * code left out. open_path is /proc/PID/map_files/START-END where that can be opened
 * (deleted files and other mount namespaces included), else /proc/PID/root/PATH.
 * Errors: -ESRCH (no such process), -EACCES (another user's, says which capability is missing),
 * -ENOTSUP (a 32-bit process or a foreign architecture).
 */
int kx_modules_of_process(pid_t pid, struct kx_modules *out, struct kx_err *err);

/* The same for repeated calls: files that are in @cache are not opened. */
int kx_modules_look(pid_t pid, struct kx_file_cache *cache, struct kx_modules *out,
		    struct kx_err *err);

/* A file, mapped or not, as one module with load_bias 0. */
int kx_modules_of_file(const char *path, struct kx_modules *out, struct kx_err *err);

/* Whether both are the same file. */
static inline bool kx_module_is(const struct kx_module *a, const struct kx_module *b)
{
	return a->inode == b->inode && a->device == b->device;
}

/* The one among @mods that is the file of @m, a module of any process; NULL if there is none. */
const struct kx_module *kx_modules_find(const struct kx_modules *mods, const struct kx_module *m);

/* Whether @map is a mapping of the module's file, by its path; both of one process. */
bool kx_module_has_mapping(const struct kx_module *m, const struct kx_mapping *map);

void kx_modules_free(struct kx_modules *mods);

/*
 * Opens the module's file for reading and returns its descriptor: by open_path, or by its path if
 * the process has ended and the path still leads to the same file. The descriptor stays valid when processes
 * end or paths change. Errors: -ESRCH (neither leads to it any more; not a fact about the file,
 * which another process may have mapped), open(2)'s.
 */
int kx_module_open(const struct kx_module *m, struct kx_err *err);

/* Opens and maps it. Errors: those of kx_module_open and kx_elf_open. */
int kx_module_read(const struct kx_module *m, struct kx_elf **out, struct kx_err *err);

#endif
