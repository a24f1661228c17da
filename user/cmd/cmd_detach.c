// SPDX-License-Identifier: BSD-2-Clause
/* kxray detach: takes out of a process what record --in-process has left there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "tracer/patch_area.h"
#include "tracer/patch_family.h"

#define NAME "detach"

/* A recorder whose last look is younger than that lives. */
#define ALIVE_SECONDS 2.0
/* How long processes are tried again whose threads cannot be stopped. */
#define WAIT_MS 2000

struct arguments {
	int32_t *pids;
	size_t npids;
};

static const struct kx_option options[] = {
	{ .name = "pid",
	  .short_name = 'p',
	  .kind = KX_OPTION_IDS,
	  .argument = "PID[,PID...]",
	  .min = 1,
	  KX_LIST(struct arguments, pids, npids),
	  .help = "these processes" },
	KX_HELP_OPTION,
	{ 0 },
};

static const struct kx_option_group groups[] = { { .options = options }, { 0 } };

static const struct kx_example examples[] = {
	{ "sudo kxray detach -p 1234", "after kxray and its keeper were killed" },
	{ 0 },
};

const struct kx_command kx_command_detach = {
	.name = NAME,
	.summary = "take out of a process what record --in-process has left there",
	.usage = "Usage: kxray detach -p PID[,PID...]\n"
		 "Takes the jumps that 'kxray record --in-process' has written into a process's "
		 "code out\n"
		 "again, and unmaps its memory there. It is needed only if kxray and its keeper "
		 "(kx-keeper)\n"
		 "were both killed; what is left until then records nothing.\n",
	.groups = groups,
	.notes = "Exit status: 0 nothing is left there, 1 something is, or it failed, 2 wrong "
		 "usage.\n",
	.examples = examples,
	.run = kx_cmd_detach,
};

static int report(int pid, const struct kx_patch_removal *r)
{
	if (!r->areas) {
		printf("nothing of kxray is in process %d\n", pid);
		return KX_EXIT_DONE;
	}
	printf("process %d: %zu %s removed", pid, r->restored, r->restored == 1 ? "jump" : "jumps");
	if (r->foreign)
		printf(", %zu left that another program has changed", r->foreign);
	if (r->stays)
		printf("; memory that records nothing stays mapped: %s; try again later\n", r->why);
	else
		printf(", all memory unmapped\n");
	return r->stays || r->foreign ? KX_EXIT_FAILED : KX_EXIT_DONE;
}

/* Children that were forked while they were recorded, too (--follow). */
static int detach_family(int pid, const struct kx_patch_family *family)
{
	struct kx_patch_family_removal r;
	struct kx_err err = { 0 };

	if (kx_patch_family_remove(family, WAIT_MS, &r, &err))
		return kx_cmd_fail(NAME, &err);
	printf("process %d and what it has forked: %zu %s removed from %zu process%s", pid, r.restored,
	       r.restored == 1 ? "jump" : "jumps", r.processes, r.processes == 1 ? "" : "es");
	if (r.foreign)
		printf(", %zu left that another program has changed", r.foreign);
	if (r.waiting)
		printf("; those of %zu more stay for now: %s; try again later\n", r.waiting, r.why);
	else if (r.stays)
		printf("; memory that records nothing stays mapped in %zu of them: %s in process %d; try again later\n", r.stays, r.why,
		       (int)r.pid);
	else
		printf(", all memory unmapped\n");
	return r.waiting || r.stays || r.foreign ? KX_EXIT_FAILED : KX_EXIT_DONE;
}

static int detach(int pid)
{
	struct kx_patch_family family;
	struct kx_patch_removal removal;
	struct kx_err err = { 0 }, why = { 0 };
	int code;

	if (kx_patch_is_read(pid, ALIVE_SECONDS)) {
		kx_err_set(&err, -EBUSY, "process %d: kxray record is recording it, or was until 2 s ago: end that first, or try again",
			   pid);
		return kx_cmd_fail(NAME, &err);
	}
	if (!kx_patch_family_find(pid, &family))
		return detach_family(pid, &family);
	code = kx_patch_remove_soon(pid, &removal, &why);
	if (!code)
		return report(pid, &removal);
	kx_err_set(&err, code, code == -EBUSY ? "%s; its jumps stay for now, and record nothing: try again later" : "%s", why.text);
	return kx_cmd_fail(NAME, &err);
}

int kx_cmd_detach(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	int status = KX_EXIT_DONE, r = kx_options_parse(&kx_command_detach, &a, argc, argv, &err);

	if (!r && !a.npids)
		r = kx_err_set(&err, -EINVAL, "no process is given: add -p PID");
	if (r)
		status = kx_cmd_end_parse(&kx_command_detach, r, &err);
	for (size_t i = 0; !r && i < a.npids; i++)
		if (detach(a.pids[i]))
			status = KX_EXIT_FAILED;
	kx_options_free(&kx_command_detach, &a);
	return status;
}
