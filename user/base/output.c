// SPDX-License-Identifier: BSD-2-Clause
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40 /* as in the kernel */
#define NEW_MODE  0600 /* a trace can hold arguments, names and command lines */

/*
 * What the symbolic link @path names, by its folder; NULL: @path is not a link, or memory ran
 * out.
 */
static char *read_link(const char *path)
{
	const char *slash = strrchr(path, '/');
	char target[PATH_MAX], *out = NULL;
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n <= 0)
		return NULL;
	target[n] = 0;
	if (target[0] == '/' || !slash)
		return strdup(target);
	return asprintf(&out, "%.*s/%s", (int)(slash - path), path, target) < 0 ? NULL : out;
}

/* The file that @path leads to, which need not exist. Errors: -ELOOP, -ENOMEM. */
static int resolve(const char *path, char **out)
{
	char *at = strdup(path), *next;

	for (int i = 0; at && i < MAX_LINKS; i++) {
		next = read_link(at);
		if (!next) {
			*out = at;
			return 0;
		}
		free(at);
		at = next;
	}
	if (!at)
		return -ENOMEM;
	free(at);
	return -ELOOP;
}

static char *temporary_path(const char *path, pid_t pid)
{
	char *out;

	return asprintf(&out, "%s.%d.tmp", path, (int)pid) < 0 ? NULL : out;
}

/*
 * Owner, group and mode of the file that is replaced. The group's rights stay only with that
 * group.
 */
static void copy_attributes(int fd, const struct stat *old)
{
	mode_t mode = old->st_mode & 07777;
	struct stat now;

	if (fchown(fd, old->st_uid, old->st_gid) && fchown(fd, (uid_t)-1, old->st_gid))
		mode &= (mode_t) ~(S_ISUID | S_ISGID);
	if (!fstat(fd, &now) && now.st_gid != old->st_gid)
		mode &= (mode_t)~S_IRWXG | (mode & S_IRWXO) << 3;
	(void)fchmod(fd, mode); /* as permitted: the file is still private */
}

/* An id in the environment, as sudo sets it; false if it is no number. */
static bool environment_id(const char *name, uint32_t *out)
{
	const char *text = getenv(name);
	unsigned long long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	*out = (uint32_t)value;
	/* the largest means "unchanged" to fchown */
	return !errno && !*end && value < UINT32_MAX;
}

bool kx_output_sudo_user(uid_t *uid, gid_t *gid)
{
	return !geteuid() && environment_id("SUDO_UID", uid) && environment_id("SUDO_GID", gid);
}

/* A file that root makes under sudo is of the user on whose behalf it is made. */
static void give_to_sudo_user(int fd)
{
	uid_t uid;
	gid_t gid;

	if (!kx_output_sudo_user(&uid, &gid))
		return;
	/* where this is not permitted, the file remains root's */
	if (fchown(fd, uid, gid))
		return;
}

static int create(const char *path, mode_t mode)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(path, flags, mode);

	/* left behind by a killed process that had the same id */
	if (fd < 0 && errno == EEXIST && !unlink(path))
		fd = open(path, flags, mode);
	return fd < 0 ? -errno : fd;
}

size_t kx_output_stem(const char *path)
{
	size_t length = strlen(path), suffix = strlen(KX_COMPRESSED_SUFFIX);

	return length > suffix && path[length - suffix - 1] != '/' &&
			       !strcmp(path + length - suffix, KX_COMPRESSED_SUFFIX)
		       ? length - suffix : length;
}

char *kx_output_map_path(const char *path)
{
	char *map;

	return asprintf(&map, "%.*s.map", (int)kx_output_stem(path), path) < 0 ? NULL : map;
}

/*
 * A file without a name in the folder of @path, so that a process that is killed leaves nothing.
 * Negative where the file system has no such files.
 */
static int create_nameless(const char *path, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode) : -1;

	free(folder);
	return fd;
}

/* Needs no privileges with /proc, and no /proc with CAP_DAC_READ_SEARCH. */
static int name_file(int fd, const char *path)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ||
	    (errno == ENOENT && !linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH)))
		return 0;
	return -errno;
}

/* Gives a nameless file its temporary name; see create. */
static int name_temporary(const struct kx_output *o)
{
	int code = name_file(o->fd, o->temp_path);

	if (code == -EEXIST && !unlink(o->temp_path))
		code = name_file(o->fd, o->temp_path);
	return code;
}

int kx_output_failed(const char *path, int code, struct kx_err *err)
{
	return kx_err_set(err, code, "'%s' cannot be written: %s; choose another place with -o", path, strerror(-code));
}

int kx_output_open(struct kx_output *o, const char *path, struct kx_err *err)
{
	bool replaces;
	struct stat st;
	int code, fd;

	memset(o, 0, sizeof(*o));
	o->fd = -1;
	replaces = stat(path, &st) == 0;
	if (replaces && !S_ISREG(st.st_mode))
		return kx_err_set(err, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL,
				  "'%s' cannot be written: it is %s; name a file", path,
				  S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
	code = resolve(path, &o->path);
	if (!code) {
		o->temp_path = temporary_path(o->path, getpid());
		o->map_path = kx_output_map_path(path);
		if (!o->temp_path || !o->map_path)
			code = -ENOMEM;
	}
	if (code == -ENOMEM)
		return kx_err_set(err, code, "no memory");
	fd = code ? code : create_nameless(o->path, NEW_MODE);
	o->nameless = fd >= 0;
	if (!code && fd < 0)
		fd = create(o->temp_path, NEW_MODE);
	if (fd < 0) {
		free(o->temp_path);
		o->temp_path = NULL;
		return kx_output_failed(path, fd, err);
	}
	o->fd = fd;
	if (replaces)
		copy_attributes(fd, &st);
	else
		give_to_sudo_user(fd);
	return 0;
}

/* Gives the file a name: the final one, if that is free, and otherwise the temporary one. */
static int name_nameless(struct kx_output *o, bool *final)
{
	int code = name_file(o->fd, o->path);

	*final = !code;
	if (code == -EEXIST)
		code = name_temporary(o);
	o->nameless = code != 0;
	return code;
}

int kx_output_keep(struct kx_output *o, struct kx_err *err)
{
	bool final = false;
	int code = o->nameless ? name_nameless(o, &final) : 0;

	/* only rename(2) replaces a file, and it needs a name */
	if (!code && !final && rename(o->temp_path, o->path))
		code = -errno;
	if (code)
		return kx_err_set(err, code, "the output cannot be named '%s': %s", o->path,
				  strerror(-code));
	free(o->temp_path);
	o->temp_path = NULL;
	return 0;
}

void kx_output_close(struct kx_output *o)
{
	if (o->temp_path && !o->nameless)
		unlink(o->temp_path);
	if (o->fd >= 0)
		close(o->fd);
	free(o->path);
	free(o->temp_path);
	free(o->map_path);
	memset(o, 0, sizeof(*o));
	o->fd = -1;
}

void kx_output_remove_temporary(const char *path, pid_t pid)
{
	char *final, *temporary;

	if (resolve(path, &final))
		return;
	temporary = temporary_path(final, pid);
	if (temporary)
		unlink(temporary);
	free(temporary);
	free(final);
}
