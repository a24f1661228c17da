// SPDX-License-Identifier: BSD-2-Clause
/* Patterns against modules and symbols: what base/pattern.h compares is only their names. */
#ifndef KX_PATTERN_MATCHES_H
#define KX_PATTERN_MATCHES_H

#include "base/pattern.h"
#include "binary/modules.h"
#include "binary/symbols.h"

static inline bool kx_pattern_matches_module(const struct kx_pattern *p, const struct kx_module *m)
{
	const struct kx_pattern_file file = { m->name, m->path, m->is_main, m->called };

	return kx_pattern_matches_file(p, &file);
}

static inline bool kx_pattern_matches_symbol(const struct kx_pattern *p, const struct kx_symbol *s)
{
	const struct kx_pattern_names names = { s->name, s->pretty, s->aliases };

	return kx_pattern_matches_names(p, &names);
}

#endif
