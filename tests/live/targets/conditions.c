// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls functions with known arguments from threads with known names, and prints every call in the
 * order of its beginning:
 * {"calls": [{"function": F, "thread": NAME, "tid": TID, "depth": D, "args": [A, B, C], "text": S,
 * "result": R}, ...]}. A text is null where a tracer cannot read it. TARGET_REPEAT rounds of each
 * thread.
 */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target.h"

#define THREADS 2

struct call {
	const char *function, *thread;
	int tid, depth;
	long args[3], result;
	const char *text;
	bool has_text, readable, returned;
};

static struct call calls[1 << 16];
static size_t ncalls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread const char *name = "conditions";
static __thread int depth;
static volatile long sink;
static char *two_pages, *absent;

/* Threads take turns, so that there is one order. */
static struct call *begin(const char *function, long a, long b, long c)
{
	struct call *call = &calls[ncalls++];

	*call = (struct call){ .function = function,
			       .thread = name,
			       .tid = (int)syscall(SYS_gettid),
			       .depth = ++depth,
			       .args = { a, b, c } };
	return call;
}

static void end(struct call *call, long result)
{
	call->result = result;
	call->returned = true;
	depth--;
}

TRACED int cond_leaf(int a, unsigned long b, signed char c)
{
	sink = a + (long)b + c;
	return a % 3 ? a : -a;
}

/* Leaves by a tail jump. */
TRACED int cond_tail(int a, unsigned long b, signed char c)
{
	sink = a;
	return cond_leaf(a + 1, b, c);
}

TRACED long cond_text(const char *s, long n)
{
	sink = n + (long)s;
	return n * 2;
}

static void call_leaf(int a, unsigned long b, signed char c)
{
	struct call *call = begin("cond_leaf", a, (long)b, c);

	end(call, cond_leaf(a, b, c));
}

static void call_tail(int a, unsigned long b, signed char c)
{
	struct call *call = begin("cond_tail", a, (long)b, c),
		    *inner = begin("cond_leaf", a + 1, (long)b, c);
	int result = cond_tail(a, b, c);

	end(inner, result);
	end(call, result);
}

static void call_text(const char *s, long n, bool readable)
{
	struct call *call = begin("cond_text", 0, n, 0);

	call->text = s;
	call->has_text = true;
	call->readable = readable;
	/* programs' pages come in when they are read */
	sink = readable ? *(const volatile char *)s : 0;
	end(call, cond_text(s, n));
}

/* Calls itself and leaves, a result of its own at each level. */
TRACED long cond_nest(long level, long most)
{
	struct call *inner;
	long result = level % 2 ? -level : level;

	if (level < most) {
		call_leaf((int)level, (unsigned long)most, 1);
		inner = begin("cond_nest", level + 1, most, 0);
		end(inner, cond_nest(level + 1, most));
	}
	sink = result;
	return result;
}

static jmp_buf out;

/* Has no result. */
TRACED long cond_jump(long a)
{
	sink = a;
	if (a)
		longjmp(out, 1);
	return -1;
}

static void call_jump(long a)
{
	struct call *volatile call = begin("cond_jump", a, 0, 0);

	if (!setjmp(out))
		end(call, cond_jump(a));
	else
		depth--;
}

static void one_round(long round)
{
	static const char *const texts[] = {
		"/api/one", "/api/two", "/apx", "", "quoted \"text\" \\ *", "/api", "x/api/y"
	};
	static char many[300];
	struct call *call;

	for (int a = -5; a <= 5; a++)
		for (int b = 0; b < 3; b++)
			call_leaf(a, b == 2 ? UINT64_MAX : 4096ul + (unsigned long)b,
				  (signed char)(a * 20));
	for (int a = 0; a < 4; a++)
		call_tail(a, (unsigned long)round, 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		call_text(texts[i], (long)strlen(texts[i]), true);
	memset(many, 'm', sizeof(many) - 1);
	call_text(many, 299, true);
	call_text(many + sizeof(many) - 1 - 250, 250, true);
	call_text(two_pages + 4090, 6, false);
	call_text(NULL, 0, false);
	call_text(absent, 0, false);
	call = begin("cond_nest", 1, 5, 0);
	end(call, cond_nest(1, 5));
	call_jump(0);
	call_jump(round + 1);
	call_leaf(-7, 1, 1);
}

static void *work(void *arg)
{
	static const char *const names[THREADS] = { "worker/0", "other-1" };
	const long *rounds = arg;

	pthread_mutex_lock(&lock);
	name = names[*rounds & 1];
	prctl(PR_SET_NAME, name);
	for (long i = 0; i < *rounds >> 1; i++)
		one_round(i);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void print_text(const char *s)
{
	putchar('"');
	for (; *s; s++)
		printf(*s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	putchar('"');
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	pthread_t threads[THREADS];
	long rounds[THREADS];

	two_pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	absent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(two_pages + 4096, 4096);
	memset(two_pages, 'y', 4096);
	target_ready(&o);
	for (long i = 0; i < THREADS; i++) {
		rounds[i] = o.repeat << 1 | i;
		pthread_create(&threads[i], NULL, work, &rounds[i]);
		pthread_join(threads[i], NULL);
	}
	for (long i = 0; i < o.repeat; i++)
		one_round(i);
	printf("{\"calls\": [");
	for (size_t i = 0; i < ncalls; i++) {
		const struct call *c = &calls[i];

		printf("%s{\"function\": \"%s\", \"thread\": \"%s\", \"tid\": %d, \"depth\": %d, "
		       "\"args\": [%ld, %lu, %ld], ",
		       i ? ", " : "", c->function, c->thread, c->tid, c->depth, c->args[0],
		       (unsigned long)c->args[1], c->args[2]);
		if (c->has_text && c->readable) {
			printf("\"text\": ");
			print_text(c->text);
			printf(", ");
		} else if (c->has_text) {
			printf("\"text\": null, ");
		}
		if (c->returned)
			printf("\"result\": %ld}", c->result);
		else
			printf("\"result\": null}");
	}
	printf("]}\n");
	return target_done(&o, 1);
}
