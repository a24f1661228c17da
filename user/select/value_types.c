// SPDX-License-Identifier: BSD-2-Clause
#include "select/value_types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/pattern.h"
#include "binary/btf_values.h"
#include "binary/dwarf_values.h"
#include "select/kernel_symbols.h"
#include "select/prototypes.h"
#include "select/resolved_values.h"

/* Debug information of one binary, or of the kernel and one of its modules; neither: there is none, see why. */
struct module {
	const struct kx_select_module *of;
	const char *kernel_module; /* NULL: the kernel itself */
	struct kx_dwarf_values *dwarf;
	struct kx_btf_values *btf;
	struct kx_err why;
};

struct kx_value_types {
	const struct kx_selection *sel;
	struct module *modules;
	size_t n, room;
	/* The function of the last question: most questions are about that again. */
	uint32_t id;
	struct module *module;
	bool described; /* by the module's debug information */
	struct kx_err why;
	struct kx_type_function function;
	const struct kx_type_source *source;
	bool has_prototype;
	struct kx_prototype prototype;
};

struct kx_value_types *kx_value_types_new(const struct kx_selection *sel)
{
	struct kx_value_types *t = calloc(1, sizeof(*t));

	if (t)
		t->sel = sel;
	return t;
}

void kx_value_types_free(struct kx_value_types *t)
{
	for (size_t i = 0; t && i < t->n; i++) {
		kx_dwarf_values_close(t->modules[i].dwarf);
		kx_btf_values_close(t->modules[i].btf);
	}
	if (t)
		free(t->modules);
	free(t);
}

static bool same_module(const struct module *m, const struct kx_select_module *of, const char *kernel_module)
{
	return m->of == of && (m->kernel_module == kernel_module ||
			       (m->kernel_module && kernel_module && !strcmp(m->kernel_module, kernel_module)));
}

/* Opens what @f's module has; NULL: no memory. */
static struct module *module_of(struct kx_value_types *t, const struct kx_function *f)
{
	const struct kx_select_module *of = &t->sel->modules[f->module];
	const char *kernel_module = of->provider->probe == KX_PROBE_KERNEL ? kx_kernel_module(&of->syms, f->sym) : NULL;
	struct module *m;

	for (size_t i = 0; i < t->n; i++)
		if (same_module(&t->modules[i], of, kernel_module))
			return &t->modules[i];
	if (KX_ARRAY_RESERVE(t->modules, t->room, t->n))
		return NULL;
	m = &t->modules[t->n++];
	*m = (struct module){ .of = of, .kernel_module = kernel_module };
	if (of->provider->probe == KX_PROBE_KERNEL)
		kx_btf_values_open(kernel_module, &m->btf, &m->why);
	else if (of->fd >= 0)
		kx_dwarf_values_open(of->fd, of->module->path, &m->dwarf, &m->why);
	return m;
}

static const struct kx_type_source *source_of(const struct module *m)
{
	return m->dwarf ? kx_dwarf_values_types(m->dwarf) : m->btf ? kx_btf_values_types(m->btf) : NULL;
}

/* Files whose functions the prototypes are about; an allocator has the names of libc's. */
static bool is_known_library(const struct kx_module *m, const char *name)
{
	static const char *const files[] = { "libc.so*", "libc-*.so", "ld-musl-*", "libc.musl-*", "libpthread.so*",
					     "libpthread-*.so", "libssl.so*" };
	static const char *const allocators[] = { "malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc" };

	if (kx_globs_match(files, sizeof(files) / sizeof(files[0]), m->name))
		return true;
	for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]) && !m->is_main; i++)
		if (!strcmp(allocators[i], name))
			return true;
	return false;
}

static bool library_prototype(const struct kx_module *m, const char *symbol, struct kx_prototype *out)
{
	char name[64];
	const size_t n = strcspn(symbol, "@");

	if (n >= sizeof(name))
		return false;
	memcpy(name, symbol, n);
	name[n] = 0;
	return is_known_library(m, name) && kx_prototype_of_library(name, out);
}

static bool find_prototype(const struct kx_select_module *m, const struct kx_symbol *sym, struct kx_prototype *out)
{
	if (m->provider->probe == KX_PROBE_SYSCALL)
		return kx_prototype_of_syscall(sym->name, out);
	if (m->provider->probe != KX_PROBE_UPROBE)
		return false;
	if (library_prototype(m->module, sym->name, out))
		return true;
	for (const char **alias = sym->aliases; alias && *alias; alias++)
		if (library_prototype(m->module, *alias, out))
			return true;
	return false;
}

static int describe(struct kx_value_types *t, const struct kx_function *f, struct kx_err *err)
{
	const struct kx_select_module *of = &t->sel->modules[f->module];
	struct module *m = module_of(t, f);
	int code = -ENODATA;

	if (!m)
		return kx_err_set(err, -ENOMEM, "no memory for the types of %s", f->sym->pretty);
	t->id = f->id;
	t->module = m;
	t->why = m->why;
	t->source = source_of(m);
	if (m->dwarf)
		code = kx_dwarf_values_function(m->dwarf, f->sym->addr, f->sym->name, &t->function, &t->why);
	else if (m->btf)
		code = kx_btf_values_function(m->btf, f->sym->name, &t->function, &t->why);
	t->described = !code;
	t->has_prototype = find_prototype(of, f->sym, &t->prototype);
	return 0;
}

static int ask_about(struct kx_value_types *t, const struct kx_function *f, struct kx_err *err)
{
	return t->id == f->id ? 0 : describe(t, f, err);
}

/* Whether the register has at the entry probe what it had at the first instruction. */
static bool is_unchanged(const struct kx_function *f, uint8_t from)
{
	return f->plan.entry.addr == f->sym->addr || f->plan.arguments_kept || from == KX_FROM_SP || from < f->plan.args;
}

/* Finds a parameter whose register has changed by then where DWARF says that it is now; else it is unknown. */
static int find_later(struct kx_value_types *t, const struct kx_function *f, const struct kx_value_request *q,
		      struct kx_value_found *out)
{
	static const char *const why = "its register may have changed where the entry is recorded";
	struct kx_type_function later;
	struct kx_value_found found = { 0 };

	if (t->module->dwarf && t->described &&
	    !kx_dwarf_values_function_at(t->module->dwarf, f->sym->addr, f->plan.entry.addr, &later, NULL) &&
	    !kx_value_path_resolve(t->source, &later, q, &found, NULL) && !found.value.unknown) {
		kx_value_free(&out->value);
		*out = found;
		return 0;
	}
	kx_value_free(&found.value);
	out->value.unknown = strdup(why);
	out->value.fetch = (struct kx_fetch){ 0 };
	out->counted = false;
	return out->value.unknown ? 0 : -ENOMEM;
}

/* What is right of the ABI is not so of where it is recorded. */
static int check_place(struct kx_value_types *t, const struct kx_function *f, const struct kx_value_request *q,
		       struct kx_value_found *out, struct kx_err *err)
{
	const bool kernel = t->sel->modules[f->module].provider->probe == KX_PROBE_KERNEL;
	int code = 0;

	if (out->value.unknown)
		return 0;
	if (!q->exit && (!is_unchanged(f, out->value.fetch.from) || (out->counted && !is_unchanged(f, out->length.from)))) {
		code = find_later(t, f, q, out);
	} else if (q->exit && kernel && out->value.fetch.from != KX_FROM_AX) {
		out->value.unknown = strdup("in a register that probes of the kernel do not see at exits");
		code = out->value.unknown ? 0 : -ENOMEM;
	}
	return code ? kx_err_set(err, code, "no memory for values") : 0;
}

/* Why nothing is known of the function. */
static int nothing_known(const struct kx_value_types *t, const struct kx_function *f, const struct kx_value_item *item,
			 struct kx_err *err)
{
	const struct kx_select_module *m = &t->sel->modules[f->module];

	if (m->provider->probe == KX_PROBE_SYSCALL)
		return kx_err_set(err, -ENOENT, "the parameters of the system call %s are not known to kxray; name them arg1 to arg6, with a type as in arg1:i32",
				  f->sym->name);
	return kx_err_set(err, -ENOENT, "what %s is, is not known: %.700s; or name registers, arg1 to arg6, with a type as in arg1:i32",
			  item->label, t->why.text);
}

static int find(struct kx_value_types *t, const struct kx_value_request *q, struct kx_value_found *out, struct kx_err *err)
{
	struct kx_err other = { 0 };
	int code = t->described ? kx_value_path_resolve(t->source, &t->function, q, out, err) : -ENOENT;

	if (code != -ENOENT || !t->has_prototype)
		return code;
	/* debug information has other names than the manual */
	code = kx_prototype_resolve(&t->prototype, q, out, &other);
	if (code && !t->described)
		return kx_err_set(err, code, "%s", other.text);
	return code ? -ENOENT : 0;
}

int kx_value_types_resolve(struct kx_value_types *t, const struct kx_function *f, const struct kx_value_item *item,
			   struct kx_value_found *out, struct kx_err *err)
{
	const struct kx_value_request q = {
		.label = item->label,
		.exit = item->exit,
		.typed = item->typed,
		.kind = item->kind,
		.size = item->size,
		.most = item->most,
	};
	int code = ask_about(t, f, err);

	memset(out, 0, sizeof(*out));
	if (code)
		return code;
	if (t->described || t->has_prototype)
		code = find(t, &q, out, err);
	else if (item->exit && !*item->path)
		code = kx_value_of_register(item, &(struct kx_value_place){ .args = 6 }, &out->value, err);
	else
		code = nothing_known(t, f, item, err);
	return code ? code : check_place(t, f, &q, out, err);
}

size_t kx_value_types_parameters(struct kx_value_types *t, const struct kx_function *f, const char **names, size_t room,
				 bool *result)
{
	const struct kx_type_function *known;
	size_t n = 0;

	*result = false;
	if (ask_about(t, f, NULL) || (!t->described && !t->has_prototype))
		return 0;
	known = t->described ? &t->function : &t->prototype.function;
	*result = known->has_result;
	for (size_t i = 0; i < known->n && n < room; i++)
		if (known->parameters[i].name)
			names[n++] = known->parameters[i].name;
	return n;
}
