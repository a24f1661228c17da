// SPDX-License-Identifier: BSD-2-Clause
/* What a process and its keeper send to each other. */
#ifndef KX_KEEPER_INTERNAL_H
#define KX_KEEPER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "tracer/uprobe_syscalls.h"

enum kx_keeper_action {
	KX_KEEPER_CREATE, /* the path, .count offsets, for a link as many cookies, and unless NULL as many semaphores follow */
	KX_KEEPER_CLOSE,  /* .count descriptors (int) follow */
	KX_KEEPER_CLOSE_SOON, /* the same, by a thread. Answer: the number of this request, from 1 on */
	KX_KEEPER_CLOSING, /* Answer: the smallest number of a request that is not done; if all are, the next one */
	KX_KEEPER_RELEASE, /* the same; links of a process with a debugger wait. Answer: how many */
	KX_KEEPER_GUARD,  /* a path follows */
	KX_KEEPER_GUARD_PATCHES, /* .count is a PID */
	KX_KEEPER_GUARD_FAMILY, /* the same, which is guarded; its struct kx_patch_family follows */
	KX_KEEPER_RELEASE_PATCHES, /* the same */
	KX_KEEPER_HIDE,
	KX_KEEPER_STOP,	  /* answered by 1 if links wait or patches are guarded: then it stays */
};

/* Answered by an int: a descriptor, 0, or a negative errno. */
struct kx_keeper_message {
	uint32_t action;
	uint32_t path_size; /* with its 0 */
	uint32_t count;
	uint32_t pad;
	struct rlimit files;		  /* the sender's: it may have raised it */
	struct kx_uprobe_request request; /* its pointers mean nothing here */
};

/*
 * Sends or receives @size bytes through the non-blocking @socket; -EPIPE if the process of @peer (a
 * pidfd) has ended. The socket itself shows no end: both processes have both of its ends open.
 */
int kx_keeper_send(int socket, int peer, const void *data, size_t size);
int kx_keeper_receive(int socket, int peer, void *data, size_t size);

/* The keeper's life: serves @socket until the process @owner (a pidfd: @owner_fd) ends. */
void kx_keeper_process_run(int socket, pid_t owner, int owner_fd) __attribute__((noreturn));

#endif
