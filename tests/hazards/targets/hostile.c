// SPDX-License-Identifier: BSD-2-Clause
/*
 * Looks for shared anonymous memory in its own /proc/self/maps, which it has not mapped itself, and
 * writes random bytes to it while it works. "slots": behind its first 256 KiB, where the records
 * are, "all": from its start on, "unmap": unmaps it, with the executable one that is beside it.
 * Untraced there is no such memory.
 */
#include <sys/uio.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

struct area {
	char *from, *to;
};

static int find_areas(struct area *areas, int most, int writable)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4400], mode[5];
	int n = 0;

	while (maps && n < most && fgets(line, sizeof(line), maps)) {
		void *from, *to;

		if (sscanf(line, "%p-%p %4s", &from, &to, mode) == 3 && mode[3] == 's' &&
		    strstr(line, "/dev/zero") && (!writable || mode[1] == 'w'))
			areas[n++] = (struct area){ (char *)from, (char *)to };
	}
	if (maps)
		fclose(maps);
	return n;
}

/* By the kernel, as the memory may be gone. */
static void write_block(char *to, const unsigned long *block, size_t size)
{
	struct iovec local = { (void *)block, size }, remote = { to, size };

	(void)!process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
}

static void spoil(const struct area *a, size_t skip)
{
	static unsigned long random = 88172645463325252ul;

	unsigned long block[512];

	for (char *to = a->from + skip; to < a->to; to += sizeof(block)) {
		for (size_t i = 0; i < 512; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			block[i] = random >> (random & 63);
		}
		write_block(to, block, sizeof(block));
	}
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	const int unmaps = o.rest && !strcmp(o.rest, "unmap");
	const size_t skip = o.rest && !strcmp(o.rest, "all") ? 0 : 256 << 10;
	struct area areas[64];
	const int found = find_areas(areas, 64, !unmaps);
	long answer = 0;

	for (long n = 0; n < 20000; n++) {
		answer += hz_outer(n);
		for (int i = 0; i < found && n % 4000 == 0; i++) {
			if (unmaps)
				munmap(areas[i].from, areas[i].to - areas[i].from);
			else if ((size_t)(areas[i].to - areas[i].from) > skip)
				spoil(&areas[i], skip);
		}
	}
	return hazard_end(&o, answer, 20000l * 20001);
}
