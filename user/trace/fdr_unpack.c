// SPDX-License-Identifier: BSD-2-Clause
#include "trace/fdr_unpack.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/array.h"
#include "base/parallel.h"
#include "base/temporary_file.h"
#include "base/usable_cpus.h"

#define MAX_THREADS 8
/* A frame of kxray's with a buffer of the usual size is decompressed at once. */
#define OUT_SIZE (512u << 10)
#define SKIPPABLE(magic) (((magic) & 0xfffffff0) == ZSTD_MAGIC_SKIPPABLE_START)
/* The smallest block, of four bytes, can hold 128 KiB. More than that a frame cannot promise. */
#define MAX_RATIO (128u << 10)

struct frame {
	uint64_t at, size; /* in the file */
	uint64_t plain;	   /* offset of its contents in the trace */
};

struct unpacking {
	const uint8_t *data;
	uint64_t size;
	const char *name;
	int out;
	struct frame *frames;
	size_t count, room;
	uint64_t plain;	 /* contents of all frames */
	bool sized;	 /* all frames tell the size of their contents, so that their places are known */
	bool cut;	 /* the last frame is not whole */
	bool damaged;	 /* something that is no frame follows the last one */
	atomic_size_t next;
	pthread_mutex_t lock; /* of what follows */
	size_t failed;	 /* the first frame that cannot be decompressed; count: none */
	const char *why; /* zstd's reason */
	int error;	 /* negative errno: nothing can be read */
};

bool kx_fdr_is_packed(int fd)
{
	uint8_t begin[4];
	uint32_t magic;

	if (pread(fd, begin, sizeof(begin), 0) != sizeof(begin))
		return false;
	memcpy(&magic, begin, sizeof(magic));
	return magic == ZSTD_MAGICNUMBER || SKIPPABLE(magic);
}

/* Pages that are not needed any more; failure costs only memory. */
static void release(const struct unpacking *u, uint64_t begin, uint64_t end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	begin = begin / page * page;
	end = end / page * page;
	if (end > begin)
		madvise((void *)(uintptr_t)(u->data + begin), end - begin, MADV_DONTNEED);
}

/* Finds the frames. Errors: -ENOMEM. */
static int list_frames(struct unpacking *u)
{
	uint64_t at = 0, released = 0;

	u->sized = true;
	while (at < u->size && !u->cut && !u->damaged) {
		const uint8_t *p = u->data + at;
		size_t left = u->size - at, size = ZSTD_findFrameCompressedSize(p, left);
		unsigned long long plain = ZSTD_getFrameContentSize(p, left);

		if (ZSTD_isError(size)) {
			/* what is there of an incomplete frame is decompressed, too */
			u->cut = ZSTD_getErrorCode(size) == ZSTD_error_srcSize_wrong;
			u->damaged = !u->cut;
			size = left;
			plain = 0;
		} else if (plain == ZSTD_CONTENTSIZE_UNKNOWN) {
			u->sized = false;
			plain = 0;
		} else if (plain == ZSTD_CONTENTSIZE_ERROR || plain / MAX_RATIO > size) {
			u->damaged = true;
		}
		if (KX_ARRAY_RESERVE(u->frames, u->room, u->count))
			return -ENOMEM;
		if (!u->damaged) {
			u->frames[u->count++] = (struct frame){ at, size, u->plain };
			u->plain += plain;
			at += size;
		} else {
			u->frames[u->count] = (struct frame){ at, left, u->plain };
		}
		if (at - released >= 16 * OUT_SIZE) {
			release(u, released, at);
			released = at;
		}
	}
	return 0;
}

static int put(const struct unpacking *u, const uint8_t *data, size_t size, uint64_t at)
{
	while (size) {
		ssize_t n = pwrite(u->out, data, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

/*
 * Decompresses frame @i to its place; *@end: where its contents end, also if they are incomplete. @why
 * is set if it is damaged. Errors: those of pwrite(2).
 */
static int unpack_frame(struct unpacking *u, size_t i, ZSTD_DCtx *zstd, uint8_t *buffer,
			uint64_t *end, const char **why)
{
	const struct frame *f = &u->frames[i];
	uint64_t limit = i + 1 < u->count ? u->frames[i + 1].plain : UINT64_MAX;
	ZSTD_inBuffer in = { u->data + f->at, f->size, 0 };
	size_t left = 1;
	int r = 0;

	*end = f->plain;
	*why = NULL;
	ZSTD_DCtx_reset(zstd, ZSTD_reset_session_only);
	while (!r && left) {
		ZSTD_outBuffer out = { buffer, OUT_SIZE, 0 };
		size_t before = in.pos;

		left = ZSTD_decompressStream(zstd, &out, &in);
		if (ZSTD_isError(left) || (u->sized && out.pos > limit - *end)) {
			*why = ZSTD_isError(left) ? ZSTD_getErrorName(left) : "it holds too much";
			return 0;
		}
		r = put(u, buffer, out.pos, *end);
		*end += out.pos;
		if (!out.pos && in.pos == before)
			break; /* the file ends here */
	}
	if (left && !(u->cut && i + 1 == u->count))
		*why = "it is incomplete";
	release(u, f->at, f->at + f->size);
	return r;
}

static void fail(struct unpacking *u, size_t frame, const char *why, int error)
{
	pthread_mutex_lock(&u->lock);
	if (error && !u->error)
		u->error = error;
	if (why && frame < u->failed) {
		u->failed = frame;
		u->why = why;
	}
	pthread_mutex_unlock(&u->lock);
	if (error)
		atomic_store(&u->next, u->count);
}

/* One of the threads, or the only one, which then learns where frames begin. */
static void *unpack_frames(void *ctx)
{
	struct unpacking *u = ctx;
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	uint8_t *buffer = malloc(OUT_SIZE);
	const char *why = NULL;
	uint64_t end;
	size_t i;

	if (!zstd || !buffer)
		fail(u, 0, NULL, -ENOMEM);
	while (!why && (i = atomic_fetch_add(&u->next, 1)) < u->count) {
		int r = unpack_frame(u, i, zstd, buffer, &end, &why);

		if (r || why)
			fail(u, i, why, r);
		if (i + 1 == u->count)
			u->plain = end; /* no other thread has the last one */
		else if (!u->sized)
			u->frames[i + 1].plain = end;
	}
	if (why) /* frames behind it are not needed */
		atomic_store(&u->next, u->count);
	free(buffer);
	ZSTD_freeDCtx(zstd);
	return NULL;
}

static void run_threads(struct unpacking *u)
{
	size_t n = u->sized ? kx_usable_cpus(MAX_THREADS) : 1;

	kx_parallel_run(n < u->count ? n : u->count, unpack_frames, u);
}

/* What the caller gets, once all threads are done. */
static int conclude(struct unpacking *u, struct kx_fdr_unpacked *out, struct kx_err *err)
{
	bool damaged = u->failed < u->count || u->damaged;
	const struct frame *f = &u->frames[u->failed];

	if (u->error == -ENOMEM)
		return kx_err_set(err, u->error, "%s: out of memory for decompressing it", u->name);
	if (!u->error && u->failed < u->count) {
		u->plain = f->plain;
		/* frames behind it may have been written */
		if (ftruncate(u->out, (off_t)f->plain))
			u->error = -errno;
	}
	if (u->error)
		return kx_err_set(err, u->error,
				  "%s: what is compressed in it cannot be written to a temporary file: "
				  "%s; set TMPDIR to a folder with room",
				  u->name, strerror(-u->error));
	*out = (struct kx_fdr_unpacked){ .fd = u->out, .size = u->plain, .damaged = damaged,
					 .cut = u->cut && u->failed == u->count };
	if (damaged)
		kx_err_set(&out->damage, -EBADMSG,
			   "%s: is damaged: its compressed frame at byte %llu cannot be read: %s",
			   u->name, (unsigned long long)f->at, u->why ? u->why : "it is no frame of zstd");
	/* nothing before the damage: that is the error to tell, not an empty file */
	if (damaged && !out->size && err)
		*err = out->damage;
	return damaged && !out->size ? -EBADMSG : 0;
}

int kx_fdr_unpack(int fd, uint64_t size, const char *name, struct kx_fdr_unpacked *out,
		  struct kx_err *err)
{
	struct unpacking u = { .size = size, .name = name, .lock = PTHREAD_MUTEX_INITIALIZER };
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	int r;

	if (map == MAP_FAILED)
		return kx_err_set(err, -errno, "%s: cannot be mapped: %s", name, strerror(errno));
	u.data = map;
	u.out = kx_temporary_file();
	r = u.out < 0 ? u.out : 0;
	if (r)
		kx_err_set(err, r,
			   "%s: cannot make a temporary file for what is compressed in it: %s; "
			   "set TMPDIR to a writable folder",
			   name, strerror(-r));
	else if ((r = list_frames(&u)))
		kx_err_set(err, r, "%s: out of memory for the list of its frames", name);
	u.failed = u.count;
	if (!r && u.count)
		run_threads(&u);
	if (!r)
		r = conclude(&u, out, err);
	if (r && u.out >= 0)
		close(u.out);
	free(u.frames);
	munmap(map, size);
	return r;
}
