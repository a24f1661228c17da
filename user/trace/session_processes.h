// SPDX-License-Identifier: BSD-2-Clause
/* The processes of a session, by their pid: there may be many thousands. */
#ifndef KX_SESSION_PROCESSES_H
#define KX_SESSION_PROCESSES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct kx_session_processes {
	struct kx_session_process {
		int32_t pid;
		uint32_t order;
		const json_t *json; /* borrowed */
	} * items;		    /* by pid */
	size_t count;
};

/* @session may be NULL, and must outlive it. -ENOMEM, else 0. */
int kx_session_processes_init(struct kx_session_processes *p, const json_t *session);
void kx_session_processes_free(struct kx_session_processes *p);

/* The session's last process with this pid; NULL if there is none. */
const json_t *kx_session_process(const struct kx_session_processes *p, int32_t pid);

#endif
