// SPDX-License-Identifier: BSD-2-Clause
/* Durations on the command line. */
#ifndef KX_DURATION_H
#define KX_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Converts "1.5ms" to nanoseconds. Units are ns, us, ms, s (the default), m (or min) and h. @end: end of the text
 * (NULL: it is terminated). False if the text is not a duration, or does not fit @ns.
 */
bool kx_parse_time(const char *text, const char *end, uint64_t *ns);

#endif
