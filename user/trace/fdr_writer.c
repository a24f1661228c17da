// SPDX-License-Identifier: BSD-2-Clause
/* The file and its threads. */
#include "trace/fdr_buffers.h"
#include "trace/fdr_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_BUFFER_SIZE (64u << 10)
#define MIN_BUFFER_SIZE	    1024u
#define MAX_BUFFER_SIZE	    (256u << 20)

static int write_header(struct kx_fdr_writer *w)
{
	const struct kx_fdr_options *o = &w->options;
	uint8_t header[KX_FDR_HEADER_SIZE] = { 0 };
	struct iovec iov = { header, sizeof(header) };

	kx_put16(header, (uint16_t)o->version);
	kx_put16(header + 2, KX_FDR_TYPE_FDR);
	kx_put32(header + 4, (uint32_t)o->constant_tsc | (uint32_t)o->nonstop_tsc << 1);
	kx_put64(header + 8, o->tsc_hz);
	kx_put64(header + 16, o->buffer_size);
	return kx_fdr_write(w, &iov, 1);
}

/* Threads */

static uint64_t hash(int32_t pid, int32_t tid)
{
	uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;

	return key * 0x9e3779b97f4a7c15u >> 32;
}

static size_t slot_of(const struct kx_fdr_writer *w, int32_t pid, int32_t tid)
{
	size_t i = (size_t)hash(pid, tid) & (w->table_size - 1);

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

/* Removes an entry from the table and closes the gap in its probe sequence. */
static void vacate(struct kx_fdr_writer *w, size_t gap)
{
	size_t mask = w->table_size - 1;

	w->table[gap] = NULL;
	for (size_t i = (gap + 1) & mask; w->table[i]; i = (i + 1) & mask) {
		size_t home = (size_t)hash(w->table[i]->pid, w->table[i]->tid) & mask;

		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		w->table[gap] = w->table[i];
		w->table[i] = NULL;
		gap = i;
	}
}

static struct kx_fdr_ended *ended_place(const struct kx_fdr_writer *w, int32_t pid, int32_t tid)
{
	return &w->ended[hash(pid, tid) & (KX_FDR_ENDED_PLACES - 1)];
}

static struct kx_fdr_thread *add_thread(struct kx_fdr_writer *w, int32_t pid, int32_t tid,
					char *note)
{
	const struct kx_fdr_ended *before = ended_place(w, pid, tid);
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
	t->has_wall = before->any;
	t->wall_sec = before->wall_sec;
	t->wall_usec = before->wall_usec;
	t->link = w->last;
	*w->last = t;
	w->last = &t->next;
	w->table[slot_of(w, pid, tid)] = t;
	w->nthreads++;
	return t;
}

struct kx_fdr_thread *kx_fdr_writer_thread_of(struct kx_fdr_writer *w,
					      const struct kx_fdr_identity *identity)
{
	struct kx_fdr_thread *t =
		w->table_size ? w->table[slot_of(w, identity->pid, identity->tid)] : NULL;
	char *note;

	if (t)
		return t;
	note = kx_note_text(&(struct kx_note){ .kind = KX_NOTE_THREAD, .thread = *identity });
	t = add_thread(w, identity->pid, identity->tid, note);
	if (!t)
		free(note);
	return t;
}

struct kx_fdr_thread *kx_fdr_writer_thread(struct kx_fdr_writer *w, int32_t pid, int32_t tid,
					   const char *name, const char *process)
{
	const struct kx_fdr_identity identity = {
		.pid = pid,
		.tid = tid,
		.name = name,
		.process = process,
	};

	return kx_fdr_writer_thread_of(w, &identity);
}

/* Keeps the wall clock for a later thread with the same ids, also if others share the slot. */
static void remember(const struct kx_fdr_thread *t)
{
	struct kx_fdr_ended *e = ended_place(t->writer, t->pid, t->tid);

	if (!t->started)
		return;
	if (!e->any || t->wall_sec > e->wall_sec)
		e->wall_sec = t->wall_sec;
	if (!e->any || t->wall_usec > e->wall_usec)
		e->wall_usec = t->wall_usec;
	e->any = 1;
}

bool kx_fdr_thread_has_records(const struct kx_fdr_thread *t)
{
	return t->started;
}

int kx_fdr_thread_end(struct kx_fdr_thread *t)
{
	struct kx_fdr_writer *w = t->writer;
	int ret = w->error;

	if (!ret && t->pos)
		ret = kx_fdr_close_buffer(t);
	kx_fdr_drop_buffer(t);
	remember(t);
	vacate(w, slot_of(w, t->pid, t->tid));
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	else
		w->last = t->link;
	w->nthreads--;
	free(t->note);
	free(t);
	return ret;
}

/* The file */

static int write_failed(const struct kx_fdr_writer *w, struct kx_err *err)
{
	return kx_err_set(err, w->error, "the trace cannot be written any further: %s", strerror(-w->error));
}

struct kx_fdr_options kx_fdr_options_at(const struct kx_fdr_options *o, uint64_t tsc)
{
	struct kx_fdr_options at = *o;
	double us;

	if (tsc <= o->start_tsc || !o->tsc_hz)
		return at;
	us = (double)o->wall_usec + (double)(tsc - o->start_tsc) * 1e6 / (double)o->tsc_hz;
	at.wall_sec += (uint64_t)(us / 1e6);
	at.wall_usec = (uint32_t)(us - (double)((uint64_t)(us / 1e6)) * 1e6);
	at.start_tsc = tsc;
	return at;
}

static int check_options(const struct kx_fdr_options *o, struct kx_err *err)
{
	if (o->version < KX_FDR_MIN_VERSION || o->version > KX_FDR_MAX_VERSION)
		return kx_err_set(err, -EINVAL,
				  "FDR version %d does not exist: take one from 1 to 5", o->version);
	if (o->buffer_size < MIN_BUFFER_SIZE || o->buffer_size > MAX_BUFFER_SIZE || o->buffer_size % 8)
		return kx_err_set(err, -EINVAL,
				  "a trace buffer cannot have %u bytes: take a multiple of 8 from "
				  "%u to %u",
				  o->buffer_size, MIN_BUFFER_SIZE, MAX_BUFFER_SIZE);
	if (!o->start_tsc || o->wall_usec >= 1000000)
		return kx_err_set(err, -EINVAL, "the trace has no valid start time");
	return 0;
}

static int allocate(struct kx_fdr_writer *w, struct kx_err *err)
{
	w->ended = calloc(KX_FDR_ENDED_PLACES, sizeof(*w->ended));
	if (!w->ended)
		return kx_err_set(err, -ENOMEM, "no memory for the trace writer");
	if (w->options.version == 1) {
		w->trailer = KX_FDR_METADATA_SIZE;
		w->zeros = calloc(1, w->options.buffer_size);
		if (!w->zeros)
			return kx_err_set(err, -ENOMEM, "no memory for the trace writer");
		w->memory = w->options.buffer_size;
	}
	if (w->options.compress) {
		w->pack = kx_fdr_pack_new(w->fd);
		if (!w->pack)
			return kx_err_set(err, -ENOMEM, "no memory for the trace's compression");
	}
	return 0;
}

/* Only in a regular file can the writer go back. */
static void look_at_file(struct kx_fdr_writer *w)
{
	int flags = fcntl(w->fd, F_GETFL);
	struct stat st;

	if (fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode) && flags >= 0 && !(flags & O_APPEND)) {
		w->offset = lseek(w->fd, 0, SEEK_CUR);
		w->regular = w->offset >= 0;
	}
}

int kx_fdr_writer_new(int fd, const struct kx_fdr_options *options, struct kx_fdr_writer **out,
		      struct kx_err *err)
{
	struct kx_fdr_options o = *options;
	struct kx_fdr_writer *w;
	int ret;

	o.buffer_size = o.buffer_size ? o.buffer_size : DEFAULT_BUFFER_SIZE;
	o.version = o.version ? o.version : KX_FDR_MAX_VERSION;
	ret = check_options(&o, err);
	if (ret)
		return ret;
	w = calloc(1, sizeof(*w));
	if (!w)
		return kx_err_set(err, -ENOMEM, "no memory for the trace writer");
	w->fd = fd;
	w->options = o;
	w->last = &w->first;
	ret = allocate(w, err);
	if (!ret) {
		look_at_file(w);
		ret = write_header(w);
		if (ret < 0)
			write_failed(w, err);
	}
	if (ret < 0) {
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
			kx_fdr_close_buffer(t);
		kx_fdr_drop_buffer(t);
	}
	return kx_fdr_end_group(w) ? write_failed(w, err) : 0;
}

/* One buffer of a thread 0 that holds only a note. */
static int write_empty_buffer(struct kx_fdr_writer *w, struct kx_err *err)
{
	static const struct kx_note none = { .kind = KX_NOTE_SESSION, .session = { "{}", 2 } };
	char *note = kx_note_text(&none);
	struct kx_fdr_thread *t = add_thread(w, 0, 0, note);
	int ret;

	if (!t) {
		free(note);
		return kx_err_set(err, -ENOMEM, "no memory for the trace's first buffer");
	}
	ret = kx_fdr_open_buffer(t, 0, w->options.start_tsc);
	w->nstarted = 0;
	if (ret < 0)
		kx_err_set(err, ret, "no memory for the trace's first buffer");
	else if (kx_fdr_thread_end(t) < 0)
		ret = write_failed(w, err);
	/* as if the thread had not been */
	memset(ended_place(w, 0, 0), 0, sizeof(struct kx_fdr_ended));
	return ret;
}

int kx_fdr_write_placeholder(struct kx_fdr_writer *w, struct kx_err *err)
{
	uint64_t before = w->bytes;
	int ret;

	if (!w->regular)
		return 0;
	ret = write_empty_buffer(w, err);
	if (!ret && kx_fdr_end_group(w))
		ret = write_failed(w, err);
	w->placeholder = (size_t)(w->bytes - before);
	return ret;
}

int kx_fdr_finish(struct kx_fdr_writer *w, uint64_t tsc_hz, struct kx_err *err)
{
	off_t at = w->offset + 8 + (w->pack ? KX_PACK_HEADER_AT : 0);
	uint8_t hz[8];
	int ret;

	if (!w->nstarted && !w->placeholder && !w->error) {
		ret = write_empty_buffer(w, err);
		if (ret < 0)
			return ret;
	}
	ret = kx_fdr_flush(w, err);
	if (ret < 0 || !tsc_hz || !w->regular)
		return ret;
	kx_put64(hz, tsc_hz);
	if (pwrite(w->fd, hz, sizeof(hz), at) != sizeof(hz)) {
		ret = errno ? -errno : -EIO;
		return kx_err_set(err, ret,
				  "cannot correct the clock frequency in the trace's "
				  "header: %s",
				  strerror(-ret));
	}
	return 0;
}

uint64_t kx_fdr_writer_hits(const struct kx_fdr_writer *w)
{
	return w->hits;
}

uint64_t kx_fdr_writer_bytes(const struct kx_fdr_writer *w)
{
	return kx_fdr_file_bytes(w);
}

uint64_t kx_fdr_writer_bytes_flushed(const struct kx_fdr_writer *w)
{
	return kx_fdr_file_bytes(w) +
	       (w->pack ? kx_fdr_pack_estimate(w->pack, w->memory) : w->memory);
}

uint64_t kx_fdr_writer_threads(const struct kx_fdr_writer *w)
{
	return w->nstarted;
}

size_t kx_fdr_writer_live(const struct kx_fdr_writer *w)
{
	return w->nthreads;
}

const struct kx_fdr_options *kx_fdr_writer_options(const struct kx_fdr_writer *w)
{
	return &w->options;
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
	kx_fdr_pack_free(w->pack);
	free(w->table);
	free(w->ended);
	free(w->zeros);
	free(w);
}
