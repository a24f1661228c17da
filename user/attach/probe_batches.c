// SPDX-License-Identifier: BSD-2-Clause
/* The probes of a module in batches, one for each kind of link, and their links. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/probes_internal.h"
#include "base/array.h"
#include "bpf/wire.h"
#include "select/provider_usdt.h"
#include "tracer/uprobe_try.h"

static int add_guarded(struct kx_probes *p, uint32_t module, const struct kx_usdt_marker *marker)
{
	const struct kx_select_module *m = &p->sel->modules[module];

	for (size_t i = 0; i < marker->nplaces; i++) {
		struct kx_guarded_place place = { .file = m->module, .semaphore = marker->places[i].semaphore };

		if (!place.semaphore || kx_elf_offset(m->elf, marker->places[i].addr, &place.offset))
			continue;
		if (KX_ARRAY_RESERVE(p->guarded, p->guarded_room, p->nguarded))
			return -ENOMEM;
		p->guarded[p->nguarded++] = place;
	}
	return 0;
}

int kx_probes_find_guarded(struct kx_probes *p)
{
	int code = 0;

	for (; p->guarded_functions < p->sel->nfunctions && !code; p->guarded_functions++) {
		const struct kx_function *f = &p->sel->functions[p->guarded_functions];
		const struct kx_usdt_marker *first, *last;

		if (!f->traced || !kx_select_is_usdt(p->sel, f))
			continue;
		kx_usdt_role(&p->sel->modules[f->module], f->sym, &first, &last);
		code = add_guarded(p, f->module, first);
		if (!code && last)
			code = add_guarded(p, f->module, last);
	}
	return code;
}

static uint64_t semaphore_at(const struct kx_probes *p, const struct kx_probe *probe)
{
	const struct kx_module *file = p->sel->modules[p->sel->functions[probe->index - 1].module].module;

	for (size_t i = 0; i < p->nguarded; i++)
		if (p->guarded[i].offset == probe->offset && p->guarded[i].file->inode == file->inode &&
		    p->guarded[i].file->device == file->device)
			return p->guarded[i].semaphore;
	return 0;
}

void kx_probes_add(struct kx_probes *p, struct kx_batch *b, struct kx_probe probe)
{
	if (!probe.semaphore)
		probe.semaphore = semaphore_at(p, &probe);
	if (KX_ARRAY_RESERVE(b->items, b->room, b->count))
		p->oom = -ENOMEM;
	else
		b->items[b->count++] = probe;
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
		 (unsigned long long)probe->offset,
		 probe->semaphore && err == -EINVAL ? "another probe there has not the marker's semaphore" :
						      strerror(err == -524 ? ENOTSUP : -err));
	p->options.refused(p->options.ctx, f, reason);
}

/* What the cookies of all of a function's probes have. */
static uint64_t common_cookie(const struct kx_probes *p, const struct kx_function *f)
{
	return f->id | (kx_tracer_trigger(p->tracer, f->id, NULL) ? KX_COOKIE_HAS_TRIGGER : 0) |
	       (uint64_t)(f->module % KX_MAX_GROUPS) << 52;
}

static uint64_t cookie_of(const struct kx_probes *p, const struct kx_function *f)
{
	unsigned nargs = f->has_values			       ? KX_NARGS_VALUES :
			 p->options.nargs < f->plan.args ? p->options.nargs :
							   f->plan.args;

	return KX_COOKIE_WITH_FRAME(common_cookie(p, f), f->plan.frame) | (uint64_t)nargs << 28 |
	       (f->plan.makes_calls ? 0 : KX_COOKIE_IS_LEAF) |
	       (f->plan.tail_calls && f->plan.exit_kind == KX_EXITS_RETURN ? KX_COOKIE_CHAINS : 0);
}

void kx_probes_add_exits(struct kx_probes *p, struct kx_batch *b, const struct kx_function *f,
			 const struct kx_plan *plan, uint64_t flags)
{
	for (size_t i = 0; i < plan->nexits; i++) {
		const struct kx_sled *s = &plan->exits[i];
		uint64_t offset, cookie = KX_COOKIE_WITH_EXIT_FRAME(common_cookie(p, f) | flags, s->frame);

		if (kx_elf_offset(p->sel->modules[f->module].elf, s->addr, &offset))
			continue;
		if (f->has_values)
			cookie |= KX_COOKIE_EXIT_VALUES;
		if (s->kind == KX_SLED_TAIL)
			cookie |= KX_COOKIE_IS_TAIL;
		if (s->conditional)
			cookie |= KX_COOKIE_IS_COND | (uint64_t)s->condition << 32;
		kx_probes_add(p, b, (struct kx_probe){ .offset = offset, .cookie = cookie, .index = f->id });
	}
}

int kx_probes_link(struct kx_probes *p, uint32_t module, enum kx_tracer_prog prog, pid_t pid,
		   const struct kx_batch *b, struct kx_links *links, struct kx_err *err)
{
	char path[32];
	int code;

	if (p->sel->modules[module].provider == &kx_provider_usdt)
		prog = KX_PROG_MARK;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->sel->modules[module].fd);
	code = kx_uprobe_link(kx_tracer_prog_mechanism(p->tracer, prog),
			      kx_tracer_prog_fd(p->tracer, prog), path, pid,
			      prog == KX_PROG_RETURN, b->items, b->count, links, on_refused, p, err);
	p->nprobes += code ? 0 : b->count;
	return code;
}

void kx_probes_keep_attachable(const struct kx_probes *p, struct kx_batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->count; i++)
		if (p->has[b->items[i].index - 1])
			b->items[n++] = b->items[i];
	b->count = n;
}

bool kx_probes_filter_process(const struct kx_tracer *tracer)
{
	return kx_tracer_prog_mechanism(tracer, KX_PROG_ENTRY) != KX_MECHANISM_MULTI ||
	       kx_multi_filters_process();
}

/*
 * One link for each process that has the module; or one for all processes where the kernel's
 * pid filter means a thread (the BPF programs filter by process too).
 */
int kx_probes_attach_batch(struct kx_probes *p, enum kx_tracer_prog prog, uint32_t module,
			   const struct kx_batch *b, struct kx_links *links, struct kx_err *err)
{
	const struct kx_module *m = p->sel->modules[module].module;
	bool filters = kx_probes_filter_process(p->tracer);

	/* several processes have one link where no other has the module: a session must know all its hits */
	if (!p->options.procs || p->options.is_shared)
		return kx_probes_link(p, module, prog, 0, b, links, err);
	for (size_t i = 0; i < p->options.nprocs && b->count; i++) {
		int code;

		if (!kx_modules_find(p->options.procs[i].mods, m))
			continue;
		code = kx_probes_link(p, module, prog, filters ? p->options.procs[i].pid : 0, b,
				      links, err);
		if (code)
			return code;
		if (!filters)
			break;
	}
	return 0;
}

/*
 * Exits first, so that a function with a refused exit gets no entry probe. And of two
 * probes at one address the kernel runs the later one first: a function that is one
 * instruction long must be entered before it is left.
 */
int kx_probes_attach_batches(struct kx_probes *p, uint32_t module, struct kx_module_batches *b,
			     struct kx_probe_links *to, struct kx_err *err)
{
	int code = kx_probes_attach_batch(p, KX_PROG_EXIT, module, &b->exits, &to->others, err);

	kx_probes_keep_attachable(p, &b->leaves);
	if (!code)
		code = kx_probes_attach_batch(p, KX_PROG_RETURN, module, &b->leaves, &to->leaf_returns, err);
	kx_probes_keep_attachable(p, &b->returns);
	if (!code)
		code = kx_probes_attach_batch(p, KX_PROG_RETURN, module, &b->returns, &to->returns, err);
	kx_probes_keep_attachable(p, &b->entries);
	if (!code)
		code = kx_probes_attach_batch(p, KX_PROG_ENTRY, module, &b->entries, &to->others, err);
	return code;
}

/* The places of a marker, all with the function's number. @role: KX_COOKIE_... */
static void add_places(struct kx_probes *p, struct kx_module_batches *b, const struct kx_function *f,
		       const struct kx_usdt_marker *marker, uint64_t role)
{
	for (size_t i = 0; i < marker->nplaces; i++) {
		const struct kx_usdt_place *place = &marker->places[i];
		struct kx_probe probe = { .cookie = f->id | role, .index = f->id, .semaphore = place->semaphore };

		if (f->has_values)
			probe.cookie |= KX_COOKIE_WITH_TABLE(f->value_table + i);
		if (!kx_elf_offset(p->sel->modules[f->module].elf, place->addr, &probe.offset))
			kx_probes_add(p, &b->entries, probe);
	}
}

/* All go into one batch: KX_PROG_MARK tells them apart by their cookies. */
static void add_markers(struct kx_probes *p, struct kx_module_batches *b, const struct kx_function *f)
{
	const struct kx_usdt_marker *first, *last;
	enum kx_usdt_role role = kx_usdt_role(&p->sel->modules[f->module], f->sym, &first, &last);

	p->has[f->id - 1] = true;
	p->nfunctions++;
	add_places(p, b, f, first, role == KX_USDT_SPAN ? KX_COOKIE_SPAN_BEGIN : 0);
	if (role == KX_USDT_SPAN)
		add_places(p, b, f, last, KX_COOKIE_SPAN_END);
}

void kx_module_batches_add(struct kx_probes *p, struct kx_module_batches *b,
			   const struct kx_function *f)
{
	bool session = kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	bool returning = f->plan.exit_kind == KX_EXITS_RETURN;
	struct kx_probe probe = { .cookie = cookie_of(p, f), .index = f->id };

	if (kx_select_is_usdt(p->sel, f)) {
		add_markers(p, b, f);
		return;
	}
	if (kx_elf_offset(p->sel->modules[f->module].elf, f->plan.entry.addr, &probe.offset)) {
		p->options.refused(p->options.ctx, f, "its entry lies outside the file's code");
		return;
	}
	p->has[f->id - 1] = true;
	p->nfunctions++;
	if (returning)
		kx_probes_add(p, f->plan.makes_calls ? &b->returns : &b->leaves, probe);
	if (!returning || !session)
		kx_probes_add(p, &b->entries, probe);
	if (f->plan.exit_kind == KX_EXITS_INSTRUCTION)
		kx_probes_add_exits(p, &b->exits, f, &f->plan, 0);
}

void kx_module_batches_free(struct kx_module_batches *b)
{
	if (!b)
		return;
	free(b->exits.items);
	free(b->leaves.items);
	free(b->returns.items);
	free(b->entries.items);
	free(b->standby_exits.items);
	free(b->standby_entries.items);
	free(b->risky_exits.items);
	free(b->risky_leaf_exits.items);
	free(b);
}

void kx_probes_say_moved(const struct kx_probes *p, pid_t pid, uint32_t module, unsigned which)
{
	if (p->options.exits_moved)
		p->options.exits_moved(p->options.ctx, pid, module, which);
}
