// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/diff_hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/labels.h"
#include "trace/symbolizer.h"

/* The host of trace @path, allocated. */
static int host_of(const char *path, char **host, struct kx_err *err)
{
	struct kx_symbolizer names;
	const char *name;
	int r = 0;

	*host = NULL;
	if (!strcmp(path, "-"))
		return kx_err_set(err, -EINVAL,
				  "--by host needs files: the map of standard input is not known");
	if (access(path, F_OK))
		return kx_err_set(err, -errno, "%s: cannot be opened: %s", path, strerror(errno));
	r = kx_symbolizer_open(path, NULL, &names, err);
	if (r)
		return r;
	name = names.has_map ? kx_session_host(names.map.session) : "";
	if (!*name)
		r = kx_err_set(err, -EINVAL,
			       "%s: its map does not say of which host it is; compare it without "
			       "--by host",
			       path);
	else
		*host = strdup(name);
	kx_symbolizer_free(&names);
	return r || *host ? r : kx_err_set(err, -ENOMEM, "out of memory");
}

static int add(struct kx_diff_host *pairs, size_t *n, const char *path, struct kx_err *err)
{
	size_t i = 0;
	char *host;
	int r = host_of(path, &host, err);

	if (r)
		return r;
	while (i < *n && strcmp(pairs[i].host, host) != 0)
		i++;
	if (i == *n) {
		pairs[(*n)++] = (struct kx_diff_host){ .host = host, .paths = { path } };
		return 0;
	}
	free(host);
	if (pairs[i].paths[1])
		return kx_err_set(err, -EINVAL,
				  "%s has more than two traces: '%s' is one too many for --by host",
				  pairs[i].host, path);
	pairs[i].paths[1] = path;
	return 0;
}

int kx_diff_hosts(char *const *paths, struct kx_diff_host **pairs, size_t *n, struct kx_err *err)
{
	size_t all = 0;
	int r = 0;

	while (paths && paths[all])
		all++;
	*n = 0;
	*pairs = calloc(all + 1, sizeof(**pairs));
	if (!*pairs)
		return kx_err_set(err, -ENOMEM, "out of memory");
	if (all < 2)
		return kx_err_set(err, -EINVAL,
				  "--by host compares two traces of each host: 'kxray diff --by "
				  "host web1-before.xray "
				  "db1-before.xray web1-after.xray db1-after.xray'");
	for (size_t i = 0; i < all && !r; i++)
		r = add(*pairs, n, paths[i], err);
	for (size_t i = 0; i < *n && !r; i++)
		if (!(*pairs)[i].paths[1])
			r = kx_err_set(
				err, -EINVAL,
				"%s has one trace only, '%s': --by host compares two of each host",
				(*pairs)[i].host, (*pairs)[i].paths[0]);
	return r;
}

void kx_diff_hosts_free(struct kx_diff_host *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(pairs[i].host);
	free(pairs);
}
