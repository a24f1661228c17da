// SPDX-License-Identifier: BSD-2-Clause
/* Free addresses of another process, near its code. */
#ifndef KX_NEAR_ROOM_H
#define KX_NEAR_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Where @size bytes (whole pages) are free just below another mapping, as near to [from, to) as there is, from all of which a 32-bit
 * displacement reaches all of them; never above a program or its heap, which may grow, nor where a stack may. 0: nowhere.
 */
uint64_t kx_near_room(pid_t pid, uint64_t from, uint64_t to, size_t size);

/* Whether nothing is mapped in [at, at + size), and no stack may grow into it. */
bool kx_room_is_free(pid_t pid, uint64_t at, size_t size);

#endif
