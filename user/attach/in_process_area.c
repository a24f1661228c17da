// SPDX-License-Identifier: BSD-2-Clause
/* One module's area: memory in the process, trampolines, jumps. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/in_process_internal.h"
#include "attach/near_room.h"
#include "attach/recorder_code.h"
#include "attach/trampoline.h"
#include "base/array.h"
#include "binary/mappings.h"
#include "tracer/patch_texts.h"
#include "tracer/remote_calls.h"

#define PAGE 4096ul
/* Room for the trampolines of a large library; only touched pages take memory. Stubs of the third byte are up to 16 MiB away. */
#define CODE_SIZE (48ul << 20)
/* Less where a process has used up the addresses near a library, as virtual machines do: no less than this. */
#define CODE_SIZE_LEAST (1ul << 20)
/* How long a thread that can make system calls is waited for. */
#define CALLS_WAIT_MS 2000
#define MAP_TRIES 3
#define ALIGN_UP(n, to) (((n) + (to) - 1) & ~((to) - 1))

void kx_in_process_note_unguarded(struct kx_in_process *p, const char *function, const char *why)
{
	if (!*p->guarded.why)
		snprintf(p->guarded.why, sizeof(p->guarded.why), "%s: %.200s", function, why);
}

void *kx_in_process_share(pid_t pid, uint64_t at, size_t size, struct kx_err *err)
{
	char path[96];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, at, at + size);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		kx_err_set(err, -errno, "the memory shared with process %d cannot be opened (%s: %s)", pid, path, strerror(errno));
		return NULL;
	}
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		kx_err_set(err, -errno, "no memory for what is shared with process %d", pid);
		p = NULL;
	}
	close(fd);
	return p;
}

static struct kx_remote_call map_call(uint64_t at, size_t size, int prot, int flags)
{
	return (struct kx_remote_call){ .number = SYS_mmap,
					.args = { (long)at, (long)size, prot, flags | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0 } };
}

struct room {
	uint64_t head, code, far;
	size_t code_size, far_size;
};

/*
 * For code, of which only touched pages are ever given: where all that is mapped is locked (mlockall(2), MCL_FUTURE), the kernel would give
 * all of it at once, but not what nobody may read, as it is mapped at first. A core dump would hold all of it, too.
 */
static size_t open_calls(uint64_t at, size_t size, struct kx_remote_call *out)
{
	out[0] = (struct kx_remote_call){ .number = SYS_munlock, .args = { (long)at, (long)size } };
	out[1] = (struct kx_remote_call){ .number = SYS_mprotect, .args = { (long)at, (long)size, PROT_READ | PROT_EXEC } };
	out[2] = (struct kx_remote_call){ .number = SYS_madvise, .args = { (long)at, (long)size, MADV_DONTDUMP } };
	return 3;
}

/*
 * Modules near each other need the same far room: guards, which are in each process, take none if no instruction begins at the last byte of their
 * jumps.
 */
static bool needs_far(const struct kx_patched_module *m)
{
	bool needs = !m->only_guards;

	for (size_t g = 0; g < KX_GUARDS; g++)
		needs |= m->guards[g].length && m->guards[g].starts >> (KX_JUMP_SIZE - 1);
	return needs;
}

/* The head page lies before the code. */
static int find_room(const struct kx_in_process *p, const struct kx_patched_module *m, struct room *r, struct kx_err *err)
{
	const uint64_t far = (m->text - KX_FAR_FROM) & ~(PAGE - 1), far_end = ALIGN_UP(m->text_end + 16 - KX_FAR_TO, PAGE);

	for (r->code_size = CODE_SIZE; r->code_size >= CODE_SIZE_LEAST; r->code_size /= 2) {
		r->head = kx_near_room(p->o.pid, m->text, m->text_end, PAGE + r->code_size);
		if (r->head)
			break;
	}
	if (!r->head)
		return kx_err_set(err, -EOPNOTSUPP, "no room in the process within reach of the code of %s", m->m->module->name);
	r->code = r->head + PAGE;
	r->far = r->far_size = 0;
	if (!needs_far(m) || m->text < KX_FAR_FROM + PAGE || !kx_room_is_free(p->o.pid, far, far_end - far) ||
	    (far < r->code + r->code_size && far_end > r->head))
		return 0;
	r->far = far;
	r->far_size = far_end - far;
	return 0;
}

bool kx_in_process_remove_area(struct kx_in_process *p, uint64_t code)
{
	struct kx_patch_removal removal = { 0 };
	const int failed = kx_patch_remove_area(p->o.pid, code, &removal, NULL);

	kx_in_process_note_stop(p, removal.stopped_ms);
	return !failed && !removal.stays;
}

static int check_calls(const struct kx_remote_call *calls, size_t n, const struct kx_in_process *p, const struct kx_patched_module *m,
		       struct kx_err *err)
{
	char what[128];

	snprintf(what, sizeof(what), "near the code of %.96s", m->m->module->name);
	for (size_t i = 0; i < n; i++)
		if (calls[i].result < 0)
			return kx_in_process_unmapped(p->o.pid, (int)calls[i].result, (size_t)calls[i].args[1], what, err);
	return 0;
}

/* What was mapped by the calls that succeeded. */
static void unmap(const struct kx_in_process *p, const struct kx_remote_call *calls, size_t n)
{
	struct kx_remote_call undo[KX_MAX_REMOTE_CALLS];
	size_t nundo = 0;

	for (size_t i = 0; i < n; i++)
		if (calls[i].number == SYS_mmap && calls[i].result > 0)
			undo[nundo++] = (struct kx_remote_call){ .number = SYS_munmap, .args = { calls[i].args[0], calls[i].args[1] } };
	if (nundo)
		kx_remote_calls(p->o.pid, undo, nundo, CALLS_WAIT_MS, NULL);
}

/*
 * Not before the memory is known to be kxray's: the process may have mapped something there meanwhile. And not before the table has its
 * magic, as this takes more calls than the mapping: a kxray that is killed here leaves nothing that cannot be found.
 */
static int open_room(const struct kx_in_process *p, const struct kx_patched_module *m, const struct room *r, struct kx_err *err)
{
	struct kx_remote_call calls[KX_MAX_REMOTE_CALLS];
	size_t n = 0;
	int code;

	if (!p->o.follow)
		calls[n++] = (struct kx_remote_call){ .number = SYS_madvise, .args = { (long)r->head, PAGE, MADV_WIPEONFORK } };
	n += open_calls(r->code, r->code_size, calls + n);
	if (r->far_size)
		n += open_calls(r->far, r->far_size, calls + n);
	code = kx_remote_calls(p->o.pid, calls, n, CALLS_WAIT_MS, err);
	return code ? code : check_calls(calls, n, p, m, err);
}

static int map_room(struct kx_in_process *p, struct kx_patched_module *m, const struct room *r, struct kx_err *err)
{
	struct kx_remote_call calls[3];
	size_t n = 0;
	int code;

	calls[n++] = map_call(r->head, PAGE, PROT_READ | PROT_WRITE, p->o.follow ? MAP_SHARED : MAP_PRIVATE);
	calls[n++] = map_call(r->code, r->code_size, PROT_NONE, MAP_SHARED | MAP_NORESERVE);
	if (r->far_size)
		calls[n++] = map_call(r->far, r->far_size, PROT_NONE, MAP_SHARED | MAP_NORESERVE);
	code = kx_remote_calls(p->o.pid, calls, n, CALLS_WAIT_MS, err);
	if (code)
		return code;
	code = check_calls(calls, n, p, m, err);
	if (!code) {
		m->area.code = kx_in_process_share(p->o.pid, r->code, r->code_size, err);
		m->code_size = r->code_size;
		m->far_size = r->far_size;
		m->area.far = r->far_size && m->area.code ? kx_in_process_share(p->o.pid, r->far, r->far_size, err) : NULL;
		m->area.head = p->o.follow && m->area.code ? kx_in_process_share(p->o.pid, r->head, PAGE, err) : NULL;
		code = !m->area.code || (r->far_size && !m->area.far) || (p->o.follow && !m->area.head) ? err->code : 0;
	}
	if (code)
		unmap(p, calls, n);
	return code;
}

struct texts {
	const struct kx_module *module;
	struct kx_patch_table *layout;
	bool is_there; /* where it was seen before */
};

/* No more of it than the pages of @windows, as far as it has them. */
static void narrow(struct kx_patch_table *layout, const struct kx_window *windows, uint64_t bias)
{
	struct kx_patch_text pages[KX_GUARDS];
	size_t n = 0;

	for (size_t g = 0; g < KX_GUARDS; g++) {
		const uint64_t page = (windows[g].start + bias) & ~(PAGE - 1);

		for (size_t i = 0; i < layout->ntexts && windows[g].length; i++) {
			const struct kx_patch_text *t = &layout->texts[i];

			if (page >= t->from && page < t->to && !(n && pages[n - 1].from == page))
				pages[n++] = (struct kx_patch_text){ page, page + PAGE, t->device, t->inode, t->offset + (page - t->from) };
		}
	}
	memset(layout->texts, 0, sizeof(layout->texts));
	memcpy(layout->texts, pages, n * sizeof(pages[0]));
	layout->ntexts = n;
}

static int add_text(void *ctx, const struct kx_mapping *map)
{
	struct texts *t = ctx;

	if (!map->executable || !kx_module_has_mapping(t->module, map))
		return 0;
	t->is_there |= map->start == t->module->start && map->offset == t->module->map_offset;
	if (t->layout->ntexts == KX_PATCH_MAX_TEXTS)
		return -E2BIG;
	t->layout->texts[t->layout->ntexts++] = kx_patch_text_of(map);
	return 0;
}

/* What the table begins with, as far as it does not depend on where the area is. */
static int begin_layout(struct kx_in_process *p, struct kx_patched_module *m, struct kx_err *err)
{
	struct texts texts = { .module = m->now };
	int code;

	texts.layout = m->layout = calloc(1, sizeof(*m->layout));
	if (!m->layout)
		return kx_err_set(err, -ENOMEM, "no memory for trampolines");
	m->layout->rings = p->rings_at;
	m->layout->rings_size = p->rings_size;
	code = kx_mappings_each(p->o.pid, add_text, &texts);
	if (code || !texts.is_there)
		return kx_err_set(err, code ? code : -ESTALE, "the code of %s is no longer mapped", m->m->module->name);
	if (m->only_guards)
		narrow(m->layout, m->guards, m->bias);
	m->area = (struct kx_patch_area){ .pid = p->o.pid, .mem = p->mem, .texts = m->layout->texts, .ntexts = m->layout->ntexts };
	return 0;
}

/* The table without sites, the head, and the recorder's code; where that is in @recorder. */
static int fill_area(struct kx_in_process *p, struct kx_patched_module *m, const struct room *r, uint64_t *recorder, struct kx_err *err)
{
	const struct kx_patch_head head = { .magic = KX_PATCH_MAGIC, .rings = p->rings_at };
	size_t size, entry, taken = ALIGN_UP(sizeof(*m->layout) + m->nwindows * sizeof(struct kx_patch_site), 64ul);
	const uint8_t *code = kx_recorder_code(kx_recorder_tcb_by_here(), &size, &entry);
	struct kx_patch_table *t = m->layout;

	t->head = r->head;
	t->code = r->code;
	t->code_size = r->code_size;
	t->far = r->far;
	t->far_size = r->far_size;
	m->area.table = (struct kx_patch_table *)m->area.code;
	memcpy(m->area.table, m->layout, sizeof(*m->layout));
	memcpy(m->area.code + taken, code, size);
	*recorder = r->code + taken + entry;
	m->space = kx_jump_space_new(r->code, r->code_size, ALIGN_UP(taken + size, 64ul), r->far, r->far_size);
	/* from now on kx_patch_remove finds it */
	__atomic_store_n(&m->area.table->magic, KX_PATCH_MAGIC, __ATOMIC_RELEASE);
	if (pwrite(p->mem, &head, sizeof(head), (off_t)r->head) != sizeof(head))
		return kx_err_set(err, -ESRCH, "process %d has ended", p->o.pid);
	return m->space ? 0 : kx_err_set(err, -ENOMEM, "no memory for trampolines");
}

static uint8_t *here(const struct kx_patched_module *m, uint64_t at)
{
	const struct kx_patch_table *t = m->layout;

	return at - t->code < t->code_size ? m->area.code + (at - t->code) : m->area.far + (at - t->far);
}

struct made_site {
	struct kx_patch_site site;
	uint32_t id;
	uint8_t length;
};

/* The guard of a window; NULL: it has none. */
static const struct kx_guard *guard_of(const struct kx_patched_module *m, const struct kx_window *w)
{
	for (size_t g = 0; g < KX_GUARDS; g++)
		if (m->guards[g].length && m->guards[g].start == w->start)
			return &kx_guards[g];
	return NULL;
}

/* The trampoline and the stubs of one window; false if there is no room for them. */
static bool make_site(struct kx_patched_module *m, uint32_t id, const struct kx_window *w, uint64_t recorder,
		      struct made_site *out)
{
	const struct kx_code *code = kx_window_planner_code(m->planner);
	struct kx_trampoline_place place = { .bias = m->bias, .head = m->layout->head, .recorder = recorder, .at = m->layout->code,
					     .guard = guard_of(m, w) };
	uint8_t bytes[KX_TRAMPOLINE_MOST];
	struct kx_jump jump;
	const uint8_t *old = kx_elf_code(m->m->elf, w->start, KX_JUMP_SIZE);
	const unsigned size = kx_trampoline_make(code, w, id, &place, bytes);

	if (!size || !old || !kx_jump_space_take(m->space, w->start + m->bias, w->starts, size, &jump))
		return false;
	place.at = jump.trampoline;
	if (kx_trampoline_make(code, w, id, &place, bytes) != size) {
		kx_jump_space_give(m->space, &jump, size);
		return false;
	}
	memcpy(here(m, jump.trampoline), bytes, size);
	for (unsigned i = 0; i < jump.nstubs; i++)
		kx_jump_make(jump.stubs[i], jump.trampoline, here(m, jump.stubs[i]));
	*out = (struct made_site){ .site.at = w->start + m->bias, .id = id, .length = (uint8_t)w->length };
	memcpy(out->site.old, old, KX_JUMP_SIZE);
	memcpy(out->site.jump, jump.bytes, KX_JUMP_SIZE);
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct made_site *x = a, *y = b;

	return x->site.at < y->site.at ? -1 : x->site.at > y->site.at;
}

static bool is_made(const struct made_site *made, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		if (made[i].site.at == at)
			return true;
	return false;
}

/* Those of functions that are not recorded. Returns how many sites there are then. */
static size_t make_guards(struct kx_patched_module *m, uint64_t recorder, struct made_site *made, size_t n)
{
	for (size_t g = 0; g < KX_GUARDS; g++) {
		struct kx_window w = m->guards[g];

		w.entry = false;
		if (w.length && !is_made(made, n, w.start + m->bias))
			n += make_site(m, 0, &w, recorder, &made[n]);
	}
	return n;
}

/* Trampolines of all functions; the table has the sites afterwards, in order of address. */
static int make_sites(struct kx_in_process *p, struct kx_patched_module *m, uint64_t recorder, struct kx_err *err)
{
	struct made_site *made = calloc(m->nwindows + 1, sizeof(*made));
	size_t n = 0;

	m->site_ids = calloc(m->nwindows + 1, sizeof(*m->site_ids));
	m->site_lengths = calloc(m->nwindows + 1, sizeof(*m->site_lengths));
	if (!made || !m->site_ids || !m->site_lengths) {
		free(made);
		return kx_err_set(err, -ENOMEM, "no memory for trampolines");
	}
	for (size_t i = 0; i < m->nfunctions; i++) {
		const struct kx_patched_function *f = &m->functions[i];
		const struct kx_function *function = &p->o.sel->functions[f->id - 1];
		const size_t first = n;

		if (!p->has[f->id - 1])
			continue; /* it was left out when the module was loaded before */

		for (unsigned w = 0; w < f->windows.n; w++, n++)
			if (!make_site(m, f->id, &f->windows.items[w], recorder, &made[n]))
				break;
		if (n - first < f->windows.n) {
			n = first;
			kx_in_process_refuse(p, function, "no room for its trampolines within reach");
		}
	}
	n = make_guards(m, recorder, made, n);
	qsort(made, n, sizeof(*made), by_address);
	for (size_t i = 0; i < n; i++) {
		m->area.table->sites[i] = made[i].site;
		m->site_ids[i] = made[i].id;
		m->site_lengths[i] = made[i].length;
	}
	m->area.table->nsites = m->nsites = n;
	free(made);
	return 0;
}

int kx_patched_module_map(struct kx_in_process *p, struct kx_patched_module *m, struct kx_err *err)
{
	uint64_t recorder = 0;
	struct room room;
	int code = begin_layout(p, m, err);

	/* what a killed kxray has asked for may be mapped in between */
	for (int tries = 0; (!code && !tries) || (code == -EEXIST && tries < MAP_TRIES); tries++) {
		code = find_room(p, m, &room, err);
		if (!code)
			code = map_room(p, m, &room, err);
	}
	if (!code)
		code = fill_area(p, m, &room, &recorder, err);
	if (!code)
		code = open_room(p, m, &room, err);
	return code ? code : make_sites(p, m, recorder, err);
}

/* What of it is mapped here; the process keeps what it has. */
void kx_patched_module_forget(struct kx_patched_module *m)
{
	if (m->area.far)
		munmap(m->area.far, m->far_size);
	if (m->area.code)
		munmap(m->area.code, m->code_size);
	if (m->area.head)
		munmap(m->area.head, PAGE);
	kx_jump_space_free(m->space);
	free(m->layout);
	free(m->site_ids);
	free(m->site_lengths);
	m->area = (struct kx_patch_area){ 0 };
	m->space = NULL;
	m->layout = NULL;
	m->site_ids = NULL;
	m->site_lengths = NULL;
	m->nsites = 0;
	m->installed = false;
}

void kx_patched_module_remove(struct kx_in_process *p, struct kx_patched_module *m)
{
	const uint64_t code = m->area.table ? m->layout->code : 0;

	kx_patched_module_forget(m);
	if (code && !kx_in_process_remove_area(p, code) && !KX_ARRAY_RESERVE(p->leaving, p->leaving_room, p->nleaving))
		p->leaving[p->nleaving++] = code;
}

void kx_patched_module_free(struct kx_patched_module *m)
{
	kx_patched_module_forget(m);
	kx_window_planner_free(m->planner);
	free(m->functions);
}
