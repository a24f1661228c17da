// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads the library given as argument, waits for a byte unless --start=now, calls its plug_work
 * --repeat=N times and appends its counts to the file $TREE_LOG (tree.h).
 */
#include <dlfcn.h>

#include "tree.h"

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	const char *log_path = getenv("TREE_LOG");
	void (*plug_work)(long n);
	void *plugin = o.rest ? dlopen(o.rest, RTLD_NOW) : NULL;

	if (!plugin || !log_path) {
		fprintf(stderr, "libuser: %s\n", plugin ? "no $TREE_LOG" : dlerror());
		return 1;
	}
	*(void **)&plug_work = dlsym(plugin, "plug_work");
	target_ready(&o);
	for (long n = 0; n < o.repeat; n++) {
		plug_work(n);
		count_call(PLUG_WORK);
		count_call(PLUG_LEAF);
		count_call(PLUG_LEAF);
	}
	append_calls(log_path, 0);
	return target_done(&o, 1);
}
