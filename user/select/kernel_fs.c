// SPDX-License-Identifier: BSD-2-Clause
#include "select/kernel_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of <linux/mount.h>, which does not go together with <sys/mount.h> on every libc. */
#define FSOPEN_CLOEXEC 1
#define FSCONFIG_CMD_CREATE 6
#define FSMOUNT_CLOEXEC 1
#define MOUNT_ATTR_RDONLY 1

static FILE *open_at(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	FILE *f;

	if (fd < 0)
		return NULL;
	f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

/* A mount that is in no folder: its root is the descriptor. */
static int mount_detached(const char *fs)
{
	int context = (int)syscall(SYS_fsopen, fs, FSOPEN_CLOEXEC), root;

	if (context < 0)
		return -1;
	root = (int)syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (!root)
		root = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY);
	close(context);
	return root;
}

FILE *kx_kernel_fs_open(const char *fs, const char *path)
{
	char usual[256];
	FILE *f;
	int root;

	snprintf(usual, sizeof(usual), "/sys/kernel/%s/%s",
		 strcmp(fs, "tracefs") ? "debug" : "tracing", path);
	f = open_at(AT_FDCWD, usual);
	if (f)
		return f;
	root = mount_detached(fs);
	if (root < 0)
		return NULL;
	f = open_at(root, path);
	close(root);
	return f;
}
