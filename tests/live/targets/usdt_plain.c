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
