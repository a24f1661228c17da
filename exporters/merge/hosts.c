// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/merge/hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "trace/labels.h"

#define SECOND 1000000000
#define SET_NS 100000 /* a smaller change is noise of a loaded machine */

static void take(char *to, size_t size, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(to, size, "%s", text ? text : "");
}

int kx_merge_host_read(struct kx_merge_host *h, const json_t *session,
		       const struct kx_fdr_info *info, uint64_t first_tsc, uint64_t last_tsc,
		       struct kx_err *err)
{
	const json_t *host = json_object_get(session, "host");

	take(h->host, sizeof(h->host), host, "name");
	take(h->boot_id, sizeof(h->boot_id), host, "boot_id");
	take(h->machine_id, sizeof(h->machine_id), host, "machine_id");
	take(h->started, sizeof(h->started), session, "started");
	h->tsc_hz = info->tsc_hz;
	h->first_tsc = first_tsc;
	h->last_tsc = last_tsc;
	kx_snapshots_read(session, &h->snapshots);
	if (!session)
		return kx_err_set(err, -ENODATA,
				  "%s: has no map of kxray's, so its clocks are not known: merge "
				  "takes traces that kxray recorded, "
				  "with their .map files beside them",
				  h->path);
	if (!h->snapshots.n || !h->tsc_hz)
		return kx_err_set(err, -ENODATA,
				  "%s: has no snapshots of the host's clocks, as traces of older "
				  "versions, so it cannot be put on "
				  "one time line with others; record it again",
				  h->path);
	if (!*h->host)
		snprintf(h->host, sizeof(h->host), "host");
	return 0;
}

static void find_boot(struct kx_merge_host *h)
{
	int64_t least = INT64_MAX, most = INT64_MIN, error = 0;

	for (size_t i = 0; i < h->snapshots.n; i++) {
		const struct kx_snapshot *s = &h->snapshots.items[i];
		int64_t boot = s->realtime - s->boottime;

		least = boot < least ? boot : least;
		most = boot > most ? boot : most;
		error = s->error > error ? s->error : error;
	}
	h->boot = least + (most - least) / 2;
	h->stepped = most - least > SET_NS ? most - least : 0;
	h->error = error + (most - least + 1) / 2;
}

/* Either may not know its id. */
static bool may_be_same(const char *a, const char *b)
{
	return !*a || !*b || !strcmp(a, b);
}

static bool is_same_boot(const struct kx_merge_host *a, const struct kx_merge_host *b)
{
	if (*a->boot_id && *b->boot_id)
		return !strcmp(a->boot_id, b->boot_id);
	return llabs(a->boot - b->boot) < SECOND;
}

static bool is_taken(const struct kx_merge_host *hosts, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(hosts[i].machine, name))
			return true;
	return false;
}

/* "web1", "web1 (boot 1a2b3c4d)", "web1 (3)" */
static void name_machine(struct kx_merge_host *hosts, size_t n, bool other_boot)
{
	struct kx_merge_host *h = &hosts[n];
	char name[KX_MACHINE_SIZE];

	snprintf(name, sizeof(name), "%.60s", h->host);
	if (is_taken(hosts, n, name) && other_boot && *h->boot_id)
		snprintf(name, sizeof(name), "%.60s (boot %.8s)", h->host, h->boot_id);
	for (unsigned i = 2; is_taken(hosts, n, name); i++)
		snprintf(name, sizeof(name), "%.60s (%u)", h->host, i);
	memcpy(h->machine, name, sizeof(name));
}

int kx_merge_hosts_align(struct kx_merge_host *hosts, size_t n, struct kx_err *err)
{
	for (size_t i = 0; i < n; i++) {
		struct kx_merge_host *h = &hosts[i];
		bool other_boot = false;

		find_boot(h);
		h->same = i;
		for (size_t k = 0; k < i && h->same == i; k++) {
			const struct kx_merge_host *o = &hosts[k];

			if (strcmp(h->host, o->host) || !may_be_same(h->machine_id, o->machine_id))
				continue;
			if (is_same_boot(h, o))
				h->same = o->same;
			else
				other_boot = true;
		}
		if (h->same == i) {
			name_machine(hosts, i, other_boot);
			continue;
		}
		snprintf(h->machine, sizeof(h->machine), "%s", hosts[h->same].machine);
		for (size_t k = 0; k < i; k++)
			if (hosts[k].same == h->same && hosts[k].first_tsc == h->first_tsc &&
			    hosts[k].last_tsc == h->last_tsc &&
			    !strcmp(hosts[k].started, h->started))
				return kx_err_set(
					err, -EEXIST,
					"'%s' and '%s' are the same recording: name it once",
					hosts[k].path, h->path);
		/* they have one clock, whatever was read of it */
		h->boot = hosts[h->same].boot;
	}
	return 0;
}

void kx_merge_hosts_move(struct kx_merge_host *hosts, size_t n, size_t which, int64_t ns)
{
	size_t same = hosts[which].same;

	for (size_t i = 0; i < n; i++)
		if (hosts[i].same == same)
			hosts[i].offset += ns;
}

int kx_merge_hosts_offset(struct kx_merge_host *hosts, size_t n, const char *text,
			  struct kx_err *err)
{
	const char *equals = strrchr(text, '='), *time = equals ? equals + 1 : "";
	size_t size = equals ? (size_t)(equals - text) : 0, found = n;
	bool minus = *time == '-';
	uint64_t ns;

	if (!size || !kx_parse_time(time + (minus || *time == '+'), NULL, &ns) ||
	    ns > INT64_MAX / 4)
		return kx_err_set(err, -EINVAL,
				  "--offset takes HOST=TIME, a host and how much later its events "
				  "were, as in web1=-250ms, not '%s'",
				  text);
	for (size_t i = 0; i < n; i++) {
		const char *names[] = { hosts[i].machine, hosts[i].host, hosts[i].path };
		bool is_it = false;

		for (size_t k = 0; k < 3; k++)
			is_it |= strlen(names[k]) == size && !memcmp(names[k], text, size);
		if (!is_it || (found < n && hosts[i].same == hosts[found].same))
			continue;
		if (found < n)
			return kx_err_set(
				err, -EINVAL,
				"--offset %s: '%.*s' is both '%s' and '%s'; name one of these",
				text, (int)size, text, hosts[found].machine, hosts[i].machine);
		found = i;
	}
	if (found == n)
		return kx_err_set(err, -EINVAL,
				  "--offset %s: no trace is of a host '%.*s'; the first is of '%s'",
				  text, (int)size, text, hosts[0].machine);
	kx_merge_hosts_move(hosts, n, found, minus ? -(int64_t)ns : (int64_t)ns);
	return 0;
}

size_t kx_merge_hosts_reference(const struct kx_merge_host *hosts, size_t n)
{
	size_t first = 0;

	for (size_t i = 1; i < n; i++)
		if (hosts[i].boot + hosts[i].offset < hosts[first].boot + hosts[first].offset)
			first = i;
	return first;
}

int64_t kx_merge_hosts_shift(const struct kx_merge_host *hosts, size_t n, size_t which)
{
	const struct kx_merge_host *first = &hosts[kx_merge_hosts_reference(hosts, n)],
				   *h = &hosts[which];

	return h->boot + h->offset - first->boot - first->offset;
}

int kx_merge_hosts_lines(struct kx_merge_host *hosts, size_t n, bool own, struct kx_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (!kx_time_line_init(&hosts[i].line, &hosts[i].snapshots, hosts[i].tsc_hz,
				       own ? 0 : kx_merge_hosts_shift(hosts, n, i),
				       hosts[i].first_tsc, hosts[i].last_tsc))
			return kx_err_set(err, -ERANGE,
					  "%s: its times cannot be put on one time line: the "
					  "clocks in its map are damaged, or an "
					  "offset is too large",
					  hosts[i].path);
	return 0;
}
