// SPDX-License-Identifier: BSD-2-Clause
/* Opening and closing: the file is found or spooled, mapped, its header read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/fdr_index.h"

/* Mapped pages that may stay resident before all are given back, bytes. */
#define RESIDENT_MAX (8u << 20)
/* The kernel maps this much around a page that is touched, bytes. */
#define FAULT_AROUND (64u << 10)
#define COPY_SIZE (256u << 10)

void kx_fdr_touch(struct kx_fdr_file *f, uint64_t begin, uint64_t end)
{
	f->resident += (end - begin + 2 * FAULT_AROUND - 1) / FAULT_AROUND * FAULT_AROUND;
	if (f->resident <= RESIDENT_MAX)
		return;
	f->resident = 0;
	/* Pages still needed come back from the page cache; a failure only costs memory. */
	madvise((void *)(uintptr_t)f->data, f->info.file_size, MADV_DONTNEED);
}

static int open_temporary(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	if (!dir || !*dir)
		dir = "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/kxray-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int write_all(int fd, const uint8_t *buf, size_t size)
{
	while (size) {
		ssize_t n = write(fd, buf, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Copies what comes from @in to an unlinked file; its descriptor or a negative errno. */
static int spool(int in, const char *name, struct kx_err *err)
{
	uint8_t *buf = malloc(COPY_SIZE);
	int fd = open_temporary(), r = 0;

	if (!buf)
		r = kx_err_set(err, -ENOMEM, "%s: out of memory", name);
	else if (fd < 0)
		r = kx_err_set(err, fd, "%s: cannot make a temporary file for the stream: %s; "
			       "set TMPDIR to a writable folder", name, strerror(-fd));
	while (!r) {
		ssize_t n = read(in, buf, COPY_SIZE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = kx_err_set(err, -errno, "%s: cannot be read: %s", name,
				       strerror(errno));
		if (n <= 0)
			break;
		r = write_all(fd, buf, (size_t)n);
		if (r)
			kx_err_set(err, r, "%s: the temporary copy of the stream cannot be "
				   "written: %s; set TMPDIR to a folder with room", name,
				   strerror(-r));
	}
	free(buf);
	if (!r)
		return fd;
	if (fd >= 0)
		close(fd);
	return r;
}

/* A descriptor of a regular file that holds what @path gives, and its size. */
static int open_input(const char *path, const char *name, uint64_t *size, struct kx_err *err)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0)
		return kx_err_set(err, -errno, "%s: cannot be opened: %s", name, strerror(errno));
	if (fstat(fd, &st)) {
		r = kx_err_set(err, -errno, "%s: cannot be examined: %s", name, strerror(errno));
		close(fd);
		return r;
	}
	if (S_ISDIR(st.st_mode)) {
		close(fd);
		return kx_err_set(err, -EISDIR, "%s: is a folder, not a trace", name);
	}
	if (!S_ISREG(st.st_mode)) {
		r = spool(fd, name, err);
		close(fd);
		if (r < 0)
			return r;
		fd = r;
		if (fstat(fd, &st)) {
			r = kx_err_set(err, -errno, "%s: its temporary copy is gone: %s", name,
				       strerror(errno));
			close(fd);
			return r;
		}
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

static uint16_t swap16(uint16_t v)
{
	return (uint16_t)(v << 8 | v >> 8);
}

static bool known(uint16_t version, uint16_t type)
{
	if (type == KX_FDR_TYPE_NAIVE)
		return version >= 1 && version <= 3;
	return type == KX_FDR_TYPE_FDR && version >= KX_FDR_MIN_VERSION &&
	       version <= KX_FDR_MAX_VERSION;
}

static int read_header(struct kx_fdr_file *f, struct kx_err *err)
{
	struct kx_fdr_info *info = &f->info;
	uint16_t version, type;
	uint32_t bits;

	if (info->file_size < KX_FDR_HEADER_SIZE)
		return kx_err_set(err, -EBADMSG, "%s: is no XRay trace: it has %llu bytes, less "
				  "than the 32 of the header", f->name,
				  (unsigned long long)info->file_size);
	version = kx_get16(f->data);
	type = kx_get16(f->data + 2);
	if (known(swap16(version), swap16(type)) && !known(version, type))
		return kx_err_set(err, -EBADMSG, "%s: is a big-endian trace (version %u, type %u); "
				  "only little-endian traces can be read", f->name,
				  swap16(version), swap16(type));
	if (type == KX_FDR_TYPE_FDR && !known(version, type) && version < 256)
		return kx_err_set(err, -EBADMSG, "%s: is an FDR trace of unknown version %u (at "
				  "offset 0); versions 1 to 5 can be read", f->name, version);
	if (type == KX_FDR_TYPE_NAIVE && !known(version, type) && version && version < 256)
		return kx_err_set(err, -EBADMSG, "%s: is a basic mode trace of unknown version %u "
				  "(at offset 0); versions 1 to 3 can be read", f->name, version);
	if (!known(version, type))
		return kx_err_set(err, -EBADMSG, "%s: is no XRay trace: bytes 0 to 3 should hold a "
				  "version from 1 to 5 and type 1 (FDR) or 0 (basic mode), not %u "
				  "and %u", f->name, version, type);
	info->version = version;
	info->type = type;
	bits = kx_get32(f->data + 4);
	info->constant_tsc = bits & 1;
	info->nonstop_tsc = bits & 2;
	info->tsc_hz = kx_get64(f->data + 8);
	info->buffer_size = kx_get64(f->data + 16);
	return 0;
}

static int open_mapped(struct kx_fdr_file *f, const char *path, bool keep_damaged,
		       struct kx_err *err)
{
	struct kx_err problem = { 0 };
	void *map;
	int fd, r;

	fd = open_input(path, f->name, &f->info.file_size, err);
	if (fd < 0)
		return fd;
	if (!f->info.file_size) {
		close(fd);
		return kx_err_set(err, -EBADMSG, "%s: is empty, not a trace", f->name);
	}
	map = mmap(NULL, f->info.file_size, PROT_READ, MAP_SHARED, fd, 0);
	r = -errno;
	close(fd);
	if (map == MAP_FAILED)
		return kx_err_set(err, r, "%s: cannot be mapped: %s", f->name, strerror(-r));
	f->data = map;
	r = read_header(f, err);
	if (r)
		return r;
	if (f->info.type == KX_FDR_TYPE_NAIVE)
		r = kx_fdr_index_naive(f, &problem);
	else
		r = kx_fdr_index(f, &problem);
	if (r == -EBADMSG && keep_damaged) {
		f->info.damaged = true;
		f->damage = problem;
		return 0;
	}
	if (r && err)
		*err = problem;
	return r;
}

static int open_file(const char *path, bool keep_damaged, struct kx_fdr_file **out,
		     struct kx_err *err)
{
	struct kx_fdr_file *f = calloc(1, sizeof(*f));
	int r;

	if (f)
		f->name = strdup(strcmp(path, "-") ? path : "standard input");
	if (!f || !f->name) {
		free(f);
		return kx_err_set(err, -ENOMEM, "%s: out of memory", path);
	}
	r = open_mapped(f, path, keep_damaged, err);
	if (r) {
		kx_fdr_close(f);
		return r;
	}
	*out = f;
	return 0;
}

int kx_fdr_open(const char *path, struct kx_fdr_file **out, struct kx_err *err)
{
	return open_file(path, false, out, err);
}

int kx_fdr_open_damaged(const char *path, struct kx_fdr_file **out, struct kx_err *err)
{
	return open_file(path, true, out, err);
}

void kx_fdr_close(struct kx_fdr_file *f)
{
	if (!f)
		return;
	if (f->data)
		munmap((void *)(uintptr_t)f->data, f->info.file_size);
	free(f->segments);
	free(f->threads);
	free(f->thread_hash);
	free(f->name);
	free(f);
}

const struct kx_fdr_info *kx_fdr_get_info(const struct kx_fdr_file *f)
{
	return &f->info;
}

size_t kx_fdr_nthreads(const struct kx_fdr_file *f)
{
	return f->nthreads;
}

void kx_fdr_thread_ids(const struct kx_fdr_file *f, size_t thread, int32_t *pid, int32_t *tid)
{
	*pid = f->threads[thread].pid;
	*tid = f->threads[thread].tid;
}
