// SPDX-License-Identifier: BSD-2-Clause
#include "base/cgroup_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ID_DIGITS 64
#define UUID_SIZE 36

static const struct {
	const char *prefix, *runtime;
} scopes[] = {
	{ "docker-", "docker" },      { "cri-containerd-", "containerd" },
	{ "nerdctl-", "containerd" }, { "crio-", "cri-o" },
	{ "libpod-", "podman" },      { "cri-containerd:", "containerd" },
	{ "crio:", "cri-o" },	      { "docker:", "docker" },
};

static size_t hex_digits(const char *text, size_t size)
{
	size_t n = 0;

	while (n < size && text[n] && strchr("0123456789abcdef", text[n]))
		n++;
	return n;
}

static bool ends_with(const char *part, size_t size, const char *end)
{
	size_t n = strlen(end);

	return size > n && !memcmp(part + size - n, end, n);
}

static bool is_id(const char *text, size_t size)
{
	return size == ID_DIGITS && hex_digits(text, size) == size;
}

/* Whether the part of the path is a container's: PREFIX-ID.scope, PREFIX-ID, SLICE:PREFIX:ID or ID
 * alone. */
static bool find_container(const char *part, size_t size, const char *above, struct kx_cgroup *out)
{
	const char *colon = memchr(part, ':', size);
	const char *runtime = NULL;

	if (colon) {
		size -= (size_t)(colon + 1 - part);
		part = colon + 1;
	}
	if (ends_with(part, size, ".scope"))
		size -= strlen(".scope");
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]) && !runtime; i++) {
		size_t n = strlen(scopes[i].prefix);

		if (size == n + ID_DIGITS && !memcmp(part, scopes[i].prefix, n)) {
			runtime = scopes[i].runtime;
			part += n;
			size -= n;
		}
	}
	if (!is_id(part, size))
		return false;
	if (!runtime)
		runtime = !strncmp(above, "docker/", 7) ? "docker" : "";
	memcpy(out->container, part, ID_DIGITS);
	out->container[ID_DIGITS] = 0;
	out->runtime = runtime;
	return true;
}

/* podUID, or NAME-podUID.slice, where '_' stands for '-'; a colon and more may follow. */
static void find_pod(const char *part, size_t size, struct kx_cgroup *out)
{
	const char *colon = memchr(part, ':', size);
	char uid[UUID_SIZE + 1];
	size_t n = 0, end;

	if (colon)
		size = (size_t)(colon - part);
	if (ends_with(part, size, ".slice"))
		size -= strlen(".slice");
	for (end = size; end >= 3; end--)
		if (!memcmp(part + end - 3, "pod", 3) && (end == 3 || part[end - 4] == '-'))
			break;
	if (end < 3 || size - end > UUID_SIZE)
		return;
	for (size_t i = end; i < size; i++)
		uid[n++] = part[i] == '_' ? '-' : part[i];
	uid[n] = 0;
	if (n == UUID_SIZE) {
		for (size_t i = 0; i < n; i++)
			if ((i == 8 || i == 13 || i == 18 || i == 23) ? uid[i] != '-'
								      : !hex_digits(uid + i, 1))
				return;
	} else if (n != 32 || hex_digits(uid, n) != n) {
		return;
	}
	memcpy(out->pod, uid, n + 1);
}

static void find_unit(const char *part, size_t size, struct kx_cgroup *out)
{
	if (size >= KX_UNIT_SIZE || memchr(part, ':', size))
		return;
	if (!ends_with(part, size, ".service") && !ends_with(part, size, ".scope"))
		return;
	/* the monitor of a container is in a scope of its own */
	if (!strncmp(part, "crio-conmon-", 12) || !strncmp(part, "libpod-conmon-", 14))
		return;
	memcpy(out->unit, part, size);
	out->unit[size] = 0;
}

void kx_cgroup_parse_path(const char *path, struct kx_cgroup *out)
{
	const char *above = "";

	memset(out, 0, sizeof(*out));
	out->runtime = "";
	while (*path) {
		size_t size = strcspn(path, "/");

		/* what is inside a container, such as another one, is named by its own runtime */
		if (size && find_container(path, size, above, out))
			out->unit[0] = 0;
		else if (size)
			find_unit(path, size, out);
		if (size)
			find_pod(path, size, out);
		above = path;
		path += size + (path[size] == '/');
	}
}

/* How much a hierarchy tells. */
static int weight(const struct kx_cgroup *g, const char *controllers)
{
	int n = 8 * !!g->container[0] + 4 * !!g->pod[0] + 2 * !!g->unit[0];

	return 2 * n + (!*controllers || !strcmp(controllers, "name=systemd"));
}

void kx_cgroup_parse(const char *text, char *path, size_t size, struct kx_cgroup *out)
{
	int best = -1, n;

	memset(out, 0, sizeof(*out));
	out->runtime = "";
	path[0] = 0;
	for (const char *line = text, *end; *line; line = end + (*end == '\n')) {
		char controllers[128], copy[KX_CGROUP_SIZE];
		const char *first, *second;
		struct kx_cgroup g;

		end = line + strcspn(line, "\n");
		first = memchr(line, ':', (size_t)(end - line));
		second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
		if (!second)
			continue;
		snprintf(controllers, sizeof(controllers), "%.*s", (int)(second - first - 1),
			 first + 1);
		snprintf(copy, sizeof(copy), "%.*s", (int)(end - second - 1), second + 1);
		kx_cgroup_parse_path(copy, &g);
		n = weight(&g, controllers);
		if (n <= best)
			continue;
		best = n;
		*out = g;
		snprintf(path, size, "%s", copy);
	}
}
