// SPDX-License-Identifier: BSD-2-Clause
/* What a recording does about processes under a translator: see record/translators.h. */
#include "record/recording_internal.h"

#include "binary/translator.h"
#include "record/translators.h"

static void look(struct recording *r)
{
	r->translator = kx_process_translator(r->targets.pids[0]);
	if (!r->translator || !r->probes.user)
		return;
	kx_probes_join(r->probes.user, &r->watch.links);
	kx_probes_give_up(r->probes.user);
}

/* Without --follow and -a: the target's probes are its own, and go on through exec(2). */
static void on_process(void *ctx, const struct kx_process_event *event)
{
	struct recording *r = ctx;

	if (event->kind == KX_PROCESS_TRANSLATES && (pid_t)event->tgid == r->targets.pids[0] && !r->translator)
		look(r);
}

int kx_recording_translator_poll(struct recording *r, struct kx_err *err)
{
	return r->translator ? kx_translators_end(r->targets.pids[0], r->translator, true, err) : 0;
}

int kx_recording_check_translators(struct recording *r, struct kx_err *err)
{
	int code;

	if (!r->follow)
		kx_tracer_on_process(r->tracer, on_process, r);
	/* before a look, so that none is missed */
	code = kx_sources_attach(r->tracer, KX_SOURCE_TRANSLATORS, err);
	if (!code && !r->follow) {
		look(r);
		code = kx_recording_translator_poll(r, err);
	} else if (!code && !kx_follow_has_own_probes(r->follow)) {
		code = kx_translators_check(&r->sel, r->o->all ? r->targets.procs : NULL, r->o->all ? r->targets.nprocs : 0, err);
	}
	return code;
}
