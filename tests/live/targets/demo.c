// SPDX-License-Identifier: BSD-2-Clause
/*
 * The program that `make demo` traces: a small server without a network. A
 * listener hands out requests, three workers parse them, look into a
 * cache and pack an answer. Runs for 60 seconds (--repeat=N: N minutes; --limit must be above) or until SIGTERM.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "target.h"

#define WORKERS 3
#define QUEUE 64
#define CACHE 256
#define BLOCK 512

struct request {
	char line[64];
	uint32_t key;
};

static struct request queue[QUEUE];
static unsigned first, count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static uint32_t cache[CACHE];
static atomic_long answered;

TRACED void accept_request(unsigned number)
{
	pthread_mutex_lock(&lock);
	if (count < QUEUE) {
		struct request *r = &queue[(first + count++) % QUEUE];

		snprintf(r->line, sizeof(r->line), "GET /item/%u HTTP/1.1", number * 7919 % 997);
		pthread_cond_signal(&more);
	}
	pthread_mutex_unlock(&lock);
}

TRACED struct request wait_for_request(void)
{
	struct request r;

	pthread_mutex_lock(&lock);
	while (count == 0)
		pthread_cond_wait(&more, &lock);
	r = queue[first++ % QUEUE];
	count--;
	pthread_mutex_unlock(&lock);
	return r;
}

TRACED int parse_number(const char *text)
{
	int n = 0;

	while (*text >= '0' && *text <= '9')
		n = n * 10 + *text++ - '0';
	return n;
}

TRACED void parse_request(struct request *r)
{
	const char *item = strstr(r->line, "/item/");

	r->key = item ? (uint32_t)parse_number(item + 6) : 0;
}

TRACED uint32_t hash_key(uint32_t key)
{
	for (int i = 0; i < 3; i++)
		key = (key ^ key >> 16) * 0x45d9f3b;
	return key;
}

TRACED int lookup_cache(uint32_t key)
{
	uint32_t *slot = &cache[hash_key(key) % CACHE];
	int hit = *slot == key;

	*slot = key;
	return hit;
}

TRACED void load_from_disk(uint8_t *block, uint32_t key)
{
	for (int i = 0; i < BLOCK; i++)
		block[i] = (uint8_t)((uint32_t)i * key >> 5 & 0x0f);
	target_pause(1);
}

/* Run-length encoding, slow on purpose. */
TRACED size_t compress_block(const uint8_t *in, uint8_t *out)
{
	size_t n = 0;

	for (size_t i = 0, run; i < BLOCK; i += run) {
		for (run = 1; i + run < BLOCK && in[i + run] == in[i] && run < 255;)
			run++;
		out[n++] = (uint8_t)run;
		out[n++] = in[i];
	}
	return n;
}

TRACED uint32_t checksum(const uint8_t *data, size_t size)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < size; i++) {
		a = (a + data[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

TRACED void send_reply(uint32_t sum)
{
	if (sum)
		answered++;
}

TRACED void handle_request(struct request *r)
{
	uint8_t block[BLOCK], packed[2 * BLOCK];

	parse_request(r);
	if (!lookup_cache(r->key))
		load_from_disk(block, r->key);
	else
		memset(block, (int)r->key, sizeof(block));
	send_reply(checksum(packed, compress_block(block, packed)));
}

static void *work(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "worker-%d", (int)(intptr_t)arg);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		struct request r = wait_for_request();

		handle_request(&r);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	pthread_t thread;

	o.wait = 0;
	for (intptr_t i = 0; i < WORKERS; i++) {
		if (pthread_create(&thread, NULL, work, (void *)i))
			return 1;
	}
	target_ready(&o);
	for (long n = 0; n < 60 * 500 * o.repeat; n++) {
		accept_request((unsigned)n);
		target_pause(2);
	}
	printf("{\"answered\":%ld}\n", (long)answered);
	return target_done(&o, 1);
}
