// SPDX-License-Identifier: BSD-2-Clause
/* Loaded by changed.c: replaces the code of plug_changed() when it is loaded, as hooks do; not with PLUG_KEEP in the environment. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "target.h"

#define PAGE 4096

long plug_kept(long n);
long plug_changed(long n);

TRACED __attribute__((aligned(PAGE))) long plug_kept(long n)
{
	return n + 3;
}

TRACED __attribute__((aligned(PAGE))) long plug_changed(long n)
{
	return n * 5;
}

static __attribute__((constructor)) void change(void)
{
	static const unsigned char code[] = { 0x48, 0x8d, 0x47, 0x07, 0xc3 }; /* return n + 7 */
	void *page = (void *)(uintptr_t)plug_changed;

	if (getenv("PLUG_KEEP"))
		return;
	if (mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		_exit(3);
	memcpy(page, code, sizeof(code));
	if (mprotect(page, PAGE, PROT_READ | PROT_EXEC))
		_exit(3);
}
