// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each thread encodes into its own buffer, which starts small, grows to the full size and is then
 * written at once. A buffer is, by version:
 *
 *   1     NewBuffer WallTime     NewCPUId body EndOfBuffer, zeros to buffer_size
 *   2     NewBuffer WallTime Pid NewCPUId body
 *   3..5  BufferExtents NewBuffer WallTime Pid NewCPUId body
 *
 * llvm-xray parses the padding of version 1 as records. So it is zeros ("enter function 0", which
 * is ignored after EndOfBuffer), and a buffer is a multiple of 8 bytes long. The header's
 * buffer_size is the size of one buffer, as the document's rule for EndOfBuffer needs ("seek past
 * the remaining buffer_size").
 */
#include "trace/fdr_buffers.h"

#include <errno.h>
#include <stdlib.h>

#include "trace/fdr_out.h"

#define FIRST_BUFFER_SIZE 512u /* in memory; doubled up to the full size */
#define MAX_PREAMBLE	  (5 * KX_FDR_METADATA_SIZE)
#define MAX_ARGS	  8

/* Begins a metadata record, for which there is room; returns where its data goes. */
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

	kx_put16(data, cpu);
	kx_put64(data + 2, tsc);
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

	kx_put32(data, (uint32_t)padded);
	if (version == 5) {
		kx_put32(data + 4, (uint32_t)(tsc - t->base));
		t->base = tsc;
	} else {
		/* absolute, and later deltas do not count from it */
		kx_put64(data + 4, tsc);
		/* llvm-xray reads a CPU here in any version; in version 1 the bytes are reserved */
		if (version > 1)
			kx_put16(data + 12, t->cpu);
	}
	memcpy(t->pos, payload, size);
	memset(t->pos + size, ' ', padded - size);
	t->pos += padded;
}

/* Buffers */

/*
 * llvm-xray sorts a thread's buffers with "seconds less and microseconds less", which is an order
 * only if both increase from buffer to buffer.
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
	if (t->has_wall && sec <= t->wall_sec)
		sec = t->wall_sec + 1;
	if (t->has_wall && usec <= t->wall_usec)
		usec = (uint64_t)t->wall_usec + 1;
	t->has_wall = true;
	t->wall_sec = sec;
	t->wall_usec = (uint32_t)usec;
	kx_put64(data, t->wall_sec);
	kx_put32(data + 8, t->wall_usec);
}

/*
 * Makes room for @need more bytes in the open buffer: 1, or 0 if the buffer is full. A record that
 * is too large for any buffer gets its own, except in version 1, where all buffers have one size:
 * -EMSGSIZE.
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

int kx_fdr_open_buffer(struct kx_fdr_thread *t, uint16_t cpu, uint64_t tsc)
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
		put_metadata(t, KX_FDR_BUFFER_EXTENTS); /* kx_fdr_close_buffer fills in its size */
	kx_put32(put_metadata(t, KX_FDR_NEW_BUFFER), (uint32_t)t->tid);
	put_wall_time(t, tsc);
	if (version >= 2)
		kx_put32(put_metadata(t, KX_FDR_PID), (uint32_t)t->pid);
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

int kx_fdr_close_buffer(struct kx_fdr_thread *t)
{
	struct kx_fdr_writer *w = t->writer;
	struct iovec iov[2] = { { t->buf, 0 }, { w->zeros, 0 } };
	int ret;

	if (w->options.version >= 3)
		kx_put64(t->buf + 1, (uint64_t)(t->pos - t->buf) - KX_FDR_METADATA_SIZE);
	if (w->options.version == 1)
		put_metadata(t, KX_FDR_END_OF_BUFFER);
	iov[0].iov_len = (size_t)(t->pos - t->buf);
	if (w->options.version == 1)
		iov[1].iov_len = w->options.buffer_size - iov[0].iov_len;
	ret = kx_fdr_write(w, iov, iov[1].iov_len ? 2 : 1);
	if (ret == 0)
		w->hits += t->hits;
	t->hits = 0;
	t->pos = t->end = NULL;
	return ret;
}

/*
 * Makes room for a record of @need bytes at @tsc on @cpu. Writes before it what the record needs: a
 * new buffer, a NewCPUId, or a TSCWrap if its delta exceeds @max.
 */
static int prepare(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, size_t need, uint64_t max)
{
	struct kx_fdr_writer *w = t->writer;
	int ret;

	if (w->error)
		return w->error;
	for (;;) {
		if (t->pos) {
			bool moved = cpu != t->cpu, wrap = tsc - t->base > max;

			ret = reserve(t, need + (moved || wrap ? KX_FDR_METADATA_SIZE : 0));
			if (ret < 0)
				return ret;
			if (ret && moved) {
				put_cpu(t, cpu, tsc);
			} else if (ret && wrap) {
				kx_put64(put_metadata(t, KX_FDR_TSC_WRAP), tsc);
				t->base = tsc;
			}
			if (ret)
				return 0;
			ret = kx_fdr_close_buffer(t);
			if (ret < 0)
				return ret;
		}
		ret = kx_fdr_open_buffer(t, cpu, t->started ? tsc : w->options.start_tsc);
		if (ret < 0)
			return ret;
	}
}

/* Records */

/* Makes room for @need bytes and writes the first 8 of them. */
static inline int put_function(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func,
			       enum kx_fdr_action action, size_t need)
{
	if (func > KX_FDR_MAX_FUNC)
		return -EINVAL;
	if (tsc < t->newest)
		tsc = t->newest;
	if (__builtin_expect(cpu != t->cpu || tsc - t->base > UINT32_MAX ||
				     (size_t)(t->end - t->pos) < need,
			     0)) {
		int ret = prepare(t, tsc, cpu, need, UINT32_MAX);

		if (ret < 0)
			return ret;
	}
	kx_put64(t->pos, (tsc - t->base) << 32 | func << 4 | (unsigned)action << 1);
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
		kx_put64(put_metadata(t, KX_FDR_CALL_ARGUMENT), args[i]);
	return ret;
}

int kx_fdr_exit(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func, bool tail)
{
	return put_function(t, tsc, cpu, func, tail ? KX_FDR_TAIL_EXIT : KX_FDR_EXIT,
			    KX_FDR_FUNCTION_SIZE);
}

/* As many of @n calls as need nothing before their records. */
static uint32_t put_calls(struct kx_fdr_thread *t, const struct kx_fdr_call *calls, uint32_t n)
{
	const size_t room = t->pos ? (size_t)(t->end - t->pos) / KX_FDR_FUNCTION_SIZE : 0;
	uint64_t base = t->base;
	uint8_t *pos = t->pos;
	uint32_t i = 0;

	if (n > room)
		n = (uint32_t)room;
	for (; i < n; i++) {
		const struct kx_fdr_call *c = &calls[i];

		if (c->cpu != t->cpu || c->tsc - base > UINT32_MAX || c->func > KX_FDR_MAX_FUNC)
			break;
		kx_put64(pos, (c->tsc - base) << 32 | c->func << 4 | (unsigned)c->action << 1);
		pos += KX_FDR_FUNCTION_SIZE;
		base = c->tsc;
	}
	if (i) {
		t->pos = pos;
		t->base = t->newest = base;
		t->hits += i;
	}
	return i;
}

int kx_fdr_calls(struct kx_fdr_thread *t, const struct kx_fdr_call *calls, uint32_t n, uint32_t *written)
{
	int ret = 0;

	for (*written = 0; *written < n && !ret;) {
		const struct kx_fdr_call *c = &calls[*written];

		/* the first: it may be older than the newest, or on another CPU, or there is no buffer */
		ret = put_function(t, c->tsc, c->cpu, c->func, (enum kx_fdr_action)c->action, KX_FDR_FUNCTION_SIZE);
		if (!ret)
			++*written;
		if (!ret && t->newest == c->tsc)
			*written += put_calls(t, c + 1, n - *written);
	}
	return ret;
}

int kx_fdr_cpu(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu)
{
	int ret;

	if (tsc < t->newest)
		tsc = t->newest;
	if (t->started && cpu == t->cpu)
		return t->writer->error;
	/* before its first record, the thread's CPU is not known */
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

	if (!size || size > KX_NOTE_MAX)
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

int kx_fdr_note(struct kx_fdr_thread *t, uint64_t tsc, const struct kx_note *note)
{
	char text[KX_NOTE_MAX + 1];
	int n = kx_note_format(note, text, sizeof(text));

	return n < 0 ? n : kx_fdr_custom(t, tsc, text, (size_t)n);
}

int kx_fdr_added_entry(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func)
{
	int ret = kx_fdr_entry(t, tsc, cpu, func, NULL, 0);

	if (ret == 0)
		t->hits--;
	return ret;
}

int kx_fdr_added_exit(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func)
{
	int ret = kx_fdr_exit(t, tsc, cpu, func, false);

	if (ret == 0)
		t->hits--;
	return ret;
}
