// SPDX-License-Identifier: BSD-2-Clause
#include "select.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "suggest.h"

/* A binary of any of the processes, read only when a pattern names it. */
struct binary {
	struct kx_module module; /* shallow copy; is_main if it is that of any process */
	const struct kx_module *original;
	pid_t pid;
	struct kx_elf *elf; /* NULL until loaded */
	struct kx_symbols syms;
	bool *chosen;       /* one per symbol */
	size_t nchosen;
	int load_rc;
	struct kx_err load_err;
};

struct selector {
	const struct kx_select_options *options;
	struct kx_pattern *include, *exclude;
	struct binary *binaries;
	size_t nbinaries;
	struct kx_plan_options plan_options;
	struct kx_selection *out;
};

/* Symbols made up for XRay functions that the symbol table does not name. */
struct storage {
	struct kx_symbol *unnamed;
	char (*names)[24];
};

static int no_memory(struct kx_err *err)
{
	return kx_err_set(err, -ENOMEM, "no memory to select functions");
}

static int add_note(struct kx_selection *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int add_note(struct kx_selection *out, const char *fmt, ...)
{
	char **grown = reallocarray(out->notes, out->nnotes + 1, sizeof(*grown));
	va_list ap;
	int n;

	if (!grown)
		return -ENOMEM;
	out->notes = grown;
	va_start(ap, fmt);
	n = vasprintf(&out->notes[out->nnotes], fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	out->nnotes++;
	return 0;
}

static int parse_patterns(const char *const *texts, size_t n, char option,
			  struct kx_pattern **out, struct kx_err *err)
{
	size_t i;
	int rc;

	*out = calloc(n + 1, sizeof(**out));
	if (!*out)
		return no_memory(err);
	for (i = 0; i < n; i++) {
		rc = kx_pattern_parse(texts[i], &(*out)[i], err);
		if (rc)
			return rc;
		if ((*out)[i].space != KX_PATTERN_USER)
			return kx_err_set(err, -EOPNOTSUPP,
					  "-%c '%s': %s are not supported by this version; name functions of the process's binaries",
					  option, texts[i],
					  (*out)[i].space == KX_PATTERN_KERNEL ? "kernel functions" :
					  "system calls");
	}
	return 0;
}

/* Every binary once, in the order of processes and of their modules. */
static int list_binaries(struct selector *s, const struct kx_select_process *procs, size_t nprocs,
			 struct kx_err *err)
{
	size_t i, k, b, total = 0;

	for (i = 0; i < nprocs; i++)
		total += procs[i].mods->count;
	s->binaries = calloc(total + 1, sizeof(*s->binaries));
	if (!s->binaries)
		return no_memory(err);
	for (i = 0; i < nprocs; i++)
		for (k = 0; k < procs[i].mods->count; k++) {
			const struct kx_module *m = &procs[i].mods->items[k];

			for (b = 0; b < s->nbinaries; b++)
				if (s->binaries[b].module.device == m->device &&
				    s->binaries[b].module.inode == m->inode)
					break;
			if (b < s->nbinaries) {
				s->binaries[b].module.is_main |= m->is_main;
				continue;
			}
			s->binaries[b].module = *m;
			s->binaries[b].original = m;
			s->binaries[b].pid = procs[i].pid;
			s->nbinaries++;
		}
	return 0;
}

/* Opens the binary and reads its symbols, once; remembers a failure. */
static int load(struct binary *b)
{
	char root[32];

	if (b->elf || b->load_rc)
		return b->load_rc;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)b->pid);
	b->load_rc = kx_elf_open(b->module.open_path, &b->elf, &b->load_err);
	if (b->load_rc)
		return b->load_rc;
	b->load_rc = kx_symbols_read(b->elf, b->pid ? root : NULL, &b->syms, &b->load_err);
	if (!b->load_rc) {
		b->chosen = calloc(b->syms.count + 1, sizeof(*b->chosen));
		if (!b->chosen)
			b->load_rc = no_memory(&b->load_err);
	}
	if (b->load_rc) {
		kx_symbols_free(&b->syms);
		kx_elf_close(b->elf);
		b->elf = NULL;
	}
	return b->load_rc;
}

static int stripped(const struct binary *b, struct kx_err *err)
{
	const char *source = b->syms.source;

	return kx_err_set(err, -ENOENT,
			  "'%s' is stripped: it has no function symbols%s%s%s; install its debug symbols (Debian: the package's -dbgsym), use an unstripped build, or trace functions of its libraries (-f 'libc.so*:NAME')",
			  b->module.path, source[0] ? " (" : "", source, source[0] ? ")" : "");
}

static int no_module(const struct selector *s, const struct kx_pattern *p, struct kx_err *err)
{
	char list[700];
	size_t i, len = 0;

	list[0] = 0;
	for (i = 0; i < s->nbinaries; i++) {
		size_t more = strlen(s->binaries[i].module.name) + 2;

		if (len + more + 32 > sizeof(list)) {
			snprintf(list + len, sizeof(list) - len, " and %zu more", s->nbinaries - i);
			break;
		}
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
					s->binaries[i].module.name);
	}
	return kx_err_set(err, -ENOENT, "no module matches '%s' of -f '%s'; there %s %s", p->module,
			  p->text, s->nbinaries == 1 ? "is only" : "are", list);
}

/* Nothing matches @p though it names modules: say why, and what comes close. */
static int no_match(struct selector *s, const struct kx_pattern *p, struct kx_err *err)
{
	struct kx_suggest_source *sources;
	const struct binary *named = NULL;
	size_t i, n = 0, nnamed = 0, nsymbols = 0;
	char close[700], where[300];

	sources = calloc(s->nbinaries + 1, sizeof(*sources));
	if (!sources)
		return no_memory(err);
	for (i = 0; i < s->nbinaries; i++) {
		struct binary *b = &s->binaries[i];
		bool is_named = kx_pattern_matches_module(p, &b->module);

		if (is_named && !nnamed++)
			named = b;
		if (load(b))
			continue;
		nsymbols += is_named ? b->syms.count : 0;
		sources[n].module = &b->module;
		sources[n].syms = &b->syms;
		sources[n++].preferred = is_named;
	}
	if (!nnamed || !nsymbols) {
		free(sources);
		return !nnamed ? no_module(s, p, err) : stripped(named, err);
	}
	kx_suggest(p, sources, n, close, sizeof(close));
	free(sources);
	if (nnamed == 1)
		snprintf(where, sizeof(where), "'%s'", named->module.name);
	else
		snprintf(where, sizeof(where), "%zu modules", nnamed);
	return kx_err_set(err, -ENOENT, "no function of %s matches '%s'%s%s%s", where, p->glob,
			  close[0] ? "; did you mean " : ", and none comes close; `kxray functions -f '*'` lists what there is",
			  close, close[0] ? "?" : "");
}

/* Marks what @p matches, or unmarks it for an exclude pattern; returns how many. */
static size_t mark(const struct kx_pattern *p, struct binary *b, bool value)
{
	size_t i, n = 0;

	for (i = 0; i < b->syms.count; i++) {
		if (b->chosen[i] == value && !value)
			continue;
		if (!kx_pattern_matches_symbol(p, &b->syms.items[i]))
			continue;
		n++;
		if (b->chosen[i] != value) {
			b->chosen[i] = value;
			b->nchosen += value ? 1 : (size_t)-1;
		}
	}
	return n;
}

static int apply_include(struct selector *s, const struct kx_pattern *p, struct kx_err *err)
{
	const struct binary *failed = NULL;
	size_t i, matched = 0;

	for (i = 0; i < s->nbinaries; i++) {
		struct binary *b = &s->binaries[i];

		if (!kx_pattern_matches_module(p, &b->module))
			continue;
		if (!load(b))
			matched += mark(p, b, true);
		else if (!failed)
			failed = b;
	}
	if (!failed)
		return matched ? 0 : no_match(s, p, err);
	if (!matched)
		return kx_err_set(err, failed->load_rc, "%s", failed->load_err.text);
	return add_note(s->out, "left out: %s", failed->load_err.text) ? no_memory(err) : 0;
}

/* Without include patterns every function of the main executables is a candidate. */
static int choose_all_of_main(struct selector *s, struct kx_err *err)
{
	const struct binary *last = NULL;
	size_t i, total = 0;
	int rc;

	for (i = 0; i < s->nbinaries; i++) {
		struct binary *b = &s->binaries[i];

		if (!b->module.is_main)
			continue;
		rc = load(b);
		if (rc)
			return kx_err_set(err, rc, "%s", b->load_err.text);
		memset(b->chosen, 1, b->syms.count * sizeof(*b->chosen));
		b->nchosen = b->syms.count;
		total += b->nchosen;
		last = b;
	}
	if (!total && last)
		return stripped(last, err);
	return 0;
}

static int apply_excludes(struct selector *s, struct kx_err *err)
{
	size_t i, k;

	for (i = 0; i < s->options->nexclude; i++) {
		const struct kx_pattern *p = &s->exclude[i];
		size_t n = 0;

		for (k = 0; k < s->nbinaries; k++)
			if (s->binaries[k].nchosen &&
			    kx_pattern_matches_module(p, &s->binaries[k].module))
				n += mark(p, &s->binaries[k], false);
		if (n)
			continue;
		if (add_note(s->out, "-x '%s' leaves nothing out: no selected function%s matches it%s",
			     p->text, p->module ? "" : " of the main executable",
			     p->module ? "" : "; write MODULE:GLOB for other modules"))
			return no_memory(err);
	}
	return 0;
}

static size_t count_chosen(const struct selector *s)
{
	size_t i, n = 0;

	for (i = 0; i < s->nbinaries; i++)
		n += s->binaries[i].nchosen;
	return n;
}

static int too_many(size_t n, size_t max, bool by_size, struct kx_err *err)
{
	return kx_err_set(err, -E2BIG,
			  "%zu functions %s, more than the limit of %zu; %s, leave some out with -x, or raise the limit with --max-functions %zu",
			  n, by_size ? "are large enough to be chosen" : "match", max,
			  by_size ? "name some with -f" : "narrow the patterns", n);
}

static void find_risk(struct selector *s, const struct kx_select_process *procs, size_t nprocs)
{
	struct kx_unwind_risk *worst = &s->out->risk, one;
	size_t i;

	for (i = 0; i < nprocs; i++) {
		kx_unwind_risk_of(procs[i].mods, &one);
		if (!i) {
			*worst = one;
			continue;
		}
		if (one.is_go > worst->is_go || (worst->returns_harmless && !one.returns_harmless))
			memcpy(worst->reason, one.reason, sizeof(worst->reason));
		if (!worst->loader[0])
			memcpy(worst->loader, one.loader, sizeof(worst->loader));
		worst->is_go |= one.is_go;
		worst->returns_harmless &= one.returns_harmless;
	}
	if (s->options->loads_unseen && worst->returns_harmless) {
		worst->returns_harmless = false;
		snprintf(worst->reason, sizeof(worst->reason), "%s", s->options->loads_unseen);
	}
	s->plan_options.exits = s->options->exits;
	s->plan_options.nop5_optimized = s->options->nop5_optimized;
	s->plan_options.returns_harmless = worst->returns_harmless && !worst->is_go;
	s->plan_options.returns_forbidden = worst->is_go;
}

/*
 * Gives the XRay functions of the first main executable the first ids. @ids gets, for each
 * symbol of it, its id or 0.
 */
static int number_xray_functions(struct selector *s, const struct kx_select_module *m,
				 uint32_t *ids, struct kx_err *err)
{
	struct storage *st = s->out->storage;
	const uint64_t *addrs;
	size_t n = kx_planner_xray_functions(m->planner, &addrs), i;
	struct kx_function *grown;

	grown = reallocarray(s->out->functions, n + count_chosen(s) + 1, sizeof(*grown));
	st->unnamed = calloc(n + 1, sizeof(*st->unnamed));
	st->names = calloc(n + 1, sizeof(*st->names));
	if (grown)
		s->out->functions = grown;
	if (!grown || !st->unnamed || !st->names)
		return no_memory(err);
	for (i = 0; i < n; i++) {
		const struct kx_symbol *sym = kx_symbols_find(&m->syms, addrs[i]);
		struct kx_function *f = &s->out->functions[i];

		memset(f, 0, sizeof(*f));
		f->id = (uint32_t)i + 1;
		if (sym && sym->addr == addrs[i]) {
			if (!ids[sym - m->syms.items])
				ids[sym - m->syms.items] = f->id;
		} else {
			snprintf(st->names[i], sizeof(st->names[i]), "@(%llx)",
				 (unsigned long long)addrs[i]);
			st->unnamed[i].name = st->unnamed[i].pretty = st->names[i];
			st->unnamed[i].addr = addrs[i];
			st->unnamed[i].size = 1;
			sym = &st->unnamed[i];
		}
		f->sym = sym;
	}
	s->out->nfunctions = n;
	return 0;
}

static int leave_out(struct kx_selection *out, uint32_t module, const struct kx_symbol *sym,
		     const char *reason)
{
	struct kx_left_out *grown = out->left_out;

	/* Powers of two, so that thousands do not copy each other. */
	if (!(out->nleft_out & (out->nleft_out - 1)) || !grown) {
		grown = reallocarray(out->left_out, out->nleft_out ? out->nleft_out * 2 : 1,
				     sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		out->left_out = grown;
	}
	grown[out->nleft_out].module = module;
	grown[out->nleft_out].sym = sym;
	grown[out->nleft_out].reason = strdup(reason);
	return grown[out->nleft_out++].reason ? 0 : -ENOMEM;
}

static bool large_enough(const struct kx_plan *plan)
{
	return plan->xray || plan->has_loop || plan->instructions >= KX_SELECT_MIN_INSTRUCTIONS;
}

/* Plans the chosen functions of one binary and appends them. @ids: see above; NULL if none. */
static int plan_binary(struct selector *s, const struct binary *b, uint32_t module,
		       const uint32_t *ids, struct kx_err *err)
{
	struct kx_selection *out = s->out;
	struct kx_select_module *m = &out->modules[module];
	struct kx_plan plan;
	struct kx_err why;
	size_t i;
	int rc;

	for (i = 0; i < m->syms.count; i++) {
		const struct kx_symbol *sym = &m->syms.items[i];
		struct kx_function *f;

		/* Nobody asked for an ifunc by name when the choice is by size. */
		if (!b->chosen[i] || (out->by_size && sym->is_ifunc))
			continue;
		rc = 0;
		why.text[0] = 0;
		memset(&plan, 0, sizeof(plan));
		if (sym->is_ifunc)
			snprintf(why.text, sizeof(why.text),
				 "it only resolves which function to use (ifunc), the code that runs has another name");
		else
			rc = kx_plan_function(m->planner, sym, &s->plan_options, &plan, &why);
		if (rc == -ENOMEM)
			return kx_err_set(err, rc, "%s", why.text);
		if (rc || sym->is_ifunc) {
			if (leave_out(out, module, sym, why.text))
				return no_memory(err);
			continue;
		}
		if (out->by_size && !large_enough(&plan)) {
			kx_plan_free(&plan);
			continue;
		}
		if (ids && ids[i]) {
			f = &out->functions[ids[i] - 1];
		} else {
			f = &out->functions[out->nfunctions];
			memset(f, 0, sizeof(*f));
			f->id = (uint32_t)++out->nfunctions;
		}
		f->module = module;
		f->sym = sym;
		f->plan = plan;
		f->traced = true;
		out->ntraced++;
	}
	return 0;
}

static int plan_all(struct selector *s, struct kx_err *err)
{
	struct kx_selection *out = s->out;
	struct kx_elf_section xray;
	size_t i;
	int rc;

	out->modules = calloc(s->nbinaries + 1, sizeof(*out->modules));
	out->functions = calloc(count_chosen(s) + 1, sizeof(*out->functions));
	if (!out->modules || !out->functions)
		return no_memory(err);
	for (i = 0; i < s->nbinaries; i++) {
		struct binary *b = &s->binaries[i];
		struct kx_select_module *m = &out->modules[out->nmodules];
		bool own_ids = !i && b->module.is_main && !load(b) &&
			       kx_elf_section(b->elf, "xray_instr_map", &xray);
		uint32_t *ids = NULL;

		if (!b->nchosen && !own_ids)
			continue;
		/* The module takes over what the binary read. */
		m->module = b->original;
		m->elf = b->elf;
		m->syms = b->syms;
		b->elf = NULL;
		memset(&b->syms, 0, sizeof(b->syms));
		out->nmodules++;
		rc = kx_planner_new(m->elf, &m->syms, &m->planner, err);
		if (rc)
			return rc;
		if (own_ids) {
			ids = calloc(m->syms.count + 1, sizeof(*ids));
			rc = ids ? number_xray_functions(s, m, ids, err) : no_memory(err);
		}
		if (!rc)
			rc = plan_binary(s, b, (uint32_t)out->nmodules - 1, ids, err);
		free(ids);
		if (rc)
			return rc;
	}
	return 0;
}

/* Something must remain to be traced; else the reason is an error. */
static int check_result(const struct kx_selection *out, struct kx_err *err)
{
	const struct kx_left_out *first = out->left_out;

	if (out->ntraced)
		return 0;
	if (out->by_size)
		return kx_err_set(err, -ENOENT,
				  "none of the %zu functions of '%s' has a loop or at least %d instructions, so none was chosen; name some with -f, or take all with -f '*'",
				  out->ncandidates, out->modules[0].module->name,
				  KX_SELECT_MIN_INSTRUCTIONS);
	if (out->nleft_out == 1)
		return kx_err_set(err, -EOPNOTSUPP, "%s in %s cannot be traced: %s",
				  first->sym->pretty, out->modules[first->module].module->name,
				  first->reason);
	return kx_err_set(err, -EOPNOTSUPP,
			  "none of the %zu matching functions can be traced; %s in %s: %s",
			  out->nleft_out, first->sym->pretty,
			  out->modules[first->module].module->name, first->reason);
}

static int select_and_plan(struct selector *s, const struct kx_select_process *procs,
			   size_t nprocs, struct kx_err *err)
{
	const struct kx_select_options *o = s->options;
	size_t max = o->max_functions ? o->max_functions : KX_SELECT_MAX_FUNCTIONS;
	size_t i, before;
	int rc;

	rc = parse_patterns(o->include, o->ninclude, 'f', &s->include, err);
	if (!rc)
		rc = parse_patterns(o->exclude, o->nexclude, 'x', &s->exclude, err);
	if (!rc)
		rc = list_binaries(s, procs, nprocs, err);
	if (!rc && s->out->by_size)
		rc = choose_all_of_main(s, err);
	for (i = 0; i < o->ninclude && !rc; i++)
		rc = apply_include(s, &s->include[i], err);
	before = rc ? 0 : count_chosen(s);
	if (!rc)
		rc = apply_excludes(s, err);
	if (rc)
		return rc;
	s->out->ncandidates = count_chosen(s);
	if (!s->out->ncandidates)
		return kx_err_set(err, -ENOENT, "-x leaves out all %zu functions that were selected",
				  before);
	if (!s->out->by_size && s->out->ncandidates > max)
		return too_many(s->out->ncandidates, max, false, err);
	find_risk(s, procs, nprocs);
	rc = plan_all(s, err);
	if (!rc && s->out->ntraced > max)
		rc = too_many(s->out->ntraced, max, true, err);
	return rc ? rc : check_result(s->out, err);
}

int kx_select_functions(const struct kx_select_process *procs, size_t nprocs,
			const struct kx_select_options *options, struct kx_selection *out,
			struct kx_err *err)
{
	struct selector s = { .options = options, .out = out };
	size_t i;
	int rc;

	memset(out, 0, sizeof(*out));
	out->by_size = !options->ninclude;
	out->storage = calloc(1, sizeof(struct storage));
	if (!out->storage)
		return no_memory(err);
	rc = select_and_plan(&s, procs, nprocs, err);
	for (i = 0; i < s.nbinaries; i++) {
		kx_symbols_free(&s.binaries[i].syms);
		kx_elf_close(s.binaries[i].elf);
		free(s.binaries[i].chosen);
	}
	free(s.binaries);
	for (i = 0; s.include && i < options->ninclude; i++)
		kx_pattern_free(&s.include[i]);
	for (i = 0; s.exclude && i < options->nexclude; i++)
		kx_pattern_free(&s.exclude[i]);
	free(s.include);
	free(s.exclude);
	if (rc)
		kx_selection_free(out);
	return rc;
}

void kx_selection_free(struct kx_selection *sel)
{
	struct storage *st = sel->storage;
	size_t i;

	for (i = 0; i < sel->nfunctions; i++)
		if (sel->functions[i].traced)
			kx_plan_free(&sel->functions[i].plan);
	for (i = 0; i < sel->nmodules; i++) {
		kx_planner_free(sel->modules[i].planner);
		kx_symbols_free(&sel->modules[i].syms);
		kx_elf_close(sel->modules[i].elf);
	}
	for (i = 0; i < sel->nleft_out; i++)
		free(sel->left_out[i].reason);
	for (i = 0; i < sel->nnotes; i++)
		free(sel->notes[i]);
	if (st) {
		free(st->unnamed);
		free(st->names);
		free(st);
	}
	free(sel->modules);
	free(sel->functions);
	free(sel->left_out);
	free(sel->notes);
	memset(sel, 0, sizeof(*sel));
}
