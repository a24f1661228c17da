// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two threads make fixed numbers of system calls that run known kernel functions; some of them are made
 * by user functions whose calls are counted, too.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "target.h"

#define ASKS 100   /* calls of ask, with two system calls each */
#define NOTES 70
#define NAPS 5
#define TALKS 30

static int null_fd;
static int talk_fds[2]; /* two ends of a TCP connection */
static int right = 1;

TRACED long ask(long x)
{
	return syscall(SYS_getppid) + syscall(SYS_getppid) + x;
}

TRACED long note(long x)
{
	char c = (char)x;

	right &= write(null_fd, &c, 1) == 1;
	return x + 1;
}

TRACED long nap(long ns)
{
	struct timespec t = { .tv_nsec = ns };

	return nanosleep(&t, NULL) + 1;
}

TRACED long talk(long x)
{
	char c = (char)x, answer = 0;

	right &= send(talk_fds[0], &c, 1, 0) == 1 && recv(talk_fds[1], &answer, 1, 0) == 1 &&
		 answer == c;
	return x + 1;
}

static void connect_ends(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	talk_fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &size) ||
	    connect(talk_fds[0], (struct sockaddr *)&at, size) ||
	    (talk_fds[1] = accept(listener, NULL, NULL)) < 0) {
		perror("kernelcalls");
		exit(2);
	}
	close(listener);
}

static void *other_thread(void *arg)
{
	long repeat = *(long *)arg;

	for (long i = 0; i < repeat * ASKS; i++)
		ask(i);
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long asks = 2 * o.repeat * ASKS, notes = o.repeat * NOTES, naps = o.repeat * NAPS,
	     talks = o.repeat * TALKS;
	pthread_t thread;

	null_fd = open("/dev/null", O_WRONLY);
	connect_ends();
	target_ready(&o);
	pthread_create(&thread, NULL, other_thread, &o.repeat);
	for (long i = 0; i < o.repeat * ASKS; i++)
		ask(i);
	for (long i = 0; i < notes; i++)
		note(i);
	for (long i = 0; i < naps; i++)
		nap(1000);
	for (long i = 0; i < talks; i++)
		talk(i);
	pthread_join(thread, NULL);
	/* printing this is one more call of write */
	printf("{\"calls\":{\"ask\":%ld,\"note\":%ld,\"nap\":%ld,\"talk\":%ld,"
	       "\"__x64_sys_getppid\":%ld,\"__x64_sys_write\":%ld,\"ksys_write\":%ld,"
	       "\"vfs_write\":%ld,\"write_null\":%ld,\"hrtimer_nanosleep\":%ld,"
	       "\"tcp_sendmsg\":%ld,\"tcp_recvmsg\":%ld}}\n",
	       asks, notes, naps, talks, 2 * asks, notes + 1, notes + 1, notes + 1, notes, naps,
	       talks, talks);
	return target_done(&o, right);
}
