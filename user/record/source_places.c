// SPDX-License-Identifier: BSD-2-Clause
#include "record/source_places.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stop_request.h"
#include "binary/debuginfod.h"
#include "binary/source_lines.h"

#define TEXT_BYTES (32u << 20) /* of paths, each once in a row of functions; pages that are not used take no memory */
#define POLL_MS	    50
#define PATIENCE_MS 1000 /* then the user learns what is waited for */

/* Written by the child, read by the recorder at any time: a line is written after its file. */
struct row {
	uint32_t file; /* offset in the text */
	uint32_t line; /* 0: not known (yet) */
};

/* Of the functions [first, first + n). */
struct part {
	size_t first, n;
	pid_t child; /* 0: it has ended */
	struct row *rows; /* shared; the text follows */
	char *text;
	size_t bytes;
	struct part *next;
};

struct kx_source_places {
	const struct kx_notices *notices;
	struct part *parts; /* newest first */
	size_t n; /* functions that a part has */
};

static void say(void *ctx, const char *sentence)
{
	kx_notice(ctx, "%s", sentence);
}

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/*
 * Closes all descriptors but the standard ones and those of the modules: a copy would keep BPF programs and probes alive after
 * kxray's end.
 */
static bool close_others(const struct kx_selection *sel)
{
	int *keep = calloc(sel->nmodules + 1, sizeof(*keep)), at = STDERR_FILENO + 1;
	size_t n = 0;

	if (!keep)
		return false;
	for (size_t i = 0; i < sel->nmodules; i++)
		if (sel->modules[i].fd >= at)
			keep[n++] = sel->modules[i].fd;
	qsort(keep, n, sizeof(*keep), compare_fds);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] > at)
			close_range((unsigned)at, (unsigned)keep[i] - 1, 0);
		at = keep[i] + 1;
	}
	free(keep);
	return !close_range((unsigned)at, ~0u, 0);
}

/* The offset of @file in the part's text, where it is added unless it is the last one already; 0 if there is no room. */
static uint32_t add_text(struct part *p, const char *file, size_t *used, uint32_t *last)
{
	size_t len = strlen(file) + 1;

	if (*last && !strcmp(p->text + *last, file))
		return *last;
	if (len > TEXT_BYTES - 1 - *used) /* the last byte stays 0 */
		return 0;
	memcpy(p->text + *used, file, len);
	*last = (uint32_t)*used;
	*used += len;
	return *last;
}

/* In the child: module after module, since the DWARF of one fills memory enough. */
static void read_places(struct part *p, const struct kx_selection *sel)
{
	size_t used = 1;
	uint32_t last = 0;

	for (size_t m = 0; m < sel->nmodules; m++) {
		const struct kx_select_module *sm = &sel->modules[m];
		struct kx_lines *lines = NULL;
		bool tried = false;

		for (size_t i = p->first; i < p->first + p->n && sm->fd >= 0; i++) {
			const struct kx_function *f = &sel->functions[i];
			struct row row;
			const char *file;

			if (f->module != m || !f->traced)
				continue;
			if (!tried && kx_lines_open_fd(sm->fd, sm->module->path, &lines, NULL))
				lines = NULL;
			tried = true;
			if (!lines)
				break;
			if (!kx_lines_place(lines, f->sym->addr, &file, &row.line))
				continue;
			row.file = add_text(p, file, &used, &last);
			p->rows[i - p->first].file = row.file;
			__atomic_store_n(&p->rows[i - p->first].line, row.file ? row.line : 0, __ATOMIC_RELEASE);
		}
		kx_lines_close(lines);
	}
}

static void be_child(struct kx_source_places *places, struct part *p, const struct kx_selection *sel, pid_t parent)
{
	const struct sched_param none = { 0 };
	sigset_t set;
	int fd;

	prctl(PR_SET_NAME, "kxray-lines");
	/* before anything may kill it: the kernel cannot take out probes that a killed process closes last */
	if (!close_others(sel))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sched_setscheduler(0, SCHED_IDLE, &none);
	/* If memory runs out, the kernel is to end this process rather than the recorder or its target. */
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1000", 4) != 4)
		errno = 0; /* it does no harm */
	if (fd >= 0)
		close(fd);
	/* The terminal's Ctrl-C is for the recorder, which ends this process. */
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kx_debuginfod_allow(say, (void *)(uintptr_t)places->notices);
	read_places(p, sel);
	_exit(0);
}

/* Returns when the child has closed its descriptors, the write end of the pipe @ends among them, or there is none. */
static void await_close(const int ends[2])
{
	char byte;

	if (ends[0] < 0)
		return;
	close(ends[1]);
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(ends[0]);
}

/* A child for the functions that no part has yet. */
static bool start_part(struct kx_source_places *places, const struct kx_selection *sel)
{
	struct part *p = calloc(1, sizeof(*p));
	int closed[2] = { -1, -1 };
	pid_t self = getpid();

	if (!p)
		return false;
	p->first = places->n;
	p->n = sel->nfunctions - places->n;
	p->bytes = p->n * sizeof(*p->rows) + TEXT_BYTES;
	p->rows = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->rows == MAP_FAILED) {
		free(p);
		return false;
	}
	p->text = (char *)(p->rows + p->n);
	p->child = pipe2(closed, O_CLOEXEC) ? -1 : fork();
	if (!p->child)
		be_child(places, p, sel, self);
	await_close(closed);
	if (p->child < 0) {
		munmap(p->rows, p->bytes);
		free(p);
		return false;
	}
	p->next = places->parts;
	places->parts = p;
	places->n = sel->nfunctions;
	return true;
}

struct kx_source_places *kx_source_places_start(const struct kx_selection *sel, const struct kx_notices *notices)
{
	struct kx_source_places *places = calloc(1, sizeof(*places));

	if (!places)
		return NULL;
	places->notices = notices;
	if (sel->nfunctions && !start_part(places, sel)) {
		free(places);
		return NULL;
	}
	return places;
}

static void end_child(struct part *p, bool kill_it)
{
	if (p->child <= 0)
		return;
	if (kill_it)
		kill(p->child, SIGKILL);
	while (waitpid(p->child, NULL, 0) < 0 && errno == EINTR)
		;
	p->child = 0;
}

/* False if it was interrupted. */
static bool wait_for(struct kx_source_places *places, struct part *p)
{
	const struct sched_param none = { 0 };
	struct pollfd end = { .events = POLLIN };
	bool interrupted = false;

	if (p->child <= 0)
		return true;
	sched_setscheduler(p->child, SCHED_OTHER, &none);
	end.fd = (int)syscall(SYS_pidfd_open, p->child, 0);
	for (unsigned turns = 0; end.fd >= 0 && poll(&end, 1, POLL_MS) <= 0 && !interrupted; turns++) {
		interrupted = kx_stop_pending();
		if (turns == PATIENCE_MS / POLL_MS)
			kx_notice(places->notices,
				  "reading in which files and lines %zu functions are; Ctrl-C leaves out what is missing",
				  p->n);
	}
	if (end.fd >= 0)
		close(end.fd);
	end_child(p, interrupted);
	return !interrupted;
}

void kx_source_places_finish(struct kx_source_places *places, const struct kx_selection *sel)
{
	if (!places)
		return;
	for (struct part *p = places->parts; p; p = p->next)
		if (!wait_for(places, p))
			return;
	if (sel->nfunctions > places->n && start_part(places, sel))
		wait_for(places, places->parts);
}

struct kx_map_place *kx_source_places_get(const struct kx_source_places *places, const struct kx_selection *sel)
{
	struct kx_map_place *list = places && sel->nfunctions ? calloc(sel->nfunctions, sizeof(*list)) : NULL;
	size_t known = 0;

	for (const struct part *p = list ? places->parts : NULL; p; p = p->next)
		for (size_t i = 0; i < p->n; i++) {
			uint32_t line = __atomic_load_n(&p->rows[i].line, __ATOMIC_ACQUIRE);
			uint32_t file = p->rows[i].file;

			if (!line || file >= TEXT_BYTES)
				continue;
			list[p->first + i] = (struct kx_map_place){ p->text + file, line };
			known++;
		}
	if (known)
		return list;
	free(list);
	return NULL;
}

void kx_source_places_free(struct kx_source_places *places)
{
	struct part *next;

	for (struct part *p = places ? places->parts : NULL; p; p = next) {
		next = p->next;
		end_child(p, true);
		munmap(p->rows, p->bytes);
		free(p);
	}
	free(places);
}
