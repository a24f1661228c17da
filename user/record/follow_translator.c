// SPDX-License-Identifier: BSD-2-Clause
/* Processes that come under a translator while processes join: see record/translators.h. */
#include <errno.h>

#include "binary/translator.h"
#include "record/follow_internal.h"
#include "record/translators.h"

static void leave_out(struct kx_follow *f, struct kx_followed *p, const char *translator)
{
	if (*f->c.probes && (p->probes || p->watched.which))
		kx_process_probes_give_up(*f->c.probes, p->probes, &p->watched.links);
	p->probes = NULL;
	p->watched.which = 0;
	if (f->translator_reported || !f->c.own_probes)
		return;
	f->translator_reported = true;
	kx_notice(f->c.notices, "process %d runs under %s, which executes a translated copy of its code: a probe would kill it, so such processes are "
				"not traced",
		  (int)p->pid, translator);
}

/* Whether probes for every process may kill it. */
static bool is_endangered(const struct kx_follow *f, pid_t pid)
{
	return f->watched.which || (*f->c.probes && kx_translators_may_map(*f->c.probes, f->c.sel, f->c.own_probes, pid));
}

bool kx_follow_leaves_out(struct kx_follow *f, pid_t pid, const struct kx_modules *mods)
{
	const char *translator = mods ? kx_modules_translator(mods) : kx_process_translator(pid);
	struct kx_followed *p;

	if (!translator)
		return false;
	p = kx_followed_find(&f->table, pid);
	if (p)
		leave_out(f, p, translator);
	if (!f->translated && is_endangered(f, pid)) {
		f->translated = pid;
		f->translator = translator;
		kx_follow_detach(f);
		if (*f->c.probes)
			kx_probes_give_up(*f->c.probes);
	}
	return true;
}

int kx_follow_check_translator(const struct kx_follow *f, struct kx_err *err)
{
	return f->translated ? kx_translators_end(f->translated, f->translator, false, err) : 0;
}
