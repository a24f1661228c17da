// SPDX-License-Identifier: BSD-2-Clause
/*
 * Debug files from the servers that DEBUGINFOD_URLS names (elfutils' debuginfod), by build id. Without that variable
 * nothing here uses the network, and libdebuginfod, with the HTTP library behind it, is not even loaded: it is opened
 * at the first request, as libdw does it. Files that were downloaded stay in the library's own cache
 * ($DEBUGINFOD_CACHE_PATH, else ~/.cache/debuginfod_client), where libdw finds them, too.
 */
#ifndef KX_DEBUGINFOD_H
#define KX_DEBUGINFOD_H

#include <stdbool.h>

struct debuginfod_client;

/*
 * From now on debug files may be downloaded, if DEBUGINFOD_URLS is set; @say gets a sentence when a download begins, and
 * one if the servers cannot be used. NULL: no longer, as at first. While a recording runs nothing may wait for a server.
 */
void kx_debuginfod_allow(void (*say)(void *ctx, const char *sentence), void *ctx);

/* Whether it is allowed and DEBUGINFOD_URLS is set. */
bool kx_debuginfod_allowed(void);

/*
 * The debug file of build id @build_id (hexadecimal), open for reading; @name: of the binary, for the sentence. Ends early for
 * kx_stop_requested, and when a server sends nothing for 20 s; after that, and after a server that cannot be reached, no other
 * file is asked for. Errors: -ENOENT (not allowed, or no server has it), -EINTR, -ETIME, others of libdebuginfod.
 */
int kx_debuginfod_open(const char *build_id, const char *name);

/* The same limits for a client that is libdw's (dwfl_get_debuginfod_client; NULL is ignored); @name must outlive its use. */
void kx_debuginfod_limit(struct debuginfod_client *client, const char *name);

#endif
