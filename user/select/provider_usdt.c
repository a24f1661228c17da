// SPDX-License-Identifier: BSD-2-Clause
#include "select/provider_usdt.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/edit_distance.h"

#define NAME_MOST 512 /* bytes of a marker's name that is looked up */
#define NEAR 3
#define LISTED 8

/* The names of a span's markers, from its own; false if it is none. */
static bool split_span(const char *name, char first[NAME_MOST], char last[NAME_MOST])
{
	const char *mark = strstr(name, KX_SPAN_MARK), *second, *colon;
	int n;

	if (!mark || mark - name >= NAME_MOST)
		return false;
	memcpy(first, name, (size_t)(mark - name));
	first[mark - name] = 0;
	second = mark + strlen(KX_SPAN_MARK);
	colon = strrchr(first, ':');
	if (!colon)
		return false;
	/* without a provider, it has that of the first */
	if (strchr(second, ':'))
		n = snprintf(last, NAME_MOST, KX_USDT_PREFIX "%s", second);
	else
		n = snprintf(last, NAME_MOST, "%.*s:%s", (int)(colon - first), first, second);
	return n > 0 && n < NAME_MOST;
}

static bool find_span(const struct kx_usdt_markers *markers, const char *name, const struct kx_usdt_marker **first,
		      const struct kx_usdt_marker **last)
{
	char begins[NAME_MOST], ends[NAME_MOST];

	if (!split_span(name, begins, ends))
		return false;
	*first = kx_usdt_markers_find(markers, begins);
	*last = kx_usdt_markers_find(markers, ends);
	return *first && *last;
}

enum kx_usdt_role kx_usdt_role(const struct kx_select_module *m, const struct kx_symbol *sym,
			       const struct kx_usdt_marker **first, const struct kx_usdt_marker **last)
{
	*last = NULL;
	if (find_span(&m->markers, sym->name, first, last))
		return KX_USDT_SPAN;
	*first = kx_usdt_markers_find(&m->markers, sym->name);
	*last = NULL;
	return KX_USDT_INSTANT;
}

static int by_address(const void *a, const void *b)
{
	const struct kx_symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr > y->addr ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void add_symbol(struct kx_symbols *syms, struct kx_symbol *items, const char *name, uint64_t addr)
{
	items[syms->count++] = (struct kx_symbol){ .name = name, .pretty = name, .addr = addr, .size = 1 };
}

/* Markers and spans by address, each at another: a span begins where a marker is. */
static int make_symbols(struct kx_select_module *m, struct kx_err *err)
{
	struct kx_symbol *items = calloc(m->markers.count + m->nspans + 1, sizeof(*items));
	const struct kx_usdt_marker *first, *last;

	if (!items)
		return kx_err_set(err, -ENOMEM, "no memory for USDT markers");
	for (size_t i = 0; i < m->markers.count; i++)
		add_symbol(&m->syms, items, m->markers.items[i].name, m->markers.items[i].places[0].addr);
	for (size_t i = 0; i < m->nspans; i++)
		if (find_span(&m->markers, m->spans[i], &first, &last))
			add_symbol(&m->syms, items, m->spans[i], first->places[0].addr);
	if (m->syms.count)
		qsort(items, m->syms.count, sizeof(*items), by_address);
	for (size_t i = 1; i < m->syms.count; i++)
		if (items[i].addr <= items[i - 1].addr)
			items[i].addr = items[i - 1].addr + 1;
	m->syms.items = items;
	m->syms.source = ".note.stapsdt";
	return 0;
}

static int usdt_symbols(struct kx_select_module *m, pid_t pid, struct kx_err *err)
{
	int code;

	(void)pid;
	m->fd = kx_module_open(m->module, err);
	if (m->fd < 0)
		return m->fd;
	code = kx_elf_open_fd(m->fd, m->module->open_path, &m->elf, err);
	if (!code)
		code = kx_usdt_markers_read(m->elf, &m->markers, err);
	return code ? code : make_symbols(m, err);
}

/* Of a probe on what is there: a nop, if the program was built as usual. */
static enum kx_cost cost_at(const struct kx_elf *elf, uint64_t addr, const struct kx_plan_options *options)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	const uint8_t *code = kx_elf_code(elf, addr, sizeof(nop5));

	if (code && !memcmp(code, nop5, sizeof(nop5))) {
		if (options->nop5_optimized)
			return KX_COST_NOP5;
		return options->emulated & (1u << KX_INSN_LONG_NOP) ? KX_COST_EMULATED : KX_COST_STEPPED;
	}
	code = kx_elf_code(elf, addr, 1);
	return code && *code == 0x90 ? KX_COST_EMULATED : KX_COST_STEPPED;
}

static int check_places(const struct kx_select_module *m, const struct kx_usdt_marker *marker, const struct kx_plan_options *options, struct kx_err *why)
{
	for (size_t i = 0; options->nop5_forbidden && i < marker->nplaces; i++)
		if (cost_at(m->elf, marker->places[i].addr, options) == KX_COST_NOP5)
			return kx_err_set(why, -EOPNOTSUPP, "it is a nop of 5 bytes, and a probe there would harm the program on this kernel");
	return 0;
}

static struct kx_sled sled_at(const struct kx_select_module *m, const struct kx_usdt_place *place, enum kx_sled_kind kind,
			      const struct kx_plan_options *options)
{
	return (struct kx_sled){ .addr = place->addr,
				 .kind = (uint8_t)kind,
				 .cost = (uint8_t)cost_at(m->elf, place->addr, options) };
}

/* A marker has no exits, and those of a span are where the second marker is. */
static int usdt_plan(const struct kx_select_module *m, const struct kx_symbol *sym, const struct kx_plan_options *options,
		     struct kx_plan *plan, struct kx_err *why)
{
	const struct kx_usdt_marker *first, *last;
	enum kx_usdt_role role = kx_usdt_role(m, sym, &first, &last);
	int code = check_places(m, first, options, why);

	if (!code && role != KX_USDT_INSTANT)
		code = check_places(m, last, options, why);
	if (code)
		return code;
	*plan = (struct kx_plan){ .entry = sled_at(m, &first->places[0], KX_SLED_ENTRY, options),
				  .exit_kind = KX_EXITS_NONE,
				  .makes_calls = true };
	if (role == KX_USDT_INSTANT)
		return 0;
	plan->exit_kind = KX_EXITS_INSTRUCTION;
	plan->exits_emulated = true;
	plan->exits = calloc(last->nplaces, sizeof(*plan->exits));
	if (!plan->exits)
		return kx_err_set(why, -ENOMEM, "no memory for a span");
	for (; plan->nexits < last->nplaces; plan->nexits++)
		plan->exits[plan->nexits] = sled_at(m, &last->places[plan->nexits], KX_SLED_EXIT, options);
	return 0;
}

const struct kx_provider kx_provider_usdt = {
	.space = KX_PATTERN_USDT,
	.probe = KX_PROBE_UPROBE,
	.symbols = usdt_symbols,
	.plan = usdt_plan,
};

/* Spans */

static int bad_span(const char *text, struct kx_err *err)
{
	return kx_err_set(err, -EINVAL,
			  "'%s' is not a span: write 'usdt:PROVIDER:MARKER ~ MARKER' with the marker that it begins with and the one "
			  "that it ends with, without globs",
			  text);
}

/* Up to @length bytes of @s, without blanks around. */
static char *trimmed(const char *s, size_t length)
{
	while (length && (*s == ' ' || *s == '\t')) {
		s++;
		length--;
	}
	while (length && (s[length - 1] == ' ' || s[length - 1] == '\t'))
		length--;
	return strndup(s, length);
}

/* PROVIDER:MARKER, or with @short_form MARKER, both plain names. */
static bool is_marker(const char *s, bool short_form)
{
	const char *colon = strchr(s, ':');

	if (!*s || strpbrk(s, " \t*?[]()~") || (!colon && !short_form))
		return false;
	return !colon || (colon > s && colon[1] && !strchr(colon + 1, ':'));
}

static const char *without_prefix(const char *s)
{
	return strncmp(s, KX_USDT_PREFIX, strlen(KX_USDT_PREFIX)) ? s : s + strlen(KX_USDT_PREFIX);
}

int kx_usdt_span_parse(const char *text, char **pattern, struct kx_err *err)
{
	const char *tilde = strchr(text, '~');
	char *first = tilde ? trimmed(text, (size_t)(tilde - text)) : NULL;
	char *last = tilde ? trimmed(tilde + 1, strlen(tilde + 1)) : NULL;
	const char *begins = first ? without_prefix(first) : "", *ends = last ? without_prefix(last) : "";
	size_t provider = strcspn(begins, ":") + 1;
	int code = 0;

	*pattern = NULL;
	if (!tilde || !first || !last || !is_marker(begins, false) || !is_marker(ends, true))
		code = tilde && (!first || !last) ? kx_err_set(err, -ENOMEM, "no memory") : bad_span(text, err);
	if (!code && !strncmp(begins, ends, provider))
		ends += provider;
	if (!code && asprintf(pattern, KX_USDT_PREFIX "%s" KX_SPAN_MARK "%s", begins, ends) < 0) {
		*pattern = NULL;
		code = kx_err_set(err, -ENOMEM, "no memory");
	}
	free(first);
	free(last);
	return code;
}

/* No match */

struct near {
	const char *name;
	unsigned score;
};

static void consider(struct near best[NEAR], const char *needle, const char *name)
{
	unsigned length = (unsigned)strlen(needle), score = kx_edit_distance(needle, name, length < 6 ? 1 : length < 12 ? 2 : 3);
	size_t i;

	if (score == UINT_MAX && (length < 3 || !strcasestr(name, needle)))
		return;
	for (i = 0; i < NEAR; i++)
		if (best[i].name && !strcmp(best[i].name, name))
			return;
	for (i = NEAR; i > 0 && (!best[i - 1].name || best[i - 1].score > score); i--)
		if (i < NEAR)
			best[i] = best[i - 1];
	if (i < NEAR)
		best[i] = (struct near){ name, score };
}

/* Similar names of markers, or similar names of the marker alone, which may have another provider. */
static void find_near(const struct kx_pattern *p, const struct kx_select_module *const *modules, size_t n,
		      struct near best[NEAR])
{
	const size_t prefix = strlen(KX_USDT_PREFIX);
	char needle[NAME_MOST];
	size_t length = 0;

	for (const char *c = p->glob; *c && length + 1 < sizeof(needle); c++)
		if (*c != '*' && *c != '?')
			needle[length++] = *c;
	needle[length] = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < modules[i]->markers.count; k++) {
			const char *name = modules[i]->markers.items[k].name, *marker = strrchr(name, ':') + 1;
			const char *of = strrchr(needle, ':');

			consider(best, needle, name + prefix);
			if (of && of[1] && !strcasecmp(of + 1, marker))
				consider(best, name + prefix, name + prefix);
			else if (!of)
				consider(best, needle, marker);
		}
}

/* "postgresql in postgres, python in python3.11" */
static size_t list_providers(const struct kx_select_module *const *modules, size_t n, char *text, size_t size)
{
	size_t listed = 0, used = 0;

	text[0] = 0;
	for (size_t i = 0; i < n; i++) {
		const struct kx_usdt_markers *m = &modules[i]->markers;

		for (size_t k = 0; k < m->count && used < size; k++) {
			const char *name = m->items[k].name + strlen(KX_USDT_PREFIX);
			size_t length = strcspn(name, ":") + 1;

			if (k && !strncmp(m->items[k - 1].name + strlen(KX_USDT_PREFIX), name, length))
				continue;
			if (listed++ < LISTED)
				used += (size_t)snprintf(text + used, size - used, "%s%.*s in %s", listed > 1 ? ", " : "",
							 (int)length - 1, name, modules[i]->module->name);
		}
	}
	return listed;
}

static int no_span(const struct kx_pattern *p, const struct kx_select_module *const *modules, size_t n, struct kx_err *err)
{
	char begins[NAME_MOST], ends[NAME_MOST];
	bool first = false, last = false;

	if (!split_span(p->text, begins, ends))
		return bad_span(p->text, err);
	for (size_t i = 0; i < n; i++) {
		first |= kx_usdt_markers_find(&modules[i]->markers, begins) != NULL;
		last |= kx_usdt_markers_find(&modules[i]->markers, ends) != NULL;
	}
	if (first && last)
		return kx_err_set(err, -ENOENT, "the markers of the span '%s' are in different files; both must be in one", p->text);
	return kx_err_set(err, -ENOENT, "there is no marker '%s', with which the span '%s' %s; `kxray functions -f 'usdt:*'` lists what "
			  "there is", first ? ends : begins, p->text, first ? "ends" : "begins");
}

int kx_usdt_explain_no_match(const struct kx_pattern *p, const struct kx_select_module *const *modules, size_t n,
			     struct kx_err *err)
{
	struct near best[NEAR] = { 0 };
	char names[1024] = "", providers[512];
	size_t used = 0, listed = list_providers(modules, n, providers, sizeof(providers));

	if (!listed)
		return kx_err_set(err, -ENOENT,
				  "-f '%s': none of the %zu files has USDT markers (.note.stapsdt); a program has them if it was built "
				  "with them, often by a configure option such as --enable-dtrace",
				  p->text, n);
	if (strstr(p->text, KX_SPAN_MARK))
		return no_span(p, modules, n, err);
	find_near(p, modules, n, best);
	for (size_t i = 0; i < NEAR && best[i].name && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s%s", i ? ", " : "",
					 strchr(best[i].name, ':') ? KX_USDT_PREFIX : KX_USDT_PREFIX "*:", best[i].name);
	if (names[0])
		return kx_err_set(err, -ENOENT, "no USDT marker matches '%s'; did you mean %s?", p->text, names);
	return kx_err_set(err, -ENOENT,
			  "no USDT marker matches '%s', and none comes close; providers: %s%s; `kxray functions -f 'usdt:*'` lists "
			  "their markers (one that the compiler left out has no note)",
			  p->text, providers, listed > LISTED ? ", ..." : "");
}
