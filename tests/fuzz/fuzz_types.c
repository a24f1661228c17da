// SPDX-License-Identifier: BSD-2-Clause
/* DWARF of the program that was given: every function, every parameter, its members. */
#include <stdio.h>
#include <string.h>

#include "binary/dwarf_values.h"
#include "binary/elf_image.h"
#include "binary/symbols.h"
#include "fuzz.h"

static void try(const struct kx_type_source *source, const struct kx_type_function *f,
		const char *label, bool exit)
{
	const struct kx_value_request q = { .label = label, .exit = exit };
	struct kx_value_found found;

	if (kx_value_path_resolve(source, f, &q, &found, NULL))
		return;
	/* a fetch is never longer than the kernel's walk */
	if (found.value.fetch.hops > KX_FETCH_HOPS || found.value.fetch.from >= KX_FROM_COUNT)
		abort();
	kx_value_free(&found.value);
}

static void try_function(struct kx_dwarf_values *v, uint64_t addr)
{
	static const char *const members[] = { "", "->next->next->len", ".len", "[1]", "->no" };
	struct kx_type_function f;
	char label[256];

	/* inside the function: only what DWARF places in registers */
	if (!kx_dwarf_values_function_at(v, addr, addr + 4, &f, NULL) && f.n)
		try(kx_dwarf_values_types(v), &f, f.parameters[0].name ? f.parameters[0].name : "x", false);
	if (kx_dwarf_values_function(v, addr, NULL, &f, NULL))
		return;
	try(kx_dwarf_values_types(v), &f, "ret", true);
	for (size_t i = 0; i < f.n; i++)
		for (size_t j = 0; j < sizeof(members) / sizeof(members[0]); j++) {
			snprintf(label, sizeof(label), "%.100s%s",
				 f.parameters[i].name ? f.parameters[i].name : "x", members[j]);
			try(kx_dwarf_values_types(v), &f, label, false);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kx_dwarf_values *v;
	struct kx_symbols syms;
	struct kx_elf *elf;
	char path[64];
	int fd = fuzz_file(data, size, path, sizeof(path));

	if (kx_dwarf_values_open(fd, path, &v, NULL) == 0) {
		if (kx_elf_open(path, &elf, NULL) == 0) {
			if (kx_symbols_read(elf, NULL, &syms, NULL) == 0) {
				for (size_t i = 0; i < syms.count && i < 64; i++)
					try_function(v, syms.items[i].addr);
				kx_symbols_free(&syms);
			}
			kx_elf_close(elf);
		}
		kx_dwarf_values_close(v);
	}
	close(fd);
	return 0;
}
