// SPDX-License-Identifier: BSD-2-Clause
/* From chosen symbols to numbered, planned functions. */
#include "select/select_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"

/* Room for @more functions after those that there are. */
static int make_room(struct kx_selector *s, size_t more)
{
	struct kx_selection *out = s->out;
	size_t room = s->nfunctions_room;
	struct kx_function *grown;

	if (out->nfunctions + more <= room)
		return 0;
	room = out->nfunctions + more > room * 2 ? out->nfunctions + more : room * 2;
	grown = reallocarray(out->functions, room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	out->functions = grown;
	s->nfunctions_room = room;
	return 0;
}

/*
 * Gives the XRay functions of the first main executable the first ids. @ids gets, for each
 * symbol of it, its id or 0.
 */
static int number_xray_functions(struct kx_selector *s, const struct kx_select_module *m,
				 uint32_t *ids, struct kx_err *err)
{
	const uint64_t *addrs;
	size_t n = kx_planner_xray_functions(m->planner, &addrs), i;
	s->unnamed = calloc(n + 1, sizeof(*s->unnamed));
	s->names = calloc(n + 1, sizeof(*s->names));
	if (make_room(s, n) || !s->unnamed || !s->names)
		return kx_select_no_memory(err);
	for (i = 0; i < n; i++) {
		const struct kx_symbol *sym = kx_symbols_find(&m->syms, addrs[i]);
		struct kx_function *f = &s->out->functions[i];

		memset(f, 0, sizeof(*f));
		f->id = (uint32_t)i + 1;
		if (sym && sym->addr == addrs[i]) {
			if (!ids[sym - m->syms.items])
				ids[sym - m->syms.items] = f->id;
		} else {
			snprintf(s->names[i], sizeof(s->names[i]), "@(%llx)",
				 (unsigned long long)addrs[i]);
			s->unnamed[i].name = s->unnamed[i].pretty = s->names[i];
			s->unnamed[i].addr = addrs[i];
			s->unnamed[i].size = 1;
			sym = &s->unnamed[i];
		}
		f->sym = sym;
	}
	s->out->nfunctions = s->nown = n;
	return 0;
}

static int leave_out(struct kx_selection *out, uint32_t module, const struct kx_symbol *sym,
		     const char *reason)
{
	struct kx_left_out *grown = out->left_out;

	/* Grows at powers of two. */
	if (!(out->nleft_out & (out->nleft_out - 1)) || !grown) {
		grown = reallocarray(out->left_out, out->nleft_out ? out->nleft_out * 2 : 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		out->left_out = grown;
	}
	grown[out->nleft_out].module = module;
	grown[out->nleft_out].sym = sym;
	grown[out->nleft_out].reason = strdup(reason);
	return grown[out->nleft_out++].reason ? 0 : -ENOMEM;
}

static bool large_enough(const struct kx_plan *plan)
{
	return plan->xray || plan->has_loop || plan->instructions >= KX_SELECT_MIN_INSTRUCTIONS;
}

/* The next free function, or the one that has the id. */
static struct kx_function *function_of(struct kx_selection *out, uint32_t id)
{
	struct kx_function *f;

	if (id)
		return &out->functions[id - 1];
	f = &out->functions[out->nfunctions];
	memset(f, 0, sizeof(*f));
	f->id = (uint32_t)++out->nfunctions;
	return f;
}

/* Numbers the planned functions of one binary and appends them. @ids: see above; NULL if none. */
static int take_planned(struct kx_selector *s, struct kx_binary *b, const uint32_t *ids,
			struct kx_err *err)
{
	struct kx_selection *out = s->out;
	struct kx_select_module *m = &out->modules[b->number - 1];
	struct kx_planned *next = b->planned;

	for (size_t i = 0; i < m->syms.count; i++) {
		const struct kx_symbol *sym = &m->syms.items[i];
		struct kx_planned *p;
		struct kx_function *f;

		if (!b->chosen[i])
			continue;
		p = next++;
		/* Without patterns no ifunc was named. */
		if (out->by_size && sym->is_ifunc)
			continue;
		if (p->rc == -ENOMEM || (p->rc && !p->why))
			return p->why ? kx_err_set(err, p->rc, "%s", p->why) : kx_select_no_memory(err);
		if (p->rc) {
			if (leave_out(out, b->number - 1, sym, p->why))
				return kx_select_no_memory(err);
			continue;
		}
		if (out->by_size && !large_enough(&p->plan))
			continue;
		f = function_of(out, ids ? ids[i] : 0);
		f->module = b->number - 1;
		f->sym = sym;
		f->plan = p->plan;
		p->plan = (struct kx_plan){ 0 };
		f->traced = true;
		out->ntraced++;
	}
	return 0;
}

/* The binary becomes a module, which takes over what was read of it. */
static int make_module(struct kx_selector *s, struct kx_binary *b, struct kx_err *err)
{
	struct kx_selection *out = s->out;
	struct kx_select_module *m = &out->modules[out->nmodules];

	if (out->nmodules == KX_SELECT_MAX_MODULES)
		return kx_err_set(err, -E2BIG, "more than %d binaries have traced functions",
				  KX_SELECT_MAX_MODULES);
	*m = b->m;
	b->m.fd = -1;
	b->m.elf = NULL;
	memset(&b->m.syms, 0, sizeof(b->m.syms));
	b->m.markers = (struct kx_usdt_markers){ 0 };
	/* beyond these, return probes could not be given up for one module alone */
	if (s->options.dynamic_targets && out->nmodules >= KX_MAX_GROUPS)
		m->harmless = false;
	b->number = (uint32_t)++out->nmodules;
	return 0;
}

/* Whether @b is the binary whose own XRay ids are kept. */
static bool has_own_ids(const struct kx_selector *s, const struct kx_binary *b)
{
	struct kx_elf_section xray;
	const struct kx_elf *elf = b->number ? s->out->modules[b->number - 1].elf : b->m.elf;

	return b == s->binaries[0] && b->module.is_main && elf &&
	       kx_elf_get_section(elf, "xray_instr_map", &xray);
}

static int take_binary(struct kx_selector *s, struct kx_binary *b, struct kx_err *err)
{
	const struct kx_select_module *m = &s->out->modules[b->number - 1];
	uint32_t *ids = NULL;
	int rc = b->planner_rc ? kx_err_set(err, b->planner_rc, "%s", b->plan_err.text) : 0;

	if (!rc && has_own_ids(s, b)) {
		ids = calloc(m->syms.count + 1, sizeof(*ids));
		rc = ids ? number_xray_functions(s, m, ids, err) : kx_select_no_memory(err);
	}
	if (!rc && make_room(s, b->nchosen + 1))
		rc = kx_select_no_memory(err);
	if (!rc && b->nchosen)
		rc = take_planned(s, b, ids, err);
	free(ids);
	free(b->chosen);
	b->chosen = NULL;
	b->nchosen = 0;
	kx_select_free_planned(b);
	return rc;
}

int kx_select_plan(struct kx_selector *s, size_t first, struct kx_err *err)
{
	struct kx_binary **todo = calloc(s->nbinaries + 1, sizeof(struct kx_binary *));
	size_t n = 0;
	int rc = todo ? 0 : kx_select_no_memory(err);

	for (size_t i = first; i < s->nbinaries && !rc; i++) {
		struct kx_binary *b = s->binaries[i];
		bool own_ids = !i && b->module.is_main && !kx_select_load(b) && has_own_ids(s, b);

		if (!b->nchosen && !own_ids)
			kx_select_close(b);
		if (b->number || (!b->nchosen && !own_ids))
			continue;
		rc = make_module(s, b, err);
		todo[n++] = b;
	}
	if (!rc)
		kx_select_plan_binaries(s, todo, n);
	for (size_t i = 0; i < n && !rc; i++)
		rc = take_binary(s, todo[i], err);
	free(todo);
	return rc;
}
