// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 5 s, without root
/* The recorder, run where it was copied to: exact records and losses, under a storm of signals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <libelf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <x86intrin.h>

#include "fast_size.h"
#include "patched.h"

#define ENTRY	  (1u << 28)
#define EXIT	  (2u << 28)
#define TAIL_EXIT (3u << 28)
#define FAR_AWAY  (0x10000000000)
#define NCPUS	  4096u /* the most */
#define NSLOTS	  64u

static struct patched p;

static cpu_set_t usual_cpus;
static bool has_rdpid;

static int start(void **state)
{
	(void)state;
	sched_getaffinity(0, sizeof(usual_cpus), &usual_cpus);
	if (!patched_init(&p, 0x100000000000, FAR_AWAY, NSLOTS, NCPUS))
		return -1;
	has_rdpid = p.rings->cpu_by;
	return 0;
}

static int end(void **state)
{
	(void)state;
	patched_free(&p);
	return sched_setaffinity(0, sizeof(usual_cpus), &usual_cpus);
}

/* Lets this thread run on one CPU until end(), and returns which. */
static unsigned stay_on_cpu(void)
{
	unsigned cpu;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &set); cpu++)
		;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	return cpu;
}

/* The section is copied as it is: it needs no linker, and nothing that lies elsewhere. */
static void test_no_relocations(void **state)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	size_t names, sections = 0;
	Elf_Scn *scn = NULL;
	Elf *elf;
	int fd;

	(void)state;
	assert_true(n > 0);
	path[n] = 0;
	*strrchr(path, '/') = 0;
	strcpy(strrchr(path, '/'), "/user/attach/recorder_code.o");
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn))) {
		const Elf64_Shdr *h = elf64_getshdr(scn);
		const char *name = elf_strptr(elf, names, h->sh_name);

		sections += !strcmp(name, "kx_recorder");
		if (!strcmp(name, ".relakx_recorder") || !strcmp(name, ".relkx_recorder"))
			fail_msg("%s has %s", path, name);
		/* constants that a compiler has put elsewhere */
		if (!strncmp(name, ".rodata", 7) && h->sh_size)
			fail_msg("%s has %s", path, name);
	}
	assert_int_equal(sections, 1);
	elf_end(elf);
	close(fd);
}

/* What the kernel says of this machine. */
static void test_cpu(void **state)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[8192];
	bool good;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && strncmp(line, "flags", 5))
		;
	fclose(f);
	good = strstr(line, " rdtscp ") && strstr(line, " lahf_lm ");
	f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
	if (f) {
		line[0] = 0;
		good &= fgets(line, sizeof(line), f) &&
			(strstr(line, "tsc") || strstr(line, "kvm-clock") ||
			 strstr(line, "hyperv") || strstr(line, "xen"));
		fclose(f);
	}
	assert_int_equal(kx_recorder_cpu_lacks() == NULL, good);
}

static void check_record(const struct kx_wire_record *r, unsigned cpu, uint32_t func, uint8_t kind,
			 uint64_t sp, uint64_t from, uint64_t to)
{
	assert_non_null(r);
	assert_int_equal(r->tid, gettid());
	assert_int_equal(r->func, func);
	assert_int_equal(r->kind, kind);
	assert_int_equal(r->sp, sp);
	assert_int_equal(r->cpu, cpu);
	assert_int_equal(r->words, 0);
	assert_in_range(r->clock, from, to);
}

/* Every field of the three kinds, with both ways to learn the CPU. */
static void test_records(void **state)
{
	const unsigned cpu = stay_on_cpu();
	struct kx_ring *ring = &p.views->items[cpu];
	const uint32_t rdpid = p.rings->cpu_by;
	uint64_t from, to;

	(void)state;
	for (uint32_t use = 0; use <= rdpid; use++) {
		p.rings->cpu_by = use;
		from = __rdtsc();
		p.recorder(ENTRY | 0xfffffff, 0x7ffc12345678, p.head);
		p.recorder(EXIT | 1, 0xffffffffffff, p.head);
		p.recorder(TAIL_EXIT | 0x8000001, 8, p.head);
		to = __rdtsc();
		assert_int_equal(kx_ring_head(ring), ring->tail + 3);
		check_record(kx_ring_take(p.views, ring), cpu, 0xfffffff, KX_EVENT_ENTRY,
			     0x7ffc12345678, from, to);
		check_record(kx_ring_take(p.views, ring), cpu, 1 | KX_FUNC_AT_INSTRUCTION,
			     KX_EVENT_EXIT, 0xffffffffffff, from, to);
		check_record(kx_ring_take(p.views, ring), cpu, 0x8000001 | KX_FUNC_AT_INSTRUCTION,
			     KX_EVENT_TAIL_EXIT, 8, from, to);
		kx_ring_release(ring);
	}
	assert_int_equal(kx_rings_heads(p.views), 3 * (rdpid + 1));
	assert_int_equal(p.head->enabled, 1);
}

/* Calls the recorder; returns how many of the registers that it has to keep have changed. */
uint64_t call_with_registers(kx_recorder_fn *recorder, uint32_t what, uint64_t sp,
			     struct kx_patch_head *head);
__asm__(".pushsection .text\n .type call_with_registers,@function\ncall_with_registers:\n"
	" push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	" xchg %rdi,%rsi\n xchg %rsi,%rdx\n xchg %rdx,%rcx\n"
	" push %rcx\n"
	" mov $1,%eax\n mov $2,%ebx\n mov $3,%ecx\n mov $4,%ebp\n mov $8,%r8d\n mov $9,%r9d\n mov "
	"$10,%r10d\n mov $11,%r11d\n"
	" mov $12,%r12d\n mov $13,%r13d\n mov $14,%r14d\n mov $15,%r15d\n"
	" call *(%rsp)\n"
	" xor %edi,%edi\n"
	" cmp $1,%rax\n setne %al\n movzx %al,%esi\n add %rsi,%rdi\n"
	".macro same r v\n cmp $\\v,%\\r\n setne %al\n movzx %al,%esi\n add %rsi,%rdi\n.endm\n"
	" same rbx 2\n same rcx 3\n same rbp 4\n same r8 8\n same r9 9\n same r10 10\n same r11 "
	"11\n same r12 12\n same r13 13\n"
	" same r14 14\n same r15 15\n"
	" mov %rdi,%rax\n pop %rcx\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop "
	"%rbx\n ret\n"
	" .size call_with_registers,.-call_with_registers\n .popsection\n");

/* Calls the recorder on a stack that ends at @top. */
void call_on_stack(kx_recorder_fn *recorder, uint32_t what, uint64_t sp, struct kx_patch_head *head,
		   void *top);
__asm__(".pushsection .text\n .type call_on_stack,@function\ncall_on_stack:\n"
	" push %rbx\n mov %rsp,%rbx\n mov %r8,%rsp\n"
	" mov %rdi,%rax\n mov %esi,%edi\n mov %rdx,%rsi\n mov %rcx,%rdx\n call *%rax\n"
	" mov %rbx,%rsp\n pop %rbx\n ret\n"
	" .size call_on_stack,.-call_on_stack\n .popsection\n");

static void test_stack(void **state)
{
	static uint8_t stack[4096] __attribute__((aligned(16)));
	size_t used = sizeof(stack);

	(void)state;
	stay_on_cpu();
	memset(stack, 0x5a, sizeof(stack));
	for (unsigned i = 0; i < NSLOTS + 2; i++)
		call_on_stack(p.recorder, ENTRY | 1, i, p.head, stack + sizeof(stack));
	p.rings->ncpus = 0;
	call_on_stack(p.recorder, ENTRY | 1, 1, p.head, stack + sizeof(stack));
	while (used && stack[sizeof(stack) - used] == 0x5a)
		used--;
	print_message("%zu bytes\n", used);
	assert_in_range(used, 16, KX_RECORDER_STACK);
}

/* In a full ring, without a ring, without room in the table of losses: ways through the code. */
static void test_registers_are_kept(void **state)
{
	const unsigned cpu = stay_on_cpu();

	(void)state;
	for (unsigned i = 0; i < NSLOTS + 3; i++)
		assert_int_equal(
			call_with_registers(p.recorder, i % 2 ? EXIT | 1 : ENTRY | 1, i, p.head),
			0);
	assert_int_equal(p.views->items[cpu].header->lost[KX_LOSS_RING_FULL], 3);
	p.rings->ncpus = 0;
	assert_int_equal(call_with_registers(p.recorder, ENTRY | 1, 1, p.head), 0);
	assert_int_equal(p.rings->lost_no_cpu, 1);
	for (unsigned i = 0; i < KX_TARGET_LOSSES; i++)
		p.rings->losses[i].tid = 0x7fffffff;
	assert_int_equal(call_with_registers(p.recorder, ENTRY | 1, 1, p.head), 0);
	assert_int_equal(p.rings->lost_no_thread, 1);
}

static const struct kx_target_loss *loss_of(uint32_t tid)
{
	for (unsigned i = 0; i < KX_TARGET_LOSSES; i++)
		if (p.rings->losses[i].tid == tid)
			return &p.rings->losses[i];
	return NULL;
}

static void test_full_ring(void **state)
{
	const unsigned cpu = stay_on_cpu();
	struct kx_ring *ring = &p.views->items[cpu];
	const struct kx_target_loss *loss;
	uint64_t from, to, first;

	(void)state;
	for (unsigned i = 0; i < NSLOTS; i++)
		p.recorder(ENTRY | 1, i, p.head);
	assert_null(loss_of((uint32_t)gettid()));
	from = __rdtsc();
	for (unsigned i = 0; i < 5; i++)
		p.recorder(i < 3 ? ENTRY | 1 : i == 3 ? EXIT | 1 : TAIL_EXIT | 1, i, p.head);
	to = __rdtsc();
	loss = loss_of((uint32_t)gettid());
	assert_non_null(loss);
	assert_int_equal(loss->entries, 3);
	assert_int_equal(loss->exits, 2);
	assert_int_equal(loss->cpu, cpu);
	assert_int_equal(loss->epoch, 1);
	assert_int_equal(loss->first_total, 0);
	assert_in_range(loss->first_clock, from, to);
	assert_in_range(loss->last_clock, loss->first_clock + 1, to);
	assert_int_equal(ring->header->lost[KX_LOSS_RING_FULL], 5);
	assert_int_equal(kx_ring_head(ring), NSLOTS);
	first = loss->first_clock;
	p.recorder(ENTRY | 1, 0, p.head);
	assert_int_equal(loss->first_clock, first); /* of the same epoch */
	/* the reader frees a slot: after one record comes the first loss of the next epoch */
	assert_non_null(kx_ring_take(p.views, ring));
	kx_ring_release(ring);
	p.rings->epoch++;
	p.recorder(EXIT | 1, 77, p.head);
	assert_int_equal(kx_ring_head(ring), NSLOTS + 1);
	assert_int_equal(loss->exits, 2);
	from = __rdtsc();
	p.recorder(EXIT | 1, 78, p.head);
	assert_int_equal(loss->entries, 4);
	assert_int_equal(loss->exits, 3);
	assert_int_equal(loss->epoch, 2);
	assert_int_equal(loss->first_total, 6);
	assert_in_range(loss->first_clock, from, __rdtsc());
	assert_int_equal(p.head->enabled, 1);
}

/* Recording ends if a ring is full and the reader silent for too long; its clock may be ahead. */
static void test_stale_reader(void **state)
{
	(void)state;
	stay_on_cpu();
	p.rings->patience = 1ull << 40;
	p.rings->heartbeat = __rdtsc() - (1ull << 41);
	for (unsigned i = 0; i < NSLOTS; i++)
		p.recorder(ENTRY | 1, i, p.head);
	assert_int_equal(p.head->enabled, 1);
	p.rings->heartbeat = __rdtsc();
	p.recorder(ENTRY | 1, 0, p.head);
	assert_int_equal(p.head->enabled, 1);
	p.rings->heartbeat = __rdtsc() + (1ull << 41);
	p.recorder(ENTRY | 1, 0, p.head);
	assert_int_equal(p.head->enabled, 1);
	assert_int_equal(p.rings->switched_off, 0);
	p.rings->heartbeat = __rdtsc() - (1ull << 41);
	p.recorder(ENTRY | 1, 0, p.head);
	assert_int_equal(p.head->enabled, 0);
	assert_int_equal(p.rings->switched_off, 1);
	assert_int_equal(p.head->magic, KX_PATCH_MAGIC);
	assert_ptr_equal(p.head->rings, p.rings);
}

/* Nothing is read, written or counted once a thread may not read the clock; no gate changes that. */
static void test_forbidden(void **state)
{
	const unsigned cpu = stay_on_cpu();
	struct kx_ring *ring = &p.views->items[cpu];

	(void)state;
	p.rings->patience = 0;
	p.rings->heartbeat = 0;
	for (unsigned i = 0; i < NSLOTS; i++)
		p.recorder(ENTRY | 1, i, p.head);
	p.rings->cpu_by = KX_TARGET_FORBIDDEN;
	assert_int_equal(prctl(PR_SET_TSC, PR_TSC_SIGSEGV), 0);
	p.recorder(ENTRY | 1, 0, p.head); /* the ring is full */
	kx_ring_take(p.views, ring);
	kx_ring_release(ring);
	p.recorder(EXIT | 1, 0, p.head);
	assert_int_equal(prctl(PR_SET_TSC, PR_TSC_ENABLE), 0);
	assert_int_equal(kx_ring_head(ring), NSLOTS);
	assert_int_equal(ring->header->lost[KX_LOSS_RING_FULL], 0);
	assert_null(loss_of((uint32_t)gettid()));
	assert_int_equal(p.head->enabled, 1);
}

static void test_no_ring_and_no_room(void **state)
{
	const struct kx_target_loss *loss;

	(void)state;
	p.rings->ncpus = (uint32_t)stay_on_cpu(); /* the CPUs before this one have rings */
	p.rings->patience = 0;
	p.rings->heartbeat = 0;
	p.recorder(ENTRY | 1, 0, p.head);
	p.recorder(EXIT | 1, 0, p.head);
	loss = loss_of((uint32_t)gettid());
	assert_non_null(loss);
	assert_int_equal(loss->entries, 1);
	assert_int_equal(loss->exits, 1);
	assert_int_equal(p.rings->lost_no_cpu, 2);
	assert_int_equal(p.rings->lost_no_thread, 0);
	for (unsigned i = 0; i < KX_TARGET_LOSSES; i++)
		p.rings->losses[i].tid = 0x7fffffff;
	p.recorder(ENTRY | 1, 0, p.head);
	assert_int_equal(p.rings->lost_no_cpu, 3);
	assert_int_equal(p.rings->lost_no_thread, 1);
	assert_int_equal(kx_rings_heads(p.views), 0);
	assert_int_equal(p.head->enabled, 1); /* not the reader's fault */
}

/*
 * Threads record pairs of an entry and an exit; signals interrupt them anywhere, and the handler
 * does the same. sp is a number that each thread counts up, so that each record can be known again.
 */
#define THREADS 8u
#define DEPTH	4 /* handlers that interrupt each other: of a signal each */

struct worker {
	pthread_t thread;
	uint32_t tid;
	uint32_t last;	 /* number of the newest pair */
	uint8_t *seen;	 /* by pair; bit 0: its entry is in a ring, 1: its exit */
	uint64_t got[2]; /* records, by exits */
	uint32_t room;	 /* of `seen` */
	unsigned signals, handled;
	int done;
};

static struct worker workers[THREADS];
static __thread struct worker *self;

static void record_pair(struct worker *w)
{
	const uint32_t number = __atomic_add_fetch(&w->last, 1, __ATOMIC_RELAXED);

	p.recorder(ENTRY | (uint32_t)(w - workers + 1), number, p.head);
	p.recorder(EXIT | (uint32_t)(w - workers + 1), number, p.head);
}

static void on_signal(int n)
{
	(void)n;
	if (!self || self->last + 2 * DEPTH >= self->room)
		return;
	record_pair(self);
	__atomic_add_fetch(&self->handled, 1, __ATOMIC_RELAXED);
}

static void handle(int n, void (*handler)(int), int flags, struct sigaction *old)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART | flags };

	assert_int_equal(sigaction(n, &action, old), 0);
}

static void worker_init(struct worker *w, uint32_t room, unsigned signals)
{
	*w = (struct worker){ .room = room, .signals = signals, .seen = calloc(room, 1) };
	assert_non_null(w->seen);
}

static void *work(void *arg)
{
	const struct itimerspec every = { { 0, 20000 * DEPTH }, { 0, 20000 * DEPTH } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID };
	struct worker *w = arg;
	timer_t timers[DEPTH];

	__atomic_store_n(&w->tid, (uint32_t)gettid(), __ATOMIC_RELAXED);
	self = w;
	event._sigev_un._tid = gettid();
	for (int i = 0; i < DEPTH; i++) {
		event.sigev_signo = SIGRTMIN + i;
		if (timer_create(CLOCK_MONOTONIC, &event, &timers[i]) || timer_settime(timers[i], 0, &every, NULL))
			return NULL;
	}
	while (__atomic_load_n(&w->handled, __ATOMIC_RELAXED) < w->signals &&
	       w->last + 2 * DEPTH < w->room)
		record_pair(w);
	for (int i = 0; i < DEPTH; i++)
		timer_delete(timers[i]);
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return w;
}

/* Takes all that is finished; each record must be one that was not seen before. */
static void take_all(void)
{
	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		struct kx_ring *ring = &p.views->items[cpu];
		const struct kx_wire_record *r;

		while ((r = kx_ring_take(p.views, ring))) {
			const uint32_t id = r->func & ~KX_FUNC_FLAGS;
			const bool exits = r->kind == KX_EVENT_EXIT;
			uint8_t *seen;

			assert_in_range(id, 1, THREADS);
			assert_true(r->kind == (r->func & KX_FUNC_AT_INSTRUCTION ? KX_EVENT_EXIT
										 : KX_EVENT_ENTRY));
			assert_int_equal(r->tid,
					 __atomic_load_n(&workers[id - 1].tid, __ATOMIC_RELAXED));
			assert_int_equal(r->words, 0);
			assert_in_range(r->sp, 1, workers[id - 1].room - 1);
			seen = &workers[id - 1].seen[r->sp];
			assert_int_equal(*seen >> exits & 1, 0);
			*seen |= (uint8_t)(1 << exits);
			workers[id - 1].got[exits]++;
		}
		kx_ring_release(ring);
	}
}

/* Recorded and lost are all calls of the first @n workers; returns how many are lost. */
static uint64_t check_sums(unsigned n)
{
	uint64_t lost = 0, rings_lost = 0;

	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		/* all is committed */
		assert_int_equal(p.views->items[cpu].tail, kx_ring_head(&p.views->items[cpu]));
		rings_lost += p.views->items[cpu].header->lost[KX_LOSS_RING_FULL];
	}
	for (unsigned i = 0; i < n; i++) {
		const struct kx_target_loss *loss = loss_of(workers[i].tid);

		assert_int_equal(workers[i].got[0] + (loss ? loss->entries : 0), workers[i].last);
		assert_int_equal(workers[i].got[1] + (loss ? loss->exits : 0), workers[i].last);
		if (loss) {
			lost += loss->entries + loss->exits;
			assert_true(loss->first_clock <= loss->last_clock);
		}
		free(workers[i].seen);
	}
	assert_int_equal(lost, rings_lost);
	assert_int_equal(p.rings->lost_no_thread, 0);
	return lost;
}

/* The reader takes what there is, or only once for every @idle times that it could. */
static void storm(unsigned idle)
{
	const unsigned signals = (unsigned)fast_size(300, 100);
	struct sigaction old[DEPTH];
	unsigned done = 0, handled = 0;
	uint64_t lost, calls = 0;

	for (int i = 0; i < DEPTH; i++)
		handle(SIGRTMIN + i, on_signal, 0, &old[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		worker_init(&workers[i], 4 << 20, signals);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned pass = 0; done < THREADS; pass++) {
		done = 0;
		for (unsigned i = 0; i < THREADS; i++)
			done += (unsigned)__atomic_load_n(&workers[i].done, __ATOMIC_ACQUIRE);
		if (pass % idle == 0)
			take_all();
		sched_yield();
	}
	for (unsigned i = 0; i < THREADS; i++) {
		void *result;

		assert_int_equal(pthread_join(workers[i].thread, &result), 0);
		assert_non_null(result);
		handled += workers[i].handled;
		calls += 2 * workers[i].last;
	}
	for (int i = 0; i < DEPTH; i++)
		sigaction(SIGRTMIN + i, &old[i], NULL);
	take_all();
	lost = check_sums(THREADS);
	print_message("%llu entries and exits, %llu lost, %u signals\n", (unsigned long long)calls,
		      (unsigned long long)lost, handled);
	assert_true(handled > 0);
	assert_in_range(lost, idle > 1 ? 1 : 0, calls - 1);
}

static void test_storm_with_losses(void **state)
{
	(void)state;
	storm(16);
}

static int start_large(void **state)
{
	(void)state;
	sched_getaffinity(0, sizeof(usual_cpus), &usual_cpus);
	return patched_init(&p, 0x100000000000, FAR_AWAY, 1 << 18,
			    (unsigned)sysconf(_SC_NPROCESSORS_CONF))
		       ? 0
		       : -1;
}

static void test_storm_with_a_reader(void **state)
{
	(void)state;
	storm(1);
}

/* Calls the recorder with a trap behind each of its instructions. */
void call_stepped(kx_recorder_fn *recorder, uint32_t what, uint64_t sp, struct kx_patch_head *head);
__asm__(".pushsection .text\n .type call_stepped,@function\ncall_stepped:\n"
	" mov %rdi,%rax\n mov %esi,%edi\n mov %rdx,%rsi\n mov %rcx,%rdx\n"
	" pushf\n orl $0x100,(%rsp)\n popf\n call *%rax\n pushf\n andl $~0x100,(%rsp)\n popf\n "
	"ret\n"
	" .size call_stepped,.-call_stepped\n .popsection\n");

/* Instructions before the first that is interrupted. */
static unsigned quiet;
/* Whether the handler takes an element of the losses, as another thread would, instead of
 * recording. */
static bool steals, stolen;

#define OTHER_TID 0x7ffffffe

static void steal(void)
{
	struct kx_target_loss *losses = p.rings->losses;

	for (uint32_t at = (uint32_t)gettid() % KX_TARGET_LOSSES;; at = (at + 1) % KX_TARGET_LOSSES)
		if (losses[at].tid != OTHER_TID) {
			stolen = !losses[at].tid;
			if (stolen)
				losses[at].tid = OTHER_TID;
			return;
		}
}

static void on_step(int n)
{
	if (quiet)
		quiet--;
	else if (!steals)
		on_signal(n);
	else if (self && !self->handled++)
		steal();
}

/* More than instructions are in any way through the recorder. */
#define MOST_STEPS 120

/*
 * A signal at each instruction from some on of all ways through the recorder, whose handler records
 * too. The ring of 64 slots gets full in most rounds; where all was read, the writers' limit is
 * old.
 */
static void test_signal_at_each_instruction(void **state)
{
	static const unsigned before[] = { 0, 2, 40, 62, 64 };
	struct worker *w = &workers[0];
	struct sigaction old;

	(void)state;
	stay_on_cpu();
	worker_init(w, 1 << 20, 0);
	w->tid = (uint32_t)gettid();
	handle(SIGTRAP, on_step, SA_NODEFER, &old);
	for (unsigned i = 0; i < 2 * sizeof(before) / sizeof(before[0]); i++)
		for (unsigned from = 0; from < MOST_STEPS; from++) {
			uint32_t number;

			p.rings->cpu_by = from % 2 && has_rdpid;
			p.rings->epoch++;
			for (unsigned k = 0; k < before[i / 2] / 2; k++)
				record_pair(w);
			if (i % 2)
				take_all();
			quiet = from;
			number = ++w->last;
			self = w;
			call_stepped(p.recorder, ENTRY | 1, number, p.head);
			self = NULL;
			p.recorder(EXIT | 1, number, p.head);
			take_all();
		}
	assert_true(w->handled > 1000);
	sigaction(SIGTRAP, &old, NULL);
	assert_true(check_sums(1) > 0);
}

/* Another thread takes the element that this one has just found free. */
static void test_element_of_losses_is_taken(void **state)
{
	const struct kx_target_loss *loss;
	struct worker *w = &workers[0];
	struct sigaction old;

	(void)state;
	stay_on_cpu();
	worker_init(w, 1, 0);
	handle(SIGTRAP, on_step, SA_NODEFER, &old);
	steals = true;
	p.rings->ncpus = 0;
	for (unsigned from = 0; from < MOST_STEPS; from++) {
		memset(p.rings->losses, 0, sizeof(p.rings->losses));
		w->handled = 0;
		stolen = false;
		quiet = from;
		self = w;
		call_stepped(p.recorder, ENTRY | 1, 0, p.head);
		self = NULL;
		loss = loss_of((uint32_t)gettid());
		assert_non_null(loss);
		assert_int_equal(loss->entries, 1);
		loss = loss_of(OTHER_TID);
		assert_int_equal(loss != NULL, stolen);
		if (loss)
			assert_int_equal(loss->entries, 0);
	}
	steals = false;
	assert_int_equal(p.rings->lost_no_cpu, MOST_STEPS);
	free(w->seen);
	sigaction(SIGTRAP, &old, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_relocations),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test_setup_teardown(test_records, start, end),
		cmocka_unit_test_setup_teardown(test_registers_are_kept, start, end),
		cmocka_unit_test_setup_teardown(test_stack, start, end),
		cmocka_unit_test_setup_teardown(test_full_ring, start, end),
		cmocka_unit_test_setup_teardown(test_stale_reader, start, end),
		cmocka_unit_test_setup_teardown(test_forbidden, start, end),
		cmocka_unit_test_setup_teardown(test_no_ring_and_no_room, start, end),
		cmocka_unit_test_setup_teardown(test_signal_at_each_instruction, start, end),
		cmocka_unit_test_setup_teardown(test_element_of_losses_is_taken, start, end),
		cmocka_unit_test_setup_teardown(test_storm_with_losses, start, end),
		cmocka_unit_test_setup_teardown(test_storm_with_a_reader, start_large, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
