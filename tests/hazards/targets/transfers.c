// SPDX-License-Identifier: BSD-2-Clause
/*
 * Blocking transfers of 256 KiB, with pauses in between, whose other end is slow: "write" to a pipe, "send", "sendmsg", "all" (recv with
 * MSG_WAITALL). Without a signal they are never short, and this program takes a short one for an error, as many do.
 */
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define SIZE   (256 << 10)
#define ROUNDS 20
#define PIECE  (16 << 10)

static const char *how;
static int ends[2];

static void *slow_end(void *arg)
{
	size_t left = (size_t)SIZE * ROUNDS;
	char piece[PIECE];

	(void)arg;
	memset(piece, 1, sizeof(piece));
	while (left) {
		const ssize_t n = *how == 'a' ? send(ends[0], piece, sizeof(piece), 0) : read(ends[0], piece, sizeof(piece));

		if (n <= 0)
			break;
		left -= (size_t)n;
		target_pause(1);
	}
	return NULL;
}

static ssize_t move(char *block)
{
	struct iovec v[2] = { { block, SIZE / 2 }, { block + SIZE / 2, SIZE / 2 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };

	if (!strcmp(how, "write"))
		return write(ends[1], block, SIZE);
	if (!strcmp(how, "send"))
		return send(ends[1], block, SIZE, 0);
	return strcmp(how, "all") ? sendmsg(ends[1], &m, 0) : recv(ends[1], block, SIZE, MSG_WAITALL);
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	char *block = calloc(1, SIZE);
	long answer = 0;
	pthread_t slow;

	how = o.rest ? o.rest : "write";
	if (!block || (*how == 'w' ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) || pthread_create(&slow, NULL, slow_end, NULL))
		return 2;
	for (long n = 0; n < ROUNDS; n++) {
		const ssize_t moved = move(block);

		if (moved != SIZE) {
			printf("%zd bytes instead of %d\n", moved, SIZE);
			return 3;
		}
		answer += hz_outer(n);
		target_pause(10);
	}
	pthread_join(slow, NULL);
	return hazard_end(&o, answer, ROUNDS * (ROUNDS + 1));
}
