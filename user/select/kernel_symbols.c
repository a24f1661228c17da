// SPDX-License-Identifier: BSD-2-Clause
#include "select/kernel_symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/string_set.h"
#include "select/kernel_deny.h"
#include "select/kernel_lists.h"
#include "select/provider.h"
#include "select/select.h"
#include "binary/symbol_sources.h"

/* The assumed size of a function if the next symbol is farther away or there is none. */
#define MAX_SIZE (1u << 16)

struct raw {
	const char *name;
	const char *module; /* NULL: the kernel itself */
	uint64_t addr;
	bool is_function, is_local;
};

/* Parts of the kernel's code that are marked by symbols of its linker script. */
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
	{ "__entry_text_start", "__entry_text_end", "it is part of the kernel's entry code" },
	{ "__kprobes_text_start", "__kprobes_text_end",
	  "it is on the kernel's probe path" },
	{ "_sinittext", "_einittext", "it only ran during boot, and its code has been freed" },
};

struct kernel {
	struct kx_arena *arena;
	const char **aliases;
	const char **modules; /* by symbol */
	struct kx_string_set names; /* of all functions */
	struct kx_kernel_range sections[SECTION_COUNT];
	struct kx_kernel_lists lists;
};

static void release(void *storage)
{
	struct kernel *k = storage;

	kx_arena_free(k->arena);
	free(k->aliases);
	free(k->modules);
	kx_string_set_free(&k->names);
	kx_kernel_lists_free(&k->lists);
	free(k);
}

static bool has_prefix(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Markers, padding and .cold parts are not functions, but end the function before them. */
static bool is_function(char type, const char *name)
{
	if (type != 't' && type != 'T' && type != 'W')
		return false;
	if (strstr(name, ".cold") || name[0] == '.')
		return false;
	if (name[0] != '_') /* all names below begin so */
		return true;
	if (has_prefix(name, "__pfx_") || has_prefix(name, "__cfi_") ||
	    has_prefix(name, "__SCT__") || has_prefix(name, "__SCK__"))
		return false;
	for (size_t i = 0; i < SECTION_COUNT; i++)
		if (!strcmp(name, sections[i].from) || !strcmp(name, sections[i].to))
			return false;
	return strcmp(name, "_text") && strcmp(name, "_stext") && strcmp(name, "_etext");
}

static void note_section(struct kernel *k, const char *name, uint64_t addr)
{
	if (name[0] != '_') /* all names below begin so; kallsyms has a hundred thousand lines */
		return;
	for (size_t i = 0; i < SECTION_COUNT; i++) {
		if (!strcmp(name, sections[i].from))
			k->sections[i].from = addr;
		if (!strcmp(name, sections[i].to))
			k->sections[i].to = addr;
	}
}

/* By address; at one address the preferred name first. */
static int compare_raw(const void *pa, const void *pb)
{
	const struct raw *a = pa, *b = pb;
	int d;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	d = b->is_function - a->is_function;
	if (!d) /* prefer the name for 64-bit programs of a system call */
		d = has_prefix(a->name, "__ia32_") - has_prefix(b->name, "__ia32_");
	if (!d)
		d = a->is_local - b->is_local;
	if (!d)
		d = (a->name[0] == '_') - (b->name[0] == '_');
	if (!d)
		d = (int)strlen(a->name) - (int)strlen(b->name);
	return d ? d : strcmp(a->name, b->name);
}

/* Sorts by compare_raw. kallsyms has the kernel's own symbols, nearly all, in order of their addresses. */
static void sort_raw(struct raw *items, size_t n)
{
	size_t i, j;

	for (i = 1; i < n && items[i - 1].addr <= items[i].addr; i++)
		;
	if (i < n) {
		qsort(items, n, sizeof(*items), compare_raw);
		return;
	}
	for (i = 0; i < n; i = j) {
		for (j = i + 1; j < n && items[j].addr == items[i].addr; j++)
			;
		if (j > i + 1)
			qsort(&items[i], j - i, sizeof(*items), compare_raw);
	}
}

/* "[nf_tables]" without its brackets; false for BPF programs and trampolines, listed like modules. */
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

/* State while /proc/kallsyms is read. */
struct reading {
	struct kernel *k;
	struct raw *items;
	size_t count, room;
	const char *module; /* of the last symbol; symbols of one module are adjacent */
	bool any;           /* a symbol has been read */
	bool visible;       /* a symbol with its address has been read */
};

/* Lower-case hexadecimal digits; *@end is behind them. */
static uint64_t read_address(char *text, char **end)
{
	uint64_t addr = 0;

	for (;; text++) {
		if (*text >= '0' && *text <= '9')
			addr = addr << 4 | (uint64_t)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			addr = addr << 4 | (uint64_t)(*text - 'a' + 10);
		else
			break;
	}
	*end = text;
	return addr;
}

/* One line: "ffffffff81000000 T name" and, for a module's, "\t[module]". Errors: -ENOMEM. */
static int read_line(struct reading *in, char *line)
{
	char *rest, *type, *name, *end;
	uint64_t addr = read_address(line, &end);
	const char *module;
	struct raw *r;

	if (end == line || *end != ' ' || end[1] <= ' ' || end[2] != ' ')
		return 0;
	type = end + 1;
	name = end + 3;
	for (rest = name; *rest > ' '; rest++)
		;
	if (rest == name || !strchr("tTwWaAdDrRbB", *type))
		return 0;
	if (*rest)
		*rest++ = 0;
	if (!module_name(*rest ? strsep(&rest, "\n") : NULL, &module))
		return 0;
	if (in->count == in->room) {
		in->room = in->room ? in->room * 2 : 1 << 17;
		r = reallocarray(in->items, in->room, sizeof(*r));
		if (!r)
			return -ENOMEM;
		in->items = r;
	}
	r = &in->items[in->count];
	r->addr = addr;
	in->any = true;
	in->visible |= addr > 4096;
	note_section(in->k, name, addr);
	/* Data symbols are many and do not end a function. */
	if (!strchr("tTwW", *type))
		return 0;
	r->name = kx_arena_copy(&in->k->arena, name, strlen(name));
	if (module && (!in->module || strcmp(in->module, module)))
		in->module = kx_arena_copy(&in->k->arena, module, strlen(module));
	if (!r->name || (module && !in->module))
		return -ENOMEM;
	r->module = module ? in->module : NULL;
	r->is_local = *type == 't';
	r->is_function = is_function(*type, name);
	in->count++;
	return 0;
}

/* Free in->items, after an error too. */
static int read_kallsyms(FILE *f, struct reading *in, struct kx_err *err)
{
	char *line = NULL;
	size_t size = 0;
	int code = 0;

	while (!code && getline(&line, &size, f) > 0)
		code = read_line(in, line);
	free(line);
	if (code)
		return kx_err_set(err, code, "no memory for the kernel's symbols");
	if (in->visible)
		return 0;
	if (in->any)
		return kx_err_set(err, -EPERM,
				  "the kernel hides the addresses of its functions from this user; run kxray "
				  "as root (CAP_SYSLOG), and with /proc/sys/kernel/kptr_restrict at most 1");
	return kx_err_set(err, -ENOENT,
			  "/proc/kallsyms lists no function: kernel functions can be traced only in a kernel "
			  "built with CONFIG_KALLSYMS");
}

static int join(struct kernel *k, const struct raw *raw, size_t n, struct kx_symbols *out)
{
	size_t i, j, naliases = 0;

	out->items = calloc(n + 1, sizeof(*out->items));
	k->modules = calloc(n + 1, sizeof(*k->modules));
	k->aliases = calloc(2 * n + 1, sizeof(*k->aliases));
	if (!out->items || !k->modules || !k->aliases)
		return -ENOMEM;
	for (i = 0; i < n; i = j) {
		struct kx_symbol *sym = &out->items[out->count];
		const char **list = k->aliases + naliases;
		size_t nlist = 0;

		for (j = i; j < n && raw[j].addr == raw[i].addr; j++) {
			if (!raw[j].is_function)
				continue;
			if (kx_string_set_add(&k->names, raw[j].name))
				return -ENOMEM;
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
	return 0;
}

int kx_kernel_symbols_from(const struct kx_kernel_sources *from, struct kx_symbols *out,
			   struct kx_err *err)
{
	struct kernel *k = calloc(1, sizeof(*k));
	struct reading in = { .k = k };
	int code;

	memset(out, 0, sizeof(*out));
	if (!k)
		return kx_err_set(err, -ENOMEM, "no memory for the kernel's symbols");
	out->storage = k;
	out->release = release;
	out->source = "/proc/kallsyms";
	code = read_kallsyms(from->kallsyms, &in, err);
	if (code) {
		free(in.items);
		kx_symbols_free(out);
		return code;
	}
	sort_raw(in.items, in.count);
	code = join(k, in.items, in.count, out);
	if (!code)
		code = kx_kernel_lists_read(&k->lists, from->traceable, from->forbidden);
	free(in.items);
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
	from.traceable = kx_kernel_lists_open("tracefs", "available_filter_functions");
	from.forbidden = kx_kernel_lists_open("debugfs", "kprobes/blacklist");
	code = kx_kernel_symbols_from(&from, out, err);
	fclose(from.kallsyms);
	if (from.traceable)
		fclose(from.traceable);
	if (from.forbidden)
		fclose(from.forbidden);
	return code;
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
	if (!why)
		why = kx_kernel_lists_refuse(&k->lists, sym);
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

	return kx_string_set_times(&k->names, name) > 1;
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
