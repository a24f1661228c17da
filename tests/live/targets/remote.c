// SPDX-License-Identifier: BSD-2-Clause
/*
 * A client and a server of one connection: `remote 0.0.0.0:0` answers requests and writes its port to standard output ("port N"),
 * `remote ADDRESS:PORT --repeat=N` asks N times, one after the other. Each request is a call of ask() there and of answer()
 * here, which begins after it and ends before it; answer() works for a quarter of a millisecond.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "target.h"

static long asked, answered;

TRACED int ask(int fd, unsigned char question)
{
	unsigned char reply;

	if (write(fd, &question, 1) != 1 || read(fd, &reply, 1) != 1)
		return -1;
	asked++;
	return reply;
}

/* Its caller sends the reply, so that it ends before the client has that. */
TRACED unsigned char answer(unsigned char question)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 250000);
	answered++;
	return (unsigned char)(question + 1);
}

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int serve(const struct sockaddr_in *address)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	struct sockaddr_in own;
	socklen_t size = sizeof(own);
	unsigned char byte;

	if (bind(listener, (const struct sockaddr *)address, sizeof(*address)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&own, &size))
		return fail("bind");
	printf("port %d\n", ntohs(own.sin_port));
	fflush(stdout);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		return fail("accept");
	while (read(fd, &byte, 1) == 1) {
		byte = answer(byte);
		if (write(fd, &byte, 1) != 1)
			return fail("write");
	}
	return 0;
}

static int query(const struct sockaddr_in *address, long n)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		return fail("connect");
	for (long i = 0; i < n; i++)
		if (ask(fd, (unsigned char)i) != (unsigned char)(i + 1))
			return fail("ask");
	return 0;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	struct sockaddr_in address = { .sin_family = AF_INET };
	char *colon = o.rest ? strchr(o.rest, ':') : NULL;
	char host[32] = "";
	int r;

	if (!colon || colon - o.rest >= (long)sizeof(host))
		return 2;
	memcpy(host, o.rest, (size_t)(colon - o.rest));
	address.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		return 2;
	target_ready(&o);
	r = address.sin_port ? query(&address, o.repeat) : serve(&address);
	printf("{\"calls\":{\"ask\":%ld,\"answer\":%ld}}\n", asked, answered);
	return r ? r : target_done(&o, 1);
}
