// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_transfer_waits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#define MEMORY_DEVICES 1 /* major number of /dev/zero, /dev/urandom: Documentation/admin-guide/devices.txt */

bool kx_transfer_is_socket(pid_t pid, int fd)
{
	char path[48], name[16];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	n = readlink(path, name, sizeof(name));
	return n >= 7 && !memcmp(name, "socket:", 7);
}

/* A copy of the process's descriptor, or -1. */
static int copy_descriptor(pid_t pid, int number)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	const int fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);

	if (pidfd >= 0)
		close(pidfd);
	return fd;
}

#define NO_STREAM (MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_OOB | MSG_ERRQUEUE | MSG_ZEROCOPY)

/* Of a call that moves bytes of a stream. *@all: also of one that receives. */
static bool has_stream_flags(const struct user_regs_struct *regs, bool *all)
{
	uint64_t flags = MSG_WAITALL;

	switch ((long)regs->orig_rax) {
	case SYS_read:
		*all = false;
		return true;
	case SYS_recvfrom:
	case SYS_sendto:
		flags = regs->r10;
		break;
	case SYS_recvmsg:
	case SYS_sendmsg:
		flags = regs->rdx;
		break;
	}
	*all = (regs->orig_rax != SYS_recvfrom && regs->orig_rax != SYS_recvmsg) || flags & MSG_WAITALL;
	return !(flags & NO_STREAM);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t awaited_of_socket(int fd, const struct user_regs_struct *regs, uint64_t size)
{
	int type, low = 1;
	socklen_t type_size = sizeof(type), low_size = sizeof(low);
	bool all;

	if (!has_stream_flags(regs, &all) || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) || type != SOCK_STREAM)
		return 0;
	if (all)
		return size;
	getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, &low_size);
	return regs->orig_rax == SYS_recvmsg || low <= 1 ? 0 : least(size, (uint64_t)low);
}

/* A read ends as soon as it has so many: drivers/tty/tty_io.c, iterate_tty_read (Linux 5.12). */
#define TERMINAL_READ 64

/* A read of one without lines and time limit waits for VMIN bytes, but not one of the other end, which shows the same settings. */
static uint64_t awaited_of_terminal(int fd, bool reads, uint64_t size)
{
	struct termios t;
	unsigned number;

	if (tcgetattr(fd, &t))
		return 0;
	if (!reads)
		return size;
	if (t.c_lflag & ICANON || t.c_cc[VTIME] || !ioctl(fd, TIOCGPTN, &number))
		return 0;
	return least(least(size, TERMINAL_READ), t.c_cc[VMIN]);
}

static uint64_t awaited_of(int fd, const struct user_regs_struct *regs, uint64_t size)
{
	bool all;
	const bool reads = regs->orig_rax == SYS_read, copies = regs->orig_rax == SYS_sendfile || regs->orig_rax == SYS_copy_file_range;
	struct stat st;

	if (fstat(fd, &st))
		return 0;
	if (copies ? S_ISREG(st.st_mode) : reads && S_ISCHR(st.st_mode) && major(st.st_rdev) == MEMORY_DEVICES)
		return size;
	if (fcntl(fd, F_GETFL) & O_NONBLOCK)
		return 0;
	switch (st.st_mode & S_IFMT) {
	case S_IFIFO: /* into which copies move what there is room for, and no more */
		return !copies && has_stream_flags(regs, &all) && all ? size : 0;
	case S_IFSOCK:
		return awaited_of_socket(fd, regs, size);
	case S_IFCHR:
		return copies ? 0 : awaited_of_terminal(fd, reads, size);
	}
	return 0;
}

uint64_t kx_transfer_awaited(pid_t pid, const struct user_regs_struct *regs, uint64_t size)
{
	uint64_t awaited;
	int fd;

	if (regs->orig_rax == SYS_getrandom)
		return size;
	fd = copy_descriptor(pid, (int)(regs->orig_rax == SYS_copy_file_range ? regs->rdx : regs->rdi));
	if (fd < 0)
		return 0;
	awaited = awaited_of(fd, regs, size);
	close(fd);
	return awaited;
}
