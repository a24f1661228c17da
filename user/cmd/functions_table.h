// SPDX-License-Identifier: BSD-2-Clause
/* The table of `kxray functions`, fitted to its screen. */
#ifndef KX_FUNCTIONS_TABLE_H
#define KX_FUNCTIONS_TABLE_H

#include "base/err.h"
#include "base/screen.h"
#include "cmd/function_windows.h"
#include "record/rate.h"
#include "select/select.h"

enum kx_functions_sort {
	KX_FUNCTIONS_BY_ADDRESS, /* and module */
	KX_FUNCTIONS_BY_NAME,
	KX_FUNCTIONS_BY_SIZE,
	KX_FUNCTIONS_BY_COST,  /* the most expensive entries first */
	KX_FUNCTIONS_BY_CALLS, /* needs rates */
};

/* In the order of the enum, ends with NULL. */
extern const char *const kx_functions_sort_words[];

struct kx_functions_table {
	enum kx_functions_sort sort;
	size_t limit; /* rows; 0: all */
	struct kx_screen screen;
};

/* Prints the traced functions on standard output; @rates and @windows may be NULL. Errors: -ENOMEM, -EIO. */
int kx_functions_print(const struct kx_selection *sel, const struct kx_rates *rates, const struct kx_function_windows *windows,
		       const struct kx_functions_table *o, struct kx_err *err);

#endif
