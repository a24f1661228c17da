// SPDX-License-Identifier: BSD-2-Clause
#include "report/tree_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_format.h"
#include "report/report_head.h"

#define LEAST_NAME 26 /* columns that indentation leaves to names */
#define COUNT_WIDTH 9
#define LARGE 0.1
#define SHOWN_OUTSIDE 10
#define SHOWN_INSIDE  3
#define EXACT_WIDTH 15 /* "1234567.890 us" */
#define INDENT	   2
#define SHARE_WIDTH 9

/* The name of a node, and its function's module; "" of other nodes. */
static const char *name_of(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t node,
			   const char **module)
{
	const struct kx_stack *n = &rows->tree->stacks.nodes[node];

	*module = n->is_name ? "" : kx_trace_module(v->names, n->func);
	return n->is_name ? rows->tree->stacks.names[n->func] : kx_trace_name(v->names, n->func);
}

/* Text */

static int time_width(const struct kx_tree_view *v)
{
	return v->exact ? EXACT_WIDTH : KX_TIME_WIDTH(v->info->tsc_hz);
}

/* Names need room on a narrow screen, and exact times leave them less. */
static bool has_share(const struct kx_tree_view *v)
{
	return !v->screen.columns || v->screen.columns >= (v->exact ? 100 : 60);
}

static bool has_self(const struct kx_tree_view *v)
{
	return v->shape != KX_TREE_CALLERS && (!v->screen.columns || v->screen.columns >= (v->exact ? 64 : 50));
}

/* What is before the names. */
static size_t columns_width(const struct kx_tree_view *v)
{
	return (size_t)(COUNT_WIDTH + time_width(v) * (has_self(v) ? 2 : 1) +
			(has_share(v) ? SHARE_WIDTH : 0) + 2);
}

/* @ns is ticks if the trace has no frequency. */
static void put_time(const struct kx_tree_view *v, uint64_t ns)
{
	char text[48];
	int n;

	if (!v->exact || !v->info->tsc_hz) {
		char plain[33];
		size_t size = kx_format_time(plain, ns, v->info->tsc_hz ? 1000000000 : 0);

		if (v->exact)
			kx_text_field(v->out, time_width(v), plain, size);
		else
			kx_put_time(v->out, ns, v->info->tsc_hz ? 1000000000 : 0);
		return;
	}
	n = snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64 " us", ns / 1000, ns % 1000);
	kx_text_field(v->out, time_width(v), text, (size_t)n);
}

void kx_tree_put_columns(const struct kx_tree_view *v)
{
	struct kx_text_out *o = v->out;

	kx_text_str(o, kx_screen_style(&v->screen, KX_STYLE_HEAD));
	kx_text_field(o, COUNT_WIDTH, "COUNT", 5);
	kx_text_field(o, time_width(v), "TOTAL", 5);
	if (has_self(v))
		kx_text_field(o, time_width(v), "SELF", 4);
	if (has_share(v))
		kx_text_field(o, SHARE_WIDTH, "SHARE", 5);
	kx_text_str(o, v->shape == KX_TREE_CALLERS ? "  FUNCTION, CALLERS" :
		       v->shape == KX_TREE_CALLEES ? "  FUNCTION, CALLEES" : "  FUNCTION");
	kx_text_str(o, kx_screen_style(&v->screen, KX_STYLE_PLAIN));
	kx_text_char(o, '\n');
}

static void put_share(const struct kx_tree_view *v, double share)
{
	enum kx_style style = kx_screen_share_style(share);
	char text[32];

	if (!has_share(v))
		return;
	snprintf(text, sizeof(text), "%*.1f %%", SHARE_WIDTH - 2, share * 100);
	if (style)
		kx_put_styled(v->out, &v->screen, style, text);
	else
		kx_text_str(v->out, text);
}

/* The indentation of deep nodes is bounded, and their depth printed; returns the columns left for the name, 0: all. */
static size_t put_indent(const struct kx_tree_view *v, size_t depth)
{
	size_t columns = v->screen.columns, most = 40, left = 0;
	char text[32] = "";

	if (columns) {
		left = columns > columns_width(v) + 8 ? columns - columns_width(v) : 8;
		most = left > LEAST_NAME ? (left - LEAST_NAME) / INDENT : 0;
	}
	kx_text_str(v->out, "  ");
	if (depth > most)
		snprintf(text, sizeof(text), "[%zu] ", depth);
	depth = depth > most ? most : depth;
	for (size_t i = 0; i < depth * INDENT; i++)
		kx_text_char(v->out, ' ');
	kx_text_str(v->out, text);
	if (!columns)
		return 0;
	left -= depth * INDENT;
	return left > strlen(text) + 8 ? left - strlen(text) : 8;
}

static void put_name(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t node, size_t columns)
{
	const struct kx_tree_counts *c = &rows->tree->counts[node];
	char open[32] = "", no_exit[48] = "";
	const char *module, *name = name_of(v, rows, node, &module);
	size_t extra;

	if (c->open)
		snprintf(open, sizeof(open), " (%" PRIu32 " open)", c->open);
	if (c->no_exit)
		snprintf(no_exit, sizeof(no_exit), " (%" PRIu32 " without exit)", c->no_exit);
	extra = strlen(open) + strlen(no_exit);
	if (columns && columns < extra + 8)
		open[0] = no_exit[0] = 0;
	else if (columns)
		columns -= extra;
	if (rows->tree->stacks.nodes[node].is_name)
		kx_put_fitted(v->out, name, columns);
	else
		kx_put_function(v->out, &v->screen, name, module, columns);
	kx_text_str(v->out, open);
	kx_text_str(v->out, no_exit);
}

static void put_row(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t root, uint32_t node,
		    size_t depth)
{
	kx_put_number(v->out, COUNT_WIDTH, rows->tree->counts[node].calls);
	put_time(v, kx_tree_total_ns(rows, node));
	if (has_self(v))
		put_time(v, kx_tree_self_ns(rows, node));
	put_share(v, kx_tree_share(rows, node, root));
	put_name(v, rows, node, put_indent(v, depth));
	kx_text_char(v->out, '\n');
}

/* "3 more", from @first on */
static void put_rest(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t root, size_t n,
		     uint32_t first, uint64_t calls, uint64_t ticks, size_t depth)
{
	uint64_t begin = rows->begin[first];
	uint64_t all = rows->tree->stacks.nodes[root].value;
	char text[48];

	kx_put_number(v->out, COUNT_WIDTH, calls);
	put_time(v, kx_trace_ns(begin + ticks, rows->hz) - kx_trace_ns(begin, rows->hz));
	if (has_self(v))
		kx_text_field(v->out, time_width(v), "", 0);
	put_share(v, all ? (double)ticks / (double)all : 0);
	put_indent(v, depth);
	snprintf(text, sizeof(text), "%zu more", n);
	kx_put_styled(v->out, &v->screen, KX_STYLE_DIM, text);
	kx_text_char(v->out, '\n');
}

/* Where all parts are small, the largest are shown all the same: of a node that is large itself. */
static bool is_shown(const struct kx_tree_rows *rows, const struct kx_tree_walk *w, uint32_t root, size_t depth)
{
	uint32_t parent = w->nodes[depth], first = rows->first[parent];

	if (kx_tree_share(rows, rows->children[first], root) >= KX_TREE_FOLD)
		return false;
	if (kx_tree_share(rows, parent, root) < LARGE)
		return false;
	return w->places[depth] - first <= (depth ? SHOWN_INSIDE : SHOWN_OUTSIDE);
}

int kx_tree_put_rows(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t root,
		     struct kx_tree_shown *shown)
{
	struct kx_tree_walk w;
	int r = kx_tree_walk_init(&w, rows, root);
	uint32_t node;
	size_t depth;

	while (!r && !v->out->error && (node = kx_tree_walk_next(&w, &depth))) {
		uint64_t calls, ticks;
		size_t n;

		if (v->limit && shown->nodes >= v->limit) {
			shown->left++;
			continue;
		}
		if (kx_tree_share(rows, node, root) >= KX_TREE_FOLD || is_shown(rows, &w, root, depth)) {
			put_row(v, rows, root, node, depth);
			shown->nodes++;
			if (kx_tree_share(rows, node, root) < KX_TREE_FOLD)
				kx_tree_walk_skip(&w);
			continue;
		}
		n = kx_tree_walk_skip_rest(&w, &calls, &ticks);
		shown->folded += n;
		if (n == 1) /* its line says more */
			put_row(v, rows, root, node, depth);
		else
			put_rest(v, rows, root, n, node, calls, ticks, depth);
	}
	r = r ? r : w.error;
	kx_tree_walk_free(&w);
	return r;
}

/* JSON */

static void json_node(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t root, uint32_t node,
		      size_t depth, int64_t parent)
{
	const struct kx_tree_counts *c = &rows->tree->counts[node];
	const char *module, *name = name_of(v, rows, node, &module);
	struct kx_text_out *o = v->out;
	char text[64];

	kx_text_str(o, "{\"name\":");
	kx_text_json_string(o, name);
	kx_text_str(o, ",\"module\":");
	kx_text_json_string(o, module);
	if (!rows->tree->stacks.nodes[node].is_name)
		kx_text_json_u64(o, "id", rows->tree->stacks.nodes[node].func);
	snprintf(text, sizeof(text), parent < 0 ? ",\"parent\":null" : ",\"parent\":%" PRId64, parent);
	kx_text_str(o, text);
	kx_text_json_u64(o, "depth", depth);
	kx_text_json_u64(o, "count", c->calls);
	kx_text_json_u64(o, "open", c->open);
	kx_text_json_u64(o, "no_exit", c->no_exit);
	kx_text_json_u64(o, "total_ns", kx_tree_total_ns(rows, node));
	kx_text_json_u64(o, "self_ns", kx_tree_self_ns(rows, node));
	snprintf(text, sizeof(text), ",\"share\":%.6f}", kx_tree_share(rows, node, root));
	kx_text_str(o, text);
}

int kx_tree_put_json(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t root)
{
	int64_t *number = calloc(rows->tree->stacks.nnodes + 1, sizeof(*number)), n = 0;
	struct kx_tree_walk w;
	int r = kx_tree_walk_init(&w, rows, root);
	uint32_t node;
	size_t depth;

	if (!number)
		r = -ENOMEM;
	kx_text_str(v->out, "\"nodes\":[");
	while (!r && !v->out->error && (node = kx_tree_walk_next(&w, &depth))) {
		uint32_t parent = rows->tree->stacks.nodes[node].parent;

		if (v->limit && (size_t)n >= v->limit)
			break;
		kx_text_str(v->out, n ? ",\n" : "\n");
		number[node] = n++;
		json_node(v, rows, root, node, depth, depth ? number[parent] : -1);
	}
	kx_text_str(v->out, "\n]");
	r = r ? r : w.error;
	kx_tree_walk_free(&w);
	free(number);
	return r;
}

/* Both */

static void put_foot(const struct kx_tree_view *v, const struct kx_tree_rows *rows, const struct kx_tree_shown *shown)
{
	static const char *const shapes[] = { "tree", "callers", "callees" };
	size_t n = rows->tree->stacks.nnodes - 1;
	char first[64], left[64], folded[64];
	const char *pieces[3] = { first };
	size_t npieces = 1;

	snprintf(first, sizeof(first), "all %zu stack%s of the %s", n, n == 1 ? "" : "s", shapes[v->shape]);
	if (shown->left) {
		snprintf(left, sizeof(left), "%zu left out by --limit", shown->left);
		pieces[npieces++] = left;
	}
	if (shown->folded) {
		snprintf(folded, sizeof(folded), "parts below 1 %% are folded (--json has all)");
		pieces[npieces++] = folded;
	}
	kx_text_str(v->out, kx_screen_style(&v->screen, KX_STYLE_DIM));
	kx_put_pieces(v->out, &v->screen, pieces, npieces);
	kx_text_str(v->out, kx_screen_style(&v->screen, KX_STYLE_PLAIN));
}

int kx_tree_print(const struct kx_call_tree *tree, const struct kx_tree_view *v, struct kx_err *err)
{
	static const char *const shapes[] = { "tree", "callers", "callees" };
	struct kx_tree_shown shown = { 0 };
	struct kx_tree_rows rows;
	int r = kx_tree_rows_init(&rows, tree, v->info->tsc_hz);

	if (!r && v->json) {
		kx_text_char(v->out, '{');
		kx_totals_json(v->out, &tree->totals.t, v->info);
		kx_text_str(v->out, ",\"shape\":");
		kx_text_json_string(v->out, shapes[v->shape]);
		kx_text_json_u64(v->out, "total_ns", kx_tree_total_ns(&rows, 0));
		kx_text_char(v->out, ',');
		r = kx_tree_put_json(v, &rows, 0);
		kx_text_str(v->out, "}\n");
	} else if (!r) {
		kx_report_head(v->out, &v->screen, v->session, &tree->totals.t, v->info);
		kx_text_char(v->out, '\n');
		kx_tree_put_columns(v);
		r = kx_tree_put_rows(v, &rows, 0, &shown);
		put_foot(v, &rows, &shown);
	}
	kx_tree_rows_free(&rows);
	if (r)
		return kx_err_set(err, r, "out of memory for the tree");
	return kx_view_flush(v->out, err);
}
