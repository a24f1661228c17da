// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/merge/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_text.h"
#include "base/write_all.h"
#include "exporters/merge/tar.h"

extern const struct kx_exporter kx_exporter_perfetto;

static char *member_name(const struct kx_merge_host *h, unsigned number)
{
	char stem[KX_MACHINE_SIZE], *name;
	int r;

	snprintf(stem, sizeof(stem), "%s", h->machine);
	/* a name that begins with a dot would be skipped */
	for (size_t i = 0; stem[i]; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.",
			    stem[i]) ||
		    (!i && stem[i] == '.'))
			stem[i] = '_';
	r = number > 1 ? asprintf(&name, "%.70s.%u.pftrace", stem, number)
		       : asprintf(&name, "%.70s.pftrace", stem);
	return r < 0 ? NULL : name;
}

static bool is_taken(char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

char **kx_merge_member_names(const struct kx_merge_host *hosts, size_t n)
{
	char **names = calloc(n + 1, sizeof(*names));

	for (size_t i = 0; names && i < n; i++) {
		for (unsigned number = 1;; number++) {
			free(names[i]);
			names[i] = member_name(&hosts[i], number);
			if (!names[i] || !is_taken(names, i, names[i]))
				break;
		}
		if (!names[i]) {
			kx_merge_free_names(names, i);
			return NULL;
		}
	}
	return names;
}

void kx_merge_free_names(char **names, size_t n)
{
	for (size_t i = 0; names && i < n; i++)
		free(names[i]);
	free(names);
}

json_t *kx_merge_manifest(const struct kx_merge_host *hosts, size_t n, char *const *names)
{
	size_t reference = kx_merge_hosts_reference(hosts, n);
	json_t *files = json_array(), *file, *all;

	for (size_t i = 0; i < n; i++) {
		file = json_pack("{s:s,s:{s:o}}", "path", names[i], "machine", "name",
				 kx_json_text(hosts[i].machine, sizeof(hosts[i].machine)));
		/*
		 * What CLOCK_BOOTTIME of the reference is when this one's is 0. Perfetto 58.2 relates machines, not files
		 * (perfetto_manifest_reader.cc), and a clock cannot be related to itself.
		 */
		if (file && hosts[i].same == i && hosts[i].same != hosts[reference].same &&
		    json_object_set_new(file, "clocks",
					json_pack("{s:s,s:{s:s,s:s},s:I}", "clock", "BOOTTIME",
						  "sync_to", "file", names[reference], "clock",
						  "BOOTTIME", "offset_ns",
						  (json_int_t)kx_merge_hosts_shift(hosts, n, i)))) {
			json_decref(file);
			file = NULL;
		}
		if (json_array_append_new(files, file)) {
			json_decref(files);
			return NULL;
		}
	}
	all = json_pack("{s:{s:i,s:{s:s,s:s},s:o}}", "perfetto_manifest", "version", 1,
			"trace_time", "clock", "BOOTTIME", "file", names[reference], "files",
			files);
	return all;
}

static int cannot_write(int r, struct kx_err *err)
{
	return r ? kx_err_set(err, r, "the archive cannot be written: %s", strerror(-r)) : 0;
}

static int put_manifest(const struct kx_merge *m, struct kx_tar *tar, char *const *names,
			struct kx_err *err)
{
	json_t *manifest = kx_merge_manifest(m->hosts, m->n, names);
	char *text = manifest ? json_dumps(manifest, JSON_INDENT(1)) : NULL;
	struct iovec iov = { text, text ? strlen(text) : 0 };
	int r = text ? kx_tar_begin(tar) : -ENOMEM;

	if (!r)
		r = kx_write_all(tar->fd, &iov, 1);
	if (!r)
		r = kx_tar_end(tar, "perfetto_manifest.json");
	free(text);
	json_decref(manifest);
	return cannot_write(r, err);
}

int kx_merge_write_archive(const struct kx_merge *m, int fd, struct kx_err *err)
{
	struct kx_tar tar = { .fd = fd, .modified = (uint64_t)time(NULL) };
	char **names = kx_merge_member_names(m->hosts, m->n);
	uint32_t threads;
	int r = names ? kx_merge_hosts_lines(m->hosts, m->n, true, err)
		      : kx_err_set(err, -ENOMEM, "out of memory");

	if (!r)
		r = put_manifest(m, &tar, names, err);
	for (size_t i = 0; i < m->n && !r; i++) {
		const struct kx_export_place place = { .line = &m->hosts[i].line,
						       .realtime = m->hosts[i].boot + m->hosts[i].offset };

		r = cannot_write(kx_tar_begin(&tar), err);
		if (!r)
			r = m->write(m->ctx, i, &kx_exporter_perfetto, &place, fd, &threads, err);
		if (!r)
			r = cannot_write(kx_tar_end(&tar, names[i]), err);
	}
	if (!r)
		r = cannot_write(kx_tar_finish(&tar), err);
	kx_merge_free_names(names, m->n);
	return r;
}

/* "web1", and "web1 [2]" of the second trace of the same machine. */
static void name_group(const struct kx_merge_host *hosts, size_t which, char *name, size_t size)
{
	unsigned number = 1;

	for (size_t i = 0; i < which; i++)
		number += hosts[i].same == hosts[which].same;
	if (number > 1)
		snprintf(name, size, "%s [%u]", hosts[which].machine, number);
	else
		snprintf(name, size, "%s", hosts[which].machine);
}

int kx_merge_write_shared(const struct kx_merge *m, const struct kx_exporter *format, int fd,
			  struct kx_err *err)
{
	size_t reference = kx_merge_hosts_reference(m->hosts, m->n);
	uint64_t calls = 0, lost = 0, zero = UINT64_MAX;
	uint32_t threads = 0, of_one;
	char name[KX_MACHINE_SIZE + 16];
	bool any = false;
	int r = kx_merge_hosts_lines(m->hosts, m->n, false, err);

	for (size_t i = 0; i < m->n && !r; i++) {
		uint64_t ns = kx_time_line_ns(&m->hosts[i].line, m->hosts[i].first_tsc);

		zero = ns < zero ? ns : zero;
	}
	for (size_t i = 0; i < m->n && !r; i++) {
		const struct kx_export_place place = {
			.line = &m->hosts[i].line,
			.zero_ns = zero,
			.realtime = m->hosts[reference].boot + m->hosts[reference].offset,
			.host = name,
			.number = (uint32_t)i,
			.threads = threads,
			.has_clocks = i == reference,
			.is_last = i + 1 == m->n,
			.any = &any,
			.calls = &calls,
			.lost = &lost,
		};

		name_group(m->hosts, i, name, sizeof(name));
		r = m->write(m->ctx, i, format, &place, fd, &of_one, err);
		threads += of_one;
	}
	return r;
}
