// SPDX-License-Identifier: BSD-2-Clause
#include "attach/in_process_children.h"

#include <string.h>

#include "attach/in_process_internal.h"
#include "tracer/keeper.h"

/* How long a process is waited for whose threads cannot be stopped: a child of vfork runs in its
 * memory. */
#define WAIT_MS 2000

bool kx_in_process_is_inherited(const struct kx_in_process *p, pid_t pid)
{
	bool sure;

	return kx_patch_family_has(&p->family, pid, &sure) || !sure;
}

uint32_t kx_in_process_get_tid_offset(const struct kx_in_process *p)
{
	return p->tid_offset;
}

int kx_in_process_leave(struct kx_in_process *p, pid_t pid, bool *stays, struct kx_err *err)
{
	struct kx_patch_removal removal = { 0 };
	int code = kx_patch_remove_alone(pid, &removal, err);

	*stays = removal.stays;
	kx_in_process_note_stop(p, removal.stopped_ms);
	return code;
}

int kx_in_process_remove_family(struct kx_in_process *p, struct kx_patch_family_removal *out,
				struct kx_err *err)
{
	struct kx_patch_family_removal removal;
	int code = kx_patch_family_remove(&p->family, WAIT_MS, &removal, err);

	kx_in_process_note_stop(p, removal.stopped_ms);
	if (!code && !removal.waiting)
		kx_keeper_release_patches(p->o.pid);
	if (out)
		*out = removal;
	return code;
}

int kx_in_process_share_family(struct kx_in_process *p, struct kx_err *err)
{
	int code = kx_patch_family_make(p->o.pid, p->rings_at, p->rings_size, &p->family);

	if (code)
		return kx_err_set(err, code,
				  "the memory shared with process %d cannot be looked at: %s",
				  (int)p->o.pid, strerror(-code));
	kx_keeper_guard_family(p->o.pid, &p->family);
	return 0;
}
