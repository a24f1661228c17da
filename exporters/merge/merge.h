// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traces of several hosts in one output, each exported after the other: memory does not grow with
 * their number or size but by their descriptions, and nothing is sorted here, since viewers sort by
 * time themselves.
 *
 * An archive is a tar file with each trace as Perfetto's, and a manifest that names machines and
 * relates their clocks (https://perfetto.dev/docs/reference/perfetto-manifest, version 1;
 * Perfetto 58.2 reads it, older ones do not). For viewers without it there is one file of a format,
 * in which hosts are groups of processes: each trace's ids have a range of their own, and process
 * names begin with the host's.
 */
#ifndef KX_MERGE_H
#define KX_MERGE_H

#include "exporters/exporter.h"
#include "exporters/merge/hosts.h"

struct kx_merge {
	struct kx_merge_host *hosts; /* aligned */
	size_t n;
	/*
	 * Exports trace @which to the end of @fd; *@threads: how many its file has. Errors: those
	 * of the exporter.
	 */
	int (*write)(void *ctx, size_t which, const struct kx_exporter *format,
		     const struct kx_export_place *place, int fd, uint32_t *threads,
		     struct kx_err *err);
	void *ctx;
};

/* Errors: write(2)'s, -ENOMEM, those of kx_merge_hosts_lines and m->write. @fd: a regular file. */
int kx_merge_write_archive(const struct kx_merge *m, int fd, struct kx_err *err);
/* @format: perfetto or chrome. */
int kx_merge_write_shared(const struct kx_merge *m, const struct kx_exporter *format, int fd,
			  struct kx_err *err);

/* The manifest, a new object; NULL if memory ran out. @names: of the members, by trace. */
json_t *kx_merge_manifest(const struct kx_merge_host *hosts, size_t n, char *const *names);

/* The members' names, allocated: "web1.pftrace", "web1.2.pftrace"; NULL if memory ran out. */
char **kx_merge_member_names(const struct kx_merge_host *hosts, size_t n);
void kx_merge_free_names(char **names, size_t n);

#endif
