// SPDX-License-Identifier: BSD-2-Clause
#include "trace/fdr_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/temporary_file.h"
#include "base/write_all.h"
#include "trace/fdr_unpack.h"

/* Bytes of mapped pages that may be resident before all are released. */
#define RESIDENT_MAX (2u << 20)
/* Bytes that the kernel maps around a faulting page. */
#define FAULT_AROUND (64u << 10)
#define COPY_SIZE    (256u << 10)

void kx_fdr_touch(struct kx_fdr_file *f, uint64_t begin, uint64_t end)
{
	uint64_t more = (end - begin + 2 * FAULT_AROUND - 1) / FAULT_AROUND * FAULT_AROUND;

	if (atomic_fetch_add_explicit(&f->resident, more, memory_order_relaxed) + more <= RESIDENT_MAX)
		return;
	atomic_store_explicit(&f->resident, 0, memory_order_relaxed);
	/*
	 * Pages that are still needed are mapped again from the page cache; failure costs only
	 * memory.
	 */
	madvise((void *)(uintptr_t)f->data, f->info.file_size, MADV_DONTNEED);
}

/* Copies all of @in to an unlinked file; returns its descriptor or a negative errno. */
static int spool(int in, const char *name, struct kx_err *err)
{
	uint8_t *buf = malloc(COPY_SIZE);
	int fd = kx_temporary_file(), r = 0;

	if (!buf)
		r = kx_err_set(err, -ENOMEM, "%s: out of memory", name);
	else if (fd < 0)
		r = kx_err_set(err, fd,
			       "%s: cannot make a temporary file for the stream: %s; "
			       "set TMPDIR to a writable folder",
			       name, strerror(-fd));
	while (!r) {
		ssize_t n = read(in, buf, COPY_SIZE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = kx_err_set(err, -errno, "%s: cannot be read: %s", name,
				       strerror(errno));
		if (n <= 0)
			break;
		r = kx_write_all(fd, &(struct iovec){ buf, (size_t)n }, 1);
		if (r)
			kx_err_set(err, r,
				   "%s: the temporary copy of the stream cannot be "
				   "written: %s; set TMPDIR to a folder with room",
				   name, strerror(-r));
	}
	free(buf);
	if (!r)
		return fd;
	if (fd >= 0)
		close(fd);
	return r;
}

/* A descriptor of a regular file with the contents of @path, and its size. */
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

/* If *@fd is compressed, replaces it by a temporary file of what is in it. */
static int unpack(struct kx_fdr_file *f, int *fd, struct kx_err *err)
{
	struct kx_fdr_unpacked unpacked;
	int r;

	if (!kx_fdr_is_packed(*fd))
		return 0;
	r = kx_fdr_unpack(*fd, f->info.file_size, f->name, &unpacked, err);
	if (r)
		return r;
	close(*fd);
	*fd = unpacked.fd;
	f->info.file_size = unpacked.size;
	f->cut = unpacked.cut;
	f->packing_damaged = unpacked.damaged;
	f->damage = unpacked.damage;
	return 0;
}

int kx_fdr_map(struct kx_fdr_file *f, const char *path, struct kx_err *err)
{
	int fd = open_input(path, f->name, &f->info.file_size, err), r;
	void *map;

	if (fd < 0)
		return fd;
	r = unpack(f, &fd, err);
	if (r) {
		close(fd);
		return r;
	}
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
	return 0;
}

void kx_fdr_unmap(struct kx_fdr_file *f)
{
	if (f->data)
		munmap((void *)(uintptr_t)f->data, f->info.file_size);
	f->data = NULL;
}
