// SPDX-License-Identifier: BSD-2-Clause
/* The binaries of a selection, each once, and their symbols. */
#include "select/select_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd_limit.h"
#include "binary/called_names.h"

static int append(struct kx_selector *s, struct kx_binary *b)
{
	if (s->nbinaries == s->room) {
		size_t room = s->room ? s->room * 2 : 32;
		struct kx_binary **grown = reallocarray(s->binaries, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		kx_fd_limit_raise(room - s->room); /* each may be open at the same time */
		s->binaries = grown;
		s->room = room;
	}
	s->binaries[s->nbinaries++] = b;
	return 0;
}

static char *copy(const char *text)
{
	return strdup(text ? text : "");
}

static struct kx_binary *new_binary(const struct kx_module *m, const struct kx_provider *provider)
{
	struct kx_binary *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->module = *m;
	b->module.name = copy(m->name);
	b->module.path = copy(m->path);
	b->module.open_path = copy(m->open_path);
	b->module.called = m->called ? strdup(m->called) : NULL;
	b->m = (struct kx_select_module){ .provider = provider,
					  .module = &b->module,
					  .fd = -1 };
	if (b->module.name && b->module.path && b->module.open_path &&
	    (b->module.called || !m->called))
		return b;
	kx_select_free_binary(b);
	return NULL;
}

void kx_select_close(struct kx_binary *b)
{
	if (b->m.fd >= 0)
		close(b->m.fd);
	b->m.fd = -1;
}

static void unload(struct kx_binary *b)
{
	kx_symbols_free(&b->m.syms);
	kx_usdt_markers_free(&b->m.markers);
	kx_elf_close(b->m.elf);
	b->m.elf = NULL;
	kx_select_close(b);
}

void kx_select_free_planned(struct kx_binary *b)
{
	for (size_t i = 0; i < b->nplanned; i++) {
		kx_plan_free(&b->planned[i].plan);
		free(b->planned[i].why);
	}
	free(b->planned);
	b->planned = NULL;
	b->nplanned = 0;
}

void kx_select_free_binary(struct kx_binary *b)
{
	unload(b);
	kx_select_free_planned(b);
	free(b->chosen);
	free(b->module.name);
	free(b->module.path);
	free(b->module.open_path);
	free(b->module.called);
	free(b);
}

/* A file that was read is held open, so its inode number is not given to another one. */
static bool is_same(const struct kx_binary *b, const struct kx_provider *provider, const struct kx_module *m)
{
	return b->m.provider == provider && b->module.device == m->device &&
	       b->module.inode == m->inode &&
	       (b->m.elf || b->number || strcmp(b->module.path, m->path) == 0);
}

/* Takes a binary that could not be opened in time out of the list, to be a new one. */
static void forget(struct kx_selector *s, size_t at)
{
	kx_select_free_binary(s->binaries[at]);
	s->nbinaries--;
	memmove(s->binaries + at, s->binaries + at + 1,
		(s->nbinaries - at) * sizeof(*s->binaries));
}

/*
 * A process goes by another name than those that had the file of binary @at before: patterns are matched
 * with it again. It becomes one of the new ones, which begin at *@first.
 */
static int reconsider(struct kx_selector *s, size_t at, const struct kx_module *m, pid_t pid, size_t *first)
{
	const struct kx_binary *old = s->binaries[at];
	struct kx_binary *b = new_binary(m, old->m.provider);

	if (!b)
		return -ENOMEM;
	b->pid = pid;
	b->m.harmless = old->m.harmless;
	b->moves_stacks = old->moves_stacks;
	b->dispatches = old->dispatches;
	b->module.is_main |= old->module.is_main;
	if (kx_called_names_add(&b->module.called, old->module.called, m->name) < 0) {
		kx_select_free_binary(b);
		return -ENOMEM;
	}
	forget(s, at);
	--*first;
	return append(s, b); /* there is room */
}

/* Binary @i is that of module @m, too: the number that it has from now on, or -ENOMEM. */
static ssize_t call_also(struct kx_selector *s, size_t i, const struct kx_module *m, pid_t pid, size_t *first)
{
	struct kx_binary *b = s->binaries[i];
	int r = kx_called_names_add(&b->module.called, m->called, b->module.name);

	if (r > 0 && s->grows && i < *first && !b->number) {
		r = reconsider(s, i, m, pid, first);
		i = s->nbinaries - 1;
	}
	return r < 0 ? r : (ssize_t)i;
}

/* Modules of a process, as they are added. */
struct adding {
	struct kx_selector *s;
	const struct kx_select_process *proc;
	const struct kx_unwind_risk *risk;
	bool harmless;
	size_t *first;
};

/* Each call's stack and thread are looked at where processes join, but not what may unwind it. */
static bool forbids_returns(const struct kx_unwind_risk *risk, bool dynamic)
{
	return risk->leaves_unwind || (!dynamic && (risk->switches_stacks || risk->dispatches));
}

/* What @provider finds in the module, unless it is known. Errors: -ENOMEM. */
static int add_module(const struct adding *a, const struct kx_module *m, const struct kx_provider *provider)
{
	struct kx_selector *s = a->s;
	bool dynamic = s->options.dynamic_targets;
	struct kx_binary *b;
	size_t i;

	for (i = 0; i < s->nbinaries && !is_same(s->binaries[i], provider, m); i++)
		;
	if (i < *a->first && s->binaries[i]->gone) {
		forget(s, i);
		--*a->first;
		i = s->nbinaries;
	}
	if (i < s->nbinaries) {
		ssize_t at = call_also(s, i, m, a->proc->pid, a->first);

		if (at < 0)
			return -ENOMEM;
		b = s->binaries[at];
		b->module.is_main |= m->is_main;
		b->m.harmless &= a->harmless;
		b->dispatches |= a->risk->dispatches;
		b->moves_stacks |= forbids_returns(a->risk, dynamic);
		return 0;
	}
	b = new_binary(m, provider);
	if (!b || append(s, b)) {
		if (b)
			kx_select_free_binary(b);
		return -ENOMEM;
	}
	b->pid = a->proc->pid;
	b->m.spans = s->options.spans;
	b->m.nspans = s->options.nspans;
	b->m.harmless = a->harmless;
	b->dispatches = a->risk->dispatches;
	b->moves_stacks = (a->risk->is_go && (m->is_main || !dynamic)) || forbids_returns(a->risk, dynamic);
	return 0;
}

static bool wants_markers(const struct kx_selector *s)
{
	for (size_t i = 0; i < s->options.ninclude; i++)
		if (s->include[i].space == KX_PATTERN_USDT)
			return true;
	return false;
}

int kx_select_add_modules(struct kx_selector *s, const struct kx_select_process *proc,
			  const struct kx_unwind_risk *risk, size_t *first, struct kx_err *err)
{
	/* where processes join, each gets its own verdict when it is attached; one that has ended gives none */
	bool each_decides = s->options.dynamic_targets && (!s->options.exits_decided || risk->unknown);
	const struct adding a = { .s = s,
				  .proc = proc,
				  .risk = risk,
				  .harmless = (risk->returns_harmless || each_decides) && !s->options.loads_unseen,
				  .first = first };
	bool markers = wants_markers(s);
	int code = 0;

	*first = s->nbinaries;
	for (size_t k = 0; k < proc->mods->count && !code; k++) {
		code = add_module(&a, &proc->mods->items[k], &kx_provider_elf);
		if (!code && markers)
			code = add_module(&a, &proc->mods->items[k], &kx_provider_usdt);
	}
	return code ? kx_select_no_memory(err) : 0;
}

int kx_select_add_pseudo(struct kx_selector *s, const struct kx_provider *provider,
			 struct kx_err *err)
{
	const struct kx_module m = { .name = (char *)provider->name,
				     .path = (char *)provider->name };
	struct kx_binary *b = new_binary(&m, provider);

	if (b && !append(s, b))
		return 0;
	if (b)
		kx_select_free_binary(b);
	return kx_select_no_memory(err);
}

int kx_select_load(struct kx_binary *b)
{
	if (b->chosen || b->number || b->load_rc)
		return b->load_rc;
	b->load_rc = b->m.provider->symbols(&b->m, b->pid, &b->load_err);
	b->gone = b->load_rc == -ESRCH;
	if (!b->load_rc) {
		b->chosen = calloc(b->m.syms.count + 1, sizeof(*b->chosen));
		if (!b->chosen)
			b->load_rc = kx_select_no_memory(&b->load_err);
	}
	if (b->load_rc)
		unload(b);
	return b->load_rc;
}

const struct kx_symbols *kx_select_syms(const struct kx_selector *s, const struct kx_binary *b)
{
	return b->number ? &s->out->modules[b->number - 1].syms : &b->m.syms;
}
