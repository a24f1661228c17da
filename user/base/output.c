// SPDX-License-Identifier: BSD-2-Clause
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int kx_output_open(struct kx_output *o, const char *path, struct kx_err *err)
{
	struct stat st;

	memset(o, 0, sizeof(*o));
	o->fd = -1;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return kx_err_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
				  "'%s' cannot be written: it is %s; name a file", path,
				  S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
	o->path = strdup(path);
	if (!o->path || asprintf(&o->temp_path, "%s.%d.tmp", path, getpid()) < 0)
		return kx_err_set(err, -ENOMEM, "no memory");
	if (asprintf(&o->map_path, "%s.map", path) < 0)
		return kx_err_set(err, -ENOMEM, "no memory");
	o->fd = open(o->temp_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (o->fd < 0) {
		int code = -errno;

		free(o->temp_path);
		o->temp_path = NULL;
		return kx_err_set(err, code,
				  "'%s' cannot be written: %s; choose another place with -o", path,
				  strerror(-code));
	}
	return 0;
}

int kx_output_keep(struct kx_output *o, struct kx_err *err)
{
	if (rename(o->temp_path, o->path))
		return kx_err_set(err, -errno, "the output cannot be named '%s': %s", o->path,
				  strerror(errno));
	free(o->temp_path);
	o->temp_path = NULL;
	return 0;
}

void kx_output_close(struct kx_output *o)
{
	if (o->temp_path)
		unlink(o->temp_path);
	if (o->fd >= 0)
		close(o->fd);
	free(o->path);
	free(o->temp_path);
	free(o->map_path);
	memset(o, 0, sizeof(*o));
	o->fd = -1;
}
