// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/function_places.h"

#include <stdlib.h>

bool kx_function_place(struct kx_function_places *p, const struct kx_function *f, const char **file, uint32_t *line)
{
	const struct kx_select_module *sm = &p->sel->modules[f->module];
	struct kx_module_lines *m;

	if (!p->modules)
		p->modules = calloc(p->sel->nmodules, sizeof(*p->modules));
	if (!p->modules || sm->fd < 0)
		return false;
	m = &p->modules[f->module];
	/* without debug information there is no place, which is no error */
	if (!m->tried && kx_lines_open_fd(sm->fd, sm->module->path, &m->lines, NULL))
		m->lines = NULL;
	m->tried = true;
	return m->lines && kx_lines_place(m->lines, f->sym->addr, file, line);
}

void kx_function_places_free(struct kx_function_places *p)
{
	for (size_t i = 0; p->modules && i < p->sel->nmodules; i++)
		kx_lines_close(p->modules[i].lines);
	free(p->modules);
	p->modules = NULL;
}
