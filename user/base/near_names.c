// SPDX-License-Identifier: BSD-2-Clause
#include "base/near_names.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/edit_distance.h"

enum { CONTAINED = 3, MIN_CONTAINED = 3 };

void kx_near_names_look(struct kx_near_names *n, const char *name)
{
	size_t len = strlen(n->wanted), used = strlen(n->text);
	unsigned slips = len < 3 ? 0 : len < 5 ? 1 : 2;
	unsigned distance = kx_edit_distance(n->wanted, name, slips);

	if (distance == UINT_MAX) {
		if (len < MIN_CONTAINED || (!strstr(name, n->wanted) && !strstr(n->wanted, name)))
			return;
		distance = CONTAINED;
	}
	if (used && distance > n->distance)
		return;
	if (distance < n->distance)
		used = 0;
	n->distance = distance;
	if (used + strlen(name) + 16 < sizeof(n->text))
		snprintf(n->text + used, sizeof(n->text) - used, "%s'%s%s'", used ? " or " : "",
			 n->prefix ? n->prefix : "", name);
}
