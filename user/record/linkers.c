// SPDX-License-Identifier: BSD-2-Clause
#include "record/linkers.h"

#include <errno.h>

/* -1: it cannot be opened now, or there are too many. */
static int find(struct kx_linkers *l, const struct kx_module *m)
{
	struct kx_linker *linker = &l->items[l->count];
	struct kx_err why;
	int code;

	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].device == m->device && l->items[i].inode == m->inode)
			return (int)i;
	if (l->count == KX_MAX_LINKERS)
		return -1;
	code = kx_linker_hook_open(m, &linker->hook, &why);
	if (code == -ESRCH) /* the process has exited: try the file again later */
		return -1;
	linker->device = m->device;
	linker->inode = m->inode;
	linker->usable = !code;
	if (code)
		kx_notice(l->notices, "%s", why.text);
	return (int)l->count++;
}

static int link_one(struct kx_linkers *l, size_t i, pid_t pid, struct kx_linkers_watched *w)
{
	struct kx_linker *linker = &l->items[i];
	struct kx_err why;
	int code = kx_linker_hook_link(&linker->hook, l->tracer, pid, &w->links, &why);

	if (!code)
		w->which |= 1u << i;
	if (code == -ENOENT && linker->usable) {
		linker->usable = false;
		kx_notice(l->notices, "%s", why.text);
	}
	return code;
}

bool kx_linkers_watch(struct kx_linkers *l, const struct kx_modules *mods, pid_t pid,
		      struct kx_linkers_watched *w, bool *added)
{
	bool all = true;

	*added = false;
	for (size_t i = 0; i < mods->count; i++) {
		int k;

		if (!kx_is_dynamic_linker(&mods->items[i]))
			continue;
		k = find(l, &mods->items[i]);
		if (k >= 0 && w->which & 1u << k)
			continue;
		if (k < 0 || !l->items[k].usable || link_one(l, (size_t)k, pid, w))
			all = false;
		else
			*added = true;
	}
	return all;
}

int kx_linkers_inherit(struct kx_linkers *l, const struct kx_linkers_watched *parent, pid_t pid,
		       struct kx_linkers_watched *w)
{
	int code = 0;

	for (size_t i = 0; i < l->count && !code; i++)
		if (parent->which & ~w->which & 1u << i)
			code = link_one(l, i, pid, w);
	return code;
}

void kx_linkers_free(struct kx_linkers *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].usable)
			kx_linker_hook_close(&l->items[i].hook);
	l->count = 0;
}
