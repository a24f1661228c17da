// SPDX-License-Identifier: BSD-2-Clause
#include "attach/probe_switches.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "attach/probes_internal.h"
#include "base/array.h"
#include "base/fd_limit.h"

static struct kx_batch *batch_of(struct kx_module_batches *b, int i)
{
	struct kx_batch *const all[] = { &b->exits,   &b->leaves,	   &b->returns,
					 &b->entries, &b->standby_exits, &b->standby_entries };

	return all[i];
}

#define NBATCHES 6
#define MOST_SWITCHES (2 * KX_MAX_SWITCHES) /* above, none is divided before its functions go in */
#define NEWEST INT_MAX /* in place of a number: it is not known yet */

static void join_links(struct kx_probe_links *from, struct kx_links *to)
{
	kx_links_join(to, &from->others);
	kx_links_join(to, &from->returns);
	kx_links_join(to, &from->leaf_returns);
}

/* All that the switch has. */
static void take_links(struct kx_probes *p, struct kx_switch *s, struct kx_links *to)
{
	join_links(&s->links, to);
	kx_process_probes_unlink_switch(p, s, to);
}

static void free_switch(struct kx_switch *s)
{
	for (int i = 0; i < NBATCHES; i++)
		free(batch_of(&s->batches, i)->items);
	free(s);
}

int kx_switches_make_room(struct kx_probes *p, size_t room)
{
	return KX_ARRAY_EXTEND(p->switch_of, p->switch_of_room, room);
}

/* A switch for the probes in @b of functions from @first to @last. Errors: -ENOMEM. */
static int add_switch(struct kx_probes *p, uint32_t module, const struct kx_module_batches *b,
		      uint32_t first, uint32_t last, struct kx_switch **out)
{
	struct kx_switch *s = calloc(1, sizeof(*s));

	if (!s || KX_ARRAY_RESERVE(p->switches, p->switches_room, p->nswitches)) {
		free(s);
		return -ENOMEM;
	}
	s->module = module;
	s->index = p->nswitches;
	p->switches[p->nswitches++] = s;
	for (int i = 0; i < NBATCHES; i++) {
		const struct kx_batch *from = batch_of((struct kx_module_batches *)b, i);

		for (size_t k = 0; k < from->count; k++) {
			uint32_t id = from->items[k].index;

			if (id < first || id > last)
				continue;
			kx_probes_add(p, batch_of(&s->batches, i), from->items[k]);
			p->switch_of[id - 1] = (uint32_t)p->nswitches;
		}
	}
	*out = s;
	return p->oom;
}

static bool is_in(const struct kx_probes *p, size_t i, uint32_t module)
{
	return p->sel->functions[i].traced && p->sel->functions[i].module == module && p->has[i];
}

/* How many functions share a link, so that there are not too many links. */
static size_t group_size(const struct kx_probes *p, uint32_t module)
{
	size_t n = 0, most = p->modules[module].is_private ? KX_MAX_PRIVATE_SWITCHES : KX_MAX_SWITCHES;

	if (!p->options.apart)
		return SIZE_MAX;
	for (size_t i = 0; i < p->sel->nfunctions; i++)
		n += p->sel->functions[i].traced;
	return (n + most - 1) / most;
}

static void begin_out(struct kx_probes *p, struct kx_switch *s)
{
	s->out = true;
	for (int i = 0; i < NBATCHES; i++)
		p->nprobes += batch_of(&s->batches, i)->count;
}

int kx_switches_attach(struct kx_probes *p, uint32_t module, const struct kx_module_batches *b,
		       struct kx_err *err)
{
	bool starts_out = p->options.starts_out && p->sel->nfunctions > p->options.starts_out;
	size_t size = group_size(p, module), held = 0;
	uint32_t first = 0;
	int code = 0;

	if (!p->modules[module].is_private) /* each process makes room for its own */
		kx_fd_limit_raise(4 * KX_MAX_SWITCHES);
	for (size_t i = 0; i <= p->sel->nfunctions && !code; i++) {
		struct kx_switch *s;

		if (i < p->sel->nfunctions) {
			if (!is_in(p, i, module))
				continue;
			if (!held++)
				first = (uint32_t)i + 1;
			if (held < size)
				continue;
		} else if (!held) {
			break;
		}
		code = add_switch(p, module, b, first, (uint32_t)i + 1, &s);
		if (!code && starts_out)
			begin_out(p, s);
		else if (!code && !p->modules[module].is_private)
			code = kx_probes_attach_batches(p, module, &s->batches, &s->links, err);
		held = 0;
	}
	return code;
}

void kx_switches_truncate(struct kx_probes *p, size_t count)
{
	struct kx_links closing = { 0 };

	while (p->nswitches > count) {
		struct kx_switch *s = p->switches[--p->nswitches];

		take_links(p, s, &closing);
		free_switch(s);
	}
	for (size_t i = 0; i < p->switch_of_room; i++)
		if (p->switch_of[i] > count)
			p->switch_of[i] = 0;
	kx_links_close(&closing);
}

bool kx_probes_are_out(const struct kx_probes *p, uint32_t id)
{
	const struct kx_switch *s = kx_switch_of(p, id);

	return s && s->out;
}

bool kx_switches_are_in(const struct kx_probes *p, uint32_t id)
{
	const struct kx_switch *s = kx_switch_of(p, id);

	return !s || kx_switch_is_in(s);
}

void kx_switches_drop_returns(struct kx_probes *p, bool close, bool leaves)
{
	struct kx_links closing = { 0 };

	p->returns_dropped = true;
	p->returns_closed |= close;
	p->leaf_returns_closed |= close && leaves;
	for (size_t i = 0; close && i < p->nswitches; i++) {
		kx_links_join(&closing, &p->switches[i]->links.returns);
		if (leaves)
			kx_links_join(&closing, &p->switches[i]->links.leaf_returns);
	}
	kx_links_close(&closing);
}

void kx_switches_join(struct kx_probes *p)
{
	for (size_t i = 0; i < p->nswitches; i++)
		join_links(&p->switches[i]->links, &p->links.others);
}

void kx_switches_free(struct kx_probes *p)
{
	for (size_t i = 0; i < p->nswitches; i++)
		free_switch(p->switches[i]);
	free(p->switches);
	free(p->switch_of);
}

uint32_t kx_probes_switch(const struct kx_probes *p, uint32_t id)
{
	return kx_switch_of(p, id) ? p->switch_of[id - 1] : 0;
}

bool kx_probes_can_take_out(const struct kx_probes *p, uint32_t id)
{
	const struct kx_switch *s = kx_switch_of(p, id);

	/* the return instructions that are probed instead have links of their own, but for those of single processes */
	return p->options.apart && s && (!p->returns_dropped || p->modules[s->module].is_private);
}

static int attach_shared(struct kx_probes *p, struct kx_switch *s, struct kx_err *err)
{
	size_t returns = s->batches.returns.count, leaves = s->batches.leaves.count;
	int code;

	if (p->returns_closed)
		s->batches.returns.count = 0;
	if (p->leaf_returns_closed)
		s->batches.leaves.count = 0;
	code = kx_probes_attach_batches(p, s->module, &s->batches, &s->links, err);
	if (p->returns_closed)
		s->batches.returns.count = returns;
	if (p->leaf_returns_closed)
		s->batches.leaves.count = leaves;
	return code;
}

static int attach_switch(struct kx_probes *p, struct kx_switch *s, struct kx_err *err)
{
	size_t nprobes = p->nprobes;
	int code = p->modules[s->module].is_private ? kx_process_probes_link_switch(p, s, err) : attach_shared(p, s, err);

	p->nprobes = nprobes; /* they have been counted before */
	s->out = code != 0;
	return code;
}

/* Whether it has other functions than those from @first to @last. */
static bool shares(const struct kx_switch *s, uint32_t first, uint32_t last)
{
	for (int i = 0; i < NBATCHES; i++) {
		const struct kx_batch *b = batch_of((struct kx_module_batches *)&s->batches, i);

		for (size_t k = 0; k < b->count; k++)
			if (b->items[k].index < first || b->items[k].index > last)
				return true;
	}
	return false;
}

/* Functions from @first to @last leave the switch @s, which they share with others, for one of their own, which is out. */
static int split(struct kx_probes *p, struct kx_switch *s, uint32_t first, uint32_t last)
{
	struct kx_switch *apart;
	int code = add_switch(p, s->module, &s->batches, first, last, &apart);

	if (code)
		return code;
	apart->out = true;
	apart->closing = s->closing;
	for (int i = 0; i < NBATCHES; i++) {
		struct kx_batch *b = batch_of(&s->batches, i);
		size_t kept = 0;

		for (size_t k = 0; k < b->count; k++)
			if (b->items[k].index < first || b->items[k].index > last)
				b->items[kept++] = b->items[k];
		b->count = kept;
	}
	return 0;
}

uint32_t kx_probes_divide(struct kx_probes *p, uint32_t id)
{
	struct kx_switch *s = kx_switch_of(p, id);

	if (!s || !s->out || s->closing || p->nswitches >= MOST_SWITCHES)
		return 0;
	/* those before it may have left already */
	if (shares(s, id, UINT32_MAX) && split(p, s, id, UINT32_MAX))
		return 0;
	return p->switch_of[id - 1];
}

int kx_probes_settle(struct kx_probes *p, struct kx_err *err)
{
	int first = p->settling ? kx_links_closing() : 0, code = 0;

	p->settling = false;
	for (size_t i = 0; i < p->nswitches && first; i++) {
		struct kx_switch *s = p->switches[i];
		int failed;

		if (s->closing >= first)
			p->settling = true;
		if (!s->closing || s->closing >= first)
			continue; /* nothing to do, or not yet */
		s->closing = 0;
		failed = s->out ? 0 : attach_switch(p, s, err);
		if (failed)
			code = failed;
	}
	return code;
}

bool kx_probes_are_settling(const struct kx_probes *p)
{
	return p->settling;
}

int kx_probes_take_out(struct kx_probes *p, const uint32_t *ids, size_t n, struct kx_err *err)
{
	struct kx_links closing = { 0 };
	int code = 0, number;

	for (size_t i = 0; i < n; i++) {
		struct kx_switch *s = kx_switch_of(p, ids[i]);

		if (!s)
			continue;
		if (!s->out && !s->closing) {
			take_links(p, s, &closing);
			s->closing = NEWEST;
		}
		s->out = true;
		/* the last one of a switch keeps it */
		if (shares(s, ids[i], ids[i]) && split(p, s, ids[i], ids[i]))
			code = kx_err_set(err, -ENOMEM, "no memory for the probes");
	}
	number = kx_links_close_soon(&closing);
	for (size_t i = 0; i < p->nswitches; i++)
		if (p->switches[i]->closing == NEWEST)
			p->switches[i]->closing = number ? number : 1;
	p->settling = true;
	return code;
}

int kx_probes_put_back(struct kx_probes *p, const uint32_t *ids, size_t n, struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < n && !code; i++) {
		struct kx_switch *s = kx_switch_of(p, ids[i]);

		if (!s || !s->out)
			continue;
		s->out = false;
		if (!s->closing)
			code = attach_switch(p, s, err);
	}
	return code;
}
