// SPDX-License-Identifier: BSD-2-Clause
/* Traces byte by byte, from the format's document and not from kxray's own writer. */
#ifndef KX_TEST_FDR_BYTES_H
#define KX_TEST_FDR_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	uint8_t *data;
	size_t size, room;
	size_t extents; /* offset of the open BufferExtents record, 0 if none */
};

static inline void put(struct bytes *b, const void *data, size_t size)
{
	if (b->size + size > b->room) {
		b->room = (b->size + size) * 2;
		b->data = realloc(b->data, b->room);
		assert_non_null(b->data);
	}
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static inline void put_le(struct bytes *b, uint64_t value, size_t size)
{
	uint8_t le[8];

	for (size_t i = 0; i < size; i++)
		le[i] = (uint8_t)(value >> 8 * i);
	put(b, le, size);
}

static inline void put_byte(struct bytes *b, uint8_t byte, size_t times)
{
	while (times--)
		put(b, &byte, 1);
}

static inline void header(struct bytes *b, unsigned version, unsigned type, uint64_t hz,
			  uint64_t buffer_size)
{
	put_le(b, version, 2);
	put_le(b, type, 2);
	put_le(b, 3, 4);
	put_le(b, hz, 8);
	put_le(b, buffer_size, 8);
	put_byte(b, 0xaa, 8);
}

/* Fills the rest of a metadata record that began at @start with garbage, like LLVM's runtime. */
static inline void pad(struct bytes *b, size_t start)
{
	put_byte(b, 0xaa, 16 - (b->size - start));
}

static inline void new_buffer(struct bytes *b, int32_t tid)
{
	size_t start = b->size;

	put_byte(b, 0x01, 1);
	put_le(b, (uint32_t)tid, 4);
	pad(b, start);
}

static inline void wall_time(struct bytes *b, uint64_t sec, uint32_t usec)
{
	size_t start = b->size;

	put_byte(b, 0x09, 1);
	put_le(b, sec, 8);
	put_le(b, usec, 4);
	pad(b, start);
}

static inline void pid_record(struct bytes *b, int32_t pid)
{
	size_t start = b->size;

	put_byte(b, 0x13, 1);
	put_le(b, (uint32_t)pid, 4);
	pad(b, start);
}

static inline void new_cpu(struct bytes *b, uint16_t cpu, uint64_t tsc)
{
	size_t start = b->size;

	put_byte(b, 0x05, 1);
	put_le(b, cpu, 2);
	put_le(b, tsc, 8);
	pad(b, start);
}

static inline void tsc_wrap(struct bytes *b, uint64_t tsc)
{
	size_t start = b->size;

	put_byte(b, 0x07, 1);
	put_le(b, tsc, 8);
	pad(b, start);
}

static inline void call_argument(struct bytes *b, uint64_t value)
{
	size_t start = b->size;

	put_byte(b, 0x0d, 1);
	put_le(b, value, 8);
	pad(b, start);
}

static inline void end_of_buffer(struct bytes *b)
{
	size_t start = b->size;

	put_byte(b, 0x03, 1);
	pad(b, start);
}

static inline void buffer_extents(struct bytes *b, uint64_t size)
{
	size_t start = b->size;

	put_byte(b, 0x0f, 1);
	put_le(b, size, 8);
	pad(b, start);
}

enum { ENTRY, EXIT, TAIL_EXIT, ENTRY_ARGS };

static inline void function(struct bytes *b, unsigned action, uint32_t id, uint32_t delta)
{
	put_le(b, (uint64_t)id << 4 | action << 1, 4);
	put_le(b, delta, 4);
}

/* Version 5: @tsc is a delta; before: absolute, and @cpu in version 4. */
static inline void custom(struct bytes *b, unsigned version, int64_t tsc, uint16_t cpu,
			  const char *text)
{
	size_t start = b->size;

	put_byte(b, 0x0b, 1);
	put_le(b, strlen(text), 4);
	put_le(b, (uint64_t)tsc, version < 5 ? 8 : 4);
	if (version == 4)
		put_le(b, cpu, 2);
	pad(b, start);
	put(b, text, strlen(text));
}

static inline void typed(struct bytes *b, int32_t delta, uint16_t type, const char *text)
{
	size_t start = b->size;

	put_byte(b, 0x11, 1);
	put_le(b, strlen(text), 4);
	put_le(b, (uint32_t)delta, 4);
	put_le(b, type, 2);
	pad(b, start);
	put(b, text, strlen(text));
}

/* From version 3 on: ends the buffer that begin_extents began, and writes its size. */
static inline void end_extents(struct bytes *b)
{
	uint64_t size = b->size - b->extents - 16;

	for (size_t i = 0; i < 8; i++)
		b->data[b->extents + 1 + i] = (uint8_t)(size >> 8 * i);
	b->extents = 0;
}

static inline void begin_extents(struct bytes *b)
{
	b->extents = b->size;
	buffer_extents(b, 0);
}

/* A complete preamble as kxray and LLVM write it in @version. */
static inline void preamble(struct bytes *b, unsigned version, int32_t pid, int32_t tid,
			    uint16_t cpu, uint64_t tsc)
{
	if (version >= 3)
		begin_extents(b);
	new_buffer(b, tid);
	wall_time(b, 7, 8);
	if (version >= 3)
		pid_record(b, pid);
	new_cpu(b, cpu, tsc);
}

static inline void end_block(struct bytes *b, unsigned version)
{
	if (version == 1)
		end_of_buffer(b);
	if (version >= 3)
		end_extents(b);
}

static inline void naive(struct bytes *b, unsigned kind, uint8_t cpu, uint32_t func, uint64_t tsc,
			 uint32_t tid, uint32_t pid)
{
	put_le(b, 0, 2);
	put_le(b, cpu, 1);
	put_le(b, kind, 1);
	put_le(b, func, 4);
	put_le(b, tsc, 8);
	put_le(b, tid, 4);
	put_le(b, pid, 4);
	put_byte(b, 0xaa, 8);
}

static inline void naive_argument(struct bytes *b, uint32_t func, uint32_t tid, uint32_t pid,
				  uint64_t value)
{
	put_le(b, 1, 2);
	put_le(b, 0, 2);
	put_le(b, func, 4);
	put_le(b, tid, 4);
	put_le(b, pid, 4);
	put_le(b, value, 8);
	put_byte(b, 0xaa, 8);
}

static inline void save(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static inline void release(struct bytes *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

#endif
