// SPDX-License-Identifier: BSD-2-Clause
/*
 * USDT markers as functions, and spans between two of them.
 *
 * Each binary that has notes of markers gives a second module, of this provider: its functions are the markers,
 * "usdt:PROVIDER:NAME", however many places of the code one has, and the spans that were asked for. What is probed is
 * planned by address alone: a marker is a nop.
 */
#ifndef KX_PROVIDER_USDT_H
#define KX_PROVIDER_USDT_H

#include "binary/usdt_markers.h"
#include "select/select.h"

/* What a function of this provider is. */
enum kx_usdt_role {
	KX_USDT_INSTANT, /* a marker */
	KX_USDT_SPAN,	 /* from one marker to another */
};

/* Only of functions of kx_provider_usdt. @first gets the marker, or that with which the span begins; @last that with which it ends, or NULL. */
enum kx_usdt_role kx_usdt_role(const struct kx_select_module *m, const struct kx_symbol *sym,
			       const struct kx_usdt_marker **first, const struct kx_usdt_marker **last);

/*
 * Parses "usdt:PROVIDER:MARKER ~ [usdt:][PROVIDER:]MARKER", names without globs. The pattern, and name, of the span, to be freed:
 * "usdt:PROVIDER:MARKER ~ MARKER", with the second provider where it is another. Errors: -EINVAL, -ENOMEM.
 */
int kx_usdt_span_parse(const char *text, char **pattern, struct kx_err *err);

/*
 * Why no marker of the @n modules matches @p: an error, with similar names or the providers that there are. Modules of other
 * providers are passed over. @p names one of kx_provider_usdt.
 */
int kx_usdt_explain_no_match(const struct kx_pattern *p, const struct kx_select_module *const *modules, size_t n,
			     struct kx_err *err);

#endif
