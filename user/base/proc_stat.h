// SPDX-License-Identifier: BSD-2-Clause
/* Fields of /proc/PID/stat and /proc/PID/task/TID/stat, numbered as in proc(5). */
#ifndef KX_PROC_STAT_H
#define KX_PROC_STAT_H

/* Bytes of such a file at most, with a 0: some fifty numbers. */
#define KX_PROC_STAT_SIZE 2048

/*
 * Reads the file into @buffer, and returns its text from field @field on (3 at least: the name in field 2 may have blanks and
 * brackets). NULL: the process or thread has ended, or the file has not so many fields.
 */
const char *kx_proc_stat(const char *path, int field, char buffer[KX_PROC_STAT_SIZE]);

#endif
