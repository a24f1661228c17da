// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/uprobe_try.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/bpf.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kernel_files.h"
#include "base/process_limits.h"
#include "plan/plan.h"
#include "tracer/permission.h"
#include "tracer/process_state.h"

#define TRY_FILES 16 /* program, link and what libbpf opens for them */

/* The function to try probes on: a 5-byte nop and a return. Nothing else calls it. */
__asm__(".pushsection .text\n"
	".type kx_nop5_target, @function\n"
	".balign 16\n"
	"kx_nop5_target:\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	ret\n"
	".size kx_nop5_target, .-kx_nop5_target\n"
	".popsection\n");
void kx_nop5_target(void);

/*
 * One function for each enum kx_insn_kind, to try what the kernel emulates, and in it the instruction that gets
 * the probe.
 */
#define KIND(name, before, probed, after)                                                          \
	__asm__(".pushsection .text\n"                                                             \
		".type kx_kind_" #name ", @function\n"                                             \
		".balign 16\n"                                                                     \
		"kx_kind_" #name ":\n" before "kx_kind_" #name "_probed:\n" probed after "ret\n"    \
		".size kx_kind_" #name ", .-kx_kind_" #name "\n"                                    \
		".popsection\n");                                                                  \
	void kx_kind_##name(void);                                                                 \
	void kx_kind_##name##_probed(void)

KIND(nop, "", "nop\n", "");
KIND(push, "", "push %rbp\n", "pop %rbp\n");
KIND(jump, "", "jmp 1f\n", "1:\n");
KIND(conditional, "", "jz 1f\n", "1:\n");
KIND(call, "", "call kx_kind_nop\n", "");
KIND(long_nop, "", ".byte 0x0f, 0x1f, 0x00\n", "");
KIND(move_frame, "push %rbp\n", "mov %rsp, %rbp\n", "pop %rbp\n");
KIND(sub_stack, "", "sub $8, %rsp\n", "add $8, %rsp\n");

static const struct {
	void (*call)(void);
	void (*probed)(void);
} kinds[KX_INSN_KINDS] = {
	[KX_INSN_NOP] = { kx_kind_nop, kx_kind_nop_probed },
	[KX_INSN_PUSH] = { kx_kind_push, kx_kind_push_probed },
	[KX_INSN_JUMP_NEAR] = { kx_kind_jump, kx_kind_jump_probed },
	[KX_INSN_CONDITIONAL] = { kx_kind_conditional, kx_kind_conditional_probed },
	[KX_INSN_CALL_NEAR] = { kx_kind_call, kx_kind_call_probed },
	[KX_INSN_LONG_NOP] = { kx_kind_long_nop, kx_kind_long_nop_probed },
	[KX_INSN_MOVE_FRAME] = { kx_kind_move_frame, kx_kind_move_frame_probed },
	[KX_INSN_SUB_STACK] = { kx_kind_sub_stack, kx_kind_sub_stack_probed },
};

struct find_offset {
	uintptr_t address;
	uint64_t offset;
};

/* The main executable comes first and contains the target. */
static int find_offset_cb(struct dl_phdr_info *info, size_t size, void *data)
{
	struct find_offset *f = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && f->address >= start &&
		    f->address < start + ph->p_filesz) {
			f->offset = f->address - start + ph->p_offset;
			return 1;
		}
	}
	return 0;
}

static int load_empty_program(unsigned attach_type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "kx_try", "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), &opts);
}

static void keep_error(void *ctx, const struct kx_probe *probe, int err)
{
	(void)probe;
	*(int *)ctx = err;
}

/* Attaches an empty program to @targets in @pid: this process or a child that it forked. */
static int attach_to(enum kx_mechanism m, pid_t pid, bool is_return, void (*const *targets)(void),
		     size_t ntargets, struct kx_links *links)
{
	struct kx_probe probes[KX_INSN_KINDS] = { 0 };
	int prog_fd, ret, refused = 0;

	for (size_t i = 0; i < ntargets; i++) {
		struct find_offset f = { .address = (uintptr_t)targets[i] };

		if (!dl_iterate_phdr(find_offset_cb, &f))
			return -ENOENT;
		probes[i].offset = f.offset;
	}
	prog_fd = load_empty_program(kx_mechanism_attach_type(m));
	if (prog_fd < 0)
		return prog_fd;
	ret = kx_uprobe_link(m, prog_fd, "/proc/self/exe", pid, is_return, probes, ntargets,
			     links, keep_error, &refused, NULL);
	close(prog_fd);
	return ret ? ret : refused;
}

static int attach_self(enum kx_mechanism m, pid_t pid, bool is_return, struct kx_links *links)
{
	void (*const target)(void) = kx_nop5_target;

	return attach_to(m, pid, is_return, &target, 1, links);
}

int kx_mechanism_try(enum kx_mechanism m)
{
	struct kx_links links = { 0 };
	int err = attach_self(m, getpid(), false, &links);

	kx_links_close_soon(&links);
	return err;
}

int kx_mechanism_best(enum kx_mechanism *out, struct kx_err *err)
{
	char why[KX_LIMIT_TEXT];
	int errs[KX_MECHANISM_COUNT], limit;

	for (int m = 0; m < KX_MECHANISM_COUNT; m++) {
		errs[m] = kx_mechanism_try((enum kx_mechanism)m);
		if (!errs[m]) {
			*out = (enum kx_mechanism)m;
			return 0;
		}
	}
	limit = kx_limits_try(TRY_FILES, 0, why);
	if (limit)
		return kx_err_set(err, limit, "uprobes cannot be attached: %s", why);
	if (kx_perf_uprobes_need_admin(errs[KX_MECHANISM_SINGLE]))
		return kx_err_set(err, -EPERM,
				  "this user may not attach uprobes: on this kernel they need perf "
				  "events, and these need CAP_SYS_ADMIN; run kxray as root, or with "
				  "CAP_SYS_ADMIN and CAP_SYS_PTRACE");
	if (errs[KX_MECHANISM_SINGLE] == -EPERM || errs[KX_MECHANISM_SINGLE] == -EACCES)
		return kx_err_set(err, -EPERM,
				  "this user may not attach uprobes (%s); run kxray as root, or with %s",
				  strerror(-errs[KX_MECHANISM_SINGLE]), kx_needed_capabilities());
	return kx_err_set(err, errs[KX_MECHANISM_SINGLE],
			  "this kernel offers no uprobes with cookies (uprobe.session: %s; "
			  "uprobe.multi: %s; uprobe: %s); kxray needs Linux 5.15 or newer with "
			  "CONFIG_UPROBE_EVENTS",
			  strerror(-errs[0]), strerror(-errs[1]), strerror(-errs[2]));
}

bool kx_returns_check_stacks(int mechanism)
{
	enum kx_mechanism best;

	if (mechanism >= 0)
		return mechanism == KX_MECHANISM_SESSION;
	/* where none works nothing is traced */
	return kx_mechanism_best(&best, NULL) || best == KX_MECHANISM_SESSION;
}

bool kx_multi_filters_process(void)
{
	/*
	 * The filter was fixed in 6.10 (46ba0e49b642), which also rejects a negative pid with
	 * -EINVAL before it checks anything else; older kernels look the pid up.
	 */
	static int known = -1;
	struct kx_probe probe = { 0 };
	struct kx_links links = { 0 };
	int refused = 0, prog_fd;

	if (known >= 0)
		return known;
	prog_fd = load_empty_program(KX_BPF_TRACE_UPROBE_MULTI);
	if (prog_fd < 0)
		return false;
	kx_uprobe_link(KX_MECHANISM_MULTI, prog_fd, "/", -1, false, &probe, 1, &links, keep_error,
		       &refused, NULL);
	kx_links_close(&links);
	close(prog_fd);
	known = refused == -EINVAL;
	return known;
}

#define CALL 0xe8

static bool nop5_harms; /* known with the following */

/* In a child: the exit status is 0 if the call in place of the nop leads to a page that is there. */
static void look_for_page(void)
{
	const unsigned char *code = (const unsigned char *)(uintptr_t)kx_nop5_target;
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char in_core;
	int32_t by;

	memcpy(&by, code + 1, sizeof(by));
	_exit(*code == CALL && mincore((void *)(((uintptr_t)code + 5 + (uintptr_t)by) & ~(page - 1)), page, &in_core) != 0);
}

/* kx_nop5_target is probed, and the nop is a call. */
static bool child_lacks_page(void)
{
	const pid_t pid = fork();
	int status = -1;

	if (!pid)
		look_for_page();
	if (pid > 0)
		waitpid(pid, &status, 0);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

int kx_probe_nop5_optimized(void)
{
	static int known = -1;
	const volatile unsigned char *code =
		(const volatile unsigned char *)(uintptr_t)kx_nop5_target;
	struct kx_links links = { 0 };
	int err = -ENOTSUP;

	if (known >= 0)
		return known;
	for (int m = 0; m < KX_MECHANISM_COUNT && err; m++)
		err = attach_self((enum kx_mechanism)m, getpid(), false, &links);
	if (!err) {
		for (int i = 0; i < 4; i++)
			kx_nop5_target();
		/* int3 if the probe traps, a relative call if the kernel optimized it */
		known = *code == CALL;
		nop5_harms = known && child_lacks_page();
	}
	kx_links_close_soon(&links);
	return err ? err : known;
}

bool kx_probe_nop5_harms(void)
{
	return kx_probe_nop5_optimized() > 0 && nop5_harms;
}

bool kx_process_has_seccomp(pid_t pid)
{
	struct kx_process_state state = { 0 };

	return !kx_process_state_add_thread(pid, pid, &state) && state.seccomp;
}

/*
 * A child with the same descriptors, none of which it may close. One with copies would, when it ends, close the probes that the keeper has begun to
 * close, and wait for the kernel as long as that does. It calls nothing that takes a lock: another thread may hold it.
 */
static pid_t fork_with_files(void)
{
	const pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* its pipe would not end */
	return pid;
}

/* Strict mode allows read, write, _exit and sigreturn; any other system call kills the child. */
static void run_child(int go_fd)
{
	char go;

	if (read(go_fd, &go, 1) != 1 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		syscall(SYS_exit, 1);
	/* several times: the kernel optimizes a probe after its first hits */
	for (int i = 0; i < 4; i++)
		kx_nop5_target();
	syscall(SYS_exit, 0);
}

bool kx_returns_survive_seccomp(void)
{
	static int known = -1;
	struct kx_links links = { 0 };
	int go[2], status = -1, err = -1;
	pid_t pid;

	if (known >= 0)
		return known;
	if (pipe2(go, O_CLOEXEC))
		return false;
	pid = fork_with_files();
	if (!pid)
		run_child(go[0]);
	if (pid > 0) {
		err = attach_self(KX_MECHANISM_SESSION, pid, true, &links);
		if (err)
			err = attach_self(KX_MECHANISM_MULTI, pid, true, &links);
		if (err)
			err = attach_self(KX_MECHANISM_SINGLE, pid, true, &links);
		if (write(go[1], "", 1) != 1)
			err = -1;
	}
	close(go[1]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	close(go[0]);
	kx_links_close_soon(&links);
	known = !err && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return known;
}

/* Whether the kernel has made the area in which this process single-steps probed instructions. */
static bool has_stepped(void)
{
	return access("/proc/self/maps", R_OK) || kx_file_contains("/proc/self/maps", "[uprobes]");
}

/* In a child: the first kind from @from on that is single-stepped, as exit status; KX_INSN_KINDS if none is, 255 if
 * nothing can be said. */
static void run_kinds(int go_fd, int from)
{
	int kind = from;
	char go;

	/* Another recording may have probes in the functions of the C library that are used here: those are
	 * called before anything is concluded. */
	if (read(go_fd, &go, 1) != 1 || has_stepped() || has_stepped())
		_exit(255);
	for (; kind < KX_INSN_KINDS; kind++) {
		kinds[kind].call();
		if (has_stepped())
			break;
	}
	_exit(kind);
}

/* Probes on all kinds in a child, which runs those from @from on; what run_kinds finds, or negative. */
static int first_stepped(int from)
{
	void (*targets[KX_INSN_KINDS])(void);
	struct kx_links links = { 0 };
	int go[2], status = -1, err = -ENOTSUP;
	pid_t pid;

	for (int i = 0; i < KX_INSN_KINDS; i++)
		targets[i] = kinds[i].probed;
	if (pipe2(go, O_CLOEXEC))
		return -errno;
	pid = fork_with_files();
	if (!pid)
		run_kinds(go[0], from);
	/* not a session, whose return probes map the same area */
	for (int m = KX_MECHANISM_MULTI; pid > 0 && m < KX_MECHANISM_COUNT && err; m++)
		err = attach_to((enum kx_mechanism)m, pid, false, targets + from,
				(size_t)(KX_INSN_KINDS - from), &links);
	if (!err && write(go[1], "", 1) != 1)
		err = -errno;
	close(go[1]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	close(go[0]);
	kx_links_close_soon(&links);
	if (!err && (!WIFEXITED(status) || WEXITSTATUS(status) > KX_INSN_KINDS))
		err = -EIO;
	return err ? err : WEXITSTATUS(status);
}

unsigned kx_probe_emulated(void)
{
	static unsigned known;
	unsigned found = 0;
	int kind = 0;

	if (known)
		return known;
	/* A process that has single-stepped once cannot show what else is: each such kind needs a child of its own. */
	while (kind < KX_INSN_KINDS) {
		int stepped = first_stepped(kind);

		if (stepped < kind)
			return known = KX_EMULATED_ALWAYS;
		for (; kind < stepped; kind++)
			found |= 1u << kind;
		kind++;
	}
	return known = found;
}
