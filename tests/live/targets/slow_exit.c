// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread ends inside a traced function, and main ends the process while the kernel still ends the thread: main waits
 * until the kernel says that the thread is exiting, and the kernel reads the thread's list of robust
 * mutexes, each on a page that is not mapped yet, before it goes on.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "target.h"

#define PAGE 4096
#define PAGES 2000 /* the kernel follows 2048 at most */
#define EXITING 4 /* PF_EXITING of the kernel's include/linux/sched.h */
#define MS 60

static volatile int tid;
static volatile long sink;

/*
 * A list through the first half of a file, an entry in each page, with the mutexes in the second half; it is mapped so
 * that each page is a fault of its own.
 */
static struct robust_list_head *make_list(void)
{
	const size_t half = (size_t)PAGES * PAGE, size = 2 * half;
	FILE *f = tmpfile();
	char *at = MAP_FAILED;

	if (f && !ftruncate(fileno(f), (off_t)size))
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	if (at == MAP_FAILED)
		exit(3);
	memset(at, 0, size);
	for (long i = 0; i < PAGES; i++)
		*(struct robust_list **)(at + i * PAGE) = (struct robust_list *)(at + (i + 1) % PAGES * PAGE);
	((struct robust_list_head *)at)->futex_offset = (long)half;
	if (mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, fileno(f), 0) != at ||
	    madvise(at, size, MADV_RANDOM))
		exit(3);
	return (struct robust_list_head *)at;
}

TRACED void lasting(struct robust_list_head *list)
{
	tid = (int)syscall(SYS_gettid);
	target_pause(MS);
	if (syscall(SYS_set_robust_list, list, sizeof(*list)))
		exit(3);
	syscall(SYS_exit, 0);
	sink++; /* or it would end with a jump */
}

static void *work(void *list)
{
	lasting(list);
	return NULL;
}

/* Whether the thread still runs its program; @fd: its "stat" in procfs. */
static int is_running(int fd)
{
	char line[512];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	unsigned flags = EXITING;
	const char *after;

	line[n > 0 ? n : 0] = 0;
	if ((after = strrchr(line, ')')))
		sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %u", &flags);
	return !(flags & EXITING);
}

static int open_stat(void)
{
	char path[64];

	while (!tid)
		;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	return open(path, O_RDONLY);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	struct robust_list_head *list = make_list();
	pthread_t thread;
	int fd;

	target_ready(&o);
	if (pthread_create(&thread, NULL, work, list))
		return 3;
	fd = open_stat();
	if (fd < 0)
		return 3;
	while (is_running(fd))
		;
	_exit(0);
}
