// SPDX-License-Identifier: BSD-2-Clause
#include "binary/unwind_risk.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "binary/elf_image.h"

/*
 * Modules whose exception tables are ignored, by file name. The C library's few handlers only clean up
 * after cancellation inside the library, and libgcc_s is the unwinder. Allocators call no foreign code
 * inside their handlers, so unwinding from a traced frame never reaches those.
 */
static const char *const exempt[] = {
	"libc.so*",       "libc-[0-9]*",  "libc.musl-*",   "ld-linux*",      "ld-musl*",
	"ld-[0-9]*",      "libpthread[.-]*", "libm[.-]*",  "libdl[.-]*",     "librt[.-]*",
	"libgcc_s[.-]*",  "libjemalloc*", "libtcmalloc*",  "libmimalloc*",
};

/* C++ runtimes: harmless unless a module that uses them can throw or catch. */
static const char *const cxx_runtime[] = { "libstdc++.so*", "libc++.so*", "libc++abi.so*" };

static const char *const linkers[] = { "ld-linux*", "ld-musl*", "ld-[0-9]*" };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool matches(const char *name, const char *const *globs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!fnmatch(globs[i], name, 0))
			return true;
	return false;
}

/* Name of the C++ runtime that the module itself needs (DT_NEEDED); NULL if none. */
static const char *needs_cxx(struct kx_elf *elf)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;

	while ((data = kx_elf_next_of_type(elf, SHT_DYNAMIC, &scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);
		const Elf64_Dyn *dyn = data->d_buf;

		for (size_t i = 0; i < data->d_size / sizeof(*dyn); i++) {
			const char *needed;

			if (dyn[i].d_tag != DT_NEEDED)
				continue;
			needed = elf_strptr(kx_elf_handle(elf), sh->sh_link, dyn[i].d_un.d_val);
			if (needed && matches(needed, cxx_runtime, COUNT(cxx_runtime)))
				return needed;
		}
	}
	return NULL;
}

/*
 * Whether the module imports dlopen. What the C library loads itself (name services, character sets)
 * calls no function of the program.
 */
static bool imports_dlopen(struct kx_elf *elf)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;

	while ((data = kx_elf_next_of_type(elf, SHT_DYNSYM, &scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);
		const Elf64_Sym *syms = data->d_buf;

		for (size_t i = 0; i < data->d_size / sizeof(*syms); i++) {
			const char *name;

			if (syms[i].st_shndx != SHN_UNDEF)
				continue;
			name = elf_strptr(kx_elf_handle(elf), sh->sh_link, syms[i].st_name);
			if (name && (!strcmp(name, "dlopen") || !strcmp(name, "dlmopen")))
				return true;
		}
	}
	return false;
}

static bool has_section(const struct kx_elf *elf, const char *name)
{
	struct kx_elf_section section;

	return kx_elf_get_section(elf, name, &section);
}

/*
 * Fills @reason if @m is a risk, leaves it empty if not; sets *@is_go and *@loads. False if the file
 * could not be opened, which is no fact about the file: its process may have ended.
 */
static bool judge(const struct kx_module *m, bool *is_go, bool *loads, char *reason, size_t size)
{
	struct kx_elf *elf;
	const char *needed;
	struct kx_err err;
	size_t sections = 0;
	int code = kx_module_read(m, &elf, &err);

	*reason = '\0';
	if (code) {
		snprintf(reason, size, "%s cannot be read, so it may have exception tables",
			 m->name);
		return kx_elf_error_is_content(code);
	}
	elf_getshdrnum(kx_elf_handle(elf), &sections);
	*loads = !matches(m->name, exempt, COUNT(exempt)) && imports_dlopen(elf);
	if (has_section(elf, ".gopclntab") || has_section(elf, ".go.buildinfo")) {
		*is_go = true;
		snprintf(reason, size, "%s is written in Go, which moves its stacks", m->name);
	} else if (matches(m->name, exempt, COUNT(exempt)) ||
		   matches(m->name, cxx_runtime, COUNT(cxx_runtime))) {
		/* A C++ runtime is a risk through those that need it, see below. */
	} else if (has_section(elf, ".gcc_except_table")) {
		snprintf(reason, size, "%s has exception tables", m->name);
	} else if (!sections) {
		snprintf(reason, size, "%s has no section table that would show exception tables",
			 m->name);
	} else if ((needed = needs_cxx(elf))) {
		snprintf(reason, size, "%s uses %s, so it may throw exceptions", m->name, needed);
	}
	kx_elf_close(elf);
	return true;
}

/* The same with the cache. A file that could not be opened is tried again each time. */
static bool judge_cached(const struct kx_module *m, struct kx_file_cache *cache, bool *is_go,
			 bool *loads, char *reason, size_t size)
{
	struct kx_file_facts *file =
		m->changed ? kx_file_cache_get(cache, m->device, m->inode, m->changed, m->name) :
			     NULL;

	if (!file || !file->is_judged) {
		if (!judge(m, is_go, loads, reason, size))
			return false;
		if (!file)
			return true;
		file->is_judged = true;
		file->is_go = *is_go;
		file->loads = *loads;
		snprintf(file->reason, sizeof(file->reason), "%s", reason);
		return true;
	}
	*is_go = file->is_go;
	*loads = file->loads;
	snprintf(reason, size, "%s", file->reason);
	return true;
}

bool kx_is_dynamic_linker(const struct kx_module *m)
{
	return matches(m->name, linkers, COUNT(linkers));
}

void kx_unwind_risk_look(const struct kx_modules *mods, struct kx_file_cache *cache,
			 struct kx_unwind_risk *out)
{
	char reason[sizeof(out->reason)];

	*out = (struct kx_unwind_risk){ .returns_harmless = true, .linker = -1 };
	for (size_t i = 0; i < mods->count; i++) {
		const struct kx_module *m = &mods->items[i];
		bool is_go = false, loads = false, opened;

		if (out->linker < 0 && kx_is_dynamic_linker(m))
			out->linker = (int)i;
		opened = judge_cached(m, cache, &is_go, &loads, reason, sizeof(reason));
		if (loads && !out->loader[0])
			snprintf(out->loader, sizeof(out->loader), "%s", m->name);
		if (!*reason)
			continue;
		/* The first reason is shown, but what is known first, and Go before all others. */
		if (out->returns_harmless || (out->unknown && opened) || (is_go && !out->is_go))
			memcpy(out->reason, reason, sizeof(reason));
		out->unknown = !opened && (out->returns_harmless || out->unknown);
		out->returns_harmless = false;
		out->is_go |= is_go;
	}
	if (out->returns_harmless)
		snprintf(out->reason, sizeof(out->reason),
			 "no module but the C library's handles exceptions");
}

void kx_unwind_risk_of(const struct kx_modules *mods, struct kx_unwind_risk *out)
{
	kx_unwind_risk_look(mods, NULL, out);
}
