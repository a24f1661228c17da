// SPDX-License-Identifier: BSD-2-Clause
#include "trace/exit_moves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"

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
	return KX_COUNT_LEADING(m->count, i,
				m->items[i].pid < pid || (m->items[i].pid == pid && m->items[i].tsc <= tsc));
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

static int by_time(const void *a, const void *b)
{
	const struct kx_exit_move *x = a, *y = b;

	return (x->tsc > y->tsc) - (x->tsc < y->tsc);
}

/*
 * Leaves out moves that others of the same process had replaced by @from, and moves back until then; those of every process stay,
 * as they are of different functions. Returns how many are left, in order of time.
 */
static size_t keep_since(struct kx_exit_move *items, size_t count, uint64_t from)
{
	size_t kept = 0;

	qsort(items, count, sizeof(*items), by_process);
	for (size_t i = 0; i < count; i++) {
		bool replaced = i + 1 < count && items[i + 1].pid == items[i].pid && items[i + 1].tsc <= from;

		if (!items[i].pid || !(replaced || (!items[i].which && items[i].tsc <= from)))
			items[kept++] = items[i];
	}
	qsort(items, kept, sizeof(*items), by_time);
	return kept;
}

int kx_exit_move_list_add(struct kx_exit_move_list *list, const struct kx_exit_move *move)
{
	if (list->count == KX_EXIT_MOVES)
		list->count = keep_since(list->items, list->count, list->items[list->count / 2].tsc);
	if (list->count == KX_EXIT_MOVES)
		return -E2BIG;
	if (KX_ARRAY_RESERVE(list->items, list->room, list->count))
		return -ENOMEM;
	list->items[list->count++] = *move;
	return 0;
}

void kx_exit_move_list_free(struct kx_exit_move_list *list)
{
	free(list->items);
	*list = (struct kx_exit_move_list){ 0 };
}

static json_t *moves_json(const struct kx_exit_move *items, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (json_array_append_new(list, json_pack("[I,I,I,I,I]", (json_int_t)items[i].tsc,
							  (json_int_t)items[i].pid,
							  (json_int_t)items[i].first,
							  (json_int_t)items[i].last,
							  (json_int_t)items[i].which))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *letters_json(const uint8_t *kind_of, const bool *leaf, size_t n)
{
	char *letters = malloc(n + 1);
	json_t *text;

	if (!letters)
		return NULL;
	for (size_t i = 0; i < n; i++)
		letters[i] = kind_of[i] ? (char)((leaf[i] ? 'A' : 'a') + kind_of[i] - 1) : '-';
	letters[n] = 0;
	text = json_string(letters);
	free(letters);
	return text;
}

int kx_exit_moves_write(const struct kx_exit_move_list *list, uint64_t from, const uint8_t *kind_of,
			const bool *leaf, size_t n, json_t *session)
{
	json_t *costs = json_object_get(session, "probe_costs"), *moves, *letters;
	struct kx_exit_move *items;
	size_t count;

	if (!costs)
		return 0;
	json_object_del(costs, KEY); /* of an earlier map of the recording */
	if (!list->count)
		return 0;
	items = malloc(list->count * sizeof(*items));
	if (!items)
		return -ENOMEM;
	memcpy(items, list->items, list->count * sizeof(*items));
	count = keep_since(items, list->count, from);
	moves = moves_json(items, count);
	free(items);
	letters = letters_json(kind_of, leaf, n);
	if (moves && letters)
		return json_object_set_new(costs, KEY, json_pack("{s:o,s:o}", "functions", letters, "moves",
								 moves)) ? -ENOMEM : 0;
	json_decref(moves);
	json_decref(letters);
	return -ENOMEM;
}
