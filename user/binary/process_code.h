// SPDX-License-Identifier: BSD-2-Clause
/*
 * The code of a process as its memory holds it: with probes and breakpoints, and with what the program itself has
 * changed. Read through /proc/PID/mem, small pieces page by page, about a microsecond each.
 */
#ifndef KX_PROCESS_CODE_H
#define KX_PROCESS_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define KX_CODE_PAGE 4096u
#define KX_CODE_FLAGS 64u

struct kx_process_code {
	int memory;
	int pagemap;	/* -1: cannot be read */
	uint64_t page;	/* address of what is in bytes; 1: nothing */
	size_t size;	/* bytes of it that could be read */
	uint8_t bytes[KX_CODE_PAGE];
	/* the same for what pagemap says of some pages */
	uint64_t flags_page, flags[KX_CODE_FLAGS];
};

/* Errors: open(2)'s, -ENOENT if the process has ended. To be closed only if it was opened. */
int kx_process_code_open(pid_t pid, struct kx_process_code *c);
void kx_process_code_close(struct kx_process_code *c);

/* Copies at most @n bytes; returns how many could be read. A small piece of the page that was read last is not read again. */
size_t kx_process_code_read(struct kx_process_code *c, uint64_t address, void *out, size_t n);

/* Whether the page of @address is in memory or swapped; true if that cannot be known. */
bool kx_process_code_is_present(struct kx_process_code *c, uint64_t address);

/* False if the page of @address holds what the file does: it is not there, or is the file's. */
bool kx_process_code_may_differ(struct kx_process_code *c, uint64_t address);

/* Whether a probe or breakpoint may be where @byte is. @nop5: the file has a nop of five bytes there. */
bool kx_code_is_probed(uint8_t byte, bool nop5);

/*
 * Whether @n bytes of a process's code are those of the file, but for probes and breakpoints of others: int3, and the
 * call that Linux 6.18 makes of a probed nop of five bytes.
 */
bool kx_code_is_same(const uint8_t *memory, const uint8_t *file, size_t n);

#endif
