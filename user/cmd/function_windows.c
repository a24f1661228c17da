// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/function_windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/in_process_check.h"
#include "base/parallel.h"
#include "base/printable.h"
#include "base/usable_cpus.h"
#include "plan/windows.h"

static const char not_user[] = "only functions of programs and libraries can be";

static int refuse_module(struct kx_function_windows *w, size_t index, int code, const struct kx_err *why, struct kx_err *err)
{
	struct kx_module_windows *m = &w->modules[index];

	m->refused = code == -ENOMEM ? NULL : strdup(why->text);
	return m->refused ? 0 : kx_err_set(err, -ENOMEM, "no memory for the windows of %s", w->sel->modules[index].module->name);
}

/* The answers for the traced functions of module @index. */
static int plan_module(struct kx_function_windows *w, size_t index, pid_t pid, struct kx_err *err)
{
	const struct kx_select_module *m = &w->sel->modules[index];
	struct kx_module_windows *out = &w->modules[index];
	struct kx_window_planner *planner = NULL;
	struct kx_err why = { 0 };
	int ret = pid ? kx_in_process_check_module(pid, m->module, &why) : kx_in_process_check_code(m->module, m->elf, &why);

	if (!ret)
		ret = kx_window_planner_new(m->elf, &m->syms, kx_usable_cpus(KX_PARALLEL_MAX), &planner, &why);
	if (ret)
		return refuse_module(w, index, ret, &why, err);
	for (size_t i = 0; i < w->sel->nfunctions; i++) {
		const struct kx_function *f = &w->sel->functions[i];
		enum kx_window_refusal refusal;
		struct kx_windows windows;

		if (!f->traced || f->module != index)
			continue;
		refusal = kx_windows_plan(planner, f->sym, &windows);
		out->possible += refusal == KX_WINDOW_OK;
		w->answers[i] = refusal == KX_WINDOW_OK ? "yes" : kx_window_refusal_text(refusal);
	}
	kx_window_planner_free(planner);
	return 0;
}

int kx_function_windows_plan(const struct kx_selection *sel, pid_t pid, const struct kx_modules *mods, struct kx_function_windows *out,
			     struct kx_err *err)
{
	struct kx_err why = { 0 };
	int ret = 0, refused = pid ? kx_in_process_check(pid, mods, &why) : 0;

	*out = (struct kx_function_windows){ .sel = sel };
	out->answers = calloc(sel->nfunctions + 1, sizeof(*out->answers));
	out->modules = calloc(sel->nmodules + 1, sizeof(*out->modules));
	if (!out->answers || !out->modules)
		ret = kx_err_set(err, -ENOMEM, "no memory for the windows of %zu functions", sel->nfunctions);
	for (size_t i = 0; !ret && i < sel->nfunctions; i++)
		out->modules[sel->functions[i].module].functions += sel->functions[i].traced;
	for (size_t i = 0; !ret && i < sel->nmodules; i++)
		if (out->modules[i].functions && sel->modules[i].provider == &kx_provider_elf)
			ret = refused ? refuse_module(out, i, refused, &why, err) : plan_module(out, i, pid, err);
	if (ret)
		kx_function_windows_free(out);
	return ret;
}

void kx_function_windows_free(struct kx_function_windows *w)
{
	for (size_t i = 0; w->modules && i < w->sel->nmodules; i++)
		free(w->modules[i].refused);
	free(w->modules);
	free(w->answers);
	*w = (struct kx_function_windows){ 0 };
}

const char *kx_function_windows_answer(const struct kx_function_windows *w, const struct kx_function *f)
{
	const char *answer = w->answers[f - w->sel->functions];
	const char *refused = w->modules[f->module].refused;

	return answer ? answer : refused ? refused : not_user;
}

void kx_function_windows_print(const struct kx_function_windows *w, FILE *to)
{
	for (size_t i = 0; i < w->sel->nmodules; i++) {
		const struct kx_module_windows *m = &w->modules[i];

		if (!m->functions)
			continue;
		kx_print(to, "%s: %zu of %zu functions can be recorded in process", w->sel->modules[i].module->name, m->possible,
			 m->functions);
		if (m->refused || w->sel->modules[i].provider != &kx_provider_elf)
			kx_print(to, ": %s", m->refused ? m->refused : not_user);
		fputc('\n', to);
	}
}
