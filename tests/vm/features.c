// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tries each probing mechanism on this kernel.
 *
 * Prints one line for each: `NAME yes` or `NAME no: why`. "Yes" means that it works: a probe
 * counts exactly the calls that this program makes. It uses no library but
 * libc, so that the result depends only on the kernel, not on libbpf.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS 1000
#define PMU "/sys/bus/event_source/devices/"

/* Attach types that Debian 12's uapi headers lack. */
#define TRACE_UPROBE_MULTI 48
#define TRACE_UPROBE_SESSION 57

struct uprobe_multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t count;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t padding;
};

struct kprobe_multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint32_t multi_flags;
	uint32_t count;
	uint64_t symbols;
	uint64_t addresses;
	uint64_t cookies;
};

/* Written by the BPF programs: an array map, mapped into this process. */
struct shared {
	uint64_t hits;
};

static struct shared *shared;
static int shared_fd = -1;

static void yes(const char *name)
{
	printf("%s yes\n", name);
}

static void no(const char *name, const char *why)
{
	printf("%s no: %s\n", name, why);
}

static void no_errno(const char *name, const char *what)
{
	printf("%s no: %s: %s\n", name, what, strerror(errno));
}

/* The function that is probed. */
__attribute__((noinline)) int probed(int x);
__attribute__((noinline)) int probed(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void call_probed(void)
{
	for (int i = 0; i < CALLS; i++)
		probed(i);
}

/* The probed function's offset in /proc/self/exe, from the mapping that holds it. */
static uint64_t probed_offset(void)
{
	uint64_t start, end, offset, address = (uintptr_t)probed, result = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    address >= start && address < end)
			result = address - start + offset;
	}
	if (maps)
		fclose(maps);
	return result;
}

static long bpf(int command, void *attr, size_t size)
{
	return syscall(SYS_bpf, command, attr, size);
}

static int pmu_type(const char *name)
{
	char path[128];
	int type = -1;
	FILE *file;

	snprintf(path, sizeof(path), PMU "%s/type", name);
	file = fopen(path, "r");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &type) != 1)
		type = -1;
	fclose(file);
	return type;
}

static int perf_open(struct perf_event_attr *attr, int pid, int cpu)
{
	attr->size = sizeof(*attr);
	return syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int make_map(int type, int key, int value, int entries, int flags)
{
	union bpf_attr attr = { .map_type = type, .key_size = key, .value_size = value,
				.max_entries = entries, .map_flags = flags };

	return bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
}

static int load(int type, int attach_type, uint32_t btf_id, struct bpf_insn *insns, int count)
{
	static char log[4096];
	union bpf_attr attr = { .prog_type = type, .expected_attach_type = attach_type,
				.attach_btf_id = btf_id, .insns = (uintptr_t)insns,
				.insn_cnt = count, .license = (uintptr_t)"Dual BSD/GPL",
				.log_buf = (uintptr_t)log, .log_size = sizeof(log), .log_level = 1 };
	int fd = bpf(BPF_PROG_LOAD, &attr, sizeof(attr));

	if (fd < 0 && getenv("VERBOSE"))
		fprintf(stderr, "%s\n", log);
	return fd;
}

#define INSN(c, d, s, o, i) { .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }
/* r1 = &shared->hits; lock *r1 += 1; r0 = 0; exit */
static int load_counter(int attach_type)
{
	struct bpf_insn insns[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_VALUE, 0, shared_fd),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 1),
		INSN(BPF_STX | BPF_DW | BPF_ATOMIC, 1, 2, 0, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return load(BPF_PROG_TYPE_KPROBE, attach_type, 0, insns, sizeof(insns) / sizeof(*insns));
}

static int open_uprobe(int is_return)
{
	struct perf_event_attr attr = { .type = pmu_type("uprobe"), .config = is_return,
					.config1 = (uintptr_t)"/proc/self/exe",
					.config2 = probed_offset() };

	return perf_open(&attr, getpid(), -1);
}

static void check_btf(void)
{
	uint16_t magic = 0;
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		no_errno("btf", "/sys/kernel/btf/vmlinux");
		return;
	}
	if (read(fd, &magic, sizeof(magic)) == sizeof(magic) && magic == 0xeb9f)
		yes("btf");
	else
		no("btf", "no BTF magic");
	close(fd);
}

static void check_perf_uprobe(const char *name, int is_return)
{
	uint64_t count = 0;
	char why[64];
	int fd;

	if (pmu_type("uprobe") < 0) {
		no(name, "no uprobe PMU");
		return;
	}
	fd = open_uprobe(is_return);
	if (fd < 0) {
		no_errno(name, "perf_event_open");
		return;
	}
	call_probed();
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		no_errno(name, "read");
	else if (count == CALLS)
		yes(name);
	else {
		snprintf(why, sizeof(why), "counted %lu of %d calls", count, CALLS);
		no(name, why);
	}
	close(fd);
}

static void check_map(void)
{
	shared_fd = make_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(*shared), 1, BPF_F_MMAPABLE);
	if (shared_fd < 0) {
		no_errno("bpf_array_mmap", "BPF_MAP_CREATE");
		return;
	}
	shared = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
	if (shared == MAP_FAILED) {
		no_errno("bpf_array_mmap", "mmap");
		shared = NULL;
		return;
	}
	yes("bpf_array_mmap");
}

static void check_ring(void)
{
	int fd = make_map(BPF_MAP_TYPE_RINGBUF, 0, 0, 65536, 0);
	void *page;

	if (fd < 0) {
		no_errno("bpf_ringbuf", "BPF_MAP_CREATE");
		return;
	}
	page = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		no_errno("bpf_ringbuf", "mmap");
	else
		yes("bpf_ringbuf");
	close(fd);
}

/* `expected` hits after CALLS calls; resets the counter first. */
static void check_hits(const char *name, uint64_t expected)
{
	char why[64];

	__atomic_store_n(&shared->hits, 0, __ATOMIC_SEQ_CST);
	call_probed();
	uint64_t hits = __atomic_load_n(&shared->hits, __ATOMIC_SEQ_CST);

	if (hits == expected) {
		yes(name);
		return;
	}
	snprintf(why, sizeof(why), "%lu hits, not %lu, in %d calls", hits, expected, CALLS);
	no(name, why);
}

static void check_bpf_uprobe(void)
{
	int program, fd;

	if (!shared) {
		no("bpf_perf_uprobe", "no map to count in");
		return;
	}
	program = load_counter(0);
	fd = open_uprobe(0);
	if (program < 0 || fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program))
		no_errno("bpf_perf_uprobe", "load, open or attach");
	else
		check_hits("bpf_perf_uprobe", CALLS);
	close(fd);
	close(program);
}

static void check_multi(const char *name, int attach_type, uint64_t expected)
{
	uint64_t offset = probed_offset();
	struct uprobe_multi_attr attr = { .attach_type = attach_type,
					  .path = (uintptr_t)"/proc/self/exe",
					  .offsets = (uintptr_t)&offset, .count = 1,
					  .pid = getpid() };
	int program, link;

	if (!shared) {
		no(name, "no map to count in");
		return;
	}
	program = load_counter(attach_type);
	if (program < 0) {
		no_errno(name, "BPF_PROG_LOAD");
		return;
	}
	attr.prog_fd = program;
	link = bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
	if (link < 0) {
		no_errno(name, "BPF_LINK_CREATE");
	} else {
		check_hits(name, expected);
		close(link);
	}
	close(program);
}

/* A kprobe on this process's own getppid calls. */
static void check_kprobe(void)
{
	struct perf_event_attr attr = { .type = pmu_type("kprobe"),
					.config1 = (uintptr_t)"__x64_sys_getppid" };
	uint64_t count = 0;
	int fd;

	if (pmu_type("kprobe") < 0) {
		no("kprobe", "no kprobe PMU");
		return;
	}
	fd = perf_open(&attr, getpid(), -1);
	if (fd < 0) {
		no_errno("kprobe", "perf_event_open");
		return;
	}
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	if (read(fd, &count, sizeof(count)) == sizeof(count) && count == CALLS)
		yes("kprobe");
	else
		no("kprobe", "it did not count every call");
	close(fd);
}

static void check_kprobe_multi(void)
{
	const char *symbol = "__x64_sys_getppid";
	struct kprobe_multi_attr attr = { .attach_type = BPF_TRACE_KPROBE_MULTI, .count = 1,
					  .symbols = (uintptr_t)&symbol };
	int program = load_counter(BPF_TRACE_KPROBE_MULTI), link;

	if (!shared || program < 0) {
		no_errno("kprobe_multi", "BPF_PROG_LOAD");
		return;
	}
	attr.prog_fd = program;
	link = bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
	if (link < 0) {
		no_errno("kprobe_multi", "BPF_LINK_CREATE");
	} else {
		/* Other processes may call it, too: it counts for the whole system. */
		__atomic_store_n(&shared->hits, 0, __ATOMIC_SEQ_CST);
		for (int i = 0; i < CALLS; i++)
			syscall(SYS_getppid);
		if (__atomic_load_n(&shared->hits, __ATOMIC_SEQ_CST) >= CALLS)
			yes("kprobe_multi");
		else
			no("kprobe_multi", "it did not count every call");
		close(link);
	}
	close(program);
}

/* The CPU flags behind FDR's constant_tsc and nonstop_tsc. */
static void check_cpu(const char *flag)
{
	char line[8192], word[64];
	FILE *file = fopen("/proc/cpuinfo", "r");
	int found = 0;

	snprintf(word, sizeof(word), " %s", flag);
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "flags", 5)) {
			line[strcspn(line, "\n")] = ' ';
			found = strstr(line, word) != NULL;
			break;
		}
	}
	if (file)
		fclose(file);
	if (found)
		yes(flag);
	else
		no(flag, "not among the CPU's flags");
}

int main(void)
{
	check_btf();
	check_perf_uprobe("perf_uprobe", 0);
	check_perf_uprobe("perf_uretprobe", 1);
	check_map();
	check_ring();
	check_bpf_uprobe();
	check_multi("uprobe_multi", TRACE_UPROBE_MULTI, CALLS);
	check_multi("uprobe_session", TRACE_UPROBE_SESSION, 2 * CALLS);
	check_kprobe();
	check_kprobe_multi();
	check_cpu("rdtscp");
	check_cpu("constant_tsc");
	check_cpu("nonstop_tsc");
	return 0;
}
