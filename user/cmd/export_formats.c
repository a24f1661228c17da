// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/export_formats.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/near_names.h"

#define MAX_FORMATS 32

int kx_format_find(const char *name, const struct kx_exporter **out, struct kx_err *err)
{
	struct kx_near_names near = { .wanted = name };

	for (size_t i = 0; kx_exporters[i]; i++) {
		if (!strcmp(kx_exporters[i]->name, name)) {
			*out = kx_exporters[i];
			return 0;
		}
		kx_near_names_look(&near, kx_exporters[i]->name);
	}
	if (strchr(name, '.') && !access(name, F_OK))
		return kx_err_set(err, -EINVAL, "'%s' is a file, and -f takes a format: write -f FORMAT before the file; "
						"'kxray export --list' names the formats", name);
	if (*near.text)
		return kx_err_set(err, -EINVAL, "there is no format '%s'; is it %s?", name, near.text);
	return kx_err_set(err, -EINVAL,
			  "there is no format '%s'; 'kxray export --list' names them", name);
}

/* Options */

static int set_option(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	struct kx_format_options *f = field;
	size_t i = 0;

	(void)err;
	while (i < f->n && strcmp(f->given[i].name, o->name) != 0)
		i++;
	f->given[i].name = o->name;
	f->given[i].value = value ? value : "";
	f->n += i == f->n;
	return 0;
}

const struct kx_option_group *kx_format_groups(size_t offset)
{
	static struct kx_option_group groups[MAX_FORMATS + 1];
	static struct kx_option rows[KX_FORMAT_OPTIONS_MAX + MAX_FORMATS];
	static char headings[MAX_FORMATS][48];
	size_t ngroups = 0, n = 0;

	if (groups[0].options)
		return groups;
	for (size_t i = 0; kx_exporters[i] && i < MAX_FORMATS; i++) {
		const struct kx_export_option *o = kx_exporters[i]->options;

		if (!o || !o->name)
			continue;
		snprintf(headings[i], sizeof(headings[i]), "Options of %s", kx_exporters[i]->name);
		groups[ngroups++] = (struct kx_option_group){ headings[i], &rows[n], offset };
		for (; o->name && n < KX_FORMAT_OPTIONS_MAX; o++)
			rows[n++] = (struct kx_option){ .name = o->name, .kind = KX_OPTION_CUSTOM,
							.argument = o->argument, .set = set_option,
							.help = o->help };
		n++; /* the group ends */
	}
	return groups;
}

const char *kx_format_option(const struct kx_format_options *o, const char *name)
{
	for (size_t i = 0; i < o->n; i++)
		if (!strcmp(o->given[i].name, name))
			return o->given[i].value;
	return NULL;
}

int kx_format_check(const struct kx_format_options *o, const struct kx_exporter *format,
		    struct kx_err *err)
{
	for (size_t i = 0; i < o->n; i++) {
		const struct kx_export_option *own = format->options;

		while (own && own->name && strcmp(own->name, o->given[i].name) != 0)
			own++;
		if (!own || !own->name)
			return kx_err_set(err, -EINVAL, "format %s has no option '--%s'",
					  format->name, o->given[i].name);
	}
	return 0;
}

/* --list */

static json_t *options_json(const struct kx_exporter *format)
{
	json_t *list = json_array();

	for (const struct kx_export_option *o = format->options; o && o->name; o++)
		json_array_append_new(list, json_pack("{s:s,s:s?,s:s}", "name", o->name, "argument",
						      o->argument, "help", o->help));
	return list;
}

static int print_json(FILE *to, struct kx_err *err)
{
	json_t *list = json_array();
	int r = 0;

	for (size_t i = 0; kx_exporters[i] && !r; i++) {
		const struct kx_exporter *e = kx_exporters[i];

		r = json_array_append_new(list, json_pack("{s:i,s:s,s:s,s:s,s:o}", "schema",
							  KX_JSON_SCHEMA, "name", e->name, "suffix",
							  e->suffix, "summary", e->summary,
							  "options", options_json(e)));
	}
	if (r)
		r = kx_err_set(err, -ENOMEM, "out of memory");
	else
		json_dumpf(list, to, JSON_INDENT(1)); /* write errors stay in @to */
	fputc('\n', to);
	json_decref(list);
	return r;
}

int kx_formats_print(bool json, FILE *to, struct kx_err *err)
{
	if (json)
		return print_json(to, err);
	for (size_t i = 0; kx_exporters[i]; i++)
		fprintf(to, "%-11s %-17s %s\n", kx_exporters[i]->name, kx_exporters[i]->suffix,
			kx_exporters[i]->summary);
	return 0;
}
