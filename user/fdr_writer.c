// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every thread encodes into a buffer of its own, which starts small, grows to
 * the full size and then goes out in one write. A buffer is, by version:
 *
 *   1     NewBuffer WallTime     NewCPUId body EndOfBuffer, zeros to buffer_size
 *   2     NewBuffer WallTime Pid NewCPUId body
 *   3..5  BufferExtents NewBuffer WallTime Pid NewCPUId body
 *
 * llvm-xray parses the fill of version 1 as records, so it is zeros ("enter
 * function 0", ignored after EndOfBuffer) and all of a buffer is a multiple of
 * 8 bytes long; the header's buffer_size is the size of one buffer, which is what
 * the document's EndOfBuffer rule ("seek past the remaining buffer_size") needs.
 */
#include "fdr_writer.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fdr.h"
#include "json_text.h"

#define DEFAULT_BUFFER_SIZE (64u << 10)
#define MIN_BUFFER_SIZE 1024u
#define MAX_BUFFER_SIZE (256u << 20)
#define FIRST_BUFFER_SIZE 512u /* in memory; doubled up to the full size */
#define MAX_PREAMBLE (5 * KX_FDR_METADATA_SIZE)
#define MAX_ARGS 8
#define MAX_PAYLOAD 4096
#define MAX_NAME 64 /* bytes; six times that as JSON still fits the smallest buffer */

struct kx_fdr_thread {
	/* what every record needs */
	uint8_t *pos, *end; /* both NULL while no buffer is open */
	uint64_t base;      /* TSC that the next delta counts from */
	uint64_t newest;    /* TSC of the newest record */
	uint16_t cpu;
	uint32_t hits;      /* function records in the open buffer, without added exits */

	bool started; /* it has a buffer in the file or open */
	bool ended;
	int32_t pid, tid;
	uint8_t *buf;
	size_t capacity;
	size_t body; /* bytes of the preamble in the open buffer */
	char *note;  /* custom event that comes first; NULL once written */
	uint64_t wall_sec; /* of the last buffer */
	uint32_t wall_usec;
	struct kx_fdr_writer *writer;
	struct kx_fdr_thread *next; /* in order of creation */
};

struct kx_fdr_writer {
	int fd;
	int error; /* the first one of write(2); sticks */
	struct kx_fdr_options options;
	size_t trailer; /* bytes kept free at a buffer's end */
	uint8_t *zeros; /* fill of version 1 */
	bool regular;   /* the file can be cut and patched */
	off_t offset;   /* of the header in it */
	uint64_t bytes;
	uint64_t nstarted;
	uint64_t hits; /* function records in the file, without added exits */
	size_t memory;
	struct kx_fdr_thread *first, **last;
	struct kx_fdr_thread **table; /* open addressing by pid and tid */
	size_t table_size;            /* a power of two */
	size_t nthreads;
};

static void put16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static void put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

/* Starts a metadata record at the thread's position, which has room; returns its data. */
static uint8_t *put_metadata(struct kx_fdr_thread *t, enum kx_fdr_metadata kind)
{
	uint8_t *p = t->pos;

	memset(p, 0, KX_FDR_METADATA_SIZE);
	*p = (uint8_t)(kind << 1 | 1);
	t->pos += KX_FDR_METADATA_SIZE;
	return p + 1;
}

static void put_cpu(struct kx_fdr_thread *t, uint16_t cpu, uint64_t tsc)
{
	uint8_t *data = put_metadata(t, KX_FDR_NEW_CPU_ID);

	put16(data, cpu);
	put64(data + 2, tsc);
	t->cpu = cpu;
	t->base = tsc;
}

static size_t custom_size(const struct kx_fdr_writer *w, size_t size)
{
	if (w->options.version == 1)
		size = (size + 7) & ~(size_t)7;
	return KX_FDR_METADATA_SIZE + size;
}

static void put_custom(struct kx_fdr_thread *t, uint64_t tsc, const void *payload, size_t size)
{
	int version = t->writer->options.version;
	size_t padded = custom_size(t->writer, size) - KX_FDR_METADATA_SIZE;
	uint8_t *data = put_metadata(t, KX_FDR_CUSTOM_EVENT);

	put32(data, (uint32_t)padded);
	if (version == 5) {
		put32(data + 4, (uint32_t)(tsc - t->base));
		t->base = tsc;
	} else {
		/* absolute, and later deltas do not count from it */
		put64(data + 4, tsc);
		/* llvm-xray reads a CPU here in any version; version 1 calls it reserved */
		if (version > 1)
			put16(data + 12, t->cpu);
	}
	memcpy(t->pos, payload, size);
	memset(t->pos + size, ' ', padded - size);
	t->pos += padded;
}

/* The file */

static void drop_buffer(struct kx_fdr_thread *t)
{
	t->writer->memory -= t->capacity;
	free(t->buf);
	t->buf = t->pos = t->end = NULL;
	t->capacity = 0;
}

static int fail(struct kx_fdr_writer *w, int error)
{
	w->error = error;
	/* Nothing can be done if it cannot be cut: readers stop at the torn buffer. */
	if (w->regular && ftruncate(w->fd, w->offset + (off_t)w->bytes) == 0)
		(void)lseek(w->fd, w->offset + (off_t)w->bytes, SEEK_SET);
	for (struct kx_fdr_thread *t = w->first; t; t = t->next)
		drop_buffer(t);
	return error;
}

static int write_all(struct kx_fdr_writer *w, struct iovec *iov, int n)
{
	uint64_t total = 0;

	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	while (n) {
		ssize_t done = writev(w->fd, iov, n);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd pfd = { .fd = w->fd, .events = POLLOUT };

			(void)poll(&pfd, 1, -1);
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return fail(w, done < 0 ? -errno : -EIO);
		while (n && (size_t)done >= iov->iov_len) {
			done -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n) {
			iov->iov_base = (uint8_t *)iov->iov_base + done;
			iov->iov_len -= (size_t)done;
		}
	}
	w->bytes += total;
	return 0;
}

static int write_header(struct kx_fdr_writer *w)
{
	const struct kx_fdr_options *o = &w->options;
	uint8_t header[KX_FDR_HEADER_SIZE] = { 0 };
	struct iovec iov = { header, sizeof(header) };

	put16(header, (uint16_t)o->version);
	put16(header + 2, KX_FDR_TYPE_FDR);
	put32(header + 4, (uint32_t)o->constant_tsc | (uint32_t)o->nonstop_tsc << 1);
	put64(header + 8, o->tsc_hz);
	put64(header + 16, o->buffer_size);
	return write_all(w, &iov, 1);
}

/* Buffers */

/*
 * The readers sort a thread's buffers with "seconds less and microseconds less",
 * which orders anything only if both rise from buffer to buffer.
 */
static void put_wall_time(struct kx_fdr_thread *t, uint64_t tsc)
{
	const struct kx_fdr_options *o = &t->writer->options;
	uint64_t sec = o->wall_sec, usec = o->wall_usec, ticks = tsc - o->start_tsc;
	uint8_t *data = put_metadata(t, KX_FDR_WALL_TIME);

	if (o->tsc_hz) {
		sec += ticks / o->tsc_hz;
		usec += (uint64_t)((unsigned __int128)(ticks % o->tsc_hz) * 1000000 / o->tsc_hz);
		sec += usec / 1000000;
		usec %= 1000000;
	}
	if (t->started && sec <= t->wall_sec)
		sec = t->wall_sec + 1;
	if (t->started && usec <= t->wall_usec)
		usec = (uint64_t)t->wall_usec + 1;
	t->wall_sec = sec;
	t->wall_usec = (uint32_t)usec;
	put64(data, t->wall_sec);
	put32(data + 8, t->wall_usec);
}

/*
 * Room for @need more bytes in the open buffer: 1 if there is, 0 if the buffer is
 * full. A record too large for any buffer gets one for itself, but not in
 * version 1, where all buffers have one size: -EMSGSIZE.
 */
static int reserve(struct kx_fdr_thread *t, size_t need)
{
	struct kx_fdr_writer *w = t->writer;
	size_t len = t->pos ? (size_t)(t->pos - t->buf) : 0;
	size_t want = len + need + w->trailer, size;
	uint8_t *buf;

	if (want > w->options.buffer_size) {
		if (len > t->body)
			return 0;
		if (w->options.version == 1)
			return -EMSGSIZE;
	}
	if (want > t->capacity) {
		size = t->capacity ? 2 * t->capacity : FIRST_BUFFER_SIZE;
		if (size > w->options.buffer_size)
			size = w->options.buffer_size;
		if (size < want)
			size = want;
		buf = realloc(t->buf, size);
		if (!buf)
			return -ENOMEM;
		w->memory += size - t->capacity;
		t->buf = buf;
		t->capacity = size;
	}
	t->pos = t->buf + len;
	t->end = t->buf + t->capacity - w->trailer;
	return 1;
}

static int open_buffer(struct kx_fdr_thread *t, uint16_t cpu, uint64_t tsc)
{
	struct kx_fdr_writer *w = t->writer;
	size_t note = t->note ? strlen(t->note) : 0;
	int version = w->options.version;
	int ret;

	t->body = 0;
	ret = reserve(t, MAX_PREAMBLE + (note ? custom_size(w, note) : 0));
	if (ret < 0)
		return ret;
	if (version >= 3)
		put_metadata(t, KX_FDR_BUFFER_EXTENTS); /* its size is known at the end */
	put32(put_metadata(t, KX_FDR_NEW_BUFFER), (uint32_t)t->tid);
	put_wall_time(t, tsc);
	if (version >= 2)
		put32(put_metadata(t, KX_FDR_PID), (uint32_t)t->pid);
	put_cpu(t, cpu, tsc);
	t->body = (size_t)(t->pos - t->buf);
	t->started = true;
	if (note) {
		put_custom(t, tsc, t->note, note);
		free(t->note);
		t->note = NULL;
		w->nstarted++;
	}
	return 0;
}

static int close_buffer(struct kx_fdr_thread *t)
{
	struct kx_fdr_writer *w = t->writer;
	struct iovec iov[2] = { { t->buf, 0 }, { w->zeros, 0 } };
	int ret;

	if (w->options.version >= 3)
		put64(t->buf + 1, (uint64_t)(t->pos - t->buf) - KX_FDR_METADATA_SIZE);
	if (w->options.version == 1)
		put_metadata(t, KX_FDR_END_OF_BUFFER);
	iov[0].iov_len = (size_t)(t->pos - t->buf);
	if (w->options.version == 1)
		iov[1].iov_len = w->options.buffer_size - iov[0].iov_len;
	ret = write_all(w, iov, iov[1].iov_len ? 2 : 1);
	if (ret == 0)
		w->hits += t->hits;
	t->hits = 0;
	t->pos = t->end = NULL;
	return ret;
}

/*
 * Makes room for a record of @need bytes at @tsc on @cpu, and puts before it what
 * it needs: a new buffer, a NewCPUId, or a TSCWrap where its delta exceeds @max.
 */
static int prepare(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, size_t need, uint64_t max)
{
	struct kx_fdr_writer *w = t->writer;
	int ret;

	if (w->error)
		return w->error;
	if (t->ended)
		return -EINVAL;
	for (;;) {
		if (t->pos) {
			bool moved = cpu != t->cpu, wrap = tsc - t->base > max;

			ret = reserve(t, need + (moved || wrap ? KX_FDR_METADATA_SIZE : 0));
			if (ret < 0)
				return ret;
			if (ret && moved) {
				put_cpu(t, cpu, tsc);
			} else if (ret && wrap) {
				put64(put_metadata(t, KX_FDR_TSC_WRAP), tsc);
				t->base = tsc;
			}
			if (ret)
				return 0;
			ret = close_buffer(t);
			if (ret < 0)
				return ret;
		}
		ret = open_buffer(t, cpu, t->started ? tsc : w->options.start_tsc);
		if (ret < 0)
			return ret;
	}
}

/* Records */

/* Room for @need bytes, the first 8 of which are written here. */
static inline int put_function(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func,
			       enum kx_fdr_action action, size_t need)
{
	if (func > KX_FDR_MAX_FUNC)
		return -EINVAL;
	if (tsc < t->newest)
		tsc = t->newest;
	if (__builtin_expect(cpu != t->cpu || tsc - t->base > UINT32_MAX ||
				     (size_t)(t->end - t->pos) < need, 0)) {
		int ret = prepare(t, tsc, cpu, need, UINT32_MAX);

		if (ret < 0)
			return ret;
	}
	put64(t->pos, (tsc - t->base) << 32 | func << 4 | (unsigned)action << 1);
	t->pos += KX_FDR_FUNCTION_SIZE;
	t->base = t->newest = tsc;
	t->hits++;
	return 0;
}

int kx_fdr_entry(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func,
		 const uint64_t *args, unsigned nargs)
{
	int ret;

	if (!nargs)
		return put_function(t, tsc, cpu, func, KX_FDR_ENTRY, KX_FDR_FUNCTION_SIZE);
	if (nargs > MAX_ARGS)
		return -EINVAL;
	ret = put_function(t, tsc, cpu, func, KX_FDR_ENTRY_ARGS,
			   KX_FDR_FUNCTION_SIZE + nargs * KX_FDR_METADATA_SIZE);
	for (unsigned i = 0; ret == 0 && i < nargs; i++)
		put64(put_metadata(t, KX_FDR_CALL_ARGUMENT), args[i]);
	return ret;
}

int kx_fdr_exit(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func, bool tail)
{
	return put_function(t, tsc, cpu, func, tail ? KX_FDR_TAIL_EXIT : KX_FDR_EXIT,
			    KX_FDR_FUNCTION_SIZE);
}

int kx_fdr_cpu(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu)
{
	int ret;

	if (tsc < t->newest)
		tsc = t->newest;
	if (t->started && cpu == t->cpu && !t->ended)
		return t->writer->error;
	/* where the thread came from is not known if this is its first record */
	ret = prepare(t, tsc, t->started ? t->cpu : cpu, KX_FDR_METADATA_SIZE, UINT64_MAX);
	if (ret < 0)
		return ret;
	put_cpu(t, cpu, tsc);
	t->newest = tsc;
	return 0;
}

int kx_fdr_custom(struct kx_fdr_thread *t, uint64_t tsc, const void *payload, size_t size)
{
	/* the delta of version 5 is signed; the time of older versions is absolute */
	uint64_t max = t->writer->options.version == 5 ? INT32_MAX : UINT64_MAX;
	int ret;

	if (!size || size > MAX_PAYLOAD)
		return -EINVAL;
	if (tsc < t->newest)
		tsc = t->newest;
	ret = prepare(t, tsc, t->cpu, custom_size(t->writer, size), max);
	if (ret < 0)
		return ret;
	put_custom(t, tsc, payload, size);
	t->newest = tsc;
	return 0;
}

/* Threads */

static size_t slot_of(const struct kx_fdr_writer *w, int32_t pid, int32_t tid)
{
	uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
	size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (w->table_size - 1);

	while (w->table[i] && (w->table[i]->pid != pid || w->table[i]->tid != tid))
		i = (i + 1) & (w->table_size - 1);
	return i;
}

static int grow_table(struct kx_fdr_writer *w)
{
	size_t size = w->table_size ? 2 * w->table_size : 64;
	struct kx_fdr_thread **table = calloc(size, sizeof(struct kx_fdr_thread *));

	if (!table)
		return -ENOMEM;
	free(w->table);
	w->table = table;
	w->table_size = size;
	for (struct kx_fdr_thread *t = w->first; t; t = t->next)
		table[slot_of(w, t->pid, t->tid)] = t;
	return 0;
}

static char *thread_note(int32_t pid, int32_t tid, const char *name, const char *process)
{
	json_t *json = json_pack("{s:i, s:i, s:o, s:o}", "tid", (int)tid, "pid", (int)pid, "name",
				 kx_json_text(name, MAX_NAME), "process",
				 kx_json_text(process, MAX_NAME));
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	char *note = NULL;

	if (text && asprintf(&note, KX_FDR_NOTE_PREFIX "thread %s", text) < 0)
		note = NULL;
	free(text);
	json_decref(json);
	return note;
}

static struct kx_fdr_thread *add_thread(struct kx_fdr_writer *w, int32_t pid, int32_t tid,
					char *note)
{
	struct kx_fdr_thread *t;

	if (!note || (2 * w->nthreads >= w->table_size && grow_table(w) < 0))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->writer = w;
	t->pid = pid;
	t->tid = tid;
	t->newest = w->options.start_tsc;
	t->note = note;
	*w->last = t;
	w->last = &t->next;
	w->table[slot_of(w, pid, tid)] = t;
	w->nthreads++;
	return t;
}

struct kx_fdr_thread *kx_fdr_writer_thread(struct kx_fdr_writer *w, int32_t pid, int32_t tid,
					   const char *name, const char *process)
{
	struct kx_fdr_thread *t = w->table_size ? w->table[slot_of(w, pid, tid)] : NULL;
	char *note;

	if (t && !t->ended)
		return t;
	note = thread_note(pid, tid, name, process);
	if (t && note) {
		t->ended = false;
		t->note = note;
		return t;
	}
	t = t ? NULL : add_thread(w, pid, tid, note);
	if (!t)
		free(note);
	return t;
}

int kx_fdr_thread_end(struct kx_fdr_thread *t)
{
	int ret = t->writer->error;

	if (!ret && t->pos)
		ret = close_buffer(t);
	drop_buffer(t);
	free(t->note);
	t->note = NULL;
	t->ended = true;
	return ret;
}

/* The whole */

static int write_failed(const struct kx_fdr_writer *w, struct kx_err *err)
{
	return kx_err_set(err, w->error,
			  "cannot write the trace any further: %s; its first %llu bytes are %s",
			  strerror(-w->error), (unsigned long long)w->bytes,
			  w->regular ? "whole and stay readable" : "sent and whole");
}

int kx_fdr_writer_new(int fd, const struct kx_fdr_options *options, struct kx_fdr_writer **out,
		      struct kx_err *err)
{
	uint32_t size = options->buffer_size ? options->buffer_size : DEFAULT_BUFFER_SIZE;
	int version = options->version ? options->version : KX_FDR_MAX_VERSION;
	struct kx_fdr_writer *w;
	struct stat st;
	int flags, ret;

	if (version < KX_FDR_MIN_VERSION || version > KX_FDR_MAX_VERSION)
		return kx_err_set(err, -EINVAL, "FDR version %d does not exist: take one from 1 to 5",
				  version);
	if (size < MIN_BUFFER_SIZE || size > MAX_BUFFER_SIZE || size % 8)
		return kx_err_set(err, -EINVAL,
				  "a trace buffer cannot have %u bytes: take a multiple of 8 from "
				  "%u to %u", size, MIN_BUFFER_SIZE, MAX_BUFFER_SIZE);
	if (!options->start_tsc || options->wall_usec >= 1000000)
		return kx_err_set(err, -EINVAL, "the trace has no valid start time");
	w = calloc(1, sizeof(*w));
	if (!w)
		return kx_err_set(err, -ENOMEM, "no memory for the trace writer");
	w->fd = fd;
	w->options = *options;
	w->options.version = version;
	w->options.buffer_size = size;
	w->last = &w->first;
	if (version == 1) {
		w->trailer = KX_FDR_METADATA_SIZE;
		w->zeros = calloc(1, size);
		if (!w->zeros) {
			kx_fdr_writer_free(w);
			return kx_err_set(err, -ENOMEM, "no memory for the trace writer");
		}
		w->memory = size;
	}
	flags = fcntl(fd, F_GETFL);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flags >= 0 && !(flags & O_APPEND)) {
		w->offset = lseek(fd, 0, SEEK_CUR);
		w->regular = w->offset >= 0;
	}
	ret = write_header(w);
	if (ret < 0) {
		write_failed(w, err);
		kx_fdr_writer_free(w);
		return ret;
	}
	*out = w;
	return 0;
}

int kx_fdr_flush(struct kx_fdr_writer *w, struct kx_err *err)
{
	for (struct kx_fdr_thread *t = w->first; t && !w->error; t = t->next) {
		if (t->pos)
			close_buffer(t);
		drop_buffer(t);
	}
	return w->error ? write_failed(w, err) : 0;
}

int kx_fdr_finish(struct kx_fdr_writer *w, uint64_t tsc_hz, struct kx_err *err)
{
	uint8_t hz[8];
	int ret;

	if (!w->nstarted && !w->error) {
		char *note = strdup(KX_FDR_NOTE_PREFIX "session {}");
		struct kx_fdr_thread *t = add_thread(w, 0, 0, note);

		if (!t) {
			free(note);
			return kx_err_set(err, -ENOMEM, "no memory to finish the trace");
		}
		ret = open_buffer(t, 0, w->options.start_tsc);
		w->nstarted = 0;
		if (ret < 0)
			return kx_err_set(err, ret, "no memory to finish the trace");
	}
	ret = kx_fdr_flush(w, err);
	if (ret < 0 || !tsc_hz || !w->regular)
		return ret;
	put64(hz, tsc_hz);
	if (pwrite(w->fd, hz, sizeof(hz), w->offset + 8) != sizeof(hz)) {
		ret = errno ? -errno : -EIO;
		return kx_err_set(err, ret, "cannot correct the clock frequency in the trace's "
				  "header: %s", strerror(-ret));
	}
	return 0;
}

int kx_fdr_added_exit(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func)
{
	int ret = kx_fdr_exit(t, tsc, cpu, func, false);

	if (ret == 0)
		t->hits--;
	return ret;
}

uint64_t kx_fdr_writer_hits(const struct kx_fdr_writer *w)
{
	return w->hits;
}

uint64_t kx_fdr_writer_bytes(const struct kx_fdr_writer *w)
{
	return w->bytes;
}

uint64_t kx_fdr_writer_threads(const struct kx_fdr_writer *w)
{
	return w->nstarted;
}

size_t kx_fdr_writer_memory(const struct kx_fdr_writer *w)
{
	return w->memory;
}

void kx_fdr_writer_free(struct kx_fdr_writer *w)
{
	struct kx_fdr_thread *t, *next;

	if (!w)
		return;
	for (t = w->first; t; t = next) {
		next = t->next;
		free(t->buf);
		free(t->note);
		free(t);
	}
	free(w->table);
	free(w->zeros);
	free(w);
}
