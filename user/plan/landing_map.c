// SPDX-License-Identifier: BSD-2-Clause
#include "plan/landing_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/bisect.h"

/* Linkers make a dozen at most; each address is looked up in all. */
#define SEGMENTS_MOST 64

static uint64_t *bits_of(uint64_t size)
{
	return calloc(size / 64 + 1, sizeof(uint64_t));
}

static int add_segment(struct kx_landing_map *m, const Elf64_Phdr *ph, struct kx_err *err)
{
	struct kx_landing_segment s = { .addr = ph->p_vaddr, .size = ph->p_filesz, .executable = ph->p_flags & PF_X };
	size_t size;
	const uint8_t *file = kx_elf_bytes(m->elf, &size);

	if (ph->p_offset > size || s.size > size - ph->p_offset || s.size > UINT64_MAX - s.addr)
		return kx_err_set(err, -ENOEXEC, "a segment of it is not in the file");
	s.bytes = file + ph->p_offset;
	if (s.executable) {
		s.lands = bits_of(s.size);
		s.kept = bits_of(s.size);
		s.owned = bits_of(s.size);
		m->code += s.size;
	}
	m->segments[m->n++] = s;
	return s.executable && (!s.lands || !s.kept || !s.owned) ? kx_err_set(err, -ENOMEM, "out of memory for its code") : 0;
}

int kx_landing_map_new(struct kx_elf *elf, struct kx_landing_map *out, struct kx_err *err)
{
	const Elf64_Phdr *ph = elf64_getphdr(kx_elf_handle(elf));
	size_t n = 0;
	int ret = 0;

	*out = (struct kx_landing_map){ .elf = elf };
	if (!ph || elf_getphdrnum(kx_elf_handle(elf), &n))
		return kx_err_set(err, -ENOEXEC, "it has no segments");
	out->segments = calloc(SEGMENTS_MOST, sizeof(*out->segments));
	if (!out->segments)
		return kx_err_set(err, -ENOMEM, "out of memory for its code");
	for (size_t i = 0; i < n && !ret; i++) {
		if (ph[i].p_type != PT_LOAD || !ph[i].p_filesz)
			continue;
		ret = out->n < SEGMENTS_MOST ? add_segment(out, &ph[i], err) :
					       kx_err_set(err, -ENOEXEC, "it has more than %d segments", SEGMENTS_MOST);
	}
	if (ret)
		kx_landing_map_free(out);
	return ret;
}

void kx_landing_map_free(struct kx_landing_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->segments[i].lands);
		free(m->segments[i].kept);
		free(m->segments[i].owned);
	}
	free(m->segments);
	free(m->parts);
	free(m->outside);
	*m = (struct kx_landing_map){ 0 };
}

const struct kx_landing_segment *kx_landing_code(const struct kx_landing_map *m, uint64_t addr)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->segments[i].executable && addr - m->segments[i].addr < m->segments[i].size)
			return &m->segments[i];
	return NULL;
}

const uint8_t *kx_landing_bytes(const struct kx_landing_map *m, uint64_t addr, size_t *left)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct kx_landing_segment *s = &m->segments[i];

		if (addr - s->addr < s->size) {
			*left = s->size - (addr - s->addr);
			return s->bytes + (addr - s->addr);
		}
	}
	*left = 0;
	return NULL;
}

static bool get(const uint64_t *bits, uint64_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static void set(uint64_t *bits, uint64_t at)
{
	bits[at / 64] |= 1ULL << at % 64;
}

void kx_landing_mark(struct kx_landing_map *m, uint64_t addr)
{
	const struct kx_landing_segment *s = kx_landing_code(m, addr);

	if (s)
		set(s->lands, addr - s->addr);
}

bool kx_landing_is_marked(const struct kx_landing_map *m, uint64_t addr)
{
	const struct kx_landing_segment *s = kx_landing_code(m, addr);

	return !s || get(s->lands, addr - s->addr);
}

void kx_landing_keep(struct kx_landing_map *m, uint64_t addr, uint64_t size)
{
	const struct kx_landing_segment *s = kx_landing_code(m, addr);

	for (uint64_t i = 0; s && i < size && addr + i - s->addr < s->size; i++)
		set(s->kept, addr + i - s->addr);
}

bool kx_landing_is_kept(const struct kx_landing_map *m, uint64_t addr)
{
	const struct kx_landing_segment *s = kx_landing_code(m, addr);

	return !s || get(s->kept, addr - s->addr);
}

void kx_landing_own(struct kx_landing_map *m, uint64_t addr, uint64_t size)
{
	const struct kx_landing_segment *s = kx_landing_code(m, addr);

	for (uint64_t i = 0; s && i < size && addr + i - s->addr < s->size; i++)
		set(get(s->owned, addr + i - s->addr) ? s->kept : s->owned, addr + i - s->addr);
}

bool kx_landing_is_owned(const struct kx_landing_map *m, uint64_t addr)
{
	const struct kx_landing_segment *s = kx_landing_code(m, addr);

	return s && get(s->owned, addr - s->addr);
}

const struct kx_landing_part *kx_landing_part(const struct kx_landing_map *m, uint64_t addr)
{
	const size_t end = KX_COUNT_LEADING(m->nparts, i, m->parts[i].from <= addr);

	return end && addr < m->parts[end - 1].to ? &m->parts[end - 1] : NULL;
}

bool kx_landing_add_part(struct kx_landing_map *m, uint64_t from, uint64_t to)
{
	if (KX_ARRAY_RESERVE(m->parts, m->parts_room, m->nparts))
		return false;
	m->parts[m->nparts++] = (struct kx_landing_part){ from, to };
	return true;
}

bool kx_landing_add_outside(struct kx_landing_map *m, uint64_t function, uint64_t addr)
{
	if (KX_ARRAY_RESERVE(m->outside, m->outside_room, m->noutside))
		return false;
	m->outside[m->noutside++] = (struct kx_landing_outside){ function, addr };
	return true;
}

/* Both kinds begin with the address that they are looked up by. */
static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void kx_landing_sort(struct kx_landing_map *m)
{
	if (m->nparts)
		qsort(m->parts, m->nparts, sizeof(*m->parts), by_address);
	if (m->noutside)
		qsort(m->outside, m->noutside, sizeof(*m->outside), by_address);
}

const struct kx_landing_outside *kx_landing_outside(const struct kx_landing_map *m, uint64_t function, size_t *n)
{
	const size_t first = KX_COUNT_LEADING(m->noutside, i, m->outside[i].function < function);

	for (*n = 0; first + *n < m->noutside && m->outside[first + *n].function == function;)
		++*n;
	return *n ? &m->outside[first] : NULL;
}
