// SPDX-License-Identifier: BSD-2-Clause
/*
 * Guards (tsc_guard.h): jumps at the entries of those functions of the C library by which a program
 * may forbid itself the time stamp counter. They are there whenever something is recorded in
 * process, whatever was selected. If the selection has the library, they are in its area, and a
 * function that is recorded as well has one jump for both; else in an area of their own, for which
 * only their pages become writable.
 */
#include <string.h>

#include "attach/in_process_check.h"
#include "attach/in_process_internal.h"
#include "base/usable_cpus.h"

const char *kx_in_process_unguarded(const struct kx_in_process *p)
{
	return *p->guarded.why ? p->guarded.why : NULL;
}

/* What has the library, and is recorded by jumps or uprobes; NULL: it is not selected. */
static struct kx_patched_module *find_selected(struct kx_in_process *p, const struct kx_module *library)
{
	for (size_t i = 0; i < p->nmodules; i++) {
		const struct kx_select_module *s = &p->o.sel->modules[i];

		if (s->provider == &kx_provider_elf && kx_module_is(s->module, library))
			return &p->modules[i];
	}
	return NULL;
}

/* The library as a module of its own. */
static int open_alone(struct kx_in_process *p, const struct kx_module *library, struct kx_err *err)
{
	static char library_name[] = "the C library";
	struct kx_patched_module *m = &p->guarded.module;
	struct kx_select_module *s = &p->guarded.library;
	int code = kx_in_process_check_module(p->o.pid, library, err);

	if (code)
		return code;
	p->guarded.file = (struct kx_module){ .name = library_name, .device = library->device, .inode = library->inode };
	*s = (struct kx_select_module){ .provider = &kx_provider_elf, .module = &p->guarded.file, .fd = -1 };
	*m = (struct kx_patched_module){ .m = s, .now = library, .planned = true, .counted = true, .only_guards = true,
					 .bias = library->load_bias, .text = library->start, .text_end = library->end };
	code = kx_module_read(library, &s->elf, err);
	if (!code)
		code = kx_symbols_read(s->elf, NULL, &s->syms, err);
	if (!code)
		code = kx_window_planner_new(s->elf, &s->syms, kx_usable_cpus(8), &m->planner, err);
	if (!code && p->handles_faults)
		kx_window_planner_keep_faults(m->planner);
	return code;
}

/* Finds the guard's window in a module that has been planned. */
static void plan_guard(struct kx_in_process *p, struct kx_patched_module *m, struct kx_process_code *memory, size_t g)
{
	const char *name = kx_guards[g].function;
	const struct kx_symbol *sym = kx_symbols_find_name(&m->m->syms, name);
	struct kx_windows windows = { .n = 1 };
	enum kx_window_refusal why;
	bool probed;

	if (!sym) {
		kx_in_process_note_unguarded(p, name, "the C library has no such symbol");
		return;
	}
	why = kx_windows_plan_entry(m->planner, sym, &windows.items[0]);
	if (why) {
		kx_in_process_note_unguarded(p, name, kx_window_refusal_text(why));
		return;
	}
	if (!kx_in_process_is_unchanged(memory, m, &windows, &probed)) {
		kx_in_process_note_unguarded(p, name, "its code in the process is not the file's");
		return;
	}
	m->guards[g] = windows.items[0];
	m->nwindows++;
}

void kx_in_process_plan_guards(struct kx_in_process *p, struct kx_process_code *memory)
{
	const struct kx_module *library = kx_in_process_c_library(p->o.mods);
	struct kx_patched_module *m = library ? find_selected(p, library) : NULL;
	struct kx_err why = { 0 };

	if (!library) {
		kx_in_process_note_unguarded(p, kx_guards[0].function, "the process has no C library that is known");
		return;
	}
	if (m && !m->planner) {
		kx_in_process_note_unguarded(p, kx_guards[0].function, "the C library can have no jumps");
		return;
	}
	if (!m) {
		if (open_alone(p, library, &why)) {
			kx_in_process_note_unguarded(p, kx_guards[0].function, why.text);
			return;
		}
		m = &p->guarded.module;
	}
	for (size_t g = 0; g < KX_GUARDS; g++)
		plan_guard(p, m, memory, g);
}

/* The library goes without guards after all. */
static void give_up(struct kx_in_process *p, const char *why)
{
	kx_patched_module_remove(p, &p->guarded.module);
	kx_in_process_note_unguarded(p, kx_guards[0].function, why);
}

void kx_in_process_map_guards(struct kx_in_process *p)
{
	struct kx_err why = { 0 };

	if (p->guarded.module.nwindows && kx_patched_module_map(p, &p->guarded.module, &why))
		give_up(p, why.text);
	p->guarded.module.now = NULL; /* it may not live longer */
}

void kx_in_process_install_guards(struct kx_in_process *p)
{
	struct kx_err why = { 0 };

	if (p->guarded.module.area.table && kx_patched_modules_install(p, &p->guarded.module, 1, &why))
		give_up(p, why.text);
}

bool kx_in_process_is_guarded(const struct kx_in_process *p, const struct kx_module *m)
{
	return p->guarded.module.nwindows && kx_module_is(&p->guarded.file, m);
}

void kx_in_process_free_guards(struct kx_in_process *p)
{
	kx_patched_module_free(&p->guarded.module);
	kx_symbols_free(&p->guarded.library.syms);
	kx_elf_close(p->guarded.library.elf);
}
