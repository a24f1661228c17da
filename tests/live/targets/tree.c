// SPDX-License-Identifier: BSD-2-Clause
/*
 * A tree of processes (--repeat=N, default 50) that fork, exec, load a plugin, start threads and
 * end, while each calls functions a fixed number of times. The argument is the log to which
 * each appends its counts (tree.h). Process I has the children 3I+1 to 3I+3. Depending on I:
 *     I % 4 == 1   executes tree-child, I % 8 == 5 among the leaves by posix_spawn
 *     I % 4 == 2   loads treeplug.so and calls it
 *     I % 4 == 3   has threads, one of which forks the children; I % 8 == 7 executes from a thread
 *     I % 6 == 5   does not wait for its children: the first process adopts them
 *     I % 16 == 14 is killed at the end
 * Children are forked inside a traced call, from which both processes return.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tree.h"

static const char *log_path;
static char folder[4096];
static long processes;
static volatile long sink;

TRACED long tree_leaf(long x)
{
	sink = x;
	return x + 1;
}

TRACED long tree_inner(long x)
{
	sink = x;
	return x * 2;
}

TRACED long tree_outer(long x)
{
	x += tree_inner(x);
	count_call(TREE_INNER);
	return x;
}

TRACED pid_t tree_fork(void)
{
	pid_t pid = fork();

	sink = pid;
	return pid;
}

TRACED void tree_thread(int index)
{
	for (int n = 0; n < 20 + index; n++) {
		tree_leaf(n);
		count_call(TREE_LEAF);
	}
}

static void in_folder(char *path, size_t size, const char *name)
{
	if ((size_t)snprintf(path, size, "%s/%s", folder, name) >= size)
		_exit(8);
}

static void fail(const char *what)
{
	fprintf(stderr, "tree: %s: %s\n", what, strerror(errno));
	_exit(7);
}

static void work(int index)
{
	for (int n = 0; n < 10 + index * 7; n++) {
		tree_leaf(n);
		count_call(TREE_LEAF);
	}
	for (int n = 0; n < index % 5 + 1; n++) {
		tree_outer(n);
		count_call(TREE_OUTER);
	}
}

static void use_plugin(int index)
{
	void (*plug_work)(long n);
	char path[4200];
	void *plugin;

	in_folder(path, sizeof(path), "treeplug.so");
	plugin = dlopen(path, RTLD_NOW);
	if (!plugin)
		fail(dlerror());
	*(void **)&plug_work = dlsym(plugin, "plug_work");
	for (int n = 0; n < 30 + index; n++) {
		plug_work(n);
		count_call(PLUG_WORK);
		count_call(PLUG_LEAF);
		count_call(PLUG_LEAF);
	}
	if (index % 8 == 2 && dlclose(plugin))
		fail("dlclose");
}

/* Arguments for tree-child when process @index executes it after these @calls. */
static char **child_arguments(int index, const long *calls)
{
	static char path[4200], number[16], counts[512];
	static char *argv[6];

	in_folder(path, sizeof(path), "tree-child");
	snprintf(number, sizeof(number), "%d", index);
	pack_calls(calls, counts, sizeof(counts));
	argv[0] = path;
	argv[1] = (char *)log_path;
	argv[2] = number;
	argv[3] = counts;
	return argv;
}

static void *exec_in_thread(void *index)
{
	char **argv = child_arguments((int)(long)index, tree_calls);

	execv(argv[0], argv);
	fail("exec");
	return NULL;
}

static void process(int index);

/* Starts the children; in each of them it does not return. */
static void start_children(int index)
{
	extern char **environ;

	for (int child = 3 * index + 1; child <= 3 * index + 3 && child < processes; child++) {
		pid_t pid;

		if (child % 8 == 5 && 3 * child + 1 >= processes) {
			static const long none[TREE_FUNCTIONS];
			char **argv = child_arguments(child, none);

			if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ))
				fail("posix_spawn");
			continue;
		}
		pid = tree_fork();
		if (pid < 0)
			fail("fork");
		if (pid) {
			count_call(TREE_FORK);
			continue;
		}
		memset(tree_calls, 0, sizeof(tree_calls));
		process(child);
	}
}

static void *thread(void *index)
{
	count_call(TREE_THREAD);
	tree_thread((int)(long)index);
	return NULL;
}

static void *forking_thread(void *index)
{
	thread(index);
	start_children((int)(long)index);
	return NULL;
}

static void with_threads(int index)
{
	pthread_t threads[3];

	for (long n = 0; n < 3; n++)
		if (pthread_create(&threads[n], NULL, n ? thread : forking_thread,
				   (void *)(long)index))
			fail("pthread_create");
	for (int n = 0; n < 3; n++)
		pthread_join(threads[n], NULL);
}

/* All that process @index does; ends it. */
static void process(int index)
{
	pthread_t last;
	char **argv;

	work(index);
	if (index % 4 == 3)
		with_threads(index);
	else
		start_children(index);
	if (index % 4 == 2)
		use_plugin(index);
	work(index + 1);
	if (index % 6 != 5 || !index)
		while (wait(NULL) > 0 || errno == EINTR)
			;
	if (index % 4 == 1) {
		argv = child_arguments(index, tree_calls);
		execv(argv[0], argv);
		fail("exec");
	}
	if (index % 8 == 7) {
		if (pthread_create(&last, NULL, exec_in_thread, (void *)(long)index))
			fail("pthread_create");
		for (;;)
			pause();
	}
	append_calls(log_path, index);
	if (index % 16 == 14)
		raise(SIGKILL);
	if (index % 2)
		exit(0);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	if (n < 0 || !o.rest)
		fail("usage: tree [--repeat=PROCESSES] LOG");
	folder[n] = 0;
	*strrchr(folder, '/') = 0;
	log_path = o.rest;
	processes = o.repeat > 1 ? o.repeat : 50;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	target_ready(&o);
	process(0);
}
