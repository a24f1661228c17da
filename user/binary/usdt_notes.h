// SPDX-License-Identifier: BSD-2-Clause
/*
 * The notes of USDT markers (section .note.stapsdt), as sys/sdt.h writes them: one for each place in the code at which a
 * marker stands. Only bytes in memory are looked at here; usdt_markers.h reads the file.
 *
 * A note (owner "stapsdt", type 3) has three addresses of 8 bytes: of the marker's nop, of the section .stapsdt.base when
 * the file was linked (a tool that moves segments afterwards does not correct these addresses, but moves that section), and
 * of the semaphore, a counter of 2 bytes that is not 0 while somebody looks (0: the marker has none). Then come three
 * strings: provider, name, arguments. An argument is SIZE@OPERAND, in the assembler's syntax: "-4@%eax", "8@-16(%rbp)",
 * "4@$12", "-4@8+counters(%rip)", "8f@%xmm0"; a negative SIZE is that of a signed integer.
 * Source: systemtap 4.8, sys/sdt.h and https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation.
 */
#ifndef KX_USDT_NOTES_H
#define KX_USDT_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

#define KX_USDT_MAX_ARGUMENTS 12 /* that sys/sdt.h can write */

struct kx_usdt_note {
	uint64_t location, base, semaphore; /* addresses as linked; base and semaphore: 0 for none */
	const char *provider, *name, *arguments; /* borrowed from the section */
};

/*
 * The next note of a section of @size bytes from *@at on, 0 at first, which it advances. Notes of other owners are passed
 * over. Returns 1, 0 after the last, or -EBADMSG: what follows is damaged.
 */
int kx_usdt_note_next(const void *section, size_t size, size_t *at, struct kx_usdt_note *out);

struct kx_usdt_argument {
	uint8_t size; /* bytes: 1, 2, 4, 8 */
	bool is_signed, is_float;
	const char *unknown; /* why it cannot be fetched (a constant text), or NULL */
	/*
	 * from, hops and offset[0]: with hops 0 the argument is the register, the constant, plus offset[0]; with 1 it is the
	 * memory there. KX_FROM_SP: the stack pointer itself.
	 */
	struct kx_fetch fetch;
	/* Of "8+counters(%rip)" (KX_FROM_IP): its address has to be added to offset[0], and that of the marker subtracted. */
	const char *symbol; /* borrowed from the text, not terminated; NULL: there is none */
	size_t symbol_length;
};

/* Parses a note's arguments; returns how many. One that cannot be understood has `unknown`. */
size_t kx_usdt_arguments_parse(const char *text, struct kx_usdt_argument out[KX_USDT_MAX_ARGUMENTS]);

/* "i32", "u8", "f64": size and sign. */
const char *kx_usdt_argument_type(const struct kx_usdt_argument *a);

#endif
