// SPDX-License-Identifier: BSD-2-Clause
#include "binary/xray_sleds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"

#define ENTRY_SIZE 32
#define OFF_FUNCTION 8
#define OFF_KIND 16
#define OFF_VERSION 18

/* Values that the dynamic linker writes, in the order of their addresses. */
struct relocs {
	struct reloc {
		uint64_t at, value;
	} *items;
	size_t count;
};

static int by_address(const void *a, const void *b)
{
	const struct reloc *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Relative relocations that fall into [from, to). */
static int read_relocs(struct kx_elf *elf, uint64_t from, uint64_t to, struct relocs *out)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	size_t room = 0;

	while ((data = kx_elf_next_of_type(elf, SHT_RELA, &scn))) {
		const Elf64_Rela *rela = data->d_buf;

		for (size_t i = 0; i < data->d_size / sizeof(*rela); i++) {
			if (ELF64_R_TYPE(rela[i].r_info) != R_X86_64_RELATIVE ||
			    rela[i].r_offset < from || rela[i].r_offset >= to)
				continue;
			if (KX_ARRAY_RESERVE(out->items, room, out->count))
				return -ENOMEM;
			out->items[out->count++] = (struct reloc){
				.at = rela[i].r_offset,
				.value = (uint64_t)rela[i].r_addend,
			};
		}
	}
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_address);
	return 0;
}

/* The 8-byte field at @addr: from the file, or what a relocation will put there. */
static uint64_t field(const uint8_t *bytes, uint64_t addr, const struct relocs *relocs)
{
	const struct reloc key = { .at = addr };
	const struct reloc *found = NULL;
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	if (!value && relocs->count)
		found = bsearch(&key, relocs->items, relocs->count, sizeof(key), by_address);
	return found ? found->value : value;
}

static int by_function(const void *a, const void *b)
{
	const struct kx_xray_sled *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void read_sleds(const struct kx_elf_section *map, const struct relocs *relocs,
		       struct kx_xray_sleds *out)
{
	for (size_t i = 0; i < out->nsleds; i++) {
		const uint8_t *entry = map->data + i * ENTRY_SIZE;
		const uint64_t at = map->addr + i * ENTRY_SIZE;
		struct kx_xray_sled *sled = &out->sleds[i];

		sled->addr = field(entry, at, relocs);
		sled->function = field(entry + OFF_FUNCTION, at + OFF_FUNCTION, relocs);
		sled->kind = entry[OFF_KIND];
		if (entry[OFF_VERSION] >= 2) {
			sled->addr += at;
			sled->function += at + OFF_FUNCTION;
		}
		if (i == 0 || sled->function != sled[-1].function)
			out->functions[out->nfunctions++] = sled->function;
	}
	qsort(out->sleds, out->nsleds, sizeof(*out->sleds), by_function);
}

const struct kx_xray_sled *kx_xray_find(const struct kx_xray_sleds *x, uint64_t addr,
					size_t *count)
{
	const size_t first = KX_COUNT_LEADING(x->nsleds, i, x->sleds[i].function < addr);

	for (*count = 0; first + *count < x->nsleds && x->sleds[first + *count].function == addr;)
		++*count;
	return *count ? &x->sleds[first] : NULL;
}

int kx_xray_read(struct kx_elf *elf, struct kx_xray_sleds *out, struct kx_err *err)
{
	struct relocs relocs = { 0 };
	struct kx_elf_section map;
	int ret;

	*out = (struct kx_xray_sleds){ 0 };
	if (!kx_elf_get_section(elf, "xray_instr_map", &map) || !map.size)
		return 0;
	if (!map.data || map.size % ENTRY_SIZE)
		return kx_err_set(err, -EBADMSG,
				  "%s has a damaged xray_instr_map: its size is no multiple of %d",
				  kx_elf_path(elf), ENTRY_SIZE);
	out->nsleds = map.size / ENTRY_SIZE;
	out->sleds = calloc(out->nsleds, sizeof(*out->sleds));
	out->functions = calloc(out->nsleds, sizeof(*out->functions));
	ret = out->sleds && out->functions ? 0 : -ENOMEM;
	if (!ret)
		ret = read_relocs(elf, map.addr, map.addr + map.size, &relocs);
	if (!ret)
		read_sleds(&map, &relocs, out);
	free(relocs.items);
	if (ret) {
		kx_xray_free(out);
		return kx_err_set(err, ret, "out of memory while reading the sleds of %s",
				  kx_elf_path(elf));
	}
	return 0;
}

void kx_xray_free(struct kx_xray_sleds *x)
{
	free(x->sleds);
	free(x->functions);
	*x = (struct kx_xray_sleds){ 0 };
}
