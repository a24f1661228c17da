// SPDX-License-Identifier: BSD-2-Clause
#include "binary/dispatched_calls.h"

#include <stdint.h>
#include <string.h>

#include "base/byte_find.h"
#include "binary/import_slots.h"

enum { PRCTL, SYSCALL, NAMES };
static const char *const names[NAMES] = { [PRCTL] = "prctl", [SYSCALL] = "syscall" };

#define OPTION 59 /* PR_SET_SYSCALL_USER_DISPATCH: linux/prctl.h since 5.11 */
#define LOAD   5  /* bytes of such an instruction */
#define NEAR   64 /* bytes from there to the end of the call: it loads four more arguments */

/* mov $59, %edi or %esi: the register of the option */
static const uint8_t loads[NAMES][LOAD] = { [PRCTL] = { 0xbf, OPTION }, [SYSCALL] = { 0xbe, OPTION } };

/* Whether a call or jump by the instruction at @code, of which @left bytes are there, reaches the function @name. */
static bool reaches(const struct kx_import_slots *slots, const uint8_t *code, size_t left, uint64_t addr, unsigned name)
{
	const struct kx_import_slot *slot;
	size_t opcode;
	int32_t by;

	if (left >= 5 && (code[0] == 0xe8 || code[0] == 0xe9))
		opcode = 1;
	else if (left >= 6 && code[0] == 0xff && (code[1] == 0x15 || code[1] == 0x25))
		opcode = 2;
	else
		return false;
	memcpy(&by, code + opcode, sizeof(by));
	slot = kx_import_slots_find(slots, addr + opcode + sizeof(by) + (uint64_t)(int64_t)by);
	return slot && slot->name == name && slot->stub == (opcode == 1);
}

/* Whether the register of @load is loaded again, with a small number or 0: what comes behind is another call. */
static bool loads_again(const uint8_t *code, size_t left, const uint8_t *load)
{
	const uint8_t clears = load[0] == 0xbf ? 0xff : 0xf6; /* xor %edi, %edi; %esi, %esi */

	return left >= LOAD && ((code[0] == load[0] && !code[3] && !code[4]) || (code[0] == 0x31 && code[1] == clears));
}

static bool has_call(const struct kx_elf_section *s, const struct kx_import_slots *slots, unsigned name)
{
	const uint8_t *const end = s->data + s->size, *at = s->data;

	for (; (at = kx_byte_find(at, (size_t)(end - at), loads[name], LOAD)); at++) {
		const uint8_t *call = at + LOAD;

		for (; call < end && call < at + NEAR && !loads_again(call, (size_t)(end - call), loads[name]); call++)
			if (reaches(slots, call, (size_t)(end - call), s->addr + (uint64_t)(call - s->data), name))
				return true;
	}
	return false;
}

bool kx_dispatches_calls(struct kx_elf *elf)
{
	struct kx_import_slots slots;
	struct kx_elf_section s;
	struct kx_err err;
	bool found = false;

	if (!kx_import_slots_read(elf, names, NAMES, &slots, &err))
		for (size_t i = 0; !found && slots.n && kx_elf_exec_segment(elf, i, &s); i++)
			for (unsigned name = 0; !found && name < NAMES; name++)
				found = slots.imported & 1u << name && has_call(&s, &slots, name);
	kx_import_slots_free(&slots);
	return found;
}
