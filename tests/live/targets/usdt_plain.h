// SPDX-License-Identifier: BSD-2-Clause
/* Markers without semaphores, in a file of their own: sys/sdt.h has one kind for all of a file. */
#ifndef USDT_PLAIN_H
#define USDT_PLAIN_H

#include <stddef.h>

/* Passes kxp:twice at one of two places, with its argument in a register or as a constant, and kxp:none. */
void usdt_plain_pass(long i);
/* What was passed, as usdt.c prints it; returns its length. */
size_t usdt_plain_did(char *text, size_t size);

#endif
