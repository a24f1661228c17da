// SPDX-License-Identifier: BSD-2-Clause
#include "trace/exit_moves.h"

#include <errno.h>
#include <stdlib.h>

#define KEY "moved_exits"

static bool read_kinds(const json_t *letters, uint8_t nkinds, struct kx_exit_moves *out)
{
	const char *text = json_string_value(letters);
	size_t n = json_string_length(letters);

	if (!text || n >= UINT32_MAX)
		return true;
	out->kind_of = calloc(n + 1, sizeof(*out->kind_of));
	out->leaf = calloc(n + 1, sizeof(*out->leaf));
	if (!out->kind_of || !out->leaf)
		return false;
	out->n = (uint32_t)n + 1;
	for (size_t i = 0; i < n; i++) {
		bool leaf = text[i] >= 'A' && text[i] <= 'Z';
		int kind = text[i] - (leaf ? 'A' : 'a') + 1;

		if (kind < 1 || kind >= nkinds)
			continue;
		out->kind_of[i + 1] = (uint8_t)kind;
		out->leaf[i + 1] = leaf;
	}
	return true;
}

static bool read_move(const json_t *j, struct kx_exit_move *out)
{
	static const json_int_t most[] = { INT64_MAX, INT32_MAX, UINT32_MAX, UINT32_MAX,
					   KX_MOVED_CALLERS | KX_MOVED_LEAVES };
	json_int_t n[5];

	for (size_t i = 0; i < 5; i++) {
		const json_t *item = json_array_get(j, i);

		n[i] = json_integer_value(item);
		if (!json_is_integer(item) || n[i] < 0 || n[i] > most[i])
			return false;
	}
	*out = (struct kx_exit_move){ .tsc = (uint64_t)n[0],
				      .pid = (int32_t)n[1],
				      .first = (uint32_t)n[2],
				      .last = (uint32_t)n[3],
				      .which = (uint32_t)n[4] };
	return true;
}

static int by_process(const void *a, const void *b)
{
	const struct kx_exit_move *x = a, *y = b;

	if (x->pid != y->pid)
		return (x->pid > y->pid) - (x->pid < y->pid);
	return (x->tsc > y->tsc) - (x->tsc < y->tsc);
}

int kx_exit_moves_read(const json_t *costs, uint8_t nkinds, struct kx_exit_moves *out)
{
	const json_t *all = json_object_get(costs, KEY), *list = json_object_get(all, "moves");
	size_t size = json_array_size(list);

	*out = (struct kx_exit_moves){ 0 };
	if (!size || size > KX_EXIT_MOVES)
		return 0;
	out->items = calloc(size, sizeof(*out->items));
	if (!out->items || !read_kinds(json_object_get(all, "functions"), nkinds, out)) {
		kx_exit_moves_free(out);
		return -ENOMEM;
	}
	for (size_t i = 0; i < size; i++)
		out->count += read_move(json_array_get(list, i), &out->items[out->count]);
	qsort(out->items, out->count, sizeof(*out->items), by_process);
	return 0;
}

void kx_exit_moves_free(struct kx_exit_moves *m)
{
	free(m->kind_of);
	free(m->leaf);
	free(m->items);
	*m = (struct kx_exit_moves){ 0 };
}

/* How many moves are of processes before @pid, or of @pid and not after @tsc. */
static size_t moves_until(const struct kx_exit_moves *m, int32_t pid, uint64_t tsc)
{
	size_t from = 0, to = m->count;

	while (from < to) {
		const struct kx_exit_move *move = &m->items[(from + to) / 2];

		if (move->pid < pid || (move->pid == pid && move->tsc <= tsc))
			from = (from + to) / 2 + 1;
		else
			to = (from + to) / 2;
	}
	return from;
}

/* What the newest move of @pid (0: of every process) that was not after @entered says of @func. */
static bool has_moved(const struct kx_exit_moves *m, int32_t pid, uint32_t func, uint64_t entered)
{
	size_t i = moves_until(m, pid, entered);

	for (; i && m->items[i - 1].pid == pid; i--) {
		const struct kx_exit_move *move = &m->items[i - 1];

		if (func >= move->first && func <= move->last)
			return move->which & (m->leaf[func] ? KX_MOVED_LEAVES : KX_MOVED_CALLERS);
	}
	return false;
}

uint8_t kx_exit_moves_kind(const struct kx_exit_moves *m, int32_t pid, uint32_t func, uint64_t entered)
{
	if (func >= m->n || !m->kind_of[func])
		return 0;
	return has_moved(m, 0, func, entered) || (pid && has_moved(m, pid, func, entered)) ?
		       m->kind_of[func] :
		       0;
}

int kx_exit_moves_add(json_t *session, const struct kx_exit_move *move)
{
	json_t *costs = json_object_get(session, "probe_costs"), *all = json_object_get(costs, KEY);
	json_t *list = json_object_get(all, "moves");

	if (!costs)
		return 0;
	if (!list) {
		list = json_array();
		if (json_object_set_new(costs, KEY, json_pack("{s:o}", "moves", list)))
			return -ENOMEM;
	}
	if (json_array_size(list) == KX_EXIT_MOVES)
		return -E2BIG;
	return json_array_append_new(list, json_pack("[I,I,I,I,I]", (json_int_t)move->tsc,
						     (json_int_t)move->pid, (json_int_t)move->first,
						     (json_int_t)move->last, (json_int_t)move->which)) ?
		       -ENOMEM :
		       0;
}

int kx_exit_moves_write_functions(json_t *session, const uint8_t *kind_of, const bool *leaf, size_t n)
{
	json_t *all = json_object_get(json_object_get(session, "probe_costs"), KEY);
	char *letters;
	int code;

	if (!all)
		return 0;
	letters = malloc(n + 1);
	if (!letters)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		letters[i] = kind_of[i] ? (char)((leaf[i] ? 'A' : 'a') + kind_of[i] - 1) : '-';
	letters[n] = 0;
	code = json_object_set_new(all, "functions", json_string(letters)) ? -ENOMEM : 0;
	free(letters);
	return code;
}
