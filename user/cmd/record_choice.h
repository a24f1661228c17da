// SPDX-License-Identifier: BSD-2-Clause
/* What a recording is predicted to cost, and which functions it traces for that. */
#ifndef KX_RECORD_CHOICE_H
#define KX_RECORD_CHOICE_H

#include "cmd/record_arguments.h"

/*
 * Where calls can be counted before (-p): without -f and with --by-heat leaves out functions that are
 * called too often, else predicts the cost on a terminal, unless --max-overhead bounds it.
 * Prints both. Errors: -ECANCELED (too costly, on a terminal, without --yes); those of
 * kx_call_rates_select.
 */
int kx_record_choose(struct kx_record_arguments *a, struct kx_err *err);

#endif
