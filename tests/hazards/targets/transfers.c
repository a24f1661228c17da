// SPDX-License-Identifier: BSD-2-Clause
/*
 * Blocking transfers of 256 KiB through pipes and sockets whose other end is slow. Without a signal they are never short, and this program
 * treats a short one as an error, as many do.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define SIZE   (256 << 10)
#define ROUNDS 12
#define PIECE  (16 << 10)

enum way { PIPE, SEND, SENDMSG, WAITALL, WAYS };
static const char *const names[] = { "write to a pipe", "send", "sendmsg", "recv with MSG_WAITALL" };

struct transfer {
	enum way way;
	int ends[2];
	long short_ones;
};

static void *slow_end(void *arg)
{
	struct transfer *t = arg;
	char piece[PIECE];
	size_t left = (size_t)SIZE * ROUNDS;

	memset(piece, 1, sizeof(piece));
	while (left) {
		const struct timespec pause = { 0, 1000000 };
		const ssize_t n = t->way == WAITALL ? send(t->ends[0], piece, sizeof(piece), 0) : read(t->ends[0], piece, sizeof(piece));

		if (n <= 0)
			break;
		left -= (size_t)n;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static ssize_t move(struct transfer *t, char *block)
{
	struct iovec v[2] = { { block, SIZE / 2 }, { block + SIZE / 2, SIZE / 2 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };

	switch (t->way) {
	case PIPE:
		return write(t->ends[1], block, SIZE);
	case SEND:
		return send(t->ends[1], block, SIZE, 0);
	case SENDMSG:
		return sendmsg(t->ends[1], &m, 0);
	default:
		return recv(t->ends[1], block, SIZE, MSG_WAITALL);
	}
}

static void *fast_end(void *arg)
{
	struct transfer *t = arg;
	char *block = calloc(1, SIZE);

	for (int i = 0; i < ROUNDS; i++) {
		size_t done = 0;

		sink = hz_outer(i);
		while (done < SIZE) {
			const ssize_t n = move(t, block);

			if (n <= 0)
				exit(4);
			t->short_ones += n < SIZE - (ssize_t)done && done == 0;
			done += (size_t)n;
			if (done < SIZE && t->way == PIPE) { /* the rest, so that the other end ends */
				while (done < SIZE)
					done += (size_t)write(t->ends[1], block, SIZE - done);
			} else if (done < SIZE) {
				while (done < SIZE)
					done += (size_t)(t->way == WAITALL ? recv(t->ends[1], block, SIZE - done, 0)
									   : send(t->ends[1], block, SIZE - done, 0));
			}
		}
	}
	free(block);
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	struct transfer t[WAYS] = { 0 };
	pthread_t slow[WAYS], fast[WAYS];

	for (int i = 0; i < WAYS; i++) {
		t[i].way = (enum way)i;
		if (i == PIPE ? pipe((int *)t[i].ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, t[i].ends))
			return 3;
		pthread_create(&slow[i], NULL, slow_end, &t[i]);
		pthread_create(&fast[i], NULL, fast_end, &t[i]);
	}
	for (int i = 0; i < WAYS; i++) {
		pthread_join(fast[i], NULL);
		pthread_join(slow[i], NULL);
		if (t[i].short_ones)
			printf("%s: short\n", names[i]);
		fprintf(stderr, "%s: %ld short\n", names[i], t[i].short_ones);
	}
	return hazard_end(&o, 1, 1);
}
