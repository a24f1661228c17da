// SPDX-License-Identifier: BSD-2-Clause
/*
 * File and line of the selected functions, for the map: read from the binaries' DWARF while the recording runs, so that
 * neither its start nor its readers wait for it, and so that a map needs no binary to be read.
 *
 * DWARF is large (libLLVM's is 1.5 GB), slow to read and comes from programs that may be hostile. So a child process reads
 * it, with the CPU time that nobody else wants (SCHED_IDLE), and writes what it finds into memory that it shares with the
 * recorder: what has been found is there at any time, whatever becomes of the child.
 */
#ifndef KX_SOURCE_PLACES_H
#define KX_SOURCE_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "record/notice.h"
#include "select/select.h"
#include "trace/map_file.h"

struct kx_source_places;

/*
 * Starts with all functions of @sel. @notices must outlive it: debuginfod.h's sentences go there. NULL if memory ran out or
 * there can be no child: then the map has no places.
 */
struct kx_source_places *kx_source_places_start(const struct kx_selection *sel, const struct kx_notices *notices);

/*
 * Waits until all functions that @sel has by now are done, those that have joined since the start too, with ordinary
 * priority. Ends early when a signal asks for it (kx_stop_pending); a notice says so after a second. NULL is ignored.
 */
void kx_source_places_finish(struct kx_source_places *p, const struct kx_selection *sel);

/*
 * What is known now, by index of @sel's functions; free with free(). NULL if nothing is, and for NULL. Its texts live as long
 * as @p.
 */
struct kx_map_place *kx_source_places_get(const struct kx_source_places *p, const struct kx_selection *sel);

void kx_source_places_free(struct kx_source_places *p);

#endif
