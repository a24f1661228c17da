// SPDX-License-Identifier: BSD-2-Clause
#include "attach/risky_calls.h"

#include <asm/prctl.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "attach/recorder_code.h"
#include "base/byte_find.h"
#include "base/pattern.h"
#include "plan/call_sites.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59 /* Linux 5.11 */
#endif

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* libcap's two pass their first argument on. */
/* CLONE: only where its threads' pointers cannot be told. */
enum { PRCTL, CAP_PRCTL, CAP_PRCTLW, SECCOMP, SYSCALL, CANCEL, ARCH_PRCTL, CLONE };
static const char *const of_process[] = {
	[PRCTL] = "prctl",     [CAP_PRCTL] = "cap_prctl", [CAP_PRCTLW] = "cap_prctlw",
	[SECCOMP] = "seccomp", [SYSCALL] = "syscall",	  [CANCEL] = "pthread_setcanceltype",
	[ARCH_PRCTL] = "arch_prctl", [CLONE] = "clone",
};

enum { MPROTECT, PKEY_MPROTECT, SYSCALL_TOO };
static const char *const of_module[] = {
	[MPROTECT] = "mprotect", [PKEY_MPROTECT] = "pkey_mprotect", [SYSCALL_TOO] = "syscall"
};

static bool is_dlsym(void *ctx, const Elf64_Sym *sym, const char *name)
{
	(void)ctx;
	return sym->st_shndx == SHN_UNDEF && (!strcmp(name, "dlsym") || !strcmp(name, "dlvsym"));
}

/* Whether @text is a whole string in the file's data. */
static bool has_string(struct kx_elf *elf, const char *text)
{
	const size_t size = strlen(text) + 1;
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(kx_elf_handle(elf), scn))) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *at, *end, *begin;
		Elf_Data *data;

		if (!sh || sh->sh_type != SHT_PROGBITS || !(sh->sh_flags & SHF_ALLOC) || (sh->sh_flags & SHF_EXECINSTR))
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		begin = at = data->d_buf;
		end = begin + data->d_size;
		for (; (at = kx_byte_find(at, (size_t)(end - at), text, size)); at++)
			if (at == begin || !at[-1])
				return true;
	}
	return false;
}

/* The first of @names that the module may look up at run time; NULL if there is none. */
static const char *looked_up(struct kx_elf *elf, const char *const *names, size_t n)
{
	if (!kx_elf_find_symbol(elf, SHT_DYNSYM, is_dlsym, NULL))
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], "syscall") && has_string(elf, names[i]))
			return names[i];
	return NULL;
}

/* What one call may pass. */
struct values {
	uint64_t items[KX_MAX_CONSTANTS];
	size_t n; /* 0: not known */
};

static struct values argument(const struct kx_call_sites *s, const struct kx_call_site *site, unsigned arg)
{
	struct values v;

	v.n = kx_call_sites_argument(s, site, arg, v.items);
	return v;
}

/* Whether one of the values may be @value, of which the kernel looks at 32 bits. */
static bool may_be(const struct values *v, uint32_t value)
{
	for (size_t i = 0; i < v->n; i++)
		if ((uint32_t)v->items[i] == value)
			return true;
	return !v->n;
}

static bool may_have(const struct values *v, uint64_t bits)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->items[i] & bits)
			return true;
	return !v->n;
}

/* The values of argument @arg of a system call that @site makes, by syscall(3) or itself. */
static struct values kernel_argument(const struct kx_call_sites *s, const struct kx_call_site *site, unsigned arg)
{
	return argument(s, site, site->name == KX_SYSTEM_CALL ? arg : arg + 1);
}

#define X32_BIT 0x40000000u /* of the number of a call by the x32 ABI */

/* Not known of `int $0x80`, whose numbers and registers are those of 32-bit programs. */
static struct values call_number(struct kx_elf *elf, const struct kx_call_sites *s, const struct kx_call_site *site)
{
	const uint8_t *code = site->name == KX_SYSTEM_CALL && site->addr ? kx_elf_code(elf, site->addr, 2) : NULL;
	struct values v = { .n = 0 };

	if (code && code[0] == 0xcd)
		return v;
	v = argument(s, site, site->name == KX_SYSTEM_CALL ? KX_CALL_NUMBER : 0);
	for (size_t i = 0; i < v.n; i++)
		v.items[i] &= ~(uint64_t)X32_BIT;
	return v;
}

/* Whether a call prctl(@option, ...) may forbid the clock; @err gets why. */
static int check_prctl(const struct values *option, const char *name, struct kx_err *err)
{
	if (!option->n)
		return kx_err_set(
			err, -EOPNOTSUPP,
			"%s calls prctl with an argument that is not known, so it may forbid the time stamp counter", name);
	if (may_be(option, PR_SET_TSC))
		return kx_err_set(err, -EOPNOTSUPP, "%s calls prctl(PR_SET_TSC), which may forbid the time stamp counter",
				  name);
	if (may_be(option, PR_SET_SECCOMP))
		return kx_err_set(err, -EOPNOTSUPP, "%s calls prctl(PR_SET_SECCOMP)", name);
	if (may_be(option, PR_SET_SYSCALL_USER_DISPATCH))
		return kx_err_set(err, -EOPNOTSUPP,
				  "%s calls prctl(PR_SET_SYSCALL_USER_DISPATCH), which may forbid libc's system calls", name);
	return 0;
}

static int refuse_thread_pointer(const char *name, const char *how, struct kx_err *err)
{
	return kx_err_set(err, -EOPNOTSUPP, "%s %s, so it may use the thread pointer for something else", name, how);
}

static int check_clone(const struct values *flags, const char *name, struct kx_err *err)
{
	/* forbids itself that flag: systemd 252, src/basic/raw-clone.h */
	static const char *const known[] = { "libsystemd.so.*", "libsystemd-shared-*.so" };

	if (kx_recorder_tcb_by_here() == KX_RECORDER_TCB_BY_FSBASE || !may_have(flags, CLONE_SETTLS) || kx_globs_match(known, COUNT(known), name))
		return 0;
	return kx_err_set(err, -EOPNOTSUPP,
			  "%s may start threads that the C library does not know of (clone with CLONE_SETTLS), which cannot be told on this "
			  "machine (it has no rdfsbase)",
			  name);
}

/* wrfsbase: f3 0f ae /2, perhaps with REX behind the f3. */
static bool may_write_fs(const struct kx_elf *elf)
{
	static const uint8_t opcode[] = { 0x0f, 0xae };
	struct kx_elf_section seg;

	for (size_t i = 0; kx_elf_exec_segment(elf, i, &seg); i++) {
		const uint8_t *p = seg.data, *const end = seg.data + seg.size;

		while ((p = kx_byte_find(p, (size_t)(end - p), opcode, sizeof(opcode)))) {
			const bool is_write = end - p > 2 && p[2] >> 3 == (0xd0 >> 3);

			if (is_write && ((p > seg.data && p[-1] == 0xf3) ||
					 (p > seg.data + 1 && p[-1] >> 4 == 4 && p[-2] == 0xf3)))
				return true;
			p++;
		}
	}
	return false;
}

static int check_process_site(struct kx_elf *elf, const struct kx_call_sites *s, const struct kx_call_site *site,
			      const char *name, bool *cancels, struct kx_err *err)
{
	struct values v;

	switch (site->name) {
	case PRCTL:
	case CAP_PRCTL:
	case CAP_PRCTLW:
		v = argument(s, site, 0);
		return check_prctl(&v, name, err);
	case SECCOMP:
		return kx_err_set(err, -EOPNOTSUPP, "%s calls seccomp", name);
	case CANCEL:
		v = argument(s, site, 0);
		*cancels |= may_be(&v, PTHREAD_CANCEL_ASYNCHRONOUS);
		return 0;
	case ARCH_PRCTL:
		v = argument(s, site, 0);
		return may_be(&v, ARCH_SET_FS) ? refuse_thread_pointer(name, "calls arch_prctl(ARCH_SET_FS)", err) : 0;
	case CLONE:
		v = argument(s, site, 2);
		return check_clone(&v, name, err);
	default:
		break;
	}
	v = call_number(elf, s, site);
	if (!v.n)
		return kx_err_set(err, -EOPNOTSUPP,
				  "%s makes a system call that is not known, so it may forbid the time stamp counter",
				  name);
	if (may_be(&v, SYS_seccomp))
		return kx_err_set(err, -EOPNOTSUPP, "%s calls seccomp", name);
	if (may_be(&v, SYS_arch_prctl)) {
		v = kernel_argument(s, site, 0);
		return may_be(&v, ARCH_SET_FS) ? refuse_thread_pointer(name, "calls arch_prctl(ARCH_SET_FS)", err) : 0;
	}
	if (may_be(&v, SYS_clone3))
		return check_clone(&(struct values){ .n = 0 }, name, err);
	if (may_be(&v, SYS_clone)) {
		v = kernel_argument(s, site, 0);
		return check_clone(&v, name, err);
	}
	if (!may_be(&v, SYS_prctl))
		return 0;
	v = kernel_argument(s, site, 0);
	return check_prctl(&v, name, err);
}

int kx_risky_calls_of_process(struct kx_elf *elf, const char *name, bool *cancels, struct kx_err *err)
{
	/* "clone" is a word of many programs, and none is known that looks it up */
	const char *hidden = looked_up(elf, of_process, CLONE);
	const struct kx_call_site *sites;
	struct kx_call_sites *s;
	int code;
	size_t n;

	if (hidden && strcmp(hidden, of_process[CANCEL]))
		return kx_err_set(err, -EOPNOTSUPP, "%s looks up %s at run time, so it may forbid the time stamp counter",
				  name, hidden);
	*cancels |= hidden != NULL;
	if (may_write_fs(elf))
		return refuse_thread_pointer(name, "has the instruction wrfsbase", err);
	code = kx_call_sites_find(elf, of_process, COUNT(of_process), true, &s, err);
	if (code)
		return code;
	sites = kx_call_sites_get(s, &n);
	for (size_t i = 0; !code && i < n; i++)
		code = check_process_site(elf, s, &sites[i], name, cancels, err);
	kx_call_sites_free(s);
	return code;
}

static bool may_make_executable(struct kx_elf *elf, const struct kx_call_sites *s, const struct kx_call_site *site)
{
	struct values v;

	if (site->name == MPROTECT || site->name == PKEY_MPROTECT) {
		v = argument(s, site, 2);
		return may_have(&v, PROT_EXEC);
	}
	v = call_number(elf, s, site);
	if (!may_be(&v, SYS_mprotect) && !may_be(&v, SYS_pkey_mprotect))
		return false;
	v = kernel_argument(s, site, 2);
	return may_have(&v, PROT_EXEC);
}

int kx_risky_calls_of_module(struct kx_elf *elf, struct kx_err *err)
{
	const char *hidden = looked_up(elf, of_module, COUNT(of_module));
	const struct kx_call_site *sites;
	struct kx_call_sites *s;
	int code;
	size_t n;

	if (hidden)
		return kx_err_set(err, -EOPNOTSUPP, "it looks up %s at run time, so it may change its own code", hidden);
	code = kx_call_sites_find(elf, of_module, COUNT(of_module), true, &s, err);
	if (code)
		return code;
	sites = kx_call_sites_get(s, &n);
	for (size_t i = 0; !code && i < n; i++)
		if (may_make_executable(elf, s, &sites[i]))
			code = kx_err_set(err, -EOPNOTSUPP, "it may make memory executable, so it may change its own code");
	kx_call_sites_free(s);
	return code;
}
