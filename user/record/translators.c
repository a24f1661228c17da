// SPDX-License-Identifier: BSD-2-Clause
#include "record/translators.h"

#include <errno.h>
#include <string.h>

#include "base/process_arguments.h"
#include "binary/translator.h"
#include "binary/unwind_risk.h"
#include "tracer/each_process.h"

/* A file that the process has mapped and that will get probes: of selected functions, or the dynamic linker, which is watched; NULL: none. */
static const struct kx_module *probed_of(const struct kx_selection *sel, const struct kx_modules *mods)
{
	const struct kx_module *looked_at = NULL;

	for (size_t i = 0; i < sel->nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];
		const struct kx_module *m = sel->modules[f->module].module;

		if (m == looked_at || !f->traced || !kx_select_is_probed_by(sel, f, KX_PROBE_UPROBE))
			continue;
		if (kx_modules_find(mods, m))
			return m;
		looked_at = m;
	}
	for (size_t i = 0; i < mods->count; i++)
		if (kx_is_dynamic_linker(&mods->items[i]))
			return &mods->items[i];
	return NULL;
}

struct check {
	const struct kx_selection *sel;
	struct kx_err *err;
};

static int check_modules(const struct check *c, pid_t pid, const struct kx_modules *mods)
{
	const char *translator = kx_modules_translator(mods);
	const struct kx_module *m = translator ? probed_of(c->sel, mods) : NULL;

	if (!m)
		return 0;
	return kx_err_set(c->err, -EOPNOTSUPP,
			  "process %d runs under %s, which executes a translated copy of its code, and has %s mapped: a probe there would kill it; "
			  "name the processes to be recorded (-p, --comm, --uid, --cgroup), or wait for its end",
			  (int)pid, translator, m->name);
}

static int check_process(void *ctx, pid_t pid)
{
	struct kx_modules mods;
	int code;

	if (!kx_process_translator(pid) || kx_modules_of_process(pid, &mods, NULL))
		return 0;
	code = check_modules(ctx, pid, &mods);
	kx_modules_free(&mods);
	return code;
}

int kx_translators_check(const struct kx_selection *sel, const struct kx_select_process *procs, size_t nprocs, struct kx_err *err)
{
	struct check c = { sel, err };
	int code = 0;

	for (size_t i = 0; i < nprocs && !code; i++)
		code = check_modules(&c, procs[i].pid, procs[i].mods);
	if (!procs && kx_each_process(check_process, &c) == -EOPNOTSUPP)
		code = -EOPNOTSUPP;
	return code;
}

/* Whether an argument is @name, or a path that ends with it. */
static bool is_called(const void *name, const char *argument)
{
	const char *last = strrchr(argument, '/');

	return !strcmp(last ? last + 1 : argument, name);
}

/* Whether any program may be linked with the library. */
static bool is_of_system(const struct kx_module *m)
{
	return !strncmp(m->path, "/usr/", 5) || !strncmp(m->path, "/lib", 4);
}

bool kx_translators_may_map(const struct kx_probes *probes, const struct kx_selection *sel, bool own_probes, pid_t pid)
{
	for (uint32_t i = 0; i < sel->nmodules; i++) {
		const struct kx_module *m = sel->modules[i].module;

		if (!kx_probes_are_for_all(probes, i))
			continue;
		if ((!m->is_main && (!own_probes || is_of_system(m))) || kx_process_any_argument(pid, is_called, m->name))
			return true;
	}
	return false;
}

int kx_translators_end(pid_t pid, const char *translator, bool traced, struct kx_err *err)
{
	return kx_err_set(err, -EOPNOTSUPP,
			  "process %d now runs under %s, which executes a translated copy of its code: a probe would kill it, so kxray has ended; what "
			  "it has until then is whole%s",
			  (int)pid, translator,
			  traced ? "" : "; with -p, --comm, --uid or --cgroup, other processes get no probes");
}
