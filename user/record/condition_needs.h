// SPDX-License-Identifier: BSD-2-Clause
/* What the conditions of a recording need, as far as its options say. */
#ifndef KX_CONDITION_NEEDS_H
#define KX_CONDITION_NEEDS_H

#include "record/recording.h"

/* What the tracer has to know of the conditions of functions and triggers before it is loaded. */
struct kx_tracer_conditions kx_condition_needs(const struct kx_recording_options *o);

#endif
