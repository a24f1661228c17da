// SPDX-License-Identifier: BSD-2-Clause
#include "collect/process_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup_path.h"
#include "base/json_text.h"

#define FIRST_BUCKETS 1024u /* a power of two */
/* Bytes of one command line, and of those of all processes together. */
#define MAX_COMMAND 4096u
#define MAX_COMMANDS (16u << 20)
/* Bytes of /proc/PID/cgroup: 14 hierarchies of version 1, of which the one that is cut tells no more than the others. */
#define MAX_CGROUPS 8192u

/* Processes in the order in which they were added, or ended. */
struct list {
	struct kx_process *first, **last;
	size_t count;
};

struct kx_process_table {
	struct kx_process **buckets; /* by pid, the newest first */
	size_t nbuckets;
	struct list alive, ended;
	size_t command_bytes; /* of all p->command */
	uint64_t forgotten;   /* ended, referenced by the trace, evicted */
	pid_t first;
	bool keep; /* see kx_process_table_keep_ended */
};

static void forget_command(struct kx_process_table *t, struct kx_process *p)
{
	t->command_bytes -= p->command_size;
	free(p->command);
	p->command = NULL;
	p->command_size = 0;
}

static void read_command(struct kx_process_table *t, struct kx_process *p)
{
	char text[MAX_COMMAND];
	size_t n;

	if (p->command || p->ended || t->command_bytes > MAX_COMMANDS)
		return;
	n = kx_proc_command(p->pid, text, sizeof(text));
	p->command = n ? malloc(n) : NULL;
	if (!p->command)
		return;
	memcpy(p->command, text, n);
	p->command_size = n;
	t->command_bytes += n;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (*text)
		json_object_set_new(object, key, kx_json_text(text, KX_CGROUP_SIZE));
}

/* A process that has ended keeps the group that it has inherited. */
static void read_group(struct kx_process *p)
{
	char text[MAX_CGROUPS], path[KX_CGROUP_SIZE];
	struct kx_cgroup g;
	json_t *group;

	if (p->ended || !kx_proc_cgroup(p->pid, text, sizeof(text)))
		return;
	kx_cgroup_parse(text, path, sizeof(path), &g);
	group = json_object();
	set_text(group, "cgroup", path);
	set_text(group, "unit", g.unit);
	set_text(group, "container", g.container);
	set_text(group, "container_runtime", g.runtime);
	set_text(group, "pod", g.pod);
	json_decref(p->group);
	p->group = group;
}

static void append(struct list *list, struct kx_process *p)
{
	p->next = NULL;
	p->link = list->last;
	*list->last = p;
	list->last = &p->next;
	list->count++;
}

static void take_out(struct list *list, struct kx_process *p)
{
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	else
		list->last = p->link;
	list->count--;
}

static struct kx_process **bucket(const struct kx_process_table *t, pid_t pid)
{
	return &t->buckets[((uint32_t)pid * 0x9e3779b1u >> 8) & (t->nbuckets - 1)];
}

struct kx_process_table *kx_process_table_new(void)
{
	struct kx_process_table *t = calloc(1, sizeof(*t));

	if (!t || !(t->buckets = calloc(FIRST_BUCKETS, sizeof(struct kx_process *)))) {
		free(t);
		return NULL;
	}
	t->nbuckets = FIRST_BUCKETS;
	t->alive.last = &t->alive.first;
	t->ended.last = &t->ended.first;
	return t;
}

static void free_list(struct kx_process *p)
{
	for (struct kx_process *next; p; p = next) {
		next = p->next;
		free(p->command);
		json_decref(p->group);
		json_decref(p->mappings);
		free(p);
	}
}

void kx_process_table_free(struct kx_process_table *t)
{
	if (!t)
		return;
	free_list(t->alive.first);
	free_list(t->ended.first);
	free(t->buckets);
	free(t);
}

static struct kx_process *find(const struct kx_process_table *t, pid_t pid)
{
	struct kx_process *p = *bucket(t, pid);

	while (p && p->pid != pid)
		p = p->next_in_bucket;
	return p;
}

const struct kx_process *kx_process_table_find(const struct kx_process_table *t, pid_t pid)
{
	return find(t, pid);
}

static void forget(struct kx_process_table *t, struct kx_process *p)
{
	struct kx_process **at = bucket(t, p->pid);

	while (*at != p)
		at = &(*at)->next_in_bucket;
	*at = p->next_in_bucket;
	take_out(p->ended ? &t->ended : &t->alive, p);
	forget_command(t, p);
	json_decref(p->group);
	json_decref(p->mappings);
	free(p);
}

/* Without memory the chains of the buckets become longer, no more. */
static void grow(struct kx_process_table *t)
{
	size_t n = t->nbuckets * 2, old = t->nbuckets;
	struct kx_process **before = t->buckets, *turned, *p, *next;

	t->buckets = calloc(n, sizeof(struct kx_process *));
	if (!t->buckets) {
		t->buckets = before;
		return;
	}
	t->nbuckets = n;
	for (size_t i = 0; i < old; i++) {
		/* the newest of a pid stays before the older ones */
		for (turned = NULL, p = before[i]; p; p = next) {
			next = p->next_in_bucket;
			p->next_in_bucket = turned;
			turned = p;
		}
		for (p = turned; p; p = next) {
			next = p->next_in_bucket;
			p->next_in_bucket = *bucket(t, p->pid);
			*bucket(t, p->pid) = p;
		}
	}
	free(before);
}

static struct kx_process *add(struct kx_process_table *t, pid_t pid)
{
	struct kx_process *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (kx_process_table_size(t) >= t->nbuckets)
		grow(t);
	p->pid = pid;
	p->next_in_bucket = *bucket(t, pid);
	*bucket(t, pid) = p;
	append(&t->alive, p);
	return p;
}

/* The process that has this pid now; read from /proc if it is not in the table. */
static struct kx_process *find_or_read(struct kx_process_table *t, pid_t pid)
{
	struct kx_process *p = find(t, pid);

	if (p)
		return p;
	p = add(t, pid);
	if (p)
		kx_proc_process(pid, &p->parent, &p->ns_pid, p->name);
	return p;
}

static void set_name(struct kx_process *p, const char *name)
{
	size_t n = strnlen(name, KX_COMM_SIZE);

	memcpy(p->name, name, n);
	p->name[n] = 0;
}

int kx_process_table_add(struct kx_process_table *t, pid_t pid)
{
	struct kx_process *p = find_or_read(t, pid);

	if (!p)
		return -ENOMEM;
	p->initial = true;
	if (!t->first)
		t->first = pid;
	read_command(t, p);
	read_group(p);
	return 0;
}

int kx_process_table_born(struct kx_process_table *t, pid_t pid, pid_t parent, pid_t ns_pid,
			  const char *name, uint64_t tsc)
{
	const struct kx_process *from = parent ? find(t, parent) : NULL;
	json_t *mappings = from ? json_incref(from->mappings) : NULL;
	struct kx_process *p;

	for (p = find(t, pid); t->keep && p; p = p->next_in_bucket) {
		if (p->pid == pid && p->started == tsc) {
			json_decref(mappings);
			return 0;
		}
	}
	kx_process_table_ended(t, pid, tsc);
	p = add(t, pid);
	if (!p) {
		json_decref(mappings);
		return -ENOMEM;
	}
	p->mappings = mappings;
	p->group = from ? json_incref(from->group) : NULL;
	p->parent = parent;
	p->ns_pid = ns_pid == pid ? 0 : ns_pid;
	p->started = tsc;
	set_name(p, name);
	return 0;
}

int kx_process_table_renamed(struct kx_process_table *t, pid_t pid, const char *name, uint64_t tsc)
{
	struct kx_process *p = find_or_read(t, pid);

	if (!p)
		return -ENOMEM;
	if (t->keep && (p->renamed >= tsc || p->started > tsc))
		return 0;
	if (p->ended) { /* only its main thread: another thread's exec takes over its id */
		take_out(&t->ended, p);
		p->ended = 0;
		append(&t->alive, p);
	}
	memcpy(p->before, p->name, sizeof(p->before));
	p->renamed = tsc;
	set_name(p, name);
	forget_command(t, p);
	if (p->in_trace || p->initial)
		read_command(t, p);
	return 0;
}

void kx_process_table_keep_ended(struct kx_process_table *t)
{
	t->keep = true;
}

void kx_process_table_ended(struct kx_process_table *t, pid_t pid, uint64_t tsc)
{
	struct kx_process *p = find(t, pid);

	if (!p || p->ended || (t->keep && p->started > tsc))
		return;
	if (!p->in_trace && !p->initial && !t->keep) {
		forget(t, p);
		return;
	}
	take_out(&t->alive, p);
	p->ended = tsc ? tsc : 1;
	append(&t->ended, p);
	if (t->ended.count > KX_MAX_ENDED_PROCESSES) {
		t->forgotten += t->ended.first->in_trace || t->ended.first->initial;
		forget(t, t->ended.first);
	}
}

void kx_process_table_name(struct kx_process_table *t, pid_t pid, const char *name)
{
	struct kx_process *p = find(t, pid);

	if (p && !p->name[0])
		set_name(p, name);
}

void kx_process_table_map(struct kx_process_table *t, pid_t pid, json_t *mappings)
{
	struct kx_process *p = mappings ? find_or_read(t, pid) : NULL;

	if (!p) {
		json_decref(mappings);
		return;
	}
	json_decref(p->mappings);
	p->mappings = mappings;
}

const struct kx_process *kx_process_table_use(struct kx_process_table *t, pid_t pid)
{
	struct kx_process *p = find_or_read(t, pid);

	if (p && !p->in_trace) {
		p->in_trace = true;
		read_command(t, p);
		read_group(p);
	}
	return p;
}

const char *kx_process_name_at(const struct kx_process *p, uint64_t tsc)
{
	return tsc < p->renamed && p->before[0] ? p->before : p->name;
}

pid_t kx_process_table_first(const struct kx_process_table *t)
{
	return t->first;
}

size_t kx_process_table_size(const struct kx_process_table *t)
{
	return t->alive.count + t->ended.count;
}

uint64_t kx_process_table_forgotten(const struct kx_process_table *t)
{
	return t->forgotten;
}

/* JSON */

static json_t *command_json(const struct kx_process *p)
{
	json_t *list = json_array();

	/* json_string rejects text that is not UTF-8: such an argument is left out */
	for (size_t i = 0; i < p->command_size; i += strlen(p->command + i) + 1)
		json_array_append_new(list, json_string(p->command + i));
	return list;
}

static json_t *process_json(const struct kx_process *p, uint64_t start_tsc, uint64_t tsc_hz)
{
	double hz = tsc_hz ? (double)tsc_hz : 1;
	json_t *j = json_object();

	json_object_set_new(j, "pid", json_integer(p->pid));
	if (p->ns_pid)
		json_object_set_new(j, "ns_pid", json_integer(p->ns_pid));
	if (p->name[0])
		json_object_set_new(j, "name", kx_json_text(p->name, sizeof(p->name)));
	if (p->command)
		json_object_set_new(j, "command", command_json(p));
	if (p->parent)
		json_object_set_new(j, "parent", json_integer(p->parent));
	if (p->started)
		json_object_set_new(j, "started",
				    json_real((double)(int64_t)(p->started - start_tsc) / hz));
	if (p->ended)
		json_object_set_new(j, "ended",
				    json_real((double)(int64_t)(p->ended - start_tsc) / hz));
	if (p->group)
		json_object_update(j, p->group);
	if (p->mappings)
		json_object_set(j, "mappings", p->mappings);
	return j;
}

json_t *kx_process_table_json(const struct kx_process_table *t, uint64_t start_tsc, uint64_t tsc_hz)
{
	const struct list *lists[] = { &t->ended, &t->alive };
	json_t *all = json_array();

	for (size_t i = 0; i < 2; i++)
		for (const struct kx_process *p = lists[i]->first; p; p = p->next)
			if (p->in_trace || p->initial)
				json_array_append_new(all, process_json(p, start_tsc, tsc_hz));
	return all;
}
