// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls that are never short without a signal, although they look for one in between: copies of files and random bytes, writes to a slow terminal, and
 * reads that wait for a number of bytes. A short one is an error here, as in many programs. Each kind has a thread, or the one that is named.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <termios.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define ROUNDS 60
#define MUCH   (8L << 20)
#define SOME   (1L << 20)
#define LINE   4000L
#define LEAST  30

struct mover {
	const char *name;
	void (*open)(struct mover *m);
	long (*move)(struct mover *m);
	long size;
	int in, out;
	char *block;
	pthread_t thread;
};

static int ended;

static void check(int right)
{
	if (right)
		return;
	perror("bulk");
	exit(4);
}

static void open_files(struct mover *m)
{
	m->in = memfd_create("in", 0);
	m->out = memfd_create("out", 0);
	check(pwrite(m->in, m->block, MUCH, 0) == MUCH);
}

static void open_device(struct mover *m)
{
	m->in = open(m->name, O_RDONLY);
	check(m->in >= 0);
}

/* The other end of a terminal, slow. */
static void *drain(void *arg)
{
	const struct mover *m = arg;
	char piece[700];

	while (read(m->in, piece, sizeof(piece)) > 0)
		target_pause(1);
	return NULL;
}

static void *feed(void *arg)
{
	const struct mover *m = arg;

	while (write(m->out, "abc", 3) == 3)
		target_pause(3);
	return NULL;
}

static void open_terminal(int *master, int *slave)
{
	struct termios t;

	*master = posix_openpt(O_RDWR | O_NOCTTY);
	check(*master >= 0 && !unlockpt(*master));
	*slave = ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	check(*slave >= 0 && !tcgetattr(*slave, &t));
	cfmakeraw(&t);
	t.c_cc[VMIN] = LEAST;
	check(!tcsetattr(*slave, TCSANOW, &t));
}

static void open_slow_terminal(struct mover *m)
{
	pthread_t t;

	open_terminal(&m->in, &m->out);
	check(!pthread_create(&t, NULL, drain, m));
}

static void open_fed_terminal(struct mover *m)
{
	pthread_t t;

	open_terminal(&m->out, &m->in);
	check(!pthread_create(&t, NULL, feed, m));
}

static void open_fed_socket(struct mover *m)
{
	const int least = LEAST;
	int ends[2];
	pthread_t t;

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	m->in = ends[0];
	m->out = ends[1];
	check(!setsockopt(m->in, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)) && !pthread_create(&t, NULL, feed, m));
}

static void open_nothing(struct mover *m)
{
	m->in = -1;
}

static long by_getrandom(struct mover *m)
{
	return getrandom(m->block, m->size, 0);
}

static long by_read(struct mover *m)
{
	return read(m->in, m->block, m->size);
}

static long by_write(struct mover *m)
{
	return write(m->out, m->block, m->size);
}

static long by_sendfile(struct mover *m)
{
	off_t from = 0;
	const long n = lseek(m->out, 0, SEEK_SET) ? -1 : sendfile(m->out, m->in, &from, m->size);

	return n == from ? n : -1;
}

static long by_copy(struct mover *m)
{
	off_t from = 0, to = 0;
	const long n = copy_file_range(m->in, &from, m->out, &to, m->size, 0);

	return n == from && n == to ? n : -1;
}

static struct mover movers[] = {
	{ .name = "getrandom", .open = open_nothing, .move = by_getrandom, .size = SOME },
	{ .name = "/dev/urandom", .open = open_device, .move = by_read, .size = SOME },
	{ .name = "/dev/zero", .open = open_device, .move = by_read, .size = MUCH },
	{ .name = "sendfile", .open = open_files, .move = by_sendfile, .size = MUCH },
	{ .name = "copy_file_range", .open = open_files, .move = by_copy, .size = MUCH },
	{ .name = "terminal", .open = open_slow_terminal, .move = by_write, .size = LINE },
	{ .name = "VMIN", .open = open_fed_terminal, .move = by_read, .size = LEAST },
	{ .name = "SO_RCVLOWAT", .open = open_fed_socket, .move = by_read, .size = LEAST },
};

#define MOVERS (sizeof(movers) / sizeof(*movers))

static void *run(void *arg)
{
	struct mover *m = arg;
	long wrong = 0;

	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		const long n = m->move(m);

		if (n != m->size && !wrong++)
			printf("%s: %ld of %ld bytes\n", m->name, n, m->size);
	}
	return (void *)wrong;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	for (size_t i = 0; i < MOVERS; i++) {
		struct mover *m = &movers[i];

		if (o.rest && strcmp(o.rest, m->name))
			continue;
		m->block = calloc(1, MUCH);
		check(m->block != NULL);
		m->open(m);
		check(!pthread_create(&m->thread, NULL, run, m));
	}
	for (long i = 0; i < ROUNDS; i++) {
		answer += hz_outer(i);
		target_pause(100);
	}
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < MOVERS; i++) {
		void *wrong = NULL;

		if (movers[i].block)
			pthread_join(movers[i].thread, &wrong);
		answer += (long)wrong << 32;
	}
	fflush(stdout);
	return hazard_end(&o, answer, ROUNDS * (ROUNDS + 1));
}
