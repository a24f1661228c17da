// SPDX-License-Identifier: BSD-2-Clause
#include "binary/dwarf_values.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/dwarf_complete.h"
#include "binary/dwarf_types.h"
#include "binary/source_lines_internal.h"
#include "bpf/wire.h"

struct kx_dwarf_values {
	struct kx_lines *lines;
	struct kx_dwarf_types types;
	struct kx_type_source source;
	struct kx_dwarf_complete complete;
};

static bool find_complete(void *ctx, Dwarf_Die *declaration, Dwarf_Die *out)
{
	struct kx_dwarf_values *v = ctx;

	return kx_dwarf_complete_find(&v->complete, v->lines, declaration, out);
}

int kx_dwarf_values_open(int fd, const char *path, struct kx_dwarf_values **out, struct kx_err *err)
{
	struct kx_dwarf_values *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return kx_err_set(err, -ENOMEM, "%s: out of memory", path);
	r = kx_lines_open_fd(fd, path, &v->lines, err);
	if (r) {
		free(v);
		return r;
	}
	v->types = (struct kx_dwarf_types){ find_complete, v };
	kx_dwarf_types_init(&v->types, &v->source);
	*out = v;
	return 0;
}

void kx_dwarf_values_close(struct kx_dwarf_values *v)
{
	if (!v)
		return;
	kx_lines_close(v->lines);
	kx_dwarf_complete_free(&v->complete);
	free(v);
}

const struct kx_type_source *kx_dwarf_values_types(struct kx_dwarf_values *v)
{
	return &v->source;
}

static uint8_t register_of(unsigned dwarf)
{
	/* System V ABI of AMD64, figure 3.36 */
	static const uint8_t map[16] = { KX_FROM_AX,  KX_FROM_DX,  KX_FROM_CX,	KX_FROM_BX,
					 KX_FROM_SI,  KX_FROM_DI,  KX_FROM_BP,	KX_FROM_SP,
					 KX_FROM_R8,  KX_FROM_R9,  KX_FROM_R10, KX_FROM_R11,
					 KX_FROM_R12, KX_FROM_R13, KX_FROM_R14, KX_FROM_R15 };

	return dwarf < 16 ? map[dwarf] : KX_AT_ABI;
}

/*
 * A function that is visible outside keeps to the ABI. The compiler may change how a local one is
 * called: it leaves out parameters, or passes them elsewhere; then what DWARF says of the first
 * instruction counts.
 */
static void locate(struct kx_type_parameter *p, Dwarf_Die *die, Dwarf_Addr entry, bool inside)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	p->unknown = "optimised out";
	if (!dwarf_attr(die, DW_AT_location, &attr) ||
	    dwarf_getlocation_addr(&attr, entry, &ops, &n, 1) != 1 || !n)
		return;
	if (n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg15) {
		p->from = register_of(ops[0].atom - DW_OP_reg0);
		p->unknown = NULL;
	} else if (n == 1 && ops[0].atom == DW_OP_fbreg && !inside) {
		p->unknown = NULL; /* its place once the function has stored it, or on the stack:
				      the ABI's at the entry */
	} else {
		p->unknown =
			"at a place that the debug information describes by more than a register";
	}
}

static void read_language(Dwarf_Die *die, struct kx_type_function *f)
{
	Dwarf_Attribute attr;
	Dwarf_Die unit;
	const char *producer = NULL;
	int language = dwarf_diecu(die, &unit, NULL, NULL) ? dwarf_srclang(&unit) : -1;

	f->language = language == DW_LANG_Rust ? KX_LANGUAGE_RUST
		      : language == DW_LANG_Go ? KX_LANGUAGE_GO
					       : KX_LANGUAGE_C;
	if (f->language == KX_LANGUAGE_GO && dwarf_attr(&unit, DW_AT_producer, &attr))
		producer = dwarf_formstring(&attr);
	f->go_registers = producer && strstr(producer, "regabi");
}

static bool is_clone(const char *symbol)
{
	return symbol && (strstr(symbol, ".isra") || strstr(symbol, ".constprop") ||
			  strstr(symbol, ".part") || strstr(symbol, ".cold"));
}

/* Where parameters are. */
struct where {
	bool abi;	/* as the ABI says; else as DWARF says at */
	Dwarf_Addr place; /* this instruction */
	bool inside;	/* which is not the first one */
};

static void read_parameters(Dwarf_Die *die, const struct where *where, struct kx_type_function *f)
{
	Dwarf_Die child, type;

	if (dwarf_child(die, &child))
		return;
	do {
		struct kx_type_parameter *p = &f->parameters[f->n];
		Dwarf_Attribute attr;
		bool output = false;

		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		/* Go: results are formal parameters, too */
		if (dwarf_attr(&child, DW_AT_variable_parameter, &attr))
			dwarf_formflag(&attr, &output);
		if (!dwarf_attr_integrate(&child, DW_AT_type, &attr) ||
		    !dwarf_formref_die(&attr, &type))
			return; /* damaged: the places of those that follow are unknown */
		if (output && f->language == KX_LANGUAGE_GO) {
			/* of several the first one */
			if (!f->has_result)
				f->result.die = type;
			f->has_result = true;
			continue;
		}
		*p = (struct kx_type_parameter){ .name = dwarf_diename(&child),
						 .type.die = type,
						 .from = KX_AT_ABI };
		if (where->inside || f->language != KX_LANGUAGE_GO)
			locate(p, &child, where->place, where->inside);
		/* what the compiler has changed at link time is still external in DWARF; its places are right */
		if (where->abi)
			p->unknown = NULL;
		f->n++;
	} while (f->n < KX_PARAMETERS && dwarf_siblingof(&child, &child) == 0);
}

static bool is_assembly(Dwarf_Die *die)
{
	Dwarf_Die unit;

	return dwarf_diecu(die, &unit, NULL, NULL) && dwarf_srclang(&unit) == DW_LANG_Mips_Assembler;
}

static int read_function(struct kx_dwarf_values *v, Dwarf_Addr at, const char *symbol, const Dwarf_Addr *place,
			 struct kx_type_function *f, struct kx_err *err)
{
	struct kx_source_unit *u = kx_source_unit_functions(v->lines, at);
	const struct kx_source_range *range = u ? kx_source_range_of(&u->functions, at) : NULL;
	struct where where = { .place = place ? *place : at, .inside = place };
	Dwarf_Attribute attr;
	Dwarf_Die die;
	bool external = false;

	memset(f, 0, sizeof(*f));
	if (range)
		die = u->dies[range->index];
	if (!range || is_assembly(&die))
		return kx_err_set(err, -ENOENT,
				  "the debug information does not describe %s, so its parameters are unknown",
				  symbol ? symbol : "the function");
	f->name = dwarf_diename(&die);
	read_language(&die, f);
	if (dwarf_attr_integrate(&die, DW_AT_external, &attr))
		dwarf_formflag(&attr, &external);
	f->has_result = dwarf_attr_integrate(&die, DW_AT_type, &attr) &&
			dwarf_formref_die(&attr, &f->result.die);
	where.abi = !where.inside && external && !is_clone(symbol);
	read_parameters(&die, &where, f);
	return 0;
}

int kx_dwarf_values_function(struct kx_dwarf_values *v, uint64_t addr, const char *symbol,
			     struct kx_type_function *f, struct kx_err *err)
{
	return read_function(v, addr + (uint64_t)v->lines->shift, symbol, NULL, f, err);
}

int kx_dwarf_values_function_at(struct kx_dwarf_values *v, uint64_t addr, uint64_t place,
				struct kx_type_function *f, struct kx_err *err)
{
	const Dwarf_Addr shift = (uint64_t)v->lines->shift, at = place + shift;

	return read_function(v, addr + shift, NULL, &at, f, err);
}

int kx_dwarf_values_resolve(struct kx_dwarf_values *v, uint64_t addr, const char *symbol,
			    const struct kx_value_request *request, struct kx_value_found *out,
			    struct kx_err *err)
{
	struct kx_type_function f;
	int r = kx_dwarf_values_function(v, addr, symbol, &f, err);

	memset(out, 0, sizeof(*out));
	return r ? r : kx_value_path_resolve(&v->source, &f, request, out, err);
}
