// SPDX-License-Identifier: BSD-2-Clause
#include "thread_table.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fdr.h"

#define COMM_SIZE 16
/* Passes that a thread without a name is held back for. */
#define MAX_WAITS 10
#define BUCKETS	  4096u /* a power of two */

struct kx_thread {
	struct kx_thread_table *table;
	struct kx_thread *next_in_bucket, *next_active;
	uint32_t tid;
	pid_t pid; /* 0 while unknown */
	char name[COMM_SIZE + 1];
	bool active; /* has waiting events */
	bool ended;
	uint8_t waited; /* passes for the name of a thread that is gone */
	bool sorted; /* waiting events stand in order of time */
	struct kx_callstack *stack;
	struct kx_fdr_thread *stream;
	struct kx_thread_event *events;
	uint32_t nevents, room;
	uint64_t *args; /* arguments and losses of waiting events */
	uint32_t nargs, args_room;
	uint64_t lost_entries, lost_exits; /* totals already turned into gaps */
	uint64_t lost_to;		   /* end of the newest gap */
	uint64_t *migrations;
};

struct kx_thread_table {
	struct kx_fdr_writer *writer;
	const uint8_t *traits;
	uint32_t ntraits;
	struct process {
		pid_t pid;
		char name[COMM_SIZE + 1]; /* when the recording began: it may be gone later */
	} * processes;
	size_t nprocesses;
	const char *session_note; /* NULL once it is written */
	struct kx_thread *active;
	struct kx_thread *buckets[BUCKETS];
};

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
	for (uint32_t i = 0; i < BUCKETS; i++) {
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
	struct kx_thread **bucket = &t->buckets[tid & (BUCKETS - 1)], *thread = *bucket;

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

/* False if the thread has no name and is gone: its end, which has the name, is on its way. */
static bool find_identity(struct kx_thread *thread)
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
			snprintf(thread->name, sizeof(thread->name), "%.*s", COMM_SIZE, text);
	}
	return thread->name[0] != 0;
}

static int open_stream(struct kx_thread *thread, uint64_t tsc)
{
	struct kx_thread_table *t = thread->table;
	const char *note = t->session_note;
	const char *process = NULL;

	if (thread->stream)
		return 0;
	for (size_t i = 0; i < t->nprocesses; i++) {
		if (t->processes[i].pid != thread->pid)
			continue;
		read_process_name(&t->processes[i]);
		process = t->processes[i].name;
	}
	thread->stream = kx_fdr_writer_thread(t->writer, thread->pid, (int32_t)thread->tid,
					      thread->name[0] ? thread->name : NULL,
					      process && *process ? process : NULL);
	if (!thread->stream)
		return -ENOMEM;
	t->session_note = NULL;
	return note ? kx_fdr_custom(thread->stream, tsc, note, strlen(note)) : 0;
}

/* Writes "kxray:KIND {...}"; takes @json over. */
static int write_note(struct kx_thread *thread, uint64_t tsc, const char *kind, json_t *json)
{
	char *body = json ? json_dumps(json, JSON_COMPACT) : NULL, text[512];
	int n = body ? snprintf(text, sizeof(text), KX_FDR_NOTE_PREFIX "%s %s", kind, body) : -1;

	free(body);
	json_decref(json);
	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENOMEM;
	return kx_fdr_custom(thread->stream, tsc, text, (size_t)n);
}

int kx_thread_set_name(struct kx_thread *thread, pid_t pid, const char *comm, uint64_t tsc)
{
	struct kx_thread_event ev = { .kind = KX_EVENT_NAME, .tsc = tsc, .nargs = 2 };
	char name[COMM_SIZE + 1] = "";
	uint64_t words[COMM_SIZE / sizeof(uint64_t)];

	memcpy(name, comm, COMM_SIZE);
	thread->pid = pid;
	if (!strcmp(name, thread->name))
		return 0;
	memcpy(thread->name, name, sizeof(name));
	if (!thread->stream)
		return 0; /* it will stand in the stream's first record */
	memcpy(words, comm, sizeof(words));
	return kx_thread_push(thread, &ev, words);
}

static int write_name(struct kx_thread *thread, const struct kx_thread_event *ev)
{
	char name[COMM_SIZE + 1] = "";

	memcpy(name, thread->args + ev->args_at, COMM_SIZE);
	return write_note(thread, ev->tsc, "thread",
			  json_pack("{s:i,s:i,s:s%}", "tid", (int)thread->tid, "pid",
				    (int)thread->pid, "name", name, strlen(name)));
}

static int sink_entry(void *ctx, const struct kx_event *ev)
{
	struct kx_thread *thread = ctx;

	return kx_fdr_entry(thread->stream, ev->tsc, ev->cpu, ev->func, ev->args, ev->nargs);
}

static int sink_repairs(void *ctx, const struct kx_event *ev, uint32_t n)
{
	return write_note(ctx, ev->tsc, "repaired", json_pack("{s:i}", "exits", (int)n));
}

static int sink_exit(void *ctx, const struct kx_event *ev, bool repaired)
{
	struct kx_thread *thread = ctx;

	if (repaired)
		return kx_fdr_added_exit(thread->stream, ev->tsc, ev->cpu, ev->func);
	return kx_fdr_exit(thread->stream, ev->tsc, ev->cpu, ev->func,
			   ev->kind == KX_EVENT_TAIL_EXIT);
}

static int write_sample(struct kx_thread *thread, const struct kx_event *ev)
{
	char text[64];
	int n;

	n = snprintf(text, sizeof(text), KX_FDR_NOTE_PREFIX "sample {\"ip\":\"0x%llx\"}",
		     (unsigned long long)ev->sp);
	return kx_fdr_custom(thread->stream, ev->tsc, text, (size_t)n);
}

static int write_gap(struct kx_thread *thread, uint64_t entries, uint64_t exits, uint64_t from,
		     uint64_t to)
{
	return write_note(thread, to, "loss",
			  json_pack("{s:I,s:I,s:I,s:I}", "entries", (json_int_t)entries, "exits",
				    (json_int_t)exits, "from", (json_int_t)from, "to",
				    (json_int_t)to));
}

/* Exits that are left out because their entry was lost are lost with it. */
static int write_partners(struct kx_thread *thread, uint64_t exits, uint64_t tsc)
{
	if (!exits || !thread->stream)
		return 0;
	return write_gap(thread, 0, exits,
			 thread->lost_to && thread->lost_to < tsc ? thread->lost_to : tsc, tsc);
}

static int sink_other(void *ctx, const struct kx_event *ev)
{
	struct kx_thread *thread = ctx;
	int err;

	switch (ev->kind) {
	case KX_EVENT_MIGRATE:
		++*thread->migrations;
		return kx_fdr_cpu(thread->stream, ev->tsc, ev->cpu);
	case KX_EVENT_LOSS:
		return write_gap(thread, ev->loss.entries, ev->loss.exits, ev->loss.from, ev->tsc);
	case KX_EVENT_SAMPLE:
		return write_sample(thread, ev);
	case KX_EVENT_THREAD_EXIT:
		err = kx_fdr_thread_end(thread->stream);
		thread->ended = true;
		thread->stream = NULL;
		return err;
	default:
		return 0;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct kx_thread_event *x = a, *y = b;

	if (x->tsc != y->tsc)
		return x->tsc < y->tsc ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/* A thread that only ever migrated or ended has nothing to tell. */
static bool has_calls(const struct kx_thread *thread)
{
	if (thread->stream)
		return true;
	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].kind != KX_EVENT_MIGRATE &&
		    thread->events[i].kind != KX_EVENT_NAME &&
		    thread->events[i].kind != KX_EVENT_THREAD_EXIT)
			return true;
	return false;
}

/* A busy thread always has events waiting: what belongs to released ones must go all the same. */
static void drop_used_args(struct kx_thread *thread)
{
	uint32_t first = thread->nargs;

	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].nargs && thread->events[i].args_at < first)
			first = thread->events[i].args_at;
	thread->nargs -= first;
	memmove(thread->args, thread->args + first, thread->nargs * sizeof(*thread->args));
	for (uint32_t i = 0; i < thread->nevents; i++)
		if (thread->events[i].nargs)
			thread->events[i].args_at -= first;
}

static int release_thread(struct kx_thread *thread, uint64_t watermark,
			  struct kx_callstack_counts *counts, uint64_t *migrations,
			  size_t *released)
{
	const struct kx_callstack_sink sink = {
		.entry = sink_entry,
		.exit = sink_exit,
		.repairs = sink_repairs,
		.other = sink_other,
		.ctx = thread,
	};
	uint64_t partners = counts->orphans_of_loss, last_tsc = 0;
	bool calls = has_calls(thread);
	uint32_t n = 0;
	int err = 0;

	thread->migrations = migrations;
	if (calls && !thread->stream && !find_identity(thread) && watermark != UINT64_MAX &&
	    thread->waited++ < MAX_WAITS)
		return 0;
	if (!thread->sorted)
		qsort(thread->events, thread->nevents, sizeof(*thread->events), by_time);
	thread->sorted = true;
	for (; n < thread->nevents && !err; n++) {
		const struct kx_thread_event *e = &thread->events[n];
		struct kx_event ev = { .tsc = e->tsc,
				       .sp = e->sp,
				       .func = e->func,
				       .cpu = e->cpu,
				       .kind = e->kind,
				       .nargs = e->nargs };

		if (e->tsc >= watermark)
			break;
		last_tsc = e->tsc;
		if (!calls) {
			thread->ended |= e->kind == KX_EVENT_THREAD_EXIT;
			continue;
		}
		err = open_stream(thread, e->tsc);
		if (err)
			break;
		if (e->kind == KX_EVENT_NAME) {
			err = write_name(thread, e);
			continue;
		}
		if (e->kind == KX_EVENT_LOSS) {
			ev.loss.from = thread->args[e->args_at];
			ev.loss.entries = thread->args[e->args_at + 1];
			ev.loss.exits = thread->args[e->args_at + 2];
			ev.nargs = 0;
		} else if (e->nargs) {
			memcpy(ev.args, thread->args + e->args_at, e->nargs * sizeof(*ev.args));
		}
		if (e->kind == KX_EVENT_THREAD_EXIT) {
			err = write_partners(thread, counts->orphans_of_loss - partners, e->tsc);
			partners = counts->orphans_of_loss;
		}
		if (!err)
			err = kx_callstack_feed(thread->stack, &ev, &sink, counts);
	}
	if (!err)
		err = write_partners(thread, counts->orphans_of_loss - partners, last_tsc);
	*released += n;
	thread->nevents -= n;
	memmove(thread->events, thread->events + n, thread->nevents * sizeof(*thread->events));
	for (uint32_t i = 0; i < thread->nevents; i++)
		thread->events[i].order = i;
	drop_used_args(thread);
	return err;
}

int kx_thread_table_end_gone(struct kx_thread_table *t)
{
	for (uint32_t i = 0; i < BUCKETS; i++) {
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
		int err = release_thread(thread, watermark, counts, migrations, released);

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
