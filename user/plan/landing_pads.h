// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where exceptions land: the beginnings of functions in .eh_frame, and the landing pads of their exception tables.
 * Formats: Linux Standard Base 5.0, 10.6 (.eh_frame); exception tables as GCC's libgcc/unwind-pe.h and libstdc++-v3/libsupc++/eh_personality.cc
 * read them.
 */
#ifndef KX_LANDING_PADS_H
#define KX_LANDING_PADS_H

#include "plan/landing_map.h"

/* Adds to m->parts and m->outside, too. Errors: -ENOEXEC if something in them cannot be read, or there is no memory, with a clause
 * about the binary. */
int kx_landing_pads_mark(struct kx_landing_map *m, struct kx_err *err);

#endif
