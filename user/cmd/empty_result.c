// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/empty_result.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "cmd/unmatched.h"

#define NAMED 5 /* threads or processes in a message */

static bool has_id(const struct kx_calls *calls, int32_t id, bool thread)
{
	for (size_t i = 0; i < kx_calls_nthreads(calls); i++) {
		const struct kx_call_thread *t = kx_calls_thread(calls, i);

		if ((thread ? t->tid : t->pid) == id)
			return true;
	}
	return false;
}

/* Whether an earlier thread is of the same process. */
static bool is_repeated(const struct kx_calls *calls, size_t index)
{
	int32_t pid = kx_calls_thread(calls, index)->pid;

	for (size_t i = 0; i < index; i++)
		if (kx_calls_thread(calls, i)->pid == pid)
			return true;
	return false;
}

/* "27085 worker-1, 27086 worker-2 and 3 more" */
static void list_threads(const struct kx_calls *calls, bool threads, char *text, size_t size)
{
	size_t n = 0, more = 0, used = 0, all = kx_calls_nthreads(calls);

	*text = 0;
	for (size_t i = 0; i < all && used < size; i++) {
		const struct kx_call_thread *t = kx_calls_thread(calls, i);
		const char *name = threads ? t->name : t->process;

		/* of thousands of processes not all are compared with all others */
		if (!threads && (i > 1000 || is_repeated(calls, i)))
			continue;
		if (n++ >= NAMED) {
			more++;
			continue;
		}
		used += (size_t)snprintf(text + used, size - used, "%s%d%s%s", n > 1 ? ", " : "",
					 threads ? t->tid : t->pid, *name ? " " : "", name);
	}
	if (more && used < size)
		snprintf(text + used, size - used, threads || all <= 1000 ? " and %zu more" : " and more", more);
	if (!n)
		snprintf(text, size, "none");
}

/* The first id of the list that the trace does not have; NULL if it has all. */
static const int32_t *missing_id(const struct kx_calls *calls, const int32_t *ids, size_t n, bool threads,
				 size_t from)
{
	for (size_t i = from; i < n; i++)
		if (!has_id(calls, ids[i], threads))
			return &ids[i];
	return NULL;
}

static int no_id(const struct kx_calls *calls, int32_t id, bool threads, struct kx_err *err)
{
	char known[600];

	list_threads(calls, threads, known, sizeof(known));
	return kx_err_set(err, -ENODATA, "no %s %d in the trace; there are %s", threads ? "thread" : "process",
			  id, known);
}

int kx_empty_result(const struct kx_calls *calls, const struct kx_call_filter *filter, struct kx_symbolizer *names,
		    struct kx_err *err)
{
	const char *pattern = kx_calls_unmatched(calls, 0);
	char known[900];
	const int32_t *id;

	id = missing_id(calls, filter->tids, filter->ntids, true, 0);
	if (id)
		return no_id(calls, *id, true, err);
	id = missing_id(calls, filter->pids, filter->npids, false, 0);
	if (id)
		return no_id(calls, *id, false, err);
	if (pattern) {
		kx_unmatched_explain(names, pattern, known, sizeof(known));
		return kx_err_set(err, -ENODATA, "%s", known);
	}
	return kx_err_set(err, -ENODATA, filter->from_ns || filter->to_ns ?
						  "no calls in this part of the trace (--time)" :
						  "no calls are left after filtering");
}

static void warn_ids(const char *command, const struct kx_calls *calls, const int32_t *ids, size_t n,
		     bool threads)
{
	const int32_t *id = NULL;

	while ((id = missing_id(calls, ids, n, threads, id ? (size_t)(id - ids) + 1 : 0)))
		kx_print(stderr, "kxray %s: no %s %d in the trace\n", command, threads ? "thread" : "process", *id);
}

void kx_missing_warn(const char *command, const struct kx_calls *calls, const struct kx_call_filter *filter)
{
	const char *pattern;

	warn_ids(command, calls, filter->tids, filter->ntids, true);
	warn_ids(command, calls, filter->pids, filter->npids, false);
	for (size_t i = 0; (pattern = kx_calls_unmatched(calls, i)); i++)
		kx_print(stderr, "kxray %s: no function of the trace matches '%s'\n", command, pattern);
}
