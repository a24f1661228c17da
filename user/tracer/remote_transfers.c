// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_transfers.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of /proc/PID/task/TID/syscall: only of a thread that sleeps. */
struct sleeping {
	long number;
	uint64_t args[6];
};

static bool read_call(pid_t pid, pid_t tid, struct sleeping *s)
{
	char path[48];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fscanf(f, "%ld %lx %lx %lx %lx %lx %lx", &s->number, &s->args[0], &s->args[1], &s->args[2], &s->args[3], &s->args[4],
		   &s->args[5]);
	fclose(f);
	return n == 7;
}

static bool is_socket(pid_t pid, int fd)
{
	char path[48], name[16];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, name, sizeof(name));
	return n >= 7 && !memcmp(name, "socket:", 7);
}

bool kx_remote_is_in_transfer(pid_t pid, pid_t tid)
{
	struct sleeping s;

	if (!read_call(pid, tid, &s))
		return false;
	switch (s.number) {
	case SYS_write:
		return s.args[2] > PIPE_BUF || (s.args[2] > 1 && is_socket(pid, (int)s.args[0]));
	case SYS_sendto:
		return s.args[2] > 1;
	case SYS_writev:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_tee:
	case SYS_vmsplice:
	case SYS_copy_file_range:
		return true;
	case SYS_recvfrom:
		return s.args[3] & MSG_WAITALL;
	case SYS_recvmsg:
		return s.args[2] & MSG_WAITALL;
	case SYS_recvmmsg:
		return s.args[2] > 1 && !(s.args[3] & MSG_WAITFORONE);
	default:
		return false;
	}
}
