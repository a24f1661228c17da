// SPDX-License-Identifier: BSD-2-Clause
#include "select/kernel_symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "select/kernel_deny.h"
#include "select/kernel_fs.h"
#include "select/provider.h"
#include "select/select.h"
#include "binary/symbol_sources.h"

/* The size of the last function before a gap, where nothing better is known. */
#define MAX_SIZE (1u << 16)

struct raw {
	const char *name;
	const char *module; /* NULL: the kernel itself */
	uint64_t addr;
	bool is_function, is_local;
};

struct range {
	uint64_t from, to; /* [from, to) */
};

/* Parts of the kernel's code that its own linker script marks. */
enum section {
	SECTION_NOINSTR,
	SECTION_ENTRY,
	SECTION_KPROBES,
	SECTION_INIT,
	SECTION_COUNT,
};

static const struct {
	const char *from, *to; /* symbols */
	const char *reason;
} sections[SECTION_COUNT] = {
	{ "__noinstr_text_start", "__noinstr_text_end",
	  "the kernel forbids instrumentation there (noinstr)" },
	{ "__entry_text_start", "__entry_text_end", "it is on the way into the kernel" },
	{ "__kprobes_text_start", "__kprobes_text_end",
	  "it is a step of the kernel's own on the way to a probe" },
	{ "_sinittext", "_einittext", "it ran while the kernel started, and its code is gone" },
};

struct kernel {
	struct kx_arena *arena;
	const char **aliases;
	const char **modules; /* by symbol */
	const char **names;   /* all of functions, sorted */
	size_t nnames;
	char *traceable;      /* by symbol; NULL if the kernel's list could not be read */
	struct range sections[SECTION_COUNT];
	struct range *forbidden; /* the kernel's own list, sorted */
	size_t nforbidden;
};

static void release(void *storage)
{
	struct kernel *k = storage;

	kx_arena_free(k->arena);
	free(k->aliases);
	free(k->modules);
	free(k->names);
	free(k->traceable);
	free(k->forbidden);
	free(k);
}

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Marks, padding and split-off parts are no functions, though they end those before them. */
static bool is_function(char type, const char *name)
{
	if (type != 't' && type != 'T' && type != 'W')
		return false;
	if (strstr(name, ".cold") || has_prefix(name, "__pfx_") || has_prefix(name, "__cfi_") ||
	    has_prefix(name, "__SCT__") || has_prefix(name, "__SCK__") || name[0] == '.')
		return false;
	for (size_t i = 0; i < SECTION_COUNT; i++)
		if (!strcmp(name, sections[i].from) || !strcmp(name, sections[i].to))
			return false;
	return strcmp(name, "_text") && strcmp(name, "_stext") && strcmp(name, "_etext");
}

static void note_section(struct kernel *k, const char *name, uint64_t addr)
{
	for (size_t i = 0; i < SECTION_COUNT; i++) {
		if (!strcmp(name, sections[i].from))
			k->sections[i].from = addr;
		if (!strcmp(name, sections[i].to))
			k->sections[i].to = addr;
	}
}

/* By address; at one address the name first that people know. */
static int compare_raw(const void *pa, const void *pb)
{
	const struct raw *a = pa, *b = pb;
	int d;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	d = b->is_function - a->is_function;
	if (!d) /* of two names of one system call that of 64-bit programs */
		d = has_prefix(a->name, "__ia32_") - has_prefix(b->name, "__ia32_");
	if (!d)
		d = a->is_local - b->is_local;
	if (!d)
		d = (a->name[0] == '_') - (b->name[0] == '_');
	if (!d)
		d = (int)strlen(a->name) - (int)strlen(b->name);
	return d ? d : strcmp(a->name, b->name);
}

static int compare_names(const void *pa, const void *pb)
{
	return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

static int compare_ranges(const void *pa, const void *pb)
{
	const struct range *a = pa, *b = pb;

	return a->from < b->from ? -1 : a->from > b->from;
}

/* "[nf_tables]" without its brackets; programs and trampolines that stand as modules are none. */
static bool module_name(char *text, const char **out)
{
	size_t len;

	*out = NULL;
	if (!text)
		return true;
	len = strlen(text);
	if (len < 3 || text[0] != '[' || text[len - 1] != ']')
		return false;
	text[len - 1] = 0;
	*out = text + 1;
	return strcmp(*out, "bpf") && !has_prefix(*out, "__builtin__");
}

static int read_kallsyms(FILE *f, struct kernel *k, struct raw **out, size_t *n, struct kx_err *err)
{
	const char *previous = NULL; /* module; the symbols of one stand together */
	struct raw *items = NULL;
	size_t room = 0, size = 0;
	bool visible = false, any = false;
	char *line = NULL;

	*n = 0;
	while (getline(&line, &size, f) > 0) {
		char *rest = line, *addr = strsep(&rest, " "), *type, *name, *end;
		const char *module;
		struct raw *r;

		type = rest ? strsep(&rest, " ") : NULL;
		name = rest ? strsep(&rest, " \t\n") : NULL;
		if (!name || !*name || !type || !strchr("tTwWaAdDrRbB", *type))
			continue;
		if (!module_name(rest && *rest ? strsep(&rest, "\n") : NULL, &module))
			continue;
		if (*n == room) {
			room = room ? room * 2 : 1 << 17;
			r = reallocarray(items, room, sizeof(*r));
			if (!r)
				goto no_memory;
			items = r;
		}
		r = &items[*n];
		r->addr = strtoull(addr, &end, 16);
		if (end == addr || *end)
			continue;
		any = true;
		visible |= r->addr > 4096;
		note_section(k, name, r->addr);
		/* data ends no function, and there are many of it */
		if (!strchr("tTwW", *type))
			continue;
		r->name = kx_arena_copy(&k->arena, name, strlen(name));
		if (module && (!previous || strcmp(previous, module)))
			previous = kx_arena_copy(&k->arena, module, strlen(module));
		if (!r->name || (module && !previous))
			goto no_memory;
		r->module = module ? previous : NULL;
		r->is_local = *type == 't';
		r->is_function = is_function(*type, name);
		(*n)++;
	}
	free(line);
	*out = items;
	if (visible)
		return 0;
	free(items);
	*out = NULL;
	if (any)
		return kx_err_set(err, -EPERM,
				  "the kernel hides the addresses of its functions from this user; run kxray "
				  "as root (CAP_SYSLOG), and with /proc/sys/kernel/kptr_restrict at most 1");
	return kx_err_set(err, -ENOENT,
			  "/proc/kallsyms names no function: kernel functions can be traced only in a kernel "
			  "built with CONFIG_KALLSYMS");
no_memory:
	free(line);
	free(items);
	*out = NULL;
	return kx_err_set(err, -ENOMEM, "no memory for the kernel's symbols");
}

static int join(struct kernel *k, const struct raw *raw, size_t n, struct kx_symbols *out)
{
	size_t i, j, naliases = 0;

	out->items = calloc(n + 1, sizeof(*out->items));
	k->modules = calloc(n + 1, sizeof(*k->modules));
	k->aliases = calloc(2 * n + 1, sizeof(*k->aliases));
	k->names = calloc(n + 1, sizeof(*k->names));
	if (!out->items || !k->modules || !k->aliases || !k->names)
		return -ENOMEM;
	for (i = 0; i < n; i = j) {
		struct kx_symbol *sym = &out->items[out->count];
		const char **list = k->aliases + naliases;
		size_t nlist = 0;

		for (j = i; j < n && raw[j].addr == raw[i].addr; j++) {
			if (!raw[j].is_function)
				continue;
			k->names[k->nnames++] = raw[j].name;
			if (j > i)
				list[nlist++] = raw[j].name;
		}
		if (!raw[i].is_function)
			continue;
		sym->name = sym->pretty = raw[i].name;
		sym->addr = raw[i].addr;
		sym->size = j < n && raw[j].addr - sym->addr < MAX_SIZE ? raw[j].addr - sym->addr :
									  MAX_SIZE;
		if (nlist) {
			sym->aliases = list;
			naliases += nlist + 1;
		}
		k->modules[out->count++] = raw[i].module;
	}
	qsort(k->names, k->nnames, sizeof(*k->names), compare_names);
	return 0;
}

static bool is_named(const struct kx_symbol *sym, const char *const *names, size_t n)
{
	if (bsearch(&sym->name, names, n, sizeof(*names), compare_names))
		return true;
	for (const char **alias = sym->aliases; alias && *alias; alias++)
		if (bsearch(alias, names, n, sizeof(*names), compare_names))
			return true;
	return false;
}

/* Lines "NAME" or "NAME [MODULE]". */
static int read_traceable(FILE *f, struct kernel *k, const struct kx_symbols *syms)
{
	struct kx_arena *arena = NULL;
	const char **names = NULL;
	size_t n = 0, room = 0, size = 0;
	char *line = NULL;
	int code = 0;

	while (!code && getline(&line, &size, f) > 0) {
		line[strcspn(line, " \t\n")] = 0;
		if (n == room) {
			const char **grown;

			room = room ? room * 2 : 1 << 16;
			grown = reallocarray(names, room, sizeof(*names));
			if (!grown) {
				code = -ENOMEM;
				break;
			}
			names = grown;
		}
		names[n] = kx_arena_copy(&arena, line, strlen(line));
		code = names[n] ? 0 : -ENOMEM;
		n++;
	}
	free(line);
	/* an empty list is that of a kernel without the function tracer: it says nothing of kprobes */
	if (!code && n) {
		qsort(names, n, sizeof(*names), compare_names);
		k->traceable = calloc(syms->count + 1, 1);
		if (!k->traceable)
			code = -ENOMEM;
		for (size_t i = 0; i < syms->count && !code; i++)
			k->traceable[i] = is_named(&syms->items[i], names, n);
	}
	free(names);
	kx_arena_free(arena);
	return code;
}

/* Lines "0xffffffff81001000-0xffffffff81001020\tNAME". */
static int read_forbidden(FILE *f, struct kernel *k)
{
	size_t room = 0;
	char line[512];

	while (fgets(line, sizeof(line), f)) {
		struct range r;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &r.from, &r.to) != 2 || r.from >= r.to)
			continue;
		if (k->nforbidden == room) {
			struct range *grown;

			room = room ? room * 2 : 1024;
			grown = reallocarray(k->forbidden, room, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			k->forbidden = grown;
		}
		k->forbidden[k->nforbidden++] = r;
	}
	qsort(k->forbidden, k->nforbidden, sizeof(*k->forbidden), compare_ranges);
	return 0;
}

int kx_kernel_symbols_from(const struct kx_kernel_sources *from, struct kx_symbols *out,
			   struct kx_err *err)
{
	struct kernel *k = calloc(1, sizeof(*k));
	struct raw *raw = NULL;
	size_t n = 0;
	int code;

	memset(out, 0, sizeof(*out));
	if (!k)
		return kx_err_set(err, -ENOMEM, "no memory for the kernel's symbols");
	out->storage = k;
	out->release = release;
	out->source = "/proc/kallsyms";
	code = read_kallsyms(from->kallsyms, k, &raw, &n, err);
	if (code) {
		kx_symbols_free(out);
		return code;
	}
	qsort(raw, n, sizeof(*raw), compare_raw);
	code = join(k, raw, n, out);
	if (!code && from->traceable)
		code = read_traceable(from->traceable, k, out);
	if (!code && from->forbidden)
		code = read_forbidden(from->forbidden, k);
	free(raw);
	if (!code)
		return 0;
	kx_symbols_free(out);
	return kx_err_set(err, code, "no memory for the kernel's symbols");
}

int kx_kernel_symbols(struct kx_symbols *out, struct kx_err *err)
{
	struct kx_kernel_sources from = { .kallsyms = fopen("/proc/kallsyms", "re") };
	int code;

	if (!from.kallsyms)
		return kx_err_set(err, -errno,
				  "/proc/kallsyms, the list of kernel functions, cannot be read: %s",
				  strerror(errno));
	from.traceable = kx_kernel_fs_open("tracefs", "available_filter_functions");
	from.forbidden = kx_kernel_fs_open("debugfs", "kprobes/blacklist");
	code = kx_kernel_symbols_from(&from, out, err);
	fclose(from.kallsyms);
	if (from.traceable)
		fclose(from.traceable);
	if (from.forbidden)
		fclose(from.forbidden);
	return code;
}

static bool is_forbidden(const struct kernel *k, uint64_t addr)
{
	size_t lo = 0, hi = k->nforbidden;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (k->forbidden[mid].from <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < k->forbidden[lo - 1].to;
}

bool kx_kernel_refused(const struct kx_symbols *syms, const struct kx_symbol *sym, char *reason,
		       size_t size)
{
	const struct kernel *k = syms->storage;
	const char *why = NULL;

	for (size_t i = 0; i < SECTION_COUNT && !why; i++)
		if (sym->addr >= k->sections[i].from && sym->addr < k->sections[i].to)
			why = sections[i].reason;
	if (!why)
		why = kx_kernel_denied(sym->name);
	for (const char **alias = sym->aliases; alias && *alias && !why; alias++)
		why = kx_kernel_denied(*alias);
	if (!why && is_forbidden(k, sym->addr))
		why = "the kernel's own list forbids probes on it";
	if (!why && k->traceable && !k->traceable[sym - syms->items])
		why = "the kernel keeps its function tracer out of it (notrace)";
	if (why)
		snprintf(reason, size, "%s", why);
	return why;
}

const char *kx_kernel_module(const struct kx_symbols *syms, const struct kx_symbol *sym)
{
	const struct kernel *k = syms->storage;

	return k->modules[sym - syms->items];
}

bool kx_kernel_ambiguous(const struct kx_symbols *syms, const char *name)
{
	const struct kernel *k = syms->storage;
	const char **found = bsearch(&name, k->names, k->nnames, sizeof(*k->names),
				     compare_names);

	if (!found)
		return false;
	return (found > k->names && !strcmp(found[-1], name)) ||
	       (found + 1 < k->names + k->nnames && !strcmp(found[1], name));
}

static int kernel_symbols(struct kx_select_module *m, pid_t pid, struct kx_err *err)
{
	(void)pid;
	return kx_kernel_symbols(&m->syms, err);
}

static int kernel_plan(const struct kx_select_module *m, const struct kx_symbol *sym,
		       const struct kx_plan_options *options, struct kx_plan *plan,
		       struct kx_err *why)
{
	(void)options;
	if (kx_kernel_refused(&m->syms, sym, why->text, sizeof(why->text)))
		return -EOPNOTSUPP;
	kx_provider_plan_kernel(sym, true, plan);
	return 0;
}

const struct kx_provider kx_provider_kernel = {
	.space = KX_PATTERN_KERNEL,
	.name = "kernel",
	.probe = KX_PROBE_KERNEL,
	.symbols = kernel_symbols,
	.plan = kernel_plan,
};
