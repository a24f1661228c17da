// SPDX-License-Identifier: BSD-2-Clause
#include "binary/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/proc_stat.h"
#include "base/stop_request.h"
#include "binary/called_names.h"
#include "binary/mappings.h"

#define PAGE 4096ULL
#define DELETED " (deleted)"

/* A process that is executing a program has, for a moment, its name and none of its code: a second is waited for that. */
#define EXEC_PAUSE_NS 1000000
#define EXEC_LOOKS    1000

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether the process never had a program; one that is exiting has none any more. */
static bool is_kernel_thread(pid_t pid)
{
	enum { FLAGS_FIELD = 9, KERNEL_THREAD = 0x00200000 }; /* PF_KTHREAD */
	char path[64], buffer[KX_PROC_STAT_SIZE];
	const char *p;
	unsigned flags;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	p = kx_proc_stat(path, FLAGS_FIELD, buffer);
	return p && sscanf(p, "%u", &flags) == 1 && (flags & KERNEL_THREAD);
}

int kx_process_check(pid_t pid, struct kx_err *err)
{
	char path[64], line[256], state = '?', exe[PATH_MAX];
	long tgid = pid;
	ssize_t n;
	FILE *f;
	int rc;

	if (pid <= 0)
		return kx_err_set(err, -ESRCH, "%d is not a process id", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f && errno == ENOENT)
		return kx_err_set(err, -ESRCH, "there is no process %d", (int)pid);
	if (!f)
		return kx_err_set(err, -errno, "cannot open '%s': %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "Tgid: %ld", &tgid);
	}
	fclose(f);
	if (tgid != pid)
		return kx_err_set(err, -ESRCH, "%d is a thread of process %ld; use that number",
				  (int)pid, tgid);
	if (state == 'Z' || state == 'X')
		return kx_err_set(err, -ESRCH, "process %d has already ended (it is a zombie)",
				  (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe));
	rc = n < 0 ? -errno : 0;
	if (rc == -EACCES || rc == -EPERM)
		return kx_err_set(err, -EACCES,
				  "no permission to look at process %d: it belongs to another user or is protected; run as that user or as root, or with the capability CAP_SYS_PTRACE",
				  (int)pid);
	if (rc == -ENOENT && is_kernel_thread(pid))
		return kx_err_set(err, -ESRCH, "process %d is a kernel thread: it runs no program; kernel functions are recorded with -a -f 'kernel:NAME'",
				  (int)pid);
	if (rc == -ENOENT || rc == -ESRCH)
		return kx_err_set(err, -ESRCH, "process %d has just ended", (int)pid);
	if (rc)
		return kx_err_set(err, rc, "cannot read '%s': %s", path, strerror(-rc));
	return 0;
}

static size_t length_without_deleted(const char *path)
{
	const size_t n = strlen(path), suffix = strlen(DELETED);

	return n > suffix && !strcmp(path + n - suffix, DELETED) ? n - suffix : n;
}

/* Whether the open file is the one of that path; another library may have been mapped at the place since the maps were read. */
static bool is_called(int fd, const char *path)
{
	char link[32], name[PATH_MAX + 16];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n < 0)
		return true; /* nothing is known */
	name[n] = 0;
	return length_without_deleted(name) == length_without_deleted(path) &&
	       !strncmp(name, path, length_without_deleted(path));
}

/*
 * Sets open_path to a name that opens the mapped file itself, and device and inode to
 * those of stat(2) (on overlayfs and btrfs the maps file shows other device numbers).
 */
static int find_file(pid_t pid, const struct kx_mapping *m, struct kx_module *mod)
{
	char map_path[96], root_path[PATH_MAX + 64];
	size_t len = strlen(mod->path), suffix = strlen(DELETED);
	bool opened = false;
	struct stat st;
	int fd;

	mod->device = m->device;
	mod->inode = m->inode;
	snprintf(map_path, sizeof(map_path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		 m->start, m->end);
	fd = open(map_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		opened = is_called(fd, m->path) && !fstat(fd, &st);
		close(fd);
		if (opened) {
			mod->device = st.st_dev;
			mod->inode = st.st_ino;
			mod->changed = (uint64_t)st.st_ctim.tv_sec * 1000000000 +
				       (uint64_t)st.st_ctim.tv_nsec;
		}
	}
	/* A file may really be called "x (deleted)": then that name has this inode. */
	snprintf(root_path, sizeof(root_path), "/proc/%d/root%s", (int)pid, mod->path);
	if (len > suffix && !strcmp(mod->path + len - suffix, DELETED) &&
	    (stat(root_path, &st) || st.st_ino != mod->inode)) {
		mod->path[len - suffix] = 0;
		mod->deleted = true;
	} else if (stat(root_path, &st)) {
		mod->deleted = errno == ENOENT;
	} else {
		mod->deleted = st.st_ino != mod->inode;
		if (!opened && !mod->deleted)
			mod->device = st.st_dev;
	}
	/* Never the path of a deleted file: that is another file by now. */
	mod->open_path = strdup(opened || mod->deleted ? map_path : root_path);
	return mod->open_path ? 0 : -ENOMEM;
}

/*
 * Where the ELF's addresses lie in the process. The kernel maps whole pages, so a mapping's
 * offset may be below the segment's, and mprotect(2) may have cut a segment in pieces.
 */
static uint64_t load_bias(const struct kx_file_facts *file, const struct kx_mapping *m)
{
	for (unsigned i = 0; i < file->nsegments; i++) {
		const struct kx_elf_section *s = &file->segments[i];
		uint64_t first = s->offset & ~(PAGE - 1);
		uint64_t last = (s->offset + s->size + PAGE - 1) & ~(PAGE - 1);

		if (m->offset >= first && m->offset < last)
			return m->start - (s->addr - s->offset + m->offset);
	}
	return m->start - m->offset;
}

/* A descriptor of @path if it names the file of @m; else -errno, -ESRCH for another file or none. */
static int open_this(const char *path, const struct kx_module *m)
{
	/* O_NONBLOCK: opening a FIFO must not block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (!m->inode || (!fstat(fd, &st) && st.st_dev == m->device && st.st_ino == m->inode))
		return fd;
	close(fd);
	return -ESRCH;
}

int kx_module_open(const struct kx_module *m, struct kx_err *err)
{
	int fd = open_this(m->open_path, m), again;

	if (fd < 0 && m->path) {
		again = open_this(m->path, m);
		fd = again >= 0 ? again : fd;
	}
	if (fd == -ESRCH)
		return kx_err_set(err, fd,
				  "'%s' cannot be opened: the process that had it mapped has ended, or the file was replaced",
				  m->path ? m->path : m->open_path);
	if (fd < 0)
		return kx_err_set(err, fd, "cannot open '%s': %s", m->open_path, strerror(-fd));
	return fd;
}

int kx_module_read(const struct kx_module *m, struct kx_elf **out, struct kx_err *err)
{
	int fd = kx_module_open(m, err), code;

	if (fd < 0)
		return fd;
	code = kx_elf_open_fd(fd, m->open_path, out, err);
	close(fd);
	return code;
}

/* Fills in the segments. Errors: those of kx_module_read, with the reason in @why. */
static int read_segments(const struct kx_module *m, struct kx_file_facts *file, struct kx_err *why)
{
	struct kx_elf *elf;
	int code = kx_module_read(m, &elf, why);

	file->has_segments = !code || kx_elf_error_is_content(code);
	file->nsegments = 0;
	file->elf_error = file->has_segments ? code : 0;
	if (code)
		return code;
	while (file->nsegments < KX_FILE_SEGMENTS &&
	       kx_elf_exec_segment(elf, file->nsegments, &file->segments[file->nsegments]))
		file->segments[file->nsegments++].data = NULL;
	kx_elf_close(elf);
	return 0;
}

static void module_clear(struct kx_module *mod)
{
	free(mod->name);
	free(mod->path);
	free(mod->open_path);
	free(mod->called);
}

/* Adds the file of @m. Files that are no ELF (a JIT's memfd, data) are left out silently. */
static int add_module(pid_t pid, const struct kx_mapping *m, const struct stat *exe,
		      struct kx_file_cache *cache, struct kx_modules *out, struct kx_err *err)
{
	struct kx_module mod = { .start = m->start, .end = m->end, .map_offset = m->offset };
	struct kx_file_facts unknown = { 0 }, *file;
	struct kx_module *grown;
	struct kx_err why;
	int rc = -ENOMEM;

	mod.path = strdup(m->path);
	if (!mod.path || find_file(pid, m, &mod))
		goto nomem;
	if (kx_modules_find(out, &mod)) {
		module_clear(&mod);
		return 0;
	}
	mod.name = strdup(file_name(mod.path));
	grown = realloc(out->items, (out->count + 1) * sizeof(mod));
	if (grown)
		out->items = grown;
	if (!mod.name || !grown)
		goto nomem;
	mod.is_main = mod.device == exe->st_dev && mod.inode == exe->st_ino;
	file = mod.changed ? kx_file_cache_get(cache, mod.device, mod.inode, mod.changed, mod.name) :
			     NULL;
	if (!file)
		file = &unknown;
	rc = file->elf_error;
	/* why it failed is not kept */
	if (!file->has_segments || (rc && mod.is_main))
		rc = read_segments(&mod, file, &why);
	if (rc && mod.is_main) {
		module_clear(&mod);
		return kx_err_set(err, rc, "cannot trace process %d: %s", (int)pid, why.text);
	}
	if (rc == -ENOEXEC) {
		out->has_generated = true;
		module_clear(&mod);
		return 0;
	}
	mod.load_bias = load_bias(file, m);
	out->items[out->count++] = mod;
	return 0;
nomem:
	module_clear(&mod);
	return kx_err_set(err, rc, "no memory for the modules of process %d", (int)pid);
}

struct reading {
	pid_t pid;
	struct stat exe;
	struct kx_file_cache *cache;
	struct kx_modules *out;
	struct kx_err *err;
	bool reported; /* err has the reason */
	bool complete; /* it has the kernel's vDSO, which exec(2) maps after the program */
};

static int add_mapping(void *ctx, const struct kx_mapping *m)
{
	struct reading *r = ctx;
	int rc;

	/* [vsyscall] says nothing: it is listed for any */
	r->complete |= !strcmp(m->path, "[vdso]");
	if (!m->executable || kx_mapping_is_kernels(m))
		return 0;
	/* a path that is longer cannot be opened */
	if (m->path[0] != '/' || !m->inode || strlen(m->path) >= PATH_MAX) {
		r->out->has_generated = true;
		return 0;
	}
	rc = add_module(r->pid, m, &r->exe, r->cache, r->out, r->err);
	r->reported = rc != 0;
	return rc;
}

static int read_maps(struct reading *r)
{
	int rc = kx_mappings_each(r->pid, add_mapping, r);

	if (rc && !r->reported)
		kx_err_set(r->err, rc, "cannot open '/proc/%d/maps': %s", (int)r->pid,
			   rc == -ESRCH ? "the process has ended" : strerror(-rc));
	return rc;
}

/* Of the program itself; the number of modules if it is not among them. */
static size_t main_module(const struct kx_modules *mods)
{
	size_t i = 0;

	while (i < mods->count && !mods->items[i].is_main)
		i++;
	return i;
}

/*
 * One look; *@changing: the process may just be executing another program, and has none or another one now. *@complete, of the look before and of this
 * one: the same program had the vDSO. One such look without the program's file proves nothing: since Linux 6.17 mappings are read while others are
 * made, and the file's come first.
 */
static int look(pid_t pid, struct kx_file_cache *cache, struct kx_modules *out, bool *changing, bool *complete, struct kx_err *err)
{
	struct reading r = { .pid = pid, .cache = cache, .out = out, .err = err };
	const bool was_complete = *complete;
	struct stat now;
	char path[64];
	int rc;

	*changing = false;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (stat(path, &r.exe))
		return kx_err_set(err, -errno, "cannot stat '%s': %s", path, strerror(errno));
	rc = read_maps(&r);
	if (rc || main_module(out) < out->count)
		return rc;
	if (stat(path, &now))
		return kx_err_set(err, -ESRCH, "process %d has ended", (int)pid);
	*complete = now.st_ino == r.exe.st_ino && now.st_dev == r.exe.st_dev && r.complete;
	*changing = !*complete || !was_complete;
	return kx_err_set(err, -ENOTSUP,
			  "process %d does not run its code from its executable file (it was unpacked or moved to other memory), so probes on the file would never be hit",
			  (int)pid);
}

int kx_modules_look(pid_t pid, struct kx_file_cache *cache, struct kx_modules *out,
		    struct kx_err *err)
{
	const struct timespec pause = { .tv_nsec = EXEC_PAUSE_NS };
	struct kx_module main_mod;
	bool changing, complete = false;
	size_t i;
	int rc;

	for (unsigned looks = 0;; looks++) {
		*out = (struct kx_modules){ 0 };
		rc = kx_process_check(pid, err);
		if (rc)
			return rc;
		rc = look(pid, cache, out, &changing, &complete, err);
		if (!rc)
			break;
		kx_modules_free(out);
		if (!changing || looks == EXEC_LOOKS || kx_stop_requested())
			return rc;
		nanosleep(&pause, NULL);
	}
	i = main_module(out);
	main_mod = out->items[i];
	memmove(out->items + 1, out->items, i * sizeof(main_mod));
	out->items[0] = main_mod;
	if (!kx_called_names_read(&out->items[0].called, pid, main_mod.name))
		return 0;
	kx_modules_free(out);
	return kx_err_set(err, -ENOMEM, "no memory for the names of process %d", (int)pid);
}

int kx_modules_of_process(pid_t pid, struct kx_modules *out, struct kx_err *err)
{
	return kx_modules_look(pid, NULL, out, err);
}

int kx_modules_of_file(const char *path, struct kx_modules *out, struct kx_err *err)
{
	struct kx_module *mod;
	struct kx_elf_section s;
	struct kx_elf *elf;
	struct stat st;
	int rc;

	*out = (struct kx_modules){ 0 };
	rc = kx_elf_open(path, &elf, err);
	if (rc)
		return rc;
	mod = calloc(1, sizeof(*mod));
	if (!mod) {
		kx_elf_close(elf);
		return kx_err_set(err, -ENOMEM, "no memory to open '%s'", path);
	}
	out->items = mod;
	out->count = 1;
	if (kx_elf_exec_segment(elf, 0, &s)) {
		mod->start = s.addr & ~(PAGE - 1);
		mod->end = (s.addr + s.size + PAGE - 1) & ~(PAGE - 1);
		mod->map_offset = s.offset & ~(PAGE - 1);
	}
	kx_elf_close(elf);
	mod->is_main = true;
	mod->path = realpath(path, NULL);
	if (!mod->path || stat(mod->path, &st)) {
		rc = kx_err_set(err, -errno, "cannot stat '%s': %s", path, strerror(errno));
		kx_modules_free(out);
		return rc;
	}
	mod->device = st.st_dev;
	mod->inode = st.st_ino;
	mod->name = strdup(file_name(mod->path));
	mod->open_path = strdup(mod->path);
	if (!mod->name || !mod->open_path) {
		kx_modules_free(out);
		return kx_err_set(err, -ENOMEM, "no memory to open '%s'", path);
	}
	return 0;
}

void kx_modules_free(struct kx_modules *mods)
{
	size_t i;

	for (i = 0; i < mods->count; i++)
		module_clear(&mods->items[i]);
	free(mods->items);
	mods->items = NULL;
	mods->count = 0;
}

const struct kx_module *kx_modules_find(const struct kx_modules *mods, const struct kx_module *m)
{
	for (size_t i = 0; i < mods->count; i++)
		if (kx_module_is(&mods->items[i], m))
			return &mods->items[i];
	return NULL;
}

bool kx_module_has_mapping(const struct kx_module *m, const struct kx_mapping *map)
{
	size_t n = strlen(m->path);

	return map->inode && !strncmp(map->path, m->path, n) &&
	       (!map->path[n] || !strcmp(map->path + n, DELETED));
}
