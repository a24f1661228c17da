// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum verdict { UNKNOWN, WANTED, UNWANTED };

static int parse_patterns(const char *const *texts, size_t n, struct kx_pattern **out,
			  size_t *parsed, struct kx_err *err)
{
	*out = calloc(n + 1, sizeof(**out));
	if (!*out)
		return kx_err_set(err, -ENOMEM, "out of memory for the patterns");
	for (size_t i = 0; i < n; i++) {
		int r = kx_pattern_parse(texts[i], &(*out)[i], err);

		if (r)
			return r;
		++*parsed;
	}
	return 0;
}

static uint64_t to_ticks(const struct kx_ready_filter *f, uint64_t ns)
{
	unsigned __int128 ticks = ns;

	if (f->hz)
		ticks = (ticks * f->hz + 500000000) / 1000000000;
	return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

int kx_filter_init(struct kx_ready_filter *f, const struct kx_call_filter *filter,
		   struct kx_symbolizer *names, uint64_t hz, struct kx_err *err)
{
	int r;

	f->names = names;
	f->hz = hz;
	f->max_depth = filter->max_depth ? filter->max_depth : UINT32_MAX;
	f->min = to_ticks(f, filter->min_duration_ns);
	f->by_time = filter->from_ns || filter->to_ns;
	if (filter->to_ns && filter->to_ns <= filter->from_ns)
		return kx_err_set(err, -EINVAL, "the range of time is empty: it ends before it "
				  "begins");
	r = parse_patterns(filter->include, filter->ninclude, &f->include, &f->ninclude, err);
	if (!r)
		r = parse_patterns(filter->exclude, filter->nexclude, &f->exclude, &f->nexclude,
				   err);
	if (r)
		return r;
	f->by_name = f->ninclude || f->nexclude;
	if (!f->by_name)
		return 0;
	f->nknown = names->has_map ? names->map.nfunctions + 1 : 0;
	f->known = calloc(f->nknown + 1, 1);
	f->met = calloc(f->ninclude + f->nexclude, sizeof(*f->met));
	if (!f->known || !f->met)
		return kx_err_set(err, -ENOMEM, "out of memory for the patterns");
	return 0;
}

void kx_filter_bounds(struct kx_ready_filter *f, const struct kx_call_filter *filter,
		      uint64_t first_tsc, uint64_t last_tsc)
{
	uint64_t to = add(first_tsc, to_ticks(f, filter->to_ns));

	f->from = filter->from_ns ? add(first_tsc, to_ticks(f, filter->from_ns)) : 0;
	f->to = filter->to_ns && to < last_tsc ? to : last_tsc;
}

void kx_filter_free(struct kx_ready_filter *f)
{
	for (size_t i = 0; i < f->ninclude; i++)
		kx_pattern_free(&f->include[i]);
	for (size_t i = 0; i < f->nexclude; i++)
		kx_pattern_free(&f->exclude[i]);
	free(f->include);
	free(f->exclude);
	free(f->met);
	free(f->known);
}

/* A pattern without MODULE matches in every module: all of them were selected for recording. */
static bool matches_module(const struct kx_pattern *p, const struct kx_map_module *m)
{
	if (!p->module || p->space == KX_PATTERN_USDT)
		return true;
	if (!m)
		return false;
	if (p->space != KX_PATTERN_USER)
		return !strcmp(m->name, p->module);
	return kx_pattern_matches_file(p, &(struct kx_pattern_file){ .name = m->name,
								     .path = m->path,
								     .called = m->called });
}

/* Checks all patterns, so that those without any match are known in the end. */
static bool matches_any(const struct kx_pattern *list, size_t n, bool *met,
			const struct kx_pattern_names *names, const struct kx_map_module *module)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		if (matches_module(&list[i], module) &&
		    kx_pattern_matches_names(&list[i], names))
			any = met[i] = true;
	return any;
}

static bool judge(struct kx_ready_filter *f, uint32_t func)
{
	const struct kx_map *map = &f->names->map;
	const struct kx_map_module *module = NULL;
	struct kx_pattern_names names = { .pretty = kx_trace_name(f->names, func) };
	bool included, excluded;

	names.symbol = names.pretty;
	if (func && func < f->nknown) {
		const struct kx_map_function *known = &map->functions[func - 1];

		if (known->symbol && *known->symbol)
			names.symbol = known->symbol;
		if (known->module < map->nmodules)
			module = &map->modules[known->module];
	}
	included = matches_any(f->include, f->ninclude, f->met, &names, module);
	excluded = matches_any(f->exclude, f->nexclude, f->met + f->ninclude, &names, module);
	return (included || !f->ninclude) && !excluded;
}

bool kx_filter_wants(struct kx_ready_filter *f, uint32_t func)
{
	if (!f->by_name)
		return true;
	if (func >= f->nknown)
		return judge(f, func);
	if (f->known[func] == UNKNOWN)
		f->known[func] = judge(f, func) ? WANTED : UNWANTED;
	return f->known[func] == WANTED;
}

const char *kx_filter_unmatched(const struct kx_ready_filter *f, size_t n)
{
	for (size_t i = 0; i < f->ninclude + f->nexclude; i++) {
		if (f->met[i] || n--)
			continue;
		return i < f->ninclude ? f->include[i].text : f->exclude[i - f->ninclude].text;
	}
	return NULL;
}
