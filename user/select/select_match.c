// SPDX-License-Identifier: BSD-2-Clause
/* Which functions the patterns select in which binaries; without patterns, those of the main one. */
#include "select/select_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stop_request.h"
#include "binary/debug_package.h"
#include "binary/debuginfod.h"
#include "select/pattern_matches.h"
#include "select/provider_usdt.h"
#include "select/suggest.h"

static int parse_patterns(const char *const *texts, size_t n, struct kx_pattern **out,
			  struct kx_err *err)
{
	size_t i;
	int rc;

	*out = calloc(n + 1, sizeof(**out));
	if (!*out)
		return kx_select_no_memory(err);
	for (i = 0; i < n; i++) {
		rc = texts && texts[i] ? kx_pattern_parse(texts[i], &(*out)[i], err) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

int kx_select_parse_patterns(struct kx_selector *s, struct kx_err *err)
{
	const struct kx_select_options *o = &s->options;
	int rc = parse_patterns(o->include, o->ninclude, &s->include, err);

	s->matches = calloc(o->ninclude + 1, sizeof(*s->matches));
	if (!s->matches)
		return kx_select_no_memory(err);
	if (!rc)
		rc = parse_patterns(o->otherwise, o->ninclude, &s->otherwise, err);
	return rc ? rc : parse_patterns(o->exclude, o->nexclude, &s->exclude, err);
}

static bool names(const struct kx_pattern *p, const struct kx_binary *b)
{
	if (b->m.provider->space != KX_PATTERN_USER)
		return p->space == b->m.provider->space;
	return kx_pattern_matches_module(p, &b->module);
}

/* Why @b has no function symbols: -ENOENT. @p: the pattern that needs them, or NULL. */
static int explain_no_symbols(const struct kx_binary *b, const struct kx_pattern *p,
			      struct kx_err *err)
{
	const char *source = b->m.syms.source;
	uint64_t missing = b->m.elf ? kx_elf_missing(b->m.elf) : 0;
	char advice[KX_DEBUG_ADVICE];

	if (missing)
		return kx_err_set(err, -ENOENT,
				  "'%s' is truncated: its headers describe %" PRIu64
				  " bytes more than it has, and the rest has no function symbols; "
				  "copy or build it again",
				  b->module.path, missing);
	kx_debug_package_advice(b->module.path, b->m.fd, b->m.elf, advice);
	return kx_err_set(err, -ENOENT,
			  "%s%s%s'%s' is stripped: it has no function symbols%s%s%s; %s, or use an unstripped build, or trace functions of its libraries (-f 'libc.so*:NAME')",
			  p ? "-f '" : "", p ? p->text : "", p ? "': " : "", b->module.path,
			  source[0] ? " (" : "", source, source[0] ? ")" : "", advice);
}

static int no_module(const struct kx_selector *s, const struct kx_pattern *p, struct kx_err *err)
{
	char list[500], near[KX_SUGGEST_PATTERN], one[KX_SUGGEST_PATTERN];
	size_t i, len = 0;
	int best = -1;

	list[0] = 0;
	for (i = 0; i < s->nbinaries; i++) {
		size_t more = strlen(s->binaries[i]->module.name) + 2;

		if (len + more + 32 > sizeof(list)) {
			snprintf(list + len, sizeof(list) - len, " and %zu more", s->nbinaries - i);
			break;
		}
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
					s->binaries[i]->module.name);
	}
	near[0] = 0;
	for (i = 0; i < s->nbinaries; i++) {
		int nearness = kx_suggest_module(p, &s->binaries[i]->module, one);

		if (nearness < 0 || (best >= 0 && nearness >= best))
			continue;
		best = nearness;
		strcpy(near, one);
	}
	return kx_err_set(err, -ENOENT, "no module matches '%s' of -f '%s'; there %s %s%s%s%s", p->module,
			  p->text, s->nbinaries == 1 ? "is only" : "are", list,
			  near[0] ? "; did you mean -f '" : "", near, near[0] ? "'?" : "");
}

/* No function of the modules that @p names matches it: the error explains why and suggests names. */
static int no_match(struct kx_selector *s, const struct kx_pattern *p, struct kx_err *err)
{
	struct kx_suggest_source *sources;
	const struct kx_binary *named = NULL;
	size_t i, n = 0, nnamed = 0, nsymbols = 0;
	char close[500], where[300], why[KX_DEBUG_ADVICE + 160] = "", of[PATH_MAX + 8] = "", advice[KX_DEBUG_ADVICE];

	sources = calloc(s->nbinaries + 1, sizeof(*sources));
	if (!sources)
		return kx_select_no_memory(err);
	for (i = 0; i < s->nbinaries; i++) {
		struct kx_binary *b = s->binaries[i];
		bool is_named = names(p, b);

		if (is_named && !nnamed++)
			named = b;
		if (kx_select_load(b))
			continue;
		nsymbols += is_named ? kx_select_syms(s, b)->count : 0;
		sources[n].module = &b->module;
		sources[n].syms = kx_select_syms(s, b);
		sources[n++].preferred = is_named;
	}
	if (!nnamed || !nsymbols) {
		free(sources);
		return nnamed ? explain_no_symbols(named, p, err) : no_module(s, p, err);
	}
	kx_suggest(p, sources, n, close, sizeof(close));
	free(sources);
	if (nnamed == 1)
		snprintf(where, sizeof(where), "'%s'", named->module.name);
	else
		snprintf(where, sizeof(where), "%zu modules", nnamed);
	if (named->pid)
		snprintf(of, sizeof(of), "-p %d ", (int)named->pid);
	else if (!kx_provider_get(p->space)->name)
		snprintf(of, sizeof(of), "%s ", named->module.path);
	if (nnamed == 1 && kx_is_interpreter(&named->module))
		snprintf(why, sizeof(why), "; '%s' is an interpreter: only its C functions can be traced",
			 named->module.name);
	else if (nnamed == 1 && kx_symbols_are_exports(kx_select_syms(s, named))) {
		kx_debug_package_advice(named->module.path, named->number ? -1 : named->m.fd, named->m.elf, advice);
		snprintf(why, sizeof(why), "; it is stripped, only the functions that it exports are visible: %s", advice);
	}
	if (!close[0])
		return kx_err_set(err, -ENOENT,
				  "no function of %s matches '%s', and none comes close; `kxray functions %s-f '%s%s*'` lists what there is%s",
				  where, p->glob, of, p->module ? p->module : "", p->module ? ":" : "", why);
	return kx_err_set(err, -ENOENT, "no function of %s matches '%s'; did you mean %s?%s", where,
			  p->glob, close, why);
}

/* Selects (@value) or deselects the functions that @p matches; returns how many match. */
static size_t mark(const struct kx_pattern *p, struct kx_binary *b, bool value)
{
	size_t i, n = 0;

	for (i = 0; i < b->m.syms.count; i++) {
		if (b->chosen[i] == value && !value)
			continue;
		if (!kx_pattern_matches_symbol(p, &b->m.syms.items[i]))
			continue;
		n++;
		if (b->chosen[i] != value) {
			b->chosen[i] = value;
			b->nchosen += value ? 1 : (size_t)-1;
		}
	}
	return n;
}

/* The same for a marker. */
static int no_marker(struct kx_selector *s, const struct kx_pattern *p, struct kx_err *err)
{
	const struct kx_select_module **modules = calloc(s->nbinaries + 1, sizeof(const struct kx_select_module *));
	size_t n = 0;
	int rc;

	if (!modules)
		return kx_select_no_memory(err);
	for (size_t i = 0; i < s->nbinaries; i++)
		if (names(p, s->binaries[i]) && !kx_select_load(s->binaries[i]))
			modules[n++] = &s->binaries[i]->m;
	rc = kx_usdt_explain_no_match(p, modules, n, err);
	free(modules);
	return rc;
}

/* What a pattern has matched. */
struct include_result {
	const struct kx_binary *failed; /* the first one that could not be read */
	size_t matched;
	bool named; /* it names a module */
};

/* Errors: -EINTR. */
static int mark_all(struct kx_selector *s, const struct kx_pattern *p, size_t first, struct include_result *out, struct kx_err *err)
{
	*out = (struct include_result){ 0 };
	for (size_t i = first; i < s->nbinaries; i++) {
		struct kx_binary *b = s->binaries[i];

		if (!names(p, b))
			continue;
		out->named = true;
		if (kx_stop_check(err))
			return -EINTR;
		if (!kx_select_load(b))
			out->matched += mark(p, b, true);
		else if (!out->failed)
			out->failed = b;
	}
	return 0;
}

static int apply_include(struct kx_selector *s, size_t which, size_t first, bool must_match,
			 struct kx_err *err)
{
	const struct kx_pattern *p = &s->include[which];
	struct include_result r;
	int rc = mark_all(s, p, first, &r, err);

	if (!rc && !r.matched && !s->matches[which] && s->otherwise[which].text) {
		p = &s->otherwise[which];
		rc = mark_all(s, p, first, &r, err);
	}
	if (rc)
		return rc;
	/* The functions of a pseudo-module are all known now. */
	must_match |= kx_provider_get(p->space)->name && !first;
	s->matches[which] += r.matched;
	if (!must_match)
		return 0;
	if (!r.named && s->options.libraries_join)
		return kx_select_note(s->out, "no module matches '%s' of -f '%s' yet", p->module,
				      p->text) ?
			       kx_select_no_memory(err) :
			       0;
	if (!r.matched && p->space == KX_PATTERN_USDT && s->options.libraries_join)
		return kx_select_note(s->out, "no USDT marker matches '%s' yet", p->text) ? kx_select_no_memory(err) : 0;
	if (!r.matched && p->space == KX_PATTERN_USDT)
		return no_marker(s, p, err);
	if (!r.failed)
		return r.matched ? 0 : no_match(s, p, err);
	if (!r.matched)
		return kx_err_set(err, r.failed->load_rc, "%s", r.failed->load_err.text);
	return kx_select_note(s->out, "left out: %s", r.failed->load_err.text) ?
		       kx_select_no_memory(err) :
		       0;
}

/* Without include patterns every function of the main executables is a candidate. */
static int choose_all_of_main(struct kx_selector *s, size_t first, bool must_match,
			      struct kx_err *err)
{
	const struct kx_binary *last = NULL;
	char advice[KX_DEBUG_ADVICE];
	size_t total = 0;

	for (size_t i = first; i < s->nbinaries; i++) {
		struct kx_binary *b = s->binaries[i];
		int rc;

		if (!b->module.is_main)
			continue;
		rc = kx_select_load(b);
		if (rc && must_match)
			return kx_err_set(err, rc, "%s", b->load_err.text);
		if (rc)
			continue;
		memset(b->chosen, 1, b->m.syms.count * sizeof(*b->chosen));
		b->nchosen = b->m.syms.count;
		total += b->nchosen;
		last = b;
	}
	if (!total && last && must_match)
		return explain_no_symbols(last, NULL, err);
	if (!must_match || !last || !kx_symbols_are_exports(&last->m.syms))
		return 0;
	kx_debug_package_advice(last->module.path, last->m.fd, last->m.elf, advice);
	return kx_select_note(s->out, "'%s' is stripped, only the functions that it exports are visible: %s",
			      last->module.path, advice) ?
		       kx_select_no_memory(err) :
		       0;
}

static int apply_excludes(struct kx_selector *s, size_t first, bool must_match, struct kx_err *err)
{
	for (size_t i = 0; i < s->options.nexclude; i++) {
		const struct kx_pattern *p = &s->exclude[i];
		size_t n = 0;

		for (size_t k = first; k < s->nbinaries; k++)
			if (s->binaries[k]->nchosen && names(p, s->binaries[k]))
				n += mark(p, s->binaries[k], false);
		if (n || !must_match)
			continue;
		if (kx_select_note(s->out,
				   "-x '%s' leaves nothing out: no selected function%s matches it%s",
				   p->text, p->module ? "" : " of the main executable",
				   p->module ? "" : "; write MODULE:GLOB for other modules"))
			return kx_select_no_memory(err);
	}
	return 0;
}

static bool is_wanted(const struct kx_selector *s, const struct kx_binary *b)
{
	if (s->out->by_size)
		return b->module.is_main;
	for (size_t i = 0; i < s->options.ninclude; i++)
		if (names(&s->include[i], b))
			return true;
	return false;
}

/* Reads what will be asked for, several binaries at once. Downloads come one after the other. */
static int load_wanted(struct kx_selector *s, size_t first, struct kx_err *err)
{
	struct kx_binary **wanted = calloc(s->nbinaries + 1, sizeof(struct kx_binary *));
	size_t n = 0;

	if (!wanted)
		return kx_select_no_memory(err);
	for (size_t i = first; i < s->nbinaries; i++)
		if (s->binaries[i]->m.provider == &kx_provider_elf && is_wanted(s, s->binaries[i]))
			wanted[n++] = s->binaries[i];
	if (n > 1 && !kx_debuginfod_allowed())
		kx_select_load_binaries(wanted, n);
	free(wanted);
	return 0;
}

int kx_select_match(struct kx_selector *s, size_t first, bool must_match, struct kx_err *err)
{
	int rc = load_wanted(s, first, err);
	size_t before;

	if (!rc && s->out->by_size)
		rc = choose_all_of_main(s, first, must_match, err);
	for (size_t i = 0; i < s->options.ninclude && !rc; i++)
		rc = apply_include(s, i, first, must_match, err);
	before = rc ? 0 : kx_select_count(s, first);
	if (!rc)
		rc = apply_excludes(s, first, must_match, err);
	if (!rc && must_match && before && !kx_select_count(s, first))
		return kx_err_set(err, -ENOENT, "-x leaves out all %zu functions that were selected",
				  before);
	return rc;
}

size_t kx_select_count(const struct kx_selector *s, size_t first)
{
	size_t n = 0;

	for (size_t i = first; i < s->nbinaries; i++)
		n += s->binaries[i]->nchosen;
	return n;
}
