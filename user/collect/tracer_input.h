// SPDX-License-Identifier: BSD-2-Clause
/* The collector's input from a live tracer. */
#ifndef KX_TRACER_INPUT_H
#define KX_TRACER_INPUT_H

#include "collect/collector.h"
#include "tracer/tracer.h"

/* Borrows @t. */
struct kx_collector_input kx_tracer_input(struct kx_tracer *t);

#endif
