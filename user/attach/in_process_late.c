// SPDX-License-Identifier: BSD-2-Clause
/*
 * Modules that the process loads and unloads while it is recorded.
 *
 * The dynamic linker's announcement comes while the process runs on: what is found may be gone a
 * moment later, and another module in its place. So a module is known by its mappings
 * (tracer/patch_texts.h), which are compared again whenever all threads are stopped and something
 * is about to be written; a library that was unloaded and loaded again at the same place differs in
 * that its code is not writable.
 */
#include <errno.h>
#include <stdlib.h>

#include "attach/in_process_check.h"
#include "attach/in_process_internal.h"
#include "tracer/patch_texts.h"

/* Areas of modules that are no longer there; also those that could not be removed before. */
static void remove_gone(struct kx_in_process *p)
{
	const size_t n = p->nleaving;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!kx_in_process_remove_area(p, p->leaving[i]))
			p->leaving[kept++] = p->leaving[i];
	p->nleaving = kept;
	for (size_t i = 0; i < p->nmodules; i++) {
		struct kx_patched_module *m = &p->modules[i];

		if (m->area.table &&
		    !kx_patch_texts_are_there(p->o.pid, m->layout->texts, m->layout->ntexts, true))
			kx_patched_module_remove(p, m);
	}
}

static bool has_any(const struct kx_in_process *p, const struct kx_patched_module *m)
{
	for (size_t i = 0; i < m->nfunctions; i++)
		if (p->has[m->functions[i].id - 1])
			return true;
	return false;
}

/* The module is there: plans it, if that was not done before, and maps its area. */
static int take(struct kx_in_process *p, uint32_t i, const struct kx_module *now,
		struct kx_err *err)
{
	struct kx_patched_module *m = &p->modules[i];
	const bool is_new = !m->planned;
	struct kx_err why = { 0 };
	int code = 0;

	m->now = now;
	m->bias = now->load_bias;
	m->text = now->start;
	m->text_end = now->end;
	if (is_new)
		code = kx_in_process_plan_module(p, i, now, NULL, &why);
	m->is_late = true;
	if (!code && has_any(p, m))
		code = kx_patched_module_map(p, m, &why);
	if (!code)
		return 0;
	kx_patched_module_remove(p, m);
	if (code == -ENOMEM)
		return kx_err_set(err, code, "%s", why.text);
	if (code == -ESTALE || code == -ESRCH)
		return 0; /* it is gone by now; perhaps it comes again */
	if (is_new)
		kx_patched_module_refuse(p, m, why.text); /* uprobes come only with the first load of a module */
	else
		p->o.failed(p->o.ctx, m->m->module, why.text);
	return 0;
}

void kx_in_process_look_for_copies(struct kx_in_process *p, const struct kx_modules *mods)
{
	for (size_t i = 0; i < p->nmodules; i++) {
		struct kx_patched_module *m = &p->modules[i];
		const struct kx_module *now = m->area.table && !m->said ? kx_modules_find(mods, m->m->module) : NULL;

		if (!now || !kx_in_process_check_places(p->o.pid, now, m->m->elf, NULL))
			continue;
		m->said = true;
		p->o.failed(p->o.ctx, now, "only its copy that was there before has jumps");
	}
}

int kx_in_process_look(struct kx_in_process *p, const struct kx_modules *mods, struct kx_err *err)
{
	int code = kx_in_process_make_room(p, err);
	bool looked = false;

	if (code)
		return code;
	p->o.mods = mods;
	remove_gone(p);
	for (uint32_t i = 0; i < p->nmodules && !code; i++) {
		const struct kx_module *now = kx_modules_find(mods, p->o.sel->modules[i].module);

		const bool is_new = !p->modules[i].planned;

		if (!now || p->modules[i].area.table || (!is_new && !p->modules[i].nfunctions))
			continue;
		/* once for all that is new: it reads the state of each thread */
		if (is_new && !looked) {
			looked = true;
			if (kx_in_process_look_for_handlers(p, NULL))
				p->handles_faults = true;
		}
		code = take(p, i, now, err);
	}
	kx_in_process_look_for_copies(p, mods);
	return code;
}

void kx_in_process_install_late(struct kx_in_process *p)
{
	for (size_t i = 0; i < p->nmodules; i++) {
		struct kx_patched_module *m = &p->modules[i];
		struct kx_err why = { 0 };
		int code;

		if (!m->area.table || m->installed)
			continue;
		code = kx_patched_modules_install(p, m, 1, &why);
		if (!code && m->installed && p->enabled)
			kx_patch_enable(&m->area, true);
		if (!code)
			continue;
		kx_patched_module_remove(p, m);
		if (code != -ESTALE && code != -ESRCH)
			p->o.failed(p->o.ctx, m->m->module, why.text);
	}
	p->counts.functions = p->nhas;
}
