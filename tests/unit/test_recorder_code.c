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
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <x86intrin.h>

#include "fast_size.h"
#include "patched.h"
#include "recorder_rig.h"

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
	good = strstr(line, " lahf_lm ");
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

/* Every field of the three kinds, with all ways to learn the CPU. */
static void test_records(void **state)
{
	const unsigned cpu = stay_on_cpu();
	struct kx_ring *ring = &p.views->items[cpu];
	uint64_t from, to;
	unsigned ways = 0;

	(void)state;
	for (uint32_t use = 0; use < KX_TARGET_FORBIDDEN; use++) {
		if (!has_cpu_by(use))
			continue;
		p.rings->cpu_by = use;
		ways++;
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
	assert_int_equal(kx_rings_heads(p.views), 3 * ways);
	assert_int_equal(p.head->enabled, 1);
}

#define STRUCT_RSEQ 32 /* bytes, as glibc registers it */

/* Of a thread that the kernel does not know the struct rseq of: the CPU is the one that it runs on. */
static const char *unregister_and_record(void)
{
	struct rseq *own = (struct rseq *)((char *)pthread_self() + __rseq_offset);
	const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (syscall(SYS_rseq, own, STRUCT_RSEQ, RSEQ_FLAG_UNREGISTER, RSEQ_SIG) || own->cpu_id < NCPUS)
		return "not unregistered";
	for (int cpu = 0; cpu < cpus; cpu++) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			return "not on all CPUs";
		p.recorder(ENTRY | 1, (uint64_t)cpu, p.head);
	}
	return NULL;
}

static void *record_unregistered(void *why)
{
	*(const char **)why = unregister_and_record();
	return NULL;
}

static void test_unregistered_thread(void **state)
{
	const unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	const char *why = "";
	pthread_t thread;

	(void)state;
	if (!__rseq_size)
		skip();
	p.rings->cpu_by = KX_TARGET_RSEQ;
	assert_int_equal(pthread_create(&thread, NULL, record_unregistered, &why), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_null(why);
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		const struct kx_wire_record *r = kx_ring_take(p.views, &p.views->items[cpu]);

		assert_non_null(r);
		assert_int_equal(r->cpu, cpu);
		assert_int_equal(r->sp, cpu);
	}
	assert_int_equal(kx_rings_heads(p.views), cpus);
}

/* Calls the recorder; returns how many of the registers that it has to keep have changed. */
uint64_t call_with_registers(kx_recorder_fn *recorder, uint32_t what, uint64_t sp,
			     struct kx_patch_head *head);
__asm__(".pushsection .text\n .type call_with_registers,@function\ncall_with_registers:\n"
	" push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	" xchg %rdi,%rsi\n xchg %rsi,%rdx\n xchg %rdx,%rcx\n"
	" push %rcx\n"
	" mov $2,%ebx\n mov $4,%ebp\n mov $11,%r11d\n"
	" mov $12,%r12d\n mov $13,%r13d\n mov $14,%r14d\n mov $15,%r15d\n"
	" call *(%rsp)\n"
	" xor %edi,%edi\n"
	".macro same r v\n cmp $\\v,%\\r\n setne %al\n movzx %al,%esi\n add %rsi,%rdi\n.endm\n"
	" same rbx 2\n same rbp 4\n same r11 11\n same r12 12\n same r13 13\n same r14 14\n same r15 15\n"
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

/* A child that a handler has forked in the middle of a trampoline comes with a head of zeros. */
static void test_wiped_head(void **state)
{
	(void)state;
	*p.head = (struct kx_patch_head){ 0 };
	p.recorder(ENTRY | 1, 1, p.head);
	p.recorder(EXIT | 1, 1, p.head);
	assert_int_equal(kx_rings_heads(p.views), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_relocations),
		cmocka_unit_test(test_cpu),
		cmocka_unit_test_setup_teardown(test_records, start, end),
		cmocka_unit_test_setup_teardown(test_unregistered_thread, start, end),
		cmocka_unit_test_setup_teardown(test_registers_are_kept, start, end),
		cmocka_unit_test_setup_teardown(test_wiped_head, start, end),
		cmocka_unit_test_setup_teardown(test_stack, start, end),
		cmocka_unit_test_setup_teardown(test_full_ring, start, end),
		cmocka_unit_test_setup_teardown(test_stale_reader, start, end),
		cmocka_unit_test_setup_teardown(test_forbidden, start, end),
		cmocka_unit_test_setup_teardown(test_no_ring_and_no_room, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
