// SPDX-License-Identifier: BSD-2-Clause
/*
 * The steps of an in-process recording one by one, for tests/live/remote_threads.sh, remote_calls.sh and patch_area.sh.
 *
 *     patcher stop PID TIMES [WAIT_MS]   stops all threads and lets them go, TIMES times
 *     patcher hold PID                   stops them until a byte comes; with epoll_wait's time, which the stop makes shorter
 *     patcher calls PID TIMES [WAIT_MS]  borrows calls, and checks what they did
 *     patcher lend PID                   lends it the priority of SCHED_FIFO until a byte comes
 *     patcher install PID [guard]        jumps in all functions of the target `patched`; removes them when a byte comes
 *     patcher rings PID                  maps only rings, and ends
 *     patcher stale PID                  tries it where the module is another one, and removes the areas
 *     patcher remove PID
 *     patcher cycle PID                  installs and removes until it is killed
 *     patcher changed PID                bytes in which the code of `patched` differs from its file
 *     patcher head PID                   whether calls are recorded
 *
 * Prints a line "KEY VALUE..." for each step, which is flushed.
 */
#include "patcher.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/near_room.h"
#include "binary/mappings.h"
#include "tracer/clock.h"
#include "tracer/keeper.h"
#include "tracer/patch_area.h"
#include "tracer/patch_texts.h"
#include "tracer/remote_calls.h"
#include "tracer/target_rings.h"

#define FUNCTIONS    64
#define EACH	     16 /* bytes of a function */
#define WINDOW	     1	/* in it */
#define LENGTH	     10 /* of the window */
#define STUCK_LENGTH 8	/* of that of p_stuck, the last one */
#define CODE_SIZE    65536ul
#define RINGS_SIZE   ((sizeof(struct kx_target_rings) + 8192) & ~4095ul)
#define COUNTER	     (RINGS_SIZE - 8) /* of calls that passed a trampoline */
#define PAGE	     4096ul

struct target {
	pid_t pid;
	int mem;
	uint64_t text, text_end, offset, bias;
	struct kx_patch_text id;
	uint64_t functions; /* address of the first one */
	uint64_t code, rings, head;
	uint8_t *code_here, *rings_here;
	char exe[4096];
};

static int find_text(void *ctx, const struct kx_mapping *m)
{
	struct target *t = ctx;

	if (strcmp(m->path, t->exe))
		return 0;
	if (!m->offset)
		t->bias = m->start;
	if (m->executable) {
		t->text = m->start;
		t->id = kx_patch_text_of(m);
		t->offset = m->offset;
		t->text_end = m->end;
	}
	return 0;
}

static uint64_t find_symbol(const char *path, const char *name)
{
	const int fd = open(path, O_RDONLY);
	Elf *elf = (elf_version(EV_CURRENT), elf_begin(fd, ELF_C_READ, NULL));
	uint64_t found = 0;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr header;
		GElf_Sym sym;

		gelf_getshdr(scn, &header);
		if (header.sh_type != SHT_SYMTAB)
			continue;
		for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
			gelf_getsym(elf_getdata(scn, NULL), (int)i, &sym);
			if (!strcmp(elf_strptr(elf, header.sh_link, sym.st_name), name))
				found = sym.st_value;
		}
	}
	elf_end(elf);
	close(fd);
	return found;
}

static bool open_target(struct target *t)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", t->pid);
	n = readlink(path, t->exe, sizeof(t->exe) - 1);
	if (n < 0 || kx_mappings_each(t->pid, find_text, t) || !t->text)
		return false;
	t->functions = t->bias + find_symbol(path, "p_functions");
	snprintf(path, sizeof(path), "/proc/%d/mem", t->pid);
	t->mem = open(path, O_RDWR | O_CLOEXEC);
	t->head = (t->text - (64ul << 20)) & ~(PAGE - 1);
	return t->mem >= 0;
}

static void *map_here(pid_t pid, uint64_t at, size_t size)
{
	char path[96];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, at, at + size);
	fd = open(path, O_RDWR | O_CLOEXEC);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p;
}

/* What one that was killed before the table was written has mapped cannot be found again, and is in
 * the way. */
static bool find_room(struct target *t)
{
	for (t->head = (t->text - (64ul << 20)) & ~(PAGE - 1); t->head > 1ul << 32;
	     t->head -= 1ul << 20) {
		t->code = t->head + 2 * PAGE;
		t->rings = t->code + CODE_SIZE + PAGE;
		if (kx_room_is_free(t->pid, t->head, t->rings + RINGS_SIZE - t->head))
			return true;
	}
	return false;
}

static bool map_areas(struct target *t, struct kx_err *err)
{
	const int shared = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	struct kx_remote_call calls[] = {
		{ .number = SYS_mmap,
		  .args = { (long)t->head, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0 } },
		{ .number = SYS_madvise, .args = { (long)t->head, PAGE, MADV_WIPEONFORK } },
		{ .number = SYS_mmap,
		  .args = { (long)t->code, CODE_SIZE, PROT_READ | PROT_EXEC, shared, -1, 0 } },
		{ .number = SYS_mmap,
		  .args = { (long)t->rings, RINGS_SIZE, PROT_READ | PROT_WRITE, shared, -1, 0 } },
	};

	if (kx_remote_calls(t->pid, calls, 4, 1000, err))
		return false;
	for (int i = 0; i < 4; i++)
		if (calls[i].result < 0)
			return !kx_err_set(err, (int)calls[i].result, "call %d", i);
	t->code_here = map_here(t->pid, t->code, CODE_SIZE);
	t->rings_here = map_here(t->pid, t->rings, RINGS_SIZE);
	return t->code_here != MAP_FAILED && t->rings_here != MAP_FAILED;
}

static void put_jump(uint8_t *to, uint64_t at, uint64_t target)
{
	const int32_t distance = (int32_t)(target - at - 5);

	to[0] = 0xe9;
	memcpy(to + 1, &distance, sizeof(distance));
}

/* A trampoline that counts, does what the window did, and goes back. */
static void put_site(struct target *t, struct kx_patch_site *site, uint64_t window, size_t length,
		     uint8_t *to)
{
	const uint64_t at = t->code + (uint64_t)(to - t->code_here);
	const int32_t counter = (int32_t)(t->rings + COUNTER - at - 8);

	memcpy(to, "\xf0\x48\xff\x05", 4); /* lock incq counter(%rip) */
	memcpy(to + 4, &counter, sizeof(counter));
	(void)!pread(t->mem, to + 8, length, (off_t)window);
	put_jump(to + 8 + length, at + 8 + length, window + length);
	site->at = window;
	memcpy(site->old, to + 8, sizeof(site->old));
	put_jump(site->jump, window, at);
}

static void fill_areas(struct target *t, uint8_t *lengths)
{
	struct kx_patch_table *table = (void *)t->code_here;
	struct kx_target_rings *rings = (void *)t->rings_here;
	const struct kx_patch_head head = { .magic = KX_PATCH_MAGIC, .rings = t->rings };

	(void)!pwrite(t->mem, &head, sizeof(head), (off_t)t->head);
	rings->magic = KX_PATCH_MAGIC;
	*table = (struct kx_patch_table){ .head = t->head,
					  .code = t->code,
					  .code_size = CODE_SIZE,
					  .rings = t->rings,
					  .rings_size = RINGS_SIZE,
					  .texts_writable = 1,
					  .ntexts = 1,
					  .nsites = FUNCTIONS + 1 };
	table->texts[0] = t->id;
	for (int i = 0; i <= FUNCTIONS; i++) {
		lengths[i] = i < FUNCTIONS ? LENGTH : STUCK_LENGTH;
		put_site(t, &table->sites[i], t->functions + (uint64_t)i * EACH + WINDOW,
			 lengths[i], t->code_here + 16384 + i * 64);
	}
	table->magic = KX_PATCH_MAGIC;
}

static int remove_patches(pid_t pid)
{
	struct kx_patch_removal removal;
	struct kx_err err = { 0 };

	if (kx_patch_remove(pid, &removal, &err))
		return fail(&err);
	printf("removed areas %zu restored %zu foreign %zu stays %d %s\n", removal.areas,
	       removal.restored, removal.foreign, removal.stays, removal.why);
	return 0;
}

static bool put_in(struct target *t, bool *left_out, struct kx_err *err)
{
	uint8_t lengths[FUNCTIONS + 1];
	struct kx_patch_times times;
	struct kx_patch_area area;
	struct kx_remote_call writable = { .number = SYS_mprotect };

	if (!open_target(t))
		return false;
	/* what a killed one has asked for may be mapped in between */
	for (int tries = 0; !find_room(t) || !map_areas(t, err); tries++)
		if (err->code != -EEXIST || tries == 3)
			return false;
	fill_areas(t, lengths);
	writable.args[0] = (long)t->text;
	writable.args[1] = (long)(t->text_end - t->text);
	writable.args[2] = PROT_READ | PROT_WRITE | PROT_EXEC;
	if (kx_remote_calls(t->pid, &writable, 1, 5000, err) || writable.result)
		return false;
	area = (struct kx_patch_area){
		.pid = t->pid, .mem = t->mem, .table = (void *)t->code_here, .code = t->code_here
	};
	return !kx_patch_install(&(struct kx_patch_job){ &area, FUNCTIONS + 1, lengths, left_out, false },
				 1, &times, err) &&
	       !kx_patch_enable(&area, true);
}

static int leave_rings(pid_t pid)
{
	struct kx_remote_call map = { .number = SYS_mmap,
				      .args = { 0, RINGS_SIZE, PROT_READ | PROT_WRITE,
						MAP_SHARED | MAP_ANONYMOUS, -1, 0 } };
	struct kx_err err = { 0 };

	if (kx_remote_calls(pid, &map, 1, 1000, &err) || map.result < 0)
		return fail(&err);
	((struct kx_target_rings *)map_here(pid, (uint64_t)map.result, RINGS_SIZE))->magic =
		KX_PATCH_MAGIC;
	return 0;
}

static int cycle(pid_t pid)
{
	for (;;) {
		bool left_out[FUNCTIONS + 1] = { 0 };
		struct target t = { .pid = pid };
		struct kx_err err = { 0 };

		/* what one that was killed has left is in the way */
		if (remove_patches(pid))
			return 1;
		if (!put_in(&t, left_out, &err))
			return fail(&err);
		munmap(t.code_here, CODE_SIZE);
		munmap(t.rings_here, RINGS_SIZE);
		close(t.mem);
	}
}

/* `enabled` in the head page, whose place the helper itself has chosen. */
static int show_head(pid_t pid)
{
	struct kx_patch_head head = { 0 };
	struct target t = { .pid = pid };

	if (!open_target(&t) ||
	    pread(t.mem, &head, sizeof(head), (off_t)t.head) != (ssize_t)sizeof(head))
		return 1;
	say("enabled", head.enabled);
	return 0;
}

static void beat(struct target *t)
{
	__atomic_store_n(&((struct kx_target_rings *)(void *)t->rings_here)->heartbeat, kx_tsc_read(),
			 __ATOMIC_RELAXED);
}

static int show_changed(pid_t pid)
{
	struct target t = { .pid = pid };
	size_t size, differ = 0;
	uint8_t *live, *file;
	int fd;

	if (!open_target(&t))
		return 1;
	size = t.text_end - t.text;
	live = malloc(size);
	file = calloc(1, size);
	fd = open(t.exe, O_RDONLY);
	if (pread(t.mem, live, size, (off_t)t.text) != (ssize_t)size ||
	    pread(fd, file, size, (off_t)t.offset) <= 0)
		return 1;
	for (size_t i = 0; i < size; i++)
		differ += live[i] != file[i];
	printf("%zu\n", differ);
	return 0;
}

/* Whether the module of the job was found to be gone; it is looked at again next time. */
static bool is_gone(struct kx_patch_job *job)
{
	const bool gone = job->gone;

	job->gone = false;
	return gone;
}

/* As if another file had been mapped at the place of the module: nothing may be changed. */
static int install_stale(pid_t pid)
{
	bool left_out[FUNCTIONS + 1] = { 0 };
	uint8_t lengths[FUNCTIONS + 1];
	struct target t = { .pid = pid };
	struct kx_patch_times times;
	struct kx_patch_text text;
	struct kx_patch_area area;
	struct kx_patch_job job;
	struct kx_err err = { 0 };
	double ms = 0;

	if (!open_target(&t) || !find_room(&t) || !map_areas(&t, &err))
		return fail(&err);
	fill_areas(&t, lengths);
	text = t.id;
	area = (struct kx_patch_area){ .pid = pid,
				       .mem = t.mem,
				       .table = (void *)t.code_here,
				       .code = t.code_here,
				       .texts = &text,
				       .ntexts = 1 };
	job = (struct kx_patch_job){ &area, FUNCTIONS + 1, lengths, left_out, false };
	say("not writable", !kx_patch_install(&job, 1, &times, &err) && is_gone(&job));
	text.inode++;
	say("another file", !kx_patch_make_writable(&job, 1, &ms, &err) && is_gone(&job));
	text.inode--;
	text.offset += PAGE;
	say("another part", !kx_patch_make_writable(&job, 1, &ms, &err) && is_gone(&job));
	text.offset -= PAGE;
	if (kx_patch_make_writable(&job, 1, &ms, &err) || is_gone(&job))
		return fail(&err);
	text.device++;
	memset(left_out, 0, sizeof(left_out));
	say("another file", !kx_patch_install(&job, 1, &times, &err) && is_gone(&job));
	show_changed(pid);
	return remove_patches(pid);
}

static int install(pid_t pid, bool guard)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	struct target t = { .pid = pid };
	struct kx_err err = { 0 };
	bool left_out[FUNCTIONS + 1] = { 0 };
	int left = 0;

	if (guard && (kx_keeper_start(&err) || kx_keeper_guard_patches(pid)))
		return fail(&err);
	if (!put_in(&t, left_out, &err))
		return fail(&err);
	for (int i = 0; i <= FUNCTIONS; i++)
		left += left_out[i];
	say("left", left);
	if (left_out[FUNCTIONS])
		say("stuck", 1);
	beat(&t);
	say("installed", FUNCTIONS + 1 - left);
	while (poll(&input, 1, 20) <= 0)
		beat(&t);
	say("passed",
	    __atomic_load_n((uint64_t *)(void *)(t.rings_here + COUNTER), __ATOMIC_RELAXED) > 0);
	if (remove_patches(pid))
		return 1;
	if (guard)
		kx_keeper_release_patches(pid);
	kx_keeper_stop();
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const pid_t pid = argc > 2 ? atoi(argv[2]) : 0;
	const int times = argc > 3 ? atoi(argv[3]) : 1;
	const unsigned wait_ms = argc > 4 ? (unsigned)atoi(argv[4]) : 5000;

	if (!strcmp(what, "stop"))
		return patcher_stop(pid, times, wait_ms);
	if (!strcmp(what, "hold"))
		return patcher_hold(pid);
	if (!strcmp(what, "lend"))
		return patcher_lend(pid);
	if (!strcmp(what, "calls"))
		return patcher_calls(pid, times, wait_ms);
	if (!strcmp(what, "install"))
		return install(pid, argc > 3);
	if (!strcmp(what, "remove"))
		return remove_patches(pid);
	if (!strcmp(what, "cycle"))
		return cycle(pid);
	if (!strcmp(what, "stale"))
		return install_stale(pid);
	if (!strcmp(what, "rings"))
		return leave_rings(pid);
	if (!strcmp(what, "changed"))
		return show_changed(pid);
	if (!strcmp(what, "head"))
		return show_head(pid);
	return 2;
}
