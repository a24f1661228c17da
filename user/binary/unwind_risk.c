// SPDX-License-Identifier: BSD-2-Clause
#include "binary/unwind_risk.h"

#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "base/pattern.h"
#include "base/stop_request.h"
#include "base/usable_cpus.h"
#include "binary/dispatched_calls.h"
#include "binary/elf_image.h"
#include "binary/generated_code.h"
#include "binary/stack_switch.h"

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

/*
 * Modules whose loads of the stack pointer are ignored: libunwind resumes a frame of the same stack, libffi
 * builds a frame on it.
 */
static const char *const same_stack[] = { "libunwind*", "libffi[.-]*" };

/* OpenSSL switches stacks for asynchronous jobs, which few programs ask for. */
static const char *const on_request[] = { "libcrypto[.-]*" };

/*
 * Personality routines (of exception tables) of languages whose handlers of faults throw: Ada, D, Go by gccgo. So exceptions come from
 * functions that make no calls, too.
 */
static const char *const fault_personalities[] = {
	"__gnat_personality_v0", "__gdc_personality_v0", "_d_eh_personality", "__dmd_personality_v0", "__gccgo_personality_v0",
};

static const char *const linkers[] = { "ld-linux*", "ld-musl*", "ld-[0-9]*" };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Name of the first library that the module itself needs (DT_NEEDED), with @cxx of the first C++ runtime; NULL if
 * there is none.
 */
static const char *needs(struct kx_elf *elf, bool cxx)
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
			if (needed && (!cxx || kx_globs_match(cxx_runtime, COUNT(cxx_runtime), needed)))
				return needed;
		}
	}
	return NULL;
}

/* What a module imports that matters here. */
struct imports {
	bool loads;	     /* dlopen. What the C library loads itself (name services, character sets) calls no function of the program */
	bool makes_writable; /* mprotect: compilers at run time make memory executable that they have written; few others import it */
	bool dispatches;     /* prctl, or syscall for it: it may handle its own system calls */
	bool leaves_unwind;  /* pthread_setcanceltype, or one of fault_personalities, which it may also define */
};

static bool turns_faults(const char *name)
{
	for (size_t i = 0; i < COUNT(fault_personalities); i++)
		if (!strcmp(name, fault_personalities[i]))
			return true;
	return false;
}

static bool note_import(void *ctx, const Elf64_Sym *sym, const char *name)
{
	struct imports *in = ctx;

	in->leaves_unwind |= turns_faults(name);
	if (sym->st_shndx != SHN_UNDEF)
		return false;
	in->loads |= !strcmp(name, "dlopen") || !strcmp(name, "dlmopen");
	in->makes_writable |= !strcmp(name, "mprotect") || !strcmp(name, "pkey_mprotect");
	in->dispatches |= !strcmp(name, "prctl") || !strcmp(name, "syscall");
	in->leaves_unwind |= !strcmp(name, "pthread_setcanceltype");
	return false; /* the next one */
}

static bool is_fault_personality(void *ctx, const Elf64_Sym *sym, const char *name)
{
	(void)ctx;
	(void)sym;
	return turns_faults(name);
}

static bool has_section(const struct kx_elf *elf, const char *name)
{
	struct kx_elf_section section;

	return kx_elf_get_section(elf, name, &section);
}

/* Whether the module's code runs on several stacks of one thread; then @v says so. */
static bool find_switch(const struct kx_module *m, struct kx_elf *elf, const struct imports *imports, struct kx_file_verdict *v)
{
	const char *symbol;
	uint64_t addr;

	if (kx_globs_match(same_stack, COUNT(same_stack), m->name))
		return false;
	if (kx_globs_match(on_request, COUNT(on_request), m->name)) {
		v->may_switch = true;
		return false;
	}
	v->may_switch = imports->makes_writable;
	symbol = kx_stack_switch_symbol(elf);
	if (symbol)
		snprintf(v->reason, sizeof(v->reason), "%s uses %s, so it switches stacks", m->name,
			 symbol);
	/* a static program has the C library's longjmp */
	else if ((!m->is_main || needs(elf, false)) && kx_stack_switch_code(elf, &addr))
		snprintf(v->reason, sizeof(v->reason),
			 "%s has code that switches stacks (at %#llx)", m->name,
			 (unsigned long long)addr);
	v->switches_stacks = *v->reason;
	return v->switches_stacks;
}

/*
 * Fills @v. False if the file could not be opened, which is no fact about the file: its process may have
 * ended.
 */
static bool judge(const struct kx_module *m, struct kx_file_verdict *v)
{
	const bool is_exempt = kx_globs_match(exempt, COUNT(exempt), m->name);
	struct imports imports = { 0 };
	struct kx_elf *elf;
	const char *needed;
	struct kx_err err;
	size_t sections = 0;
	int code = kx_module_read(m, &elf, &err);

	*v = (struct kx_file_verdict){ 0 };
	if (code) {
		snprintf(v->reason, sizeof(v->reason),
			 "%s cannot be read, so it may have exception tables", m->name);
		return kx_elf_error_is_content(code);
	}
	/* the search of a large file's code takes long; the next step ends the preparation */
	if (kx_stop_requested()) {
		kx_elf_close(elf);
		snprintf(v->reason, sizeof(v->reason), "%s was not read", m->name);
		return false;
	}
	elf_getshdrnum(kx_elf_handle(elf), &sections);
	if (!is_exempt)
		kx_elf_find_symbol(elf, SHT_DYNSYM, note_import, &imports);
	v->loads = imports.loads;
	v->leaves_unwind = imports.leaves_unwind;
	if (has_section(elf, ".gopclntab") || has_section(elf, ".go.buildinfo")) {
		v->is_go = true;
		snprintf(v->reason, sizeof(v->reason),
			 "%s is written in Go, which moves its stacks", m->name);
	} else if (imports.dispatches && kx_dispatches_calls(elf)) {
		v->dispatches = true;
		snprintf(v->reason, sizeof(v->reason), "%s handles its own system calls (PR_SET_SYSCALL_USER_DISPATCH)", m->name);
	} else if (is_exempt || find_switch(m, elf, &imports, v) ||
		   kx_globs_match(cxx_runtime, COUNT(cxx_runtime), m->name)) {
		/* A C++ runtime is a risk through those that need it, see below. */
	} else if (has_section(elf, ".gcc_except_table")) {
		/* the run-time library may be linked statically */
		v->leaves_unwind |= kx_elf_find_symbol(elf, SHT_SYMTAB, is_fault_personality, NULL) != NULL;
		snprintf(v->reason, sizeof(v->reason), "%s has exception tables", m->name);
	} else if (!sections) {
		snprintf(v->reason, sizeof(v->reason),
			 "%s has no section table that would show exception tables", m->name);
	} else if ((needed = needs(elf, true))) {
		snprintf(v->reason, sizeof(v->reason), "%s uses %s, so it may throw exceptions",
			 m->name, needed);
	}
	kx_elf_close(elf);
	return true;
}

#define BATCH 32 /* modules whose verdicts are held at once */
#define MAX_THREADS 8

struct judgement {
	const struct kx_module *m;
	struct kx_file_verdict verdict;
	bool opened; /* what judge() returned */
	bool known;  /* from the cache */
};

struct batch {
	struct judgement items[BATCH];
	size_t n, unknown;
	size_t next; /* atomic */
};

static void *judge_batch(void *arg)
{
	struct batch *b = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED)) < b->n)
		if (!b->items[i].known)
			b->items[i].opened = judge(b->items[i].m, &b->items[i].verdict);
	return NULL;
}

static struct kx_file_facts *facts_of(const struct kx_module *m, struct kx_file_cache *cache)
{
	return m->changed ? kx_file_cache_get(cache, m->device, m->inode, m->changed, m->name) : NULL;
}

/*
 * Fills @b with the verdicts on up to BATCH modules: the cache's, others in several threads, as they are searched from
 * end to end. A file that could not be opened is tried again each time.
 */
static void judge_all(const struct kx_module *mods, size_t n, struct kx_file_cache *cache, struct batch *b)
{
	*b = (struct batch){ .n = n < BATCH ? n : BATCH };
	for (size_t i = 0; i < b->n; i++) {
		const struct kx_file_facts *file = facts_of(&mods[i], cache);
		struct judgement *j = &b->items[i];

		j->m = &mods[i];
		j->known = j->opened = file && file->is_judged;
		if (j->known)
			j->verdict = file->verdict;
		else
			b->unknown++;
	}
	kx_parallel_run(b->unknown > 1 ? kx_usable_cpus(b->unknown < MAX_THREADS ? b->unknown : MAX_THREADS) : 1,
			judge_batch, b);
	for (size_t i = 0; i < b->n; i++) {
		const struct judgement *j = &b->items[i];
		struct kx_file_facts *file = j->opened && !j->known ? facts_of(j->m, cache) : NULL;

		if (!file)
			continue;
		file->is_judged = true;
		file->verdict = j->verdict;
	}
}

/* Which of two reasons is shown: Go before what forbids return probes in leaves before all others. */
static int weight(bool is_go, bool forbids)
{
	return is_go ? 2 : forbids;
}

/* Adds the verdict on a module's file to that on its process; @opened: what judge() returned. */
static void add_verdict(const struct kx_file_verdict *v, bool opened, struct kx_unwind_risk *out)
{
	if (!*v->reason)
		return;
	/* The first reason is shown, but what is known first, and heavier ones before all others. */
	if (out->returns_harmless || (out->unknown && opened) ||
	    weight(v->is_go, v->switches_stacks || v->dispatches) > weight(out->is_go, out->switches_stacks || out->dispatches))
		memcpy(out->reason, v->reason, sizeof(out->reason));
	out->unknown = !opened && (out->returns_harmless || out->unknown);
	out->returns_harmless = false;
	out->is_go |= v->is_go;
	out->switches_stacks |= v->switches_stacks;
	out->dispatches |= v->dispatches;
}

bool kx_unwind_risk_covers_leaves(const struct kx_unwind_risk *risk)
{
	return risk->switches_stacks || risk->dispatches || risk->leaves_unwind;
}

bool kx_is_dynamic_linker(const struct kx_module *m)
{
	return kx_globs_match(linkers, COUNT(linkers), m->name);
}

void kx_unwind_risk_look(const struct kx_modules *mods, struct kx_file_cache *cache,
			 struct kx_unwind_risk *out)
{
	bool leaves_unwind = false;
	struct batch b;

	*out = (struct kx_unwind_risk){ .returns_harmless = true, .linker = -1 };
	for (size_t i = 0; i < mods->count; i++) {
		const struct kx_module *m = &mods->items[i];
		const struct judgement *j = &b.items[i % BATCH];

		if (i % BATCH == 0)
			judge_all(m, mods->count - i, cache, &b);
		if (out->linker < 0 && kx_is_dynamic_linker(m))
			out->linker = (int)i;
		if (j->verdict.loads && !out->loader[0])
			snprintf(out->loader, sizeof(out->loader), "%s", m->name);
		if (j->verdict.may_switch && !out->may_switch[0])
			snprintf(out->may_switch, sizeof(out->may_switch), "%s", m->name);
		leaves_unwind |= j->verdict.leaves_unwind;
		add_verdict(&j->verdict, j->opened, out);
	}
	out->leaves_unwind = leaves_unwind && !out->returns_harmless;
	if (out->returns_harmless)
		snprintf(out->reason, sizeof(out->reason),
			 "no module but the C library's handles exceptions, and none switches stacks");
}

void kx_unwind_risk_faults(struct kx_unwind_risk *risk)
{
	risk->leaves_unwind |= !risk->returns_harmless;
}

void kx_unwind_risk_generated(pid_t pid, const struct kx_modules *mods, struct kx_unwind_risk *risk)
{
	const char *name = mods->count ? mods->items[0].name : "the program";
	uint64_t address = 0;
	enum kx_generated found;

	if (!mods->has_generated || risk->switches_stacks || risk->is_go)
		return;
	found = kx_generated_code_scan(pid, mods, &address);
	if (found == KX_GENERATED_SWITCH)
		snprintf(risk->reason, sizeof(risk->reason),
			 "%.100s has generated code that switches stacks (at %#llx)", name,
			 (unsigned long long)address);
	else if (found == KX_GENERATED_TOO_MUCH)
		snprintf(risk->reason, sizeof(risk->reason),
			 "%.100s has generated more than %u MiB of code, which are not searched for "
			 "switches of stacks",
			 name, KX_GENERATED_MAX >> 20);
	else
		return;
	risk->switches_stacks = true;
	risk->returns_harmless = false;
	risk->unknown = false;
}

void kx_unwind_risk_unguarded(struct kx_unwind_risk *risk)
{
	if (!risk->may_switch[0] || risk->switches_stacks)
		return;
	if (!risk->is_go)
		snprintf(risk->reason, sizeof(risk->reason),
			 "%s can switch stacks, which kxray notices with uprobe sessions only (Linux 6.13)",
			 risk->may_switch);
	risk->switches_stacks = true;
	risk->returns_harmless = false;
	risk->unknown = false;
}

void kx_unwind_risk_of(const struct kx_modules *mods, struct kx_unwind_risk *out)
{
	kx_unwind_risk_look(mods, NULL, out);
}
