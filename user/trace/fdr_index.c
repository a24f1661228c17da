// SPDX-License-Identifier: BSD-2-Clause
/*
 * The first pass over an FDR file: checks the rules of llvm-xray's FDRRecordProducer, BlockIndexer
 * and BlockVerifier, and keeps only the positions of the buffers.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "trace/fdr_index.h"
#include "trace/fdr_segments.h"

/* Longest segment, in bytes: a cursor releases pages between segments. */
#define SEGMENT_MAX	 (1u << 20)
#define TOUCH_STEP	 (256u << 10)
#define TRUNCATED	 1 /* returned if the file ends inside a record */
#define FIRST_BYTE(kind) ((kind) << 1 | 1)

/* Progress within a buffer, by its last record; the order matters. */
enum state {
	NO_BUFFER, /* before the first NewBuffer */
	AFTER_NEW_BUFFER,
	AFTER_WALL_TIME,
	AFTER_PID,
	IN_BODY,     /* after NewCPUId, TSCWrap or an event */
	IN_FUNCTION, /* after a function record or its arguments: CallArgument may come */
	ENDED,	     /* after EndOfBuffer */
};

static const char *const state_names[] = {
	"the file header",
	"a NewBuffer record",
	"a WallTime record",
	"a Pid record",
	"a NewCPUId, TSCWrap or event record",
	"a function record",
	"an EndOfBuffer record",
};

static const char *const kind_names[] = {
	"NewBuffer",   "EndOfBuffer",  "NewCPUId",	"TSCWrap",    "WallTime",
	"CustomEvent", "CallArgument", "BufferExtents", "TypedEvent", "Pid",
};

struct scan {
	struct kx_fdr_file *f;
	const uint8_t *data;
	uint64_t size; /* of the file */
	uint64_t pos;
	uint64_t limit; /* end of the buffer by BufferExtents; UINT64_MAX before version 3 */
	enum state state;
	uint64_t buffer;     /* offset of the open buffer's NewBuffer */
	size_t buffer_first; /* its first segment */
	int32_t tid, pid;
	bool has_pid;
	uint32_t thread; /* valid once state >= IN_BODY */
	bool segment_open;
	uint64_t segment_begin;
	uint64_t touched; /* kx_fdr_touch was called up to here */
	struct kx_err *err;
};

static int damaged(struct scan *s, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int damaged(struct scan *s, uint64_t offset, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return kx_err_set(s->err, -EBADMSG, "%s: is damaged at offset %llu: %s", s->f->name,
			  (unsigned long long)offset, text);
}

static int out_of_memory(struct scan *s)
{
	return kx_err_set(s->err, -ENOMEM, "%s: out of memory for the index of its buffers",
			  s->f->name);
}

static void touch_behind(struct scan *s)
{
	if (s->pos < s->touched + TOUCH_STEP)
		return;
	kx_fdr_touch(s->f, s->touched, s->pos);
	s->touched = s->pos;
}

/* Segments */

static void open_segment(struct scan *s)
{
	if (s->segment_open)
		return;
	s->segment_open = true;
	s->segment_begin = s->pos;
}

static int close_segment(struct scan *s)
{
	if (!s->segment_open || s->pos == s->segment_begin)
		return 0;
	s->segment_open = false;
	if (kx_fdr_add_segment(s->f, s->segment_begin, s->pos, s->segment_begin != s->buffer))
		return out_of_memory(s);
	if (s->state >= IN_BODY)
		kx_fdr_link_segment(s->f, s->f->nsegments - 1, s->thread);
	return 0;
}

/* The first NewCPUId of a buffer: its thread is known now. */
static int begin_body(struct scan *s)
{
	int32_t pid = s->has_pid ? s->pid : s->f->info.version == 2 ? s->tid : 0;
	int64_t thread = kx_fdr_intern_thread(s->f, pid, s->tid);

	if (thread < 0)
		return out_of_memory(s);
	s->thread = (uint32_t)thread;
	for (size_t i = s->buffer_first; i < s->f->nsegments; i++)
		kx_fdr_link_segment(s->f, i, s->thread);
	return 0;
}

/* 0 if @size bytes are left at pos; else damage (beyond the BufferExtents) or TRUNCATED. */
static int need(struct scan *s, uint64_t size)
{
	uint64_t end = s->limit < s->size ? s->limit : s->size;

	if (size <= end - s->pos)
		return 0;
	if (s->limit <= s->size)
		return damaged(s, s->pos,
			       "the record needs %llu bytes but its BufferExtents "
			       "leaves %llu",
			       (unsigned long long)size, (unsigned long long)(s->limit - s->pos));
	return TRUNCATED;
}

static int bad_order(struct scan *s, const char *what)
{
	return damaged(s, s->pos, "a %s record cannot follow %s", what, state_names[s->state]);
}

/* Skips complete function records of known actions. */
static const uint8_t *skip_functions(const uint8_t *p, const uint8_t *end)
{
	/* bit 0: metadata; bit 3: set in actions 4 to 7 */
	while (end - p >= 32) {
		if ((kx_get64(p) | kx_get64(p + 8) | kx_get64(p + 16) | kx_get64(p + 24)) & 9)
			break;
		p += 32;
	}
	while (end - p >= 8 && !(*p & 9))
		p += 8;
	return p;
}

static int bad_action(struct scan *s, uint64_t offset)
{
	return damaged(s, offset, "a function record has the unknown action %u (0 to 3 are known)",
		       s->data[offset] >> 1 & 7);
}

static int scan_functions(struct scan *s)
{
	uint64_t end = s->limit < s->size ? s->limit : s->size;
	const uint8_t *p = s->data + s->pos;
	int r;

	if (s->state < IN_BODY)
		return bad_order(s, "function");
	r = need(s, KX_FDR_FUNCTION_SIZE);
	if (r)
		return r;
	if (*p & 9)
		return bad_action(s, s->pos);
	if (end - s->pos > SEGMENT_MAX)
		end = s->pos + SEGMENT_MAX;
	open_segment(s);
	s->pos = (uint64_t)(skip_functions(p, s->data + end) - s->data);
	s->state = IN_FUNCTION;
	return 0;
}

/* Whether there is a buffer's preamble at @pos: NewBuffer, WallTime, [Pid], NewCPUId. */
static bool has_preamble(const struct scan *s, uint64_t pos)
{
	const uint8_t *p;

	if (pos >= s->size || s->size - pos < 3 * KX_FDR_METADATA_SIZE)
		return false;
	p = s->data + pos;
	if (p[0] != FIRST_BYTE(KX_FDR_NEW_BUFFER) || p[16] != FIRST_BYTE(KX_FDR_WALL_TIME))
		return false;
	if (p[32] == FIRST_BYTE(KX_FDR_NEW_CPU_ID))
		return true;
	return p[32] == FIRST_BYTE(KX_FDR_PID) && s->size - pos >= 4 * KX_FDR_METADATA_SIZE &&
	       p[48] == FIRST_BYTE(KX_FDR_NEW_CPU_ID);
}

/* Bytes of the metadata record at @pos; 0 if the file ends inside it, or -EBADMSG. */
static int64_t metadata_size(struct scan *s, uint64_t pos)
{
	unsigned kind = s->data[pos] >> 1;
	int32_t payload;

	if (kind > KX_FDR_PID)
		return damaged(s, pos, "unknown metadata record kind %u (0 to 9 are known)", kind);
	if (kind == KX_FDR_END_OF_BUFFER && s->f->info.version >= 2)
		return damaged(s, pos,
			       "an EndOfBuffer record, which only version 1 has, in a "
			       "trace of version %u",
			       s->f->info.version);
	if (s->size - pos < KX_FDR_METADATA_SIZE)
		return 0;
	if (kind != KX_FDR_CUSTOM_EVENT && kind != KX_FDR_TYPED_EVENT)
		return KX_FDR_METADATA_SIZE;
	payload = (int32_t)kx_get32(s->data + pos + 1);
	if (payload <= 0)
		return damaged(s, pos, "a %s record has the impossible size %d", kind_names[kind],
			       payload);
	return (int64_t)KX_FDR_METADATA_SIZE + payload;
}

/*
 * Skips the padding between EndOfBuffer and the next buffer. llvm-xray decodes it up to the next
 * NewBuffer, so it must be decodable; the format's document says to skip to the end of buffer_size
 * bytes. Decodes first; if that fails or passes a boundary at which a buffer begins, does as the
 * document says.
 */
static int skip_fill(struct scan *s)
{
	uint64_t room = s->f->info.buffer_size, start = s->pos, boundary = UINT64_MAX;
	uint64_t used = s->pos - KX_FDR_HEADER_SIZE;
	bool at_boundary;
	int r = 0;

	if (room && room <= s->size)
		boundary = KX_FDR_HEADER_SIZE + (used + room - 1) / room * room;
	at_boundary = has_preamble(s, boundary);
	while (s->pos < s->size && !(at_boundary && s->pos > boundary)) {
		uint64_t end = s->size;
		int64_t size;

		if (s->data[s->pos] == FIRST_BYTE(KX_FDR_NEW_BUFFER) &&
		    (!at_boundary || has_preamble(s, s->pos)))
			return 0;
		if (at_boundary && boundary > s->pos)
			end = boundary;
		else if (end - s->pos > SEGMENT_MAX)
			end = s->pos + SEGMENT_MAX;
		if (s->data[s->pos] & 1) {
			size = metadata_size(s, s->pos);
		} else if (s->size - s->pos < KX_FDR_FUNCTION_SIZE) {
			size = 0;
		} else if (s->data[s->pos] & 9) {
			size = bad_action(s, s->pos);
		} else {
			size = skip_functions(s->data + s->pos, s->data + end) - (s->data + s->pos);
			if (!size) /* crosses the boundary */
				size = KX_FDR_FUNCTION_SIZE;
		}
		if (size < 0)
			r = (int)size;
		else if (!size || (uint64_t)size > s->size - s->pos)
			r = TRUNCATED;
		if (r)
			break;
		s->pos += (uint64_t)size;
		touch_behind(s);
	}
	if (at_boundary) {
		s->pos = boundary;
		return 0;
	}
	if (r && boundary == s->size) {
		s->pos = s->size;
		return 0;
	}
	if (r < 0)
		kx_err_prefix(s->err,
			      "the padding after the EndOfBuffer at offset %llu cannot "
			      "be decoded",
			      (unsigned long long)start - KX_FDR_METADATA_SIZE);
	return r;
}

static int end_buffer(struct scan *s)
{
	int r = close_segment(s);

	if (r)
		return r;
	if (s->state > NO_BUFFER && s->state < IN_BODY)
		return damaged(s, s->buffer, "the buffer ends after %s, without a NewCPUId",
			       state_names[s->state]);
	return 0;
}

static int take_extents(struct scan *s)
{
	uint32_t promised = kx_get32(s->data + s->pos + 1);
	int r = close_segment(s);

	s->pos += KX_FDR_METADATA_SIZE;
	if (s->f->info.version >= 3) /* llvm-xray takes the size modulo 2^32 */
		s->limit = s->pos + promised;
	return r;
}

static int begin_buffer(struct scan *s)
{
	int r = end_buffer(s);

	if (r)
		return r;
	s->buffer = s->pos;
	s->buffer_first = s->f->nsegments;
	s->tid = (int32_t)kx_get32(s->data + s->pos + 1);
	s->has_pid = false;
	return 0;
}

static int take_cpu(struct scan *s)
{
	uint64_t tsc = kx_get64(s->data + s->pos + 3), *start = &s->f->info.start_tsc;

	if (!*start || (tsc && tsc < *start))
		*start = tsc;
	return s->state < IN_BODY ? begin_body(s) : 0;
}

/* States in which a metadata record of this kind may come, and the one that it leads to. */
static const struct {
	enum state from, to, next;
} rules[] = {
	[KX_FDR_NEW_BUFFER] = { NO_BUFFER, ENDED, AFTER_NEW_BUFFER },
	[KX_FDR_END_OF_BUFFER] = { IN_BODY, ENDED, ENDED },
	[KX_FDR_NEW_CPU_ID] = { AFTER_WALL_TIME, ENDED, IN_BODY },
	[KX_FDR_TSC_WRAP] = { IN_BODY, ENDED, IN_BODY },
	[KX_FDR_WALL_TIME] = { AFTER_NEW_BUFFER, AFTER_NEW_BUFFER, AFTER_WALL_TIME },
	[KX_FDR_CUSTOM_EVENT] = { IN_BODY, ENDED, IN_BODY },
	[KX_FDR_CALL_ARGUMENT] = { IN_FUNCTION, IN_FUNCTION, IN_FUNCTION },
	[KX_FDR_TYPED_EVENT] = { IN_BODY, ENDED, IN_BODY },
	[KX_FDR_PID] = { AFTER_WALL_TIME, AFTER_WALL_TIME, AFTER_PID },
};

static int scan_metadata(struct scan *s)
{
	unsigned kind = s->data[s->pos] >> 1;
	int64_t size = metadata_size(s, s->pos);
	int r;

	if (size < 0)
		return (int)size;
	if (!size) /* for llvm-xray, only what exceeds the extents is an over-read */
		return kind == KX_FDR_BUFFER_EXTENTS ? TRUNCATED : need(s, KX_FDR_METADATA_SIZE);
	if (kind == KX_FDR_BUFFER_EXTENTS)
		return take_extents(s);
	r = need(s, (uint64_t)size);
	if (r)
		return r;
	if (s->state < rules[kind].from || s->state > rules[kind].to)
		return bad_order(s, kind_names[kind]);
	if (kind == KX_FDR_NEW_BUFFER)
		r = begin_buffer(s);
	else if (kind == KX_FDR_NEW_CPU_ID)
		r = take_cpu(s);
	if (r)
		return r;
	if (kind == KX_FDR_PID) {
		s->pid = (int32_t)kx_get32(s->data + s->pos + 1);
		s->has_pid = true;
	}
	open_segment(s);
	s->state = rules[kind].next;
	s->pos += (uint64_t)size;
	if (s->state != ENDED)
		return 0;
	r = close_segment(s);
	return r ? r : skip_fill(s);
}

/* Version 3 and later: finds the next BufferExtents, skipping any bytes before it. */
static int find_extents(struct scan *s)
{
	uint64_t start = s->pos;
	const uint8_t *found = NULL;
	int r = close_segment(s);

	while (!r && !found && s->pos < s->size) {
		size_t step = s->size - s->pos < SEGMENT_MAX ? s->size - s->pos : SEGMENT_MAX;

		found = memchr(s->data + s->pos, FIRST_BYTE(KX_FDR_BUFFER_EXTENTS), step);
		s->pos = found ? (uint64_t)(found - s->data) : s->pos + step;
		touch_behind(s);
	}
	if (r)
		return r;
	if (found && s->size - s->pos >= KX_FDR_METADATA_SIZE) {
		s->pos += KX_FDR_METADATA_SIZE;
		s->limit = s->pos + kx_get32(found + 1);
		return 0;
	}
	/* llvm-xray accepts an extents record that is truncated after its size */
	if (found && (s->pos == start || s->size - s->pos >= 9))
		return TRUNCATED;
	return damaged(s, start,
		       "a BufferExtents record should begin here, and none begins in the "
		       "%llu bytes up to the end of the file",
		       (unsigned long long)(s->size - start));
}

/* The file has ended: completely, or inside a record at pos. */
static void end_file(struct scan *s, bool inside_record)
{
	struct kx_fdr_info *info = &s->f->info;
	bool no_body = s->state > NO_BUFFER && s->state < IN_BODY;

	if (inside_record || no_body || (info->version >= 3 && s->limit > s->size)) {
		info->truncated = true;
		info->truncated_at = no_body ? s->buffer : s->pos;
	}
	if (info->file_size == KX_FDR_HEADER_SIZE) {
		info->truncated = true;
		info->truncated_at = KX_FDR_HEADER_SIZE;
	}
}

int kx_fdr_index(struct kx_fdr_file *f, struct kx_err *err)
{
	struct scan s = {
		.f = f,
		.data = f->data,
		.size = f->info.file_size,
		.pos = KX_FDR_HEADER_SIZE,
		.limit = f->info.version >= 3 ? KX_FDR_HEADER_SIZE : UINT64_MAX,
		.err = err,
	};
	int r = 0, closed;

	while (!r && s.pos < s.size) {
		if (s.pos == s.limit)
			r = find_extents(&s);
		else if (s.data[s.pos] & 1)
			r = scan_metadata(&s);
		else
			r = scan_functions(&s);
		if (r)
			break;
		touch_behind(&s);
		if (s.segment_open && s.pos - s.segment_begin >= SEGMENT_MAX && s.pos < s.size &&
		    s.data[s.pos] != FIRST_BYTE(KX_FDR_CALL_ARGUMENT))
			r = close_segment(&s);
	}
	/* A buffer that ends inside its preamble is damage, unless the file is truncated there. */
	if (!r && s.limit <= s.size)
		r = end_buffer(&s);
	closed = close_segment(&s);
	if (s.state > NO_BUFFER && s.state < IN_BODY)
		f->nsegments = s.buffer_first; /* of no thread */
	if (r < 0)
		return r;
	end_file(&s, r == TRUNCATED);
	return closed;
}
