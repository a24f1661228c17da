// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/keeper_internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/output.h"
#include "base/proc_stat.h"
#include "base/stop_request.h"
#include "tracer/debugger.h"
#include "tracer/keeper.h"
#include "tracer/keeper_patches.h"
#include "tracer/self_code.h"

#define ARG_START_FIELD 48 /* in /proc/PID/stat; the next one is its end */

/* How often it looks whether a debugger has ended. */
#define DEBUGGER_MS 200

struct link {
	bool exists; /* it was created here and not closed yet */
	bool waits;  /* to be closed as soon as no debugger is in the way */
	pid_t pid;   /* 0: of every process */
	uint64_t inode; /* of the probed file */
};

/* Links that a thread closes. */
struct closing {
	struct closing *next;
	int number;
	int *fds;
	size_t n;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t all_done;
	struct closing *first;
	int newest; /* number */
} closings = { .mutex = PTHREAD_MUTEX_INITIALIZER, .all_done = PTHREAD_COND_INITIALIZER };

struct keeper {
	int socket;
	pid_t owner;
	int owner_fd;
	struct link *links; /* by descriptor */
	size_t room;
	size_t waiting;
	char **outputs; /* whose temporary files are removed */
	size_t noutputs;
	struct kx_guarded_patches patches;
};

/* Waits for @events of the socket; -EPIPE: @peer has ended, and nothing is left to read. */
static int wait_for(int socket, int peer, short events)
{
	struct pollfd fds[] = { { .fd = socket, .events = events },
				{ .fd = peer, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return fds[0].revents & events ? 0 : -EPIPE;
}

/* Moves the bytes from or to @data: @events is POLLIN to receive, POLLOUT to send. */
static int transfer(int socket, int peer, short events, void *data, size_t size)
{
	char *p = data;

	while (size) {
		ssize_t n = events == POLLIN ? read(socket, p, size) : write(socket, p, size);

		if (n < 0 && errno == EAGAIN) {
			int code = wait_for(socket, peer, events);

			if (code)
				return code;
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		} else if (n > 0) {
			p += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int kx_keeper_send(int socket, int peer, const void *data, size_t size)
{
	return transfer(socket, peer, POLLOUT, (void *)data, size);
}

int kx_keeper_receive(int socket, int peer, void *data, size_t size)
{
	return transfer(socket, peer, POLLIN, data, size);
}

/*
 * `pkill kxray` and `pkill -f 'kxray record'` are not meant for the keeper: it gets another name, and
 * another command line than its owner's, whose memory it copies.
 */
static void rename_process(void)
{
	char buffer[KX_PROC_STAT_SIZE];
	const char *p = kx_proc_stat("/proc/self/stat", ARG_START_FIELD, buffer);
	unsigned long start, end;

	prctl(PR_SET_NAME, KX_KEEPER_NAME);
	if (p && sscanf(p, "%lu %lu", &start, &end) == 2 && end > start) {
		memset((void *)start, 0, end - start);
		snprintf((void *)start, end - start, "%s", KX_KEEPER_NAME);
	}
}

/* Without memory the keeper ends, and its owner does what it did. */
static void *get_memory(size_t size)
{
	void *p = malloc(size);

	if (!p)
		_exit(1);
	return p;
}

static struct link *link_of(struct keeper *k, int fd)
{
	if ((size_t)fd >= k->room && KX_ARRAY_EXTEND(k->links, k->room, (size_t)fd * 2 + 64))
		_exit(1);
	return &k->links[fd];
}

/* The bytes that follow a message. The owner's death ends the keeper's service. */
static void *receive(struct keeper *k, size_t size);

static int create(struct keeper *k, struct kx_keeper_message *m)
{
	struct kx_uprobe_request r = m->request;
	size_t each = m->count * sizeof(uint64_t);
	char *path = receive(k, m->path_size);
	uint64_t *offsets = receive(k, each);
	uint64_t *cookies = r.attach_type ? receive(k, each) : NULL;
	uint64_t *semaphores = r.semaphores ? receive(k, each) : NULL;
	struct stat st;
	int fd;

	r.path = path;
	r.offsets = offsets;
	r.cookies = cookies;
	r.semaphores = semaphores;
	setrlimit(RLIMIT_NOFILE, &m->files);
	fd = kx_uprobe_create(&r);
	if (fd >= 0)
		*link_of(k, fd) = (struct link){ .exists = true,
						 .pid = r.pid,
						 .inode = stat(path, &st) ? 0 : st.st_ino };
	free(path);
	free(offsets);
	free(cookies);
	free(semaphores);
	return fd;
}

/* Whether a debugger may write the probes' breakpoints back after they were removed. */
static bool has_debugger(const struct link *l)
{
	char name[32];

	return l->pid ? kx_debugger_of(l->pid, name, sizeof(name)) != 0 : kx_debugger_uses(l->inode);
}

/* Of @n descriptors, closes those that @l->waits does not keep. */
static void close_ready(struct keeper *k, int *fds, size_t n)
{
	size_t ready = 0;

	for (size_t i = 0; i < n; i++) {
		struct link *l = link_of(k, fds[i]);

		if (l->waits)
			continue;
		*l = (struct link){ 0 };
		fds[ready++] = fds[i];
	}
	kx_fds_close(fds, ready);
}

static int close_now(struct keeper *k, const struct kx_keeper_message *m)
{
	int *fds = receive(k, m->count * sizeof(*fds));

	for (uint32_t i = 0; i < m->count; i++)
		link_of(k, fds[i])->waits = false;
	close_ready(k, fds, m->count);
	free(fds);
	return 0;
}

static void *close_in_thread(void *arg)
{
	struct closing *c = arg, **at;

	kx_fds_close(c->fds, c->n);
	pthread_mutex_lock(&closings.mutex);
	for (at = &closings.first; *at != c;)
		at = &(*at)->next;
	*at = c->next;
	if (!closings.first)
		pthread_cond_signal(&closings.all_done);
	pthread_mutex_unlock(&closings.mutex);
	free(c->fds);
	free(c);
	return NULL;
}

static int close_soon(struct keeper *k, const struct kx_keeper_message *m)
{
	struct closing *c = get_memory(sizeof(*c));
	int number = ++closings.newest;
	pthread_t thread;

	*c = (struct closing){ .number = number, .fds = receive(k, m->count * sizeof(*c->fds)), .n = m->count };
	for (size_t i = 0; i < c->n; i++)
		*link_of(k, c->fds[i]) = (struct link){ 0 };
	pthread_mutex_lock(&closings.mutex);
	c->next = closings.first;
	closings.first = c;
	pthread_mutex_unlock(&closings.mutex);
	if (pthread_create(&thread, NULL, close_in_thread, c))
		close_in_thread(c);
	else
		pthread_detach(thread);
	return number;
}

static int first_closing(void)
{
	int first = closings.newest + 1;

	pthread_mutex_lock(&closings.mutex);
	for (const struct closing *c = closings.first; c; c = c->next)
		if (c->number < first)
			first = c->number;
	pthread_mutex_unlock(&closings.mutex);
	return first;
}

/* A thread that ends in the middle would leave breakpoints behind. */
static void wait_for_closings(void)
{
	pthread_mutex_lock(&closings.mutex);
	while (closings.first)
		pthread_cond_wait(&closings.all_done, &closings.mutex);
	pthread_mutex_unlock(&closings.mutex);
}

/* Marks the links that must wait. Most are of the same process and file as the one before. */
static void choose_waiting(struct keeper *k, const int *fds, size_t n)
{
	const struct link *before = NULL;

	for (size_t i = 0; i < n; i++) {
		struct link *l = link_of(k, fds[i]);

		if (!l->exists)
			continue;
		if (before && before->pid == l->pid && before->inode == l->inode)
			l->waits = before->waits;
		else
			l->waits = has_debugger(l);
		k->waiting += l->waits;
		before = l;
	}
}

static int release(struct keeper *k, const struct kx_keeper_message *m)
{
	int *fds = receive(k, m->count * sizeof(*fds));

	k->waiting = 0;
	choose_waiting(k, fds, m->count);
	close_ready(k, fds, m->count);
	free(fds);
	return (int)k->waiting;
}

static int guard(struct keeper *k, const struct kx_keeper_message *m)
{
	char **grown = reallocarray(k->outputs, k->noutputs + 1, sizeof(*grown));

	if (!grown)
		_exit(1);
	k->outputs = grown;
	k->outputs[k->noutputs++] = receive(k, m->path_size);
	return 0;
}

static int guard_family(struct keeper *k, const struct kx_keeper_message *m)
{
	struct kx_patch_family *family = receive(k, sizeof(*family));
	const int code = kx_guarded_patches_share(&k->patches, (pid_t)m->count, family);

	free(family);
	return code;
}

static void remove_temporary_files(const struct keeper *k)
{
	for (size_t i = 0; i < k->noutputs; i++) {
		char *map = kx_output_map_path(k->outputs[i]);

		kx_output_remove_temporary(k->outputs[i], k->owner);
		if (map)
			kx_output_remove_temporary(map, k->owner);
		free(map);
	}
}

/* Takes out jumps and closes the links, each as soon as its process has no debugger. */
static void close_links(struct keeper *k)
{
	int *fds = get_memory((k->room + 1) * sizeof(*fds));

	for (;;) {
		size_t n = 0, patched = kx_guarded_patches_remove(&k->patches);

		for (size_t fd = 0; fd < k->room; fd++)
			if (k->links[fd].exists)
				fds[n++] = (int)fd;
		if (!n && !patched)
			break;
		choose_waiting(k, fds, n);
		close_ready(k, fds, n);
		poll(NULL, 0, patched ? KX_PATCHES_MS : k->waiting ? DEBUGGER_MS : 0);
		k->waiting = 0;
	}
	free(fds);
}

/* Closes what the owner had open, the links last: another process may wait for a pipe's end. */
static void end(struct keeper *k) __attribute__((noreturn));
static void end(struct keeper *k)
{
	unsigned from = STDERR_FILENO + 1;

	close_range(0, STDERR_FILENO, 0);
	remove_temporary_files(k);
	(void)!chdir("/"); /* a folder in use cannot be unmounted */
	wait_for_closings();
	for (unsigned fd = 0; fd < k->room; fd++) {
		if (!k->links[fd].exists)
			continue;
		if (fd > from)
			close_range(from, fd - 1, 0);
		from = fd + 1;
	}
	close_range(from, ~0u, 0);
	k->waiting = 0;
	close_links(k);
	_exit(0);
}

static void *receive(struct keeper *k, size_t size)
{
	void *data = get_memory(size + 1);

	if (kx_keeper_receive(k->socket, k->owner_fd, data, size))
		end(k);
	return data;
}

static int handle(struct keeper *k, struct kx_keeper_message *m)
{
	switch (m->action) {
	case KX_KEEPER_CREATE:
		return create(k, m);
	case KX_KEEPER_CLOSE:
		return close_now(k, m);
	case KX_KEEPER_CLOSE_SOON:
		return close_soon(k, m);
	case KX_KEEPER_CLOSING:
		return first_closing();
	case KX_KEEPER_RELEASE:
		return release(k, m);
	case KX_KEEPER_GUARD:
		return guard(k, m);
	case KX_KEEPER_GUARD_PATCHES:
		return kx_guarded_patches_add(&k->patches, (pid_t)m->count);
	case KX_KEEPER_GUARD_FAMILY:
		return guard_family(k, m);
	case KX_KEEPER_RELEASE_PATCHES:
		kx_guarded_patches_drop(&k->patches, (pid_t)m->count);
		return 0;
	case KX_KEEPER_HIDE:
		kx_self_code_hide();
		return 0;
	case KX_KEEPER_STOP:
		wait_for_closings();
		return k->waiting > 0 || k->patches.n > 0;
	}
	return -EINVAL;
}

void kx_keeper_process_run(int socket, pid_t owner, int owner_fd)
{
	struct keeper k = { .socket = socket, .owner = owner, .owner_fd = owner_fd };
	struct kx_keeper_message m;

	/* all signals are blocked already: none that comes later asks the keeper for anything */
	kx_stop_listen(false);
	setsid();
	rename_process();
	while (!kx_keeper_receive(socket, owner_fd, &m, sizeof(m))) {
		int answer = handle(&k, &m);

		/* whether the owner still lives is seen at the next message */
		kx_keeper_send(socket, owner_fd, &answer, sizeof(answer));
		if (m.action == KX_KEEPER_STOP && !answer)
			_exit(0);
	}
	end(&k);
}
