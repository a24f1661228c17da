// SPDX-License-Identifier: BSD-2-Clause
/* Values of calls as typed annotations of their slices. */
#ifndef KX_PERFETTO_VALUES_H
#define KX_PERFETTO_VALUES_H

#include <stdbool.h>

#include "calls/calls.h"
#include "exporters/common/protobuf.h"
#include "trace/values.h"

/* Those of the entry, or with @exit those of the exit. */
void kx_pf_annotate_values(struct kx_bytes *pb, const struct kx_value_map *map, const struct kx_call *call, bool exit);

#endif
