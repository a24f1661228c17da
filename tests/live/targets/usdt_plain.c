// SPDX-License-Identifier: BSD-2-Clause
#include "usdt_plain.h"

#include <stdio.h>
#include <sys/sdt.h>

#include "target.h"

static char did[1 << 14];
static size_t used;

TRACED void usdt_plain_pass(long i)
{
	if (i % 3)
		STAP_PROBE1(kxp, twice, i * 1000000007);
	else
		STAP_PROBE1(kxp, twice, -1l);
	used += (size_t)snprintf(did + used, sizeof(did) - used, ", {\"function\": \"usdt:kxp:twice\", \"args\": {\"arg1\": %ld}}",
				 i % 3 ? i * 1000000007 : -1l);
	if (i % 2) {
		STAP_PROBE(kxp, none);
		used += (size_t)snprintf(did + used, sizeof(did) - used, ", {\"function\": \"usdt:kxp:none\", \"args\": {}}");
	}
}

size_t usdt_plain_did(char *text, size_t size)
{
	return (size_t)snprintf(text, size, "%s", did);
}

/* One whose argument cannot be recorded; nothing passes it. */
__asm__(".text\n990: nop\n"
	".pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 8, 992f-991f, 3\n .asciz \"stapsdt\"\n"
	"991: .8byte 990b, 0, 0\n .asciz \"kyt\"\n .asciz \"real\"\n .asciz \"8f@%xmm0\"\n992: .balign 4\n .popsection\n");
