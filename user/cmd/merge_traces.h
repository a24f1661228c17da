// SPDX-License-Identifier: BSD-2-Clause
/*
 * The traces of `kxray merge`. Each is opened when it is needed and closed again, so that many
 * traces need no more descriptors and memory than one; what remains of it is its struct
 * kx_merge_host.
 */
#ifndef KX_MERGE_TRACES_H
#define KX_MERGE_TRACES_H

#include "calls/calls.h"
#include "exporters/merge/merge.h"

struct kx_merge_traces {
	const struct kx_call_filter
		*filter; /* times in it count from the first record of all traces */
	bool quiet;
	struct kx_merge_host *hosts;
	size_t n;
	uint64_t *calls; /* written, of each trace */
	uint64_t zero;	 /* the first record of all traces, ns of the shared time */
};

/* Bounds of a server's offset, see pairs.h. */
struct kx_merge_bound {
	size_t client, server, calls; /* traces, the first of their machines; pairs of calls */
	int64_t least, most, offset;  /* ns, before and by which the server was moved */
};

/* Reads all traces, which are then aligned. Free in any case. Errors: those of the files and of
 * exporters/merge/hosts.h. */
int kx_merge_traces_read(struct kx_merge_traces *t, char *const *paths, struct kx_err *err);
void kx_merge_traces_free(struct kx_merge_traces *t);

/*
 * Moves a server by calls that are in those of its client: @text is "CLIENT=SERVER", two patterns.
 * Errors: -EINVAL and those of kx_merge_pair, the text names what is wrong.
 */
int kx_merge_traces_pair(struct kx_merge_traces *t, const char *text, struct kx_merge_bound *out,
			 struct kx_err *err);

/* After all offsets: lines of the shared time, and where it begins. Errors: those of
 * kx_merge_hosts_lines. */
int kx_merge_traces_place(struct kx_merge_traces *t, struct kx_err *err);

/* For struct kx_merge: @ctx is the struct kx_merge_traces. */
int kx_merge_traces_write(void *ctx, size_t which, const struct kx_exporter *format,
			  const struct kx_export_place *place, int fd, uint32_t *threads,
			  struct kx_err *err);

#endif
