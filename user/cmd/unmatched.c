// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/unmatched.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/edit_distance.h"
#include "base/pattern.h"

#define NAMED 3
#define SHOWN_LENGTH 60 /* bytes of a name in the message */

struct candidate {
	unsigned distance;
	uint32_t id;
};

struct search {
	struct kx_pattern pattern;
	struct candidate best[NAMED]; /* nearest first */
	size_t nbest;
	uint32_t matching; /* the first function that matches; 0: none */
};

static unsigned distance_to(const char *pattern, const char *name, size_t length)
{
	char text[KX_EDIT_DISTANCE_LENGTH];

	if (!length || length >= sizeof(text))
		return UINT_MAX;
	memcpy(text, name, length);
	text[length] = 0;
	return kx_edit_distance(pattern, text, (unsigned)(strlen(pattern) / 3));
}

/* To the name without parameters, or to the last part of that, which is what people remember. */
static unsigned distance_of(const char *pattern, const char *name)
{
	size_t length = strcspn(name, "(");
	const char *colon = memrchr(name, ':', length);
	unsigned whole = distance_to(pattern, name, length), last = UINT_MAX;

	if (colon)
		last = distance_to(pattern, colon + 1, length - (size_t)(colon + 1 - name));
	return whole < last ? whole : last;
}

static void take(struct search *s, uint32_t id, unsigned distance)
{
	size_t at = s->nbest < NAMED ? s->nbest++ : NAMED;

	for (; at && s->best[at - 1].distance > distance; at--)
		if (at < NAMED)
			s->best[at] = s->best[at - 1];
	if (at < NAMED)
		s->best[at] = (struct candidate){ distance, id };
}

static void look_at(struct search *s, const struct kx_map *map, const char *name, uint32_t id)
{
	const struct kx_map_function *f = &map->functions[id - 1];
	const struct kx_pattern_names all = { .symbol = f->symbol ? f->symbol : name, .pretty = name };
	const struct kx_map_module *m = f->module < map->nmodules ? &map->modules[f->module] : NULL;
	unsigned distance;

	if (!s->matching && kx_pattern_matches_names(&s->pattern, &all) &&
	    (!s->pattern.module || (m && kx_pattern_matches_file(&s->pattern, &(struct kx_pattern_file){
						.name = m->name, .path = m->path, .called = m->called }))))
		s->matching = id;
	distance = distance_of(s->pattern.glob, name);
	if (distance != UINT_MAX)
		take(s, id, distance);
}

static size_t list(struct kx_symbolizer *names, const uint32_t *ids, size_t n, const char *last, char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < n && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%.*s", !i ? "" : i == n - 1 ? last : ", ",
					 SHOWN_LENGTH, kx_trace_name(names, ids[i]));
	return used;
}

void kx_unmatched_explain(struct kx_symbolizer *names, const char *pattern, char *text, size_t size)
{
	const struct kx_map *map = &names->map;
	struct search s = { .nbest = 0 };
	char known[3 * SHOWN_LENGTH + 32];
	uint32_t ids[NAMED];

	snprintf(text, size, "no function of the trace matches '%s'", pattern);
	if (!names->has_map || !map->nfunctions || kx_pattern_parse(pattern, &s.pattern, NULL))
		return;
	for (size_t i = 1; i <= map->nfunctions; i++)
		look_at(&s, map, kx_trace_name(names, (uint32_t)i), (uint32_t)i);
	kx_pattern_free(&s.pattern);
	for (size_t i = 0; i < NAMED; i++)
		ids[i] = s.nbest ? s.best[i].id : (uint32_t)i + 1;
	if (s.matching) {
		snprintf(text, size, "the trace has no such call of '%s': %.*s was traced, but not called", pattern,
			 SHOWN_LENGTH, kx_trace_name(names, s.matching));
	} else if (s.nbest) {
		list(names, ids, s.nbest, " or ", known, sizeof(known));
		snprintf(text, size, "no function of the trace matches '%s'; did you mean %s?", pattern, known);
	} else {
		list(names, ids, map->nfunctions < NAMED ? map->nfunctions : NAMED,
		     map->nfunctions <= NAMED ? " and " : ", ", known, sizeof(known));
		snprintf(text, size, "no function of the trace matches '%s'; there are %s%s", pattern, known,
			 map->nfunctions > NAMED ? " and others" : "");
	}
}
