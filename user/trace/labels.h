// SPDX-License-Identifier: BSD-2-Clause
/*
 * Labels: what tells the traces of many hosts and programs apart, as KEY=VALUE. A user adds some
 * (record --label); others come from the host and the processes of the session. Exporters get all
 * of them by one function, as flat text.
 */
#ifndef KX_LABELS_H
#define KX_LABELS_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define KX_MAX_LABELS	    32	/* of --label */
#define KX_LABEL_KEY_SIZE   64	/* bytes with NUL */
#define KX_LABEL_VALUE_SIZE 256 /* the same */

/*
 * Checks --label's @text, "KEY=VALUE", and adds it to @labels, an object. KEY is
 * [A-Za-z_][A-Za-z0-9_.-]*, VALUE any text of UTF-8 without control characters, neither is empty.
 * Errors: -EINVAL, also for a second label of a key, for one too many and for a key of
 * kx_session_labels itself; -ENOMEM.
 */
int kx_label_add(json_t *labels, const char *text, struct kx_err *err);

/*
 * A new object of strings: "host", "boot_id" and "machine_id"; "unit", "container" and "pod" if all
 * processes of the session have the same one; then the user's. What @session, that of a map (may be
 * NULL), lacks is left out. NULL if memory ran out.
 */
json_t *kx_session_labels(const json_t *session);

/* The session's host name; "" if it is not known. Borrowed. */
const char *kx_session_host(const json_t *session);

#endif
