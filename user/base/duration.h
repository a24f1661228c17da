// SPDX-License-Identifier: BSD-2-Clause
/* Times as people write them. */
#ifndef KX_DURATION_H
#define KX_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/*
 * "1.5ms" in nanoseconds; units are ns, us, ms and s, and seconds where there is none. @end: where
 * the text ends (NULL: at its 0). False if it is no such time, or too long for @ns.
 */
bool kx_parse_time(const char *text, const char *end, uint64_t *ns);

#endif
