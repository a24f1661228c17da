// SPDX-License-Identifier: BSD-2-Clause
/* Two traces byte by byte, and what differs. Include it after cmocka's headers. */
#ifndef KX_TEST_DIFF_TRACES_H
#define KX_TEST_DIFF_TRACES_H

#include "cmd/cmd.h"
#include "diff_run.h"
#include "export_run.h"
#include "noisy_trace.h"
#include "screen_run.h"

/*
 * Known calls: @n of "outer", each 1000 ns and as long as its callees take: "inner" for @inner_ns, @times times, and "other" for
 * 100 ns. A pause of @pause ns after each.
 */
struct known {
	unsigned n, inner_ns, times, pause;
	const char *outer, *inner, *other;
	const char *session; /* may be NULL */
};

#define NS (EXPORT_HZ / 1000000000)

static inline void write_known(const char *path, const struct known *k)
{
	const char *const names[] = { k->outer, k->inner, k->other };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	uint64_t now = EXPORT_T0;
	int fd;

	w = begin_trace(5, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 11, "worker", "server");
	for (unsigned i = 0; i < k->n; i++) {
		enter(t, now, 0, 1);
		for (unsigned n = 0; n < k->times; n++) {
			enter(t, now += 100 * NS, 0, 2);
			leave(t, now += k->inner_ns * NS, 0, 2);
		}
		enter(t, now += (1000 - 100 * k->times) * NS, 0, 3);
		leave(t, now += 100 * NS, 0, 3);
		leave(t, now, 0, 1);
		now += k->pause * NS;
	}
	end_trace(w, fd);
	write_map(names, 3, k->session);
	keep_as(path);
}

#endif
