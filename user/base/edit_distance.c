// SPDX-License-Identifier: BSD-2-Clause
#include "base/edit_distance.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned kx_edit_distance(const char *a, const char *b, unsigned max)
{
	unsigned rows[3][KX_EDIT_DISTANCE_LENGTH];
	unsigned *two_up = rows[0], *up = rows[1], *row = rows[2];
	size_t la = strlen(a), lb = strlen(b);

	if (la >= KX_EDIT_DISTANCE_LENGTH || lb >= KX_EDIT_DISTANCE_LENGTH)
		return UINT_MAX;
	if ((la > lb ? la - lb : lb - la) > max)
		return UINT_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *oldest = two_up, best = (unsigned)i;

		two_up = up;
		up = row;
		row = oldest;
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned d = up[j - 1] + !same(a[i - 1], b[j - 1]);

			d = least(d, least(up[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				d = least(d, two_up[j - 2] + 1);
			row[j] = d;
			best = least(best, d);
		}
		if (best > max)
			return UINT_MAX;
	}
	return row[lb] <= max ? row[lb] : UINT_MAX;
}
