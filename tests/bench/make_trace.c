// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes traces of any size for scripts/bench-export.sh, and measures the time to read one:
 *
 *   make_trace write FILE EVENTS THREADS FUNCTIONS [STACKS [SWITCH]]
 *       FILE and FILE.map. Each of THREADS threads makes its part of EVENTS entries and exits (an
 *       even number), up to 12 calls deep. Functions are drawn at random, so that nearly every
 *       stack is unique; with STACKS the calls walk over that many distinct stacks instead. With SWITCH
 *       the thread was asleep before each SWITCHth event, as record --sched writes it.
 *   make_trace read FILE
 *       decodes every record; prints "RECORDS SECONDS CALLS", seconds of its own CPU time
 *   make_trace pack FILE
 *       compresses the bytes of FILE as record --compress does, and decompresses them; prints "EVENTS
 *       BYTES SECONDS SECONDS": compressed bytes, CPU time of both
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace/fdr_pack.h"
#include "trace/fdr_reader.h"
#include "trace/fdr_unpack.h"
#include "trace/fdr_writer.h"
#include "trace/map_file.h"
#include "trace/notes.h"

#define MAX_DEPTH 12
#define MAX_THREADS 64
#define MAX_FUNCTIONS 1000000
#define CHILDREN 3 /* of a node in the tree of STACKS stacks */
#define START 1000000

static void die(const char *what, const struct kx_err *err)
{
	fprintf(stderr, "make_trace: %s: %s\n", what, err ? err->text : "cannot be done");
	exit(1);
}

/* xorshift64*: the same trace every time. */
static uint32_t chance(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * 0x2545f4914f6cdd1du >> 32);
}

struct maker {
	struct kx_fdr_thread *thread;
	uint64_t random, tsc, left; /* left: events still to write */
	uint32_t stack[MAX_DEPTH];  /* functions; nodes of the tree with STACKS */
	unsigned depth;
};

/* Node n of the tree is function n; its children start at CHILDREN * n + 1. 0 is no call. */
static uint32_t next_call(struct maker *m, uint32_t functions, uint32_t stacks)
{
	uint32_t node;

	if (m->depth == MAX_DEPTH)
		return 0;
	if (!stacks)
		return chance(&m->random) % functions + 1;
	node = (m->depth ? m->stack[m->depth - 1] : 0) * CHILDREN + 1 +
	       chance(&m->random) % CHILDREN;
	return node <= stacks ? node : 0;
}

static int make_sleep(struct maker *m)
{
	uint64_t off = 20 + chance(&m->random) % 300;
	struct kx_note note = {
		.kind = KX_NOTE_SCHED,
		.sched = { .from = m->tsc, .wake = m->tsc + off / 2, .to = m->tsc + off, .state = 'S',
			   .has_waker = true, .waker = 1000 + chance(&m->random) % 4 },
	};
	char text[KX_NOTE_MAX];
	int size = kx_note_format(&note, text, sizeof(text));

	m->tsc += off;
	return size < 0 ? size : kx_fdr_custom(m->thread, m->tsc, text, (size_t)size);
}

static int make_event(struct maker *m, uint32_t functions, uint32_t stacks, uint64_t every)
{
	uint32_t func = 0;

	if (every && m->left % every == 0 && make_sleep(m))
		return -1;
	m->tsc += 20 + chance(&m->random) % 400;
	m->left--;
	/* Open calls must be closed by the end. */
	if (m->left > m->depth && (!m->depth || chance(&m->random) % 2))
		func = next_call(m, functions, stacks);
	if (!func)
		return kx_fdr_exit(m->thread, m->tsc, 0, m->stack[--m->depth], false);
	m->stack[m->depth++] = func;
	return kx_fdr_entry(m->thread, m->tsc, 0, func, NULL, 0);
}

static void write_map(const char *path, uint32_t functions)
{
	struct kx_map_module module = { .name = "bench", .path = "/bench", .build_id = "" };
	struct kx_map_function *list = calloc(functions, sizeof(*list));
	struct kx_map map = { .modules = &module, .nmodules = 1, .functions = list,
			      .nfunctions = functions, .session = json_object() };
	struct kx_err err = { 0 };
	char *file;

	if (!list || !map.session || asprintf(&file, "%s.map", path) < 0)
		die(path, NULL);
	/* Mangled names, as long as those of C++ programs. */
	for (uint32_t i = 0; i < functions; i++) {
		char *symbol;

		if (asprintf(&symbol, "_ZN5bench9container8functionILi%uEEEvPKci", i) < 0)
			die(path, NULL);
		list[i] = (struct kx_map_function){ symbol, 0x1000 + 64ull * i, 0, 64 };
	}
	if (kx_map_write(file, &map, &err))
		die(file, &err);
	for (uint32_t i = 0; i < functions; i++)
		free((void *)(uintptr_t)list[i].symbol);
	free(list);
	free(file);
	json_decref(map.session);
}

static void write_trace(const char *path, uint64_t events, unsigned threads, uint32_t functions,
			uint32_t stacks, uint64_t every)
{
	const struct kx_fdr_options options = {
		.tsc_hz = 2000000000, .constant_tsc = true, .nonstop_tsc = true, .start_tsc = START,
	};
	struct maker makers[MAX_THREADS] = { 0 };
	struct kx_fdr_writer *w;
	struct kx_err err = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || kx_fdr_writer_new(fd, &options, &w, &err))
		die(path, fd < 0 ? NULL : &err);
	for (unsigned i = 0; i < threads; i++) {
		makers[i] = (struct maker){
			.thread = kx_fdr_writer_thread(w, 1000, 1000 + (int)i, "bench", "bench"),
			.random = 88172645463325252u + i, .tsc = START, .left = events / threads / 2 * 2,
		};
		if (!makers[i].thread)
			die(path, NULL);
	}
	for (uint64_t n = events / threads / 2 * 2; n; n--)
		for (unsigned i = 0; i < threads; i++)
			if (make_event(&makers[i], functions, stacks, every))
				die(path, NULL);
	if (kx_fdr_finish(w, 0, &err))
		die(path, &err);
	kx_fdr_writer_free(w);
	close(fd);
	write_map(path, functions);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Reads like report: runs of calls in batches, all other records one by one. */
static void read_trace(const char *path)
{
	struct kx_call_record calls[512];
	struct kx_fdr_file *file;
	struct kx_fdr_record record;
	struct kx_err err = { 0 };
	uint64_t records = 0, entries = 0, sum = 0;
	double start = cpu_seconds();
	int r = kx_fdr_open(path, &file, &err);

	if (r)
		die(path, &err);
	for (size_t thread = 0; thread < kx_fdr_nthreads(file); thread++) {
		struct kx_fdr_cursor *cursor;
		uint32_t index;

		if (kx_fdr_thread_cursor(file, thread, &cursor))
			die(path, NULL);
		for (;;) {
			size_t n = kx_fdr_next_calls(cursor, calls, 512, &index);

			for (size_t i = 0; i < n; i++) {
				sum += calls[i].tsc;
				entries += calls[i].kind == KX_RECORD_ENTRY;
			}
			records += n;
			if (n)
				continue;
			r = kx_fdr_next(cursor, &record, &err);
			if (r < 0)
				die(path, &err);
			if (!r)
				break;
			records++;
			entries += record.kind == KX_RECORD_ENTRY;
		}
		kx_fdr_cursor_free(cursor);
	}
	kx_fdr_close(file);
	printf("%" PRIu64 " %.6f %" PRIu64 "\n", records, cpu_seconds() - start, entries);
	if (!sum)
		die(path, NULL);
}

static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*end || value < least || value > most) {
		fprintf(stderr, "make_trace: '%s' is no number from %" PRIu64 " to %" PRIu64 "\n", text,
			least, most);
		exit(2);
	}
	return value;
}

/* Entries and exits. */
static uint64_t count_events(const char *path)
{
	struct kx_fdr_cursor *cursor;
	struct kx_fdr_record record;
	struct kx_fdr_file *file;
	struct kx_err err = { 0 };
	uint64_t n = 0;

	if (kx_fdr_open(path, &file, &err) || kx_fdr_file_cursor(file, &cursor))
		die(path, &err);
	while (kx_fdr_next(cursor, &record, NULL) > 0)
		n += record.kind <= KX_RECORD_TAIL_EXIT;
	kx_fdr_cursor_free(cursor);
	kx_fdr_close(file);
	return n;
}

static void pack_trace(const char *path)
{
	FILE *in = fopen(path, "r"), *out = tmpfile();
	struct kx_fdr_unpacked unpacked;
	struct kx_fdr_pack *pack;
	struct kx_err err = { 0 };
	static uint8_t piece[64 << 10];
	struct iovec iov = { piece, KX_FDR_HEADER_SIZE };
	double start, packed = 0;
	uint64_t bytes, size = 0;
	int r;

	if (!in || !out || !(pack = kx_fdr_pack_new(fileno(out))) ||
	    fread(piece, KX_FDR_HEADER_SIZE, 1, in) != 1 || kx_fdr_pack_header(pack, &iov))
		die(path, NULL);
	while ((iov.iov_len = fread(piece, 1, sizeof(piece), in)) > 0) {
		size += iov.iov_len;
		start = cpu_seconds();
		r = kx_fdr_pack_is_full(pack, iov.iov_len) ? kx_fdr_pack_end_group(pack) : 0;
		if (r || kx_fdr_pack_add(pack, &iov, 1))
			die(path, NULL);
		packed += cpu_seconds() - start;
	}
	start = cpu_seconds();
	if (kx_fdr_pack_end_group(pack))
		die(path, NULL);
	packed += cpu_seconds() - start;
	bytes = kx_fdr_pack_bytes(pack);
	start = cpu_seconds();
	if (kx_fdr_unpack(fileno(out), bytes, path, &unpacked, &err))
		die(path, &err);
	if (unpacked.size != size + KX_FDR_HEADER_SIZE)
		die(path, NULL);
	printf("%" PRIu64 " %" PRIu64 " %.6f %.6f\n", count_events(path), bytes, packed,
	       cpu_seconds() - start);
	close(unpacked.fd);
	kx_fdr_pack_free(pack);
	fclose(in);
	fclose(out);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "read")) {
		read_trace(argv[2]);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "pack")) {
		pack_trace(argv[2]);
		return 0;
	}
	if (argc >= 6 && argc <= 8 && !strcmp(argv[1], "write")) {
		uint32_t functions = (uint32_t)number(argv[5], CHILDREN, MAX_FUNCTIONS);

		write_trace(argv[2], number(argv[3], 1, UINT32_MAX),
			    (unsigned)number(argv[4], 1, MAX_THREADS), functions,
			    argc > 6 ? (uint32_t)number(argv[6], CHILDREN, functions) : 0,
			    argc > 7 ? number(argv[7], 1, UINT32_MAX) : 0);
		return 0;
	}
	fprintf(stderr, "usage: make_trace write FILE EVENTS THREADS FUNCTIONS [STACKS [SWITCH]]\n"
			"       make_trace read FILE\n       make_trace pack FILE\n");
	return 2;
}
