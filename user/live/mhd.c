// SPDX-License-Identifier: BSD-2-Clause
#include "live/mhd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#define LIBRARY "libmicrohttpd.so.12" /* of 0.9.53 (2017) and newer: one ABI */

int kx_mhd_load(const struct kx_mhd **out, struct kx_err *err)
{
	static struct kx_mhd mhd;
	static bool loaded;
	void *library;

	*out = &mhd;
	if (loaded)
		return 0;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return kx_err_set(err, -ENOENT,
				  "metrics by HTTP need the library libmicrohttpd (%s); install it (Debian: "
				  "libmicrohttpd12), or give --prometheus a file",
				  dlerror());
#define LOAD(name)                                                                                 \
	mhd.name = (__typeof__(name) *)dlsym(library, #name);                                      \
	if (!mhd.name)                                                                             \
		return kx_err_set(err, -ENOENT, "the library %s lacks %s; install a newer one",    \
				  LIBRARY, #name);
	KX_MHD_FUNCTIONS(LOAD)
#undef LOAD
	loaded = true;
	return 0;
}
