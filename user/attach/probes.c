// SPDX-License-Identifier: BSD-2-Clause
#include "attach/probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"
#include "tracer/uprobe_try.h"

/* Probes of one module that go into one link. */
struct batch {
	struct kx_probe *items;
	size_t count, room;
};

struct kx_probes {
	struct kx_tracer *tracer;
	const struct kx_selection *sel;
	const struct kx_select_process *procs; /* NULL: probes are for every process */
	size_t nprocs;
	unsigned nargs;
	kx_probes_refused refused;
	void *ctx;
	bool *has;     /* by id - 1 */
	size_t has_room;
	bool *attached; /* by module, KX_SELECT_MAX_MODULES of them */
	size_t nfunctions, nprobes;
	struct kx_links leaf_returns; /* of functions that make no calls */
	struct kx_links returns;
	struct kx_links others;
	int oom;
};

static void add(struct kx_probes *p, struct batch *b, uint64_t offset, uint64_t cookie, uint32_t id)
{
	if (b->count == b->room) {
		size_t room = b->room ? b->room * 2 : 64;
		struct kx_probe *items = realloc(b->items, room * sizeof(*items));

		if (!items) {
			p->oom = -ENOMEM;
			return;
		}
		b->items = items;
		b->room = room;
	}
	b->items[b->count++] = (struct kx_probe){ .offset = offset, .cookie = cookie, .index = id };
}

static void on_refused(void *ctx, const struct kx_probe *probe, int err)
{
	struct kx_probes *p = ctx;
	const struct kx_function *f = &p->sel->functions[probe->index - 1];
	char reason[160];

	if (!p->has[f->id - 1])
		return;
	p->has[f->id - 1] = false;
	p->nfunctions--;
	snprintf(reason, sizeof(reason), "the kernel refuses a probe at file offset %#llx (%s)",
		 (unsigned long long)probe->offset, strerror(err == -524 ? ENOTSUP : -err));
	p->refused(p->ctx, f, reason);
}

/* What the cookies of all of a function's probes have. */
static uint64_t common_cookie(const struct kx_probes *p, const struct kx_function *f)
{
	return f->id | (kx_tracer_trigger(p->tracer, f->id, NULL) ? KX_COOKIE_HAS_TRIGGER : 0);
}

static uint64_t cookie_of(const struct kx_probes *p, const struct kx_function *f)
{
	unsigned nargs = p->nargs < f->plan.args ? p->nargs : f->plan.args;

	return common_cookie(p, f) | (uint64_t)nargs << 28 |
	       (f->plan.makes_calls ? 0 : KX_COOKIE_IS_LEAF) |
	       (f->plan.tail_calls && f->plan.exit_kind == KX_EXITS_RETURN ? KX_COOKIE_CHAINS : 0) |
	       (uint64_t)(f->module % KX_MAX_GROUPS) << 52;
}

static void add_exits(struct kx_probes *p, struct batch *b, struct kx_elf *elf,
		      const struct kx_function *f, const struct kx_plan *plan)
{
	for (size_t i = 0; i < plan->nexits; i++) {
		const struct kx_sled *s = &plan->exits[i];
		uint64_t offset, cookie = common_cookie(p, f);

		if (kx_elf_offset(elf, s->addr, &offset))
			continue;
		if (s->kind == KX_SLED_TAIL)
			cookie |= KX_COOKIE_IS_TAIL;
		if (s->conditional)
			cookie |= KX_COOKIE_IS_COND | (uint64_t)s->condition << 32;
		add(p, b, offset, cookie, f->id);
	}
}

static bool is_mapped_in(const struct kx_select_process *proc, const struct kx_module *m)
{
	for (size_t i = 0; i < proc->mods->count; i++)
		if (proc->mods->items[i].inode == m->inode &&
		    proc->mods->items[i].device == m->device)
			return true;
	return false;
}

/*
 * One link for each process that has the module; or one for all processes where the kernel's
 * pid filter means a thread (the BPF programs filter by process too).
 */
static int attach_batch(struct kx_probes *p, enum kx_tracer_prog prog,
			const struct kx_select_module *m, bool is_return, const struct batch *b,
			struct kx_links *links, struct kx_err *err)
{
	enum kx_mechanism mech = kx_tracer_prog_mechanism(p->tracer, prog);
	bool filters = mech != KX_MECHANISM_MULTI || kx_multi_filters_process();
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->fd);
	if (!p->procs) {
		int code = kx_uprobe_link(mech, kx_tracer_prog_fd(p->tracer, prog), path, 0,
					  is_return, b->items, b->count, links, on_refused, p, err);

		p->nprobes += code ? 0 : b->count;
		return code;
	}
	for (size_t i = 0; i < p->nprocs && b->count; i++) {
		int code;

		if (!is_mapped_in(&p->procs[i], m->module))
			continue;
		code = kx_uprobe_link(mech, kx_tracer_prog_fd(p->tracer, prog), path,
				      filters ? p->procs[i].pid : 0, is_return, b->items, b->count,
				      links, on_refused, p, err);
		if (code)
			return code;
		p->nprobes += b->count;
		if (!filters)
			break;
	}
	return 0;
}

/* Removes the probes of functions that were refused meanwhile. */
static void keep_attachable(const struct kx_probes *p, struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->count; i++)
		if (p->has[b->items[i].index - 1])
			b->items[n++] = b->items[i];
	b->count = n;
}

static int attach_module(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	struct kx_select_module *sm = &p->sel->modules[module];
	struct batch exits = { 0 }, entries = { 0 }, leaves = { 0 }, returns = { 0 };
	bool session = kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	int code;

	for (size_t i = 0; i < p->sel->nfunctions; i++) {
		const struct kx_function *f = &p->sel->functions[i];
		uint64_t offset, cookie = cookie_of(p, f);
		bool returning = f->plan.exit_kind == KX_EXITS_RETURN;

		if (!f->traced || f->module != module)
			continue;
		if (kx_elf_offset(sm->elf, f->plan.entry.addr, &offset)) {
			p->refused(p->ctx, f, "its entry lies outside the file's code");
			continue;
		}
		p->has[f->id - 1] = true;
		p->nfunctions++;
		if (returning)
			add(p, f->plan.makes_calls ? &returns : &leaves, offset, cookie, f->id);
		if (!returning || !session)
			add(p, &entries, offset, cookie, f->id);
		if (f->plan.exit_kind == KX_EXITS_INSTRUCTION)
			add_exits(p, &exits, sm->elf, f, &f->plan);
	}
	/*
	 * Exits first, so that a function with a refused exit gets no entry probe. And of two
	 * probes at one address the kernel runs the later one first: a function that is one
	 * instruction long must be entered before it is left.
	 */
	code = p->oom;
	if (!code)
		code = attach_batch(p, KX_PROG_EXIT, sm, false, &exits, &p->others, err);
	keep_attachable(p, &leaves);
	if (!code)
		code = attach_batch(p, KX_PROG_RETURN, sm, true, &leaves, &p->leaf_returns, err);
	keep_attachable(p, &returns);
	if (!code)
		code = attach_batch(p, KX_PROG_RETURN, sm, true, &returns, &p->returns, err);
	keep_attachable(p, &entries);
	if (!code)
		code = attach_batch(p, KX_PROG_ENTRY, sm, false, &entries, &p->others, err);
	free(exits.items);
	free(entries.items);
	free(leaves.items);
	free(returns.items);
	if (!code && p->oom)
		code = p->oom;
	return code == -ENOMEM ? kx_err_set(err, code, "no memory for the probes") : code;
}

static int make_room(struct kx_probes *p)
{
	size_t need = p->sel->nfunctions + 1, room = need > p->has_room * 2 ? need : p->has_room * 2;
	bool *has;

	if (need <= p->has_room)
		return 0;
	has = realloc(p->has, room * sizeof(*has));
	if (!has)
		return -ENOMEM;
	memset(has + p->has_room, 0, (room - p->has_room) * sizeof(*has));
	p->has = has;
	p->has_room = room;
	return 0;
}

/* Attaches all probes of a module, or none. */
static int attach_whole(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	size_t leaves = p->leaf_returns.count, returns = p->returns.count, others = p->others.count;
	size_t nprobes = p->nprobes;
	int code = attach_module(p, module, err);

	if (!code)
		return 0;
	kx_links_truncate(&p->leaf_returns, leaves);
	kx_links_truncate(&p->returns, returns);
	kx_links_truncate(&p->others, others);
	p->nprobes = nprobes;
	for (size_t i = 0; i < p->sel->nfunctions; i++) {
		if (p->sel->functions[i].module != module || !p->has[i])
			continue;
		p->has[i] = false;
		p->nfunctions--;
	}
	return code;
}

int kx_probes_attach_new(struct kx_probes *p, struct kx_err *err)
{
	int code = 0;

	if (make_room(p))
		return kx_err_set(err, -ENOMEM, "no memory for the probes");
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++) {
		if (p->attached[m] || p->sel->modules[m].provider->probe != KX_PROBE_UPROBE)
			continue;
		code = attach_whole(p, m, err);
		p->attached[m] = !code;
	}
	return code;
}

int kx_probes_attach(struct kx_tracer *tracer, const struct kx_selection *sel,
		     const struct kx_select_process *procs, size_t nprocs, unsigned nargs,
		     kx_probes_refused refused, void *ctx, struct kx_probes **out,
		     struct kx_err *err)
{
	struct kx_probes *p = calloc(1, sizeof(*p));
	size_t wanted = 0;
	int code;

	if (!p || !(p->attached = calloc(KX_SELECT_MAX_MODULES, sizeof(*p->attached)))) {
		free(p);
		return kx_err_set(err, -ENOMEM, "no memory for the probes");
	}
	p->tracer = tracer;
	p->sel = sel;
	p->procs = procs;
	p->nprocs = nprocs;
	p->nargs = nargs;
	p->refused = refused;
	p->ctx = ctx;
	code = kx_probes_attach_new(p, err);
	for (size_t i = 0; i < sel->nfunctions; i++)
		wanted += kx_select_is_probed_by(sel, &sel->functions[i], KX_PROBE_UPROBE);
	if (!code && wanted && !p->nfunctions)
		code = kx_err_set(err, -EOPNOTSUPP,
				  "the kernel refuses a probe on every one of the %zu selected "
				  "functions",
				  wanted);
	if (code) {
		kx_probes_free(p);
		return code;
	}
	*out = p;
	return 0;
}

size_t kx_probes_functions(const struct kx_probes *p)
{
	return p->nfunctions;
}

size_t kx_probes_count(const struct kx_probes *p)
{
	return p->nprobes;
}

bool kx_probes_has(const struct kx_probes *p, uint32_t id)
{
	return p->has[id - 1];
}

int kx_probes_drop_module(struct kx_probes *p, uint32_t module, struct kx_plan *const *plans,
			  struct kx_err *err)
{
	struct batch exits = { 0 };
	int code;

	for (size_t i = 0; i < p->sel->nfunctions && i < p->has_room; i++)
		if (p->sel->functions[i].module == module && p->has[i] && plans[i])
			add_exits(p, &exits, p->sel->modules[module].elf, &p->sel->functions[i],
				  plans[i]);
	code = p->oom;
	if (!code && exits.count)
		code = attach_batch(p, KX_PROG_EXIT, &p->sel->modules[module], false, &exits,
				    &p->others, err);
	free(exits.items);
	return code;
}

int kx_probes_drop_returns(struct kx_probes *p, struct kx_plan *const *plans, bool leaves,
			   struct kx_err *err)
{
	bool session = kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	int code = 0;

	/* A session link must stay: it has the entries too, and the gate in BPF keeps it from
	 * hijacking anything more. */
	if (!session)
		kx_links_close(&p->returns);
	if (!session && leaves)
		kx_links_close(&p->leaf_returns);
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++)
		code = kx_probes_drop_module(p, m, plans, err);
	return code;
}

void kx_probes_join(struct kx_probes *p, struct kx_links *links)
{
	kx_links_join(&p->others, links);
}

void kx_probes_free(struct kx_probes *p)
{
	if (!p)
		return;
	kx_links_join(&p->others, &p->returns);
	kx_links_join(&p->others, &p->leaf_returns);
	kx_links_close(&p->others);
	free(p->attached);
	free(p->has);
	free(p);
}
