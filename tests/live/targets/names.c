// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads and short processes that change their names: `names FOLDER LOG` starts threads that
 * rename themselves, and children that run FOLDER/short-N, which is this program under another name.
 * Each process appends one line to LOG: its pid inside and outside its namespace, and for each thread
 * {"tid", "ns_tid", "names":[...], "calls"}: its names since its first call of mark().
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "target.h"

#define THREADS	 5
#define CHILDREN 40

struct who {
	int pid, tid, ns_pid, ns_tid;
	char names[64]; /* JSON */
	long calls;
};

static struct who workers[THREADS];

TRACED static long mark(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static void marks(long n)
{
	while (n--)
		mark(n);
}

/* From a /proc of the host, so that the ids are those outside of this pid namespace. */
static void look(struct who *w)
{
	char text[64] = "";

	if (readlink("/proc/thread-self", text, sizeof(text) - 1) < 0 ||
	    sscanf(text, "%d/task/%d", &w->pid, &w->tid) != 2)
		_exit(8);
	w->ns_pid = (int)getpid();
	w->ns_tid = (int)syscall(SYS_gettid);
}

static void *worker(void *arg)
{
	struct who *w = arg;
	int i = (int)(w - workers);
	char name[16];

	look(w);
	snprintf(name, sizeof(name), "worker-%d", i);
	pthread_setname_np(pthread_self(), name);
	marks(10 + i);
	snprintf(name, sizeof(name), "again-%d \"'\\", i);
	pthread_setname_np(pthread_self(), name);
	marks(3);
	snprintf(w->names, sizeof(w->names), "\"worker-%d\",\"again-%d \\\"'\\\\\"", i, i);
	w->calls = 10 + i + 3;
	return NULL;
}

static void log_process(const char *path, const char *name, const struct who *self, int nworkers)
{
	char line[2048];
	int n, fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

	n = snprintf(line, sizeof(line), "{\"pid\":%d,\"ns_pid\":%d,\"name\":\"%s\",\"threads\":[",
		     self->pid, self->ns_pid, name);
	for (int i = -1; i < nworkers; i++) {
		const struct who *w = i < 0 ? self : &workers[i];

		n += snprintf(line + n, sizeof(line) - n,
			      "%s{\"tid\":%d,\"ns_tid\":%d,\"names\":[%s],\"calls\":%ld}",
			      i < 0 ? "" : ",", w->tid, w->ns_tid, w->names, w->calls);
	}
	n += snprintf(line + n, sizeof(line) - n, "]}\n");
	if (fd < 0 || write(fd, line, n) != n)
		_exit(9);
	close(fd);
}

static int be_short(const char *name, const char *log, long before)
{
	struct who self = { 0 };
	int n = atoi(strchr(name, '-') + 1);

	look(&self);
	marks(n + 1);
	self.calls = before + n + 1;
	snprintf(self.names, sizeof(self.names), "\"names\",\"%s\"", name);
	log_process(log, name, &self, 0);
	return 0;
}

static void child(const char *folder, const char *log, int i)
{
	char path[4096], name[32];

	marks(2);
	snprintf(name, sizeof(name), "short-%d", i);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	execl(path, name, log, "2", (char *)NULL);
	_exit(7);
}

int main(int argc, char **argv)
{
	struct who self = { .names = "\"names\"" };
	pthread_t threads[THREADS];
	int failed = 0;

	if (argc == 3 && !strncmp(argv[0], "short-", 6))
		return be_short(argv[0], argv[1], atol(argv[2]));
	if (argc != 3)
		return 2;
	look(&self);
	marks(7);
	self.calls = 7;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, worker, &workers[i]))
			return 6;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CHILDREN; i++) {
		int status = 0;
		pid_t pid = fork();

		if (!pid)
			child(argv[1], argv[2], i);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			failed = 5;
	}
	log_process(argv[2], "names", &self, THREADS);
	return failed;
}
