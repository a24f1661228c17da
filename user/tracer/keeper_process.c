// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/keeper_internal.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/output.h"
#include "tracer/keeper.h"
#include "tracer/self_code.h"

#define ARG_START_FIELD 48 /* in /proc/PID/stat; the next one is its end */

struct keeper {
	int socket;
	pid_t owner;
	int owner_fd;
	bool *is_link; /* by descriptor: it was created here and not closed yet */
	size_t room;
	char **outputs; /* whose temporary files are removed */
	size_t noutputs;
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

int kx_keeper_send(int socket, int peer, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(socket, p, size);

		if (n < 0 && errno == EAGAIN) {
			int code = wait_for(socket, peer, POLLOUT);

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

int kx_keeper_receive(int socket, int peer, void *data, size_t size)
{
	char *p = data;

	while (size) {
		ssize_t n = read(socket, p, size);

		if (n < 0 && errno == EAGAIN) {
			int code = wait_for(socket, peer, POLLIN);

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

/*
 * `pkill kxray` and `pkill -f 'kxray record'` are not meant for the keeper: it gets another name, and
 * another command line than its owner's, whose memory it copies.
 */
static void rename_process(void)
{
	char stat[1024], *p;
	unsigned long start, end;
	FILE *f = fopen("/proc/self/stat", "re");
	size_t n = f ? fread(stat, 1, sizeof(stat) - 1, f) : 0;

	prctl(PR_SET_NAME, KX_KEEPER_NAME);
	if (f)
		fclose(f);
	stat[n] = 0;
	p = strrchr(stat, ')');
	for (int field = 2; p && field < ARG_START_FIELD; field++) {
		p = strchr(p, ' ');
		p += p != NULL;
	}
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

static void set_link(struct keeper *k, int fd, bool is_link)
{
	if ((size_t)fd >= k->room) {
		size_t room = (size_t)fd * 2 + 64;
		bool *grown = realloc(k->is_link, room);

		if (!grown)
			_exit(1);
		memset(grown + k->room, 0, room - k->room);
		k->is_link = grown;
		k->room = room;
	}
	k->is_link[fd] = is_link;
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
	int fd;

	r.path = path;
	r.offsets = offsets;
	r.cookies = cookies;
	setrlimit(RLIMIT_NOFILE, &m->files);
	fd = kx_uprobe_create(&r);
	if (fd >= 0)
		set_link(k, fd, true);
	free(path);
	free(offsets);
	free(cookies);
	return fd;
}

static int close_all(struct keeper *k, const struct kx_keeper_message *m)
{
	int *fds = receive(k, m->count * sizeof(*fds));

	for (uint32_t i = 0; i < m->count; i++)
		set_link(k, fds[i], false);
	kx_fds_close(fds, m->count);
	free(fds);
	return 0;
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

static void remove_temporary_files(const struct keeper *k)
{
	for (size_t i = 0; i < k->noutputs; i++) {
		char map[PATH_MAX];

		kx_output_remove_temporary(k->outputs[i], k->owner);
		snprintf(map, sizeof(map), "%s.map", k->outputs[i]);
		kx_output_remove_temporary(map, k->owner);
	}
}

/* Closes what the owner had open, the links last: another process may wait for a pipe's end. */
static void end(struct keeper *k) __attribute__((noreturn));
static void end(struct keeper *k)
{
	int *links = get_memory((k->room + 1) * sizeof(*links));
	unsigned n = 0, from = STDERR_FILENO + 1;

	close_range(0, STDERR_FILENO, 0);
	remove_temporary_files(k);
	(void)!chdir("/"); /* a folder in use cannot be unmounted */
	for (unsigned fd = 0; fd < k->room; fd++) {
		if (!k->is_link[fd])
			continue;
		links[n++] = (int)fd;
		if (fd > from)
			close_range(from, fd - 1, 0);
		from = fd + 1;
	}
	close_range(from, ~0u, 0);
	kx_fds_close(links, n);
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
		return close_all(k, m);
	case KX_KEEPER_GUARD:
		return guard(k, m);
	case KX_KEEPER_HIDE:
		kx_self_code_hide();
		return 0;
	default:
		_exit(0);
	}
}

void kx_keeper_process_run(int socket, pid_t owner, int owner_fd)
{
	struct keeper k = { .socket = socket, .owner = owner, .owner_fd = owner_fd };
	struct kx_keeper_message m;

	/* all signals are blocked already */
	setsid();
	rename_process();
	while (!kx_keeper_receive(socket, owner_fd, &m, sizeof(m))) {
		int answer = handle(&k, &m);

		/* whether the owner still lives is seen at the next message */
		kx_keeper_send(socket, owner_fd, &answer, sizeof(answer));
	}
	end(&k);
}
