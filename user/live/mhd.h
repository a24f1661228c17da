// SPDX-License-Identifier: BSD-2-Clause
/*
 * libmicrohttpd, loaded when it is needed: with what it needs itself (TLS) it would take more time and memory
 * at the start of every command than all other libraries, and only `kxray top --prometheus` uses it.
 */
#ifndef KX_MHD_H
#define KX_MHD_H

#include <microhttpd.h>

#include "base/err.h"

/* The functions that are used, as microhttpd.h declares them. */
#define KX_MHD_FUNCTIONS(one)                                                                      \
	one(MHD_start_daemon) one(MHD_stop_daemon) one(MHD_get_daemon_info) one(MHD_run)           \
	one(MHD_get_timeout) one(MHD_create_response_from_buffer) one(MHD_add_response_header)     \
	one(MHD_queue_response) one(MHD_destroy_response)

struct kx_mhd {
#define KX_MHD_MEMBER(name) __typeof__(name) *name;
	KX_MHD_FUNCTIONS(KX_MHD_MEMBER)
#undef KX_MHD_MEMBER
};

/* *@out: valid until the process ends. Errors: -ENOENT, with what to install. Main thread only. */
int kx_mhd_load(const struct kx_mhd **out, struct kx_err *err);

#endif
