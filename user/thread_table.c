// SPDX-License-Identifier: BSD-2-Clause
/* The table of threads: who they are, and what waits for each. */
#include "thread_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "thread_impl.h"

/* First line "KEY: VALUE" of a /proc file; false if the process or thread is gone. */
static bool read_proc(const char *path, const char *key, char *value, size_t size)
{
	char line[256];
	size_t keylen = strlen(key);
	bool found = false;
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, keylen) != 0)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(value, size, "%s", line + keylen + strspn(line + keylen, ": \t"));
		found = true;
	}
	fclose(f);
	return found;
}

static void read_process_name(struct process *p)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", p->pid);
	read_proc(path, "", p->name, sizeof(p->name));
}

struct kx_thread_table *kx_thread_table_new(struct kx_fdr_writer *writer, const uint8_t *traits,
					    uint32_t ntraits, const pid_t *pids, size_t npids,
					    const char *session_note)
{
	struct kx_thread_table *t = calloc(1, sizeof(*t));

	if (!t || !(t->processes = calloc(npids, sizeof(*t->processes)))) {
		free(t);
		return NULL;
	}
	for (size_t i = 0; i < npids; i++) {
		t->processes[i].pid = pids[i];
		read_process_name(&t->processes[i]);
	}
	t->nprocesses = npids;
	t->writer = writer;
	t->traits = traits;
	t->ntraits = ntraits;
	t->session_note = session_note;
	return t;
}

void kx_thread_table_delayed(struct kx_thread_table *t)
{
	t->delayed = true;
}

static void free_thread(struct kx_thread *thread)
{
	kx_callstack_free(thread->stack);
	free(thread->events);
	free(thread->args);
	free(thread);
}

void kx_thread_table_free(struct kx_thread_table *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < KX_THREAD_BUCKETS; i++) {
		struct kx_thread *thread = t->buckets[i], *next;

		for (; thread; thread = next) {
			next = thread->next_in_bucket;
			free_thread(thread);
		}
	}
	free(t->processes);
	free(t);
}

struct kx_thread *kx_thread_table_get(struct kx_thread_table *t, uint32_t tid)
{
	struct kx_thread **bucket = &t->buckets[tid & (KX_THREAD_BUCKETS - 1)], *thread = *bucket;

	while (thread && thread->tid != tid)
		thread = thread->next_in_bucket;
	if (thread && !(thread->ended && !thread->active))
		return thread;
	if (thread) {
		/* A new thread has taken the id of one that ended. */
		thread->ended = false;
		thread->pid = 0;
		thread->name[0] = 0;
		thread->waited = 0;
		thread->stream = NULL;
		return thread;
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread || !(thread->stack = kx_callstack_new(t->traits, t->ntraits))) {
		free(thread);
		return NULL;
	}
	thread->table = t;
	thread->tid = tid;
	thread->sorted = true;
	thread->next_in_bucket = *bucket;
	*bucket = thread;
	return thread;
}

static int push_words(struct kx_thread *thread, const uint64_t *words, uint32_t n, uint32_t *at)
{
	if (thread->nargs + n > thread->args_room) {
		uint32_t room = thread->args_room ? thread->args_room * 2 : 64;
		uint64_t *args = realloc(thread->args, room * sizeof(*args));

		if (!args)
			return -ENOMEM;
		thread->args = args;
		thread->args_room = room;
	}
	*at = thread->nargs;
	memcpy(thread->args + thread->nargs, words, n * sizeof(*words));
	thread->nargs += n;
	return 0;
}

int kx_thread_push(struct kx_thread *thread, const struct kx_thread_event *ev, const uint64_t *args)
{
	struct kx_thread_event *slot;

	if (thread->nevents == thread->room) {
		uint32_t room = thread->room ? thread->room * 2 : 64;
		struct kx_thread_event *events = realloc(thread->events, room * sizeof(*events));

		if (!events)
			return -ENOMEM;
		thread->events = events;
		thread->room = room;
	}
	slot = &thread->events[thread->nevents];
	*slot = *ev;
	slot->order = thread->nevents;
	if (ev->nargs) {
		int err = push_words(thread, args, ev->nargs, &slot->args_at);

		if (err)
			return err;
	}
	if (thread->nevents && slot[-1].tsc > slot->tsc)
		thread->sorted = false;
	thread->nevents++;
	if (!thread->active) {
		thread->active = true;
		thread->next_active = thread->table->active;
		thread->table->active = thread;
	}
	return 0;
}

int kx_thread_push_loss(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
			uint64_t to, uint16_t cpu)
{
	uint64_t words[3] = { from, entries - thread->lost_entries, exits - thread->lost_exits };
	struct kx_thread_event ev = { .kind = KX_EVENT_LOSS, .tsc = to, .cpu = cpu, .nargs = 3 };

	if (!words[1] && !words[2])
		return 0;
	thread->lost_entries = entries;
	thread->lost_exits = exits;
	/* the kernel side may not have seen that the last gap was taken */
	if (words[0] <= thread->lost_to)
		words[0] = thread->lost_to < to ? thread->lost_to + 1 : to;
	thread->lost_to = to;
	if (thread->stack)
		kx_callstack_lost_from(thread->stack, words[0]);
	return kx_thread_push(thread, &ev, words);
}

bool kx_thread_identify(struct kx_thread *thread)
{
	char path[64], text[64];

	if (!thread->pid && thread->table->nprocesses == 1)
		thread->pid = thread->table->processes[0].pid;
	if (!thread->pid) {
		snprintf(path, sizeof(path), "/proc/%u/status", thread->tid);
		thread->pid = read_proc(path, "Tgid", text, sizeof(text))
				      ? atoi(text)
				      : thread->table->processes[0].pid;
	}
	if (!thread->name[0]) {
		snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", thread->pid, thread->tid);
		if (read_proc(path, "", text, sizeof(text)))
			snprintf(thread->name, sizeof(thread->name), "%.*s", KX_COMM_SIZE, text);
	}
	return thread->name[0] != 0;
}

const char *kx_thread_process(struct kx_thread *thread)
{
	struct kx_thread_table *t = thread->table;

	for (size_t i = 0; i < t->nprocesses; i++) {
		struct process *p = &t->processes[i];

		if (p->pid != thread->pid)
			continue;
		read_process_name(p);
		return *p->name ? p->name : NULL;
	}
	return NULL;
}

int kx_thread_set_name(struct kx_thread *thread, pid_t pid, const char *comm, uint64_t tsc)
{
	struct kx_thread_event ev = { .kind = KX_EVENT_NAME, .tsc = tsc, .nargs = 2 };
	char name[KX_COMM_SIZE + 1] = "";
	uint64_t words[KX_COMM_SIZE / sizeof(uint64_t)];

	memcpy(name, comm, KX_COMM_SIZE);
	thread->pid = pid;
	if (!strcmp(name, thread->name))
		return 0;
	memcpy(thread->name, name, sizeof(name));
	if (!thread->stream)
		return 0; /* it will stand in the stream's first record */
	memcpy(words, comm, sizeof(words));
	return kx_thread_push(thread, &ev, words);
}

int kx_thread_table_end_gone(struct kx_thread_table *t)
{
	for (uint32_t i = 0; i < KX_THREAD_BUCKETS; i++) {
		for (struct kx_thread *thread = t->buckets[i]; thread; thread = thread->next_in_bucket) {
			/* at no time: the call stack takes the newest that it knows */
			const struct kx_thread_event end = { .kind = KX_EVENT_THREAD_EXIT };
			char path[64];
			int err;

			if (!thread->stream || !kx_callstack_depth(thread->stack))
				continue;
			snprintf(path, sizeof(path), "/proc/%d/task/%u", thread->pid, thread->tid);
			if (access(path, F_OK) == 0)
				continue;
			err = kx_thread_push(thread, &end, NULL);
			if (err)
				return err;
		}
	}
	return 0;
}

int kx_thread_table_release(struct kx_thread_table *t, uint64_t watermark,
			    struct kx_callstack_counts *counts, uint64_t *migrations,
			    size_t *released)
{
	struct kx_thread **link = &t->active;

	while (*link) {
		struct kx_thread *thread = *link;
		int err = kx_thread_release(thread, watermark, counts, migrations, released);

		if (err)
			return err;
		if (thread->nevents) {
			link = &thread->next_active;
		} else {
			thread->active = false;
			*link = thread->next_active;
		}
	}
	return 0;
}
