// SPDX-License-Identifier: BSD-2-Clause
#include "base/old_output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"

char *kx_old_output_path(const char *path)
{
	size_t length = strlen(path), stem = kx_output_stem(path);
	char *out;

	if (stem == length && length > 4 && !strcmp(path + length - 4, ".map"))
		stem -= 4;
	return asprintf(&out, "%.*s.old%s", (int)stem, path, path + stem) < 0 ? NULL : out;
}

static bool has_content(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && st.st_size;
}

static int failed(const char *path, const char *old, struct kx_err *err)
{
	return kx_err_set(err, -errno,
			  "'%s' exists and cannot be kept as '%s': %s; move one of them away, or "
			  "choose another place with -o",
			  path, old, strerror(errno));
}

/* A second name, so that the first one never lacks its file; where that is not possible, another
 * name. */
static int rename_file(const char *path, const char *old, bool stays, struct kx_err *err)
{
	if (unlink(old) && errno != ENOENT)
		return failed(path, old, err);
	if (stays && !link(path, old))
		return 0;
	return rename(path, old) ? failed(path, old, err) : 0;
}

/* @stays: the name is about to be replaced. */
static int keep_file(const char *path, bool stays, struct kx_err *err)
{
	char *old = kx_old_output_path(path), *file = NULL, *old_file = NULL;
	struct stat st;
	int code = old ? 0 : -ENOMEM;

	if (!code && (lstat(path, &st) || !S_ISLNK(st.st_mode))) {
		code = rename_file(path, old, stays, err);
		free(old);
		return code;
	}
	/* the link stays where it is and will lead to the new file */
	if (!code) {
		file = realpath(path, NULL);
		old_file = file ? kx_old_output_path(file) : NULL;
		code = old_file ? rename_file(file, old_file, stays, err) : -ENOMEM;
	}
	if (!code && strcmp(old, old_file)) {
		if ((unlink(old) && errno != ENOENT) || symlink(old_file, old))
			code = failed(path, old, err);
	}
	free(old);
	free(file);
	free(old_file);
	return code == -ENOMEM ? kx_err_set(err, code, "no memory") : code;
}

static void remove_old(const char *path)
{
	char *old = kx_old_output_path(path);

	if (old)
		unlink(old);
	free(old);
}

int kx_old_output_keep(const char *path, char **kept, struct kx_err *err)
{
	size_t stem = kx_output_stem(path);
	char *map = kx_output_map_path(path), *other = NULL;
	bool has_map = map && has_content(map), has_this = has_content(path), has_other;
	int code = 0;

	*kept = NULL;
	if (asprintf(&other, "%.*s%s", (int)stem, path, path[stem] ? "" : KX_COMPRESSED_SUFFIX) < 0)
		other = NULL;
	if (!map || !other)
		code = kx_err_set(err, -ENOMEM, "no memory");
	/* without a map it shares nothing */
	has_other = !code && has_map && has_content(other);
	if (!code && (has_this || has_other)) {
		*kept = kx_old_output_path(has_this ? path : other);
		/* those of the generation before, which would get the wrong map */
		remove_old(path);
		remove_old(other);
		remove_old(map);
		if (has_this)
			code = keep_file(path, true, err);
		if (!code && has_other)
			code = keep_file(other, false, err);
		if (!code && has_map)
			code = keep_file(map, true, err);
	}
	free(map);
	free(other);
	return code;
}
