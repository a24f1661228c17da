// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "doctor/doctor.h"
#include "tracer/each_process.h"

static int add_process(void *ctx, pid_t pid)
{
	struct kx_doctor_files *f = ctx;
	int code = kx_mapped_files_add(&f->files, pid);

	f->unreadable += code && code != -ENOMEM && code != -ESRCH;
	return code == -ENOMEM ? code : 0;
}

int kx_doctor_get_files(struct kx_doctor_files *f, struct kx_err *err)
{
	int code;

	*f = (struct kx_doctor_files){ .files.with_paths = true };
	code = kx_each_process(add_process, f);
	if (code)
		return kx_err_set(err, code, "the processes of the system cannot be listed: %s",
				  strerror(-code));
	kx_mapped_files_count(&f->files);
	kx_mapped_files_rank(&f->files);
	while (f->shared < f->files.count && f->files.items[f->shared].processes > 1)
		f->shared++;
	return 0;
}
