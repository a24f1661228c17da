// SPDX-License-Identifier: BSD-2-Clause
#include "collect/proc_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last number of a line: of "NSpid:" the one in the innermost namespace. */
static long last_number(const char *line)
{
	const char *p = line + strlen(line);

	while (p > line && (p[-1] == '\n' || p[-1] == ' ' || p[-1] == '\t'))
		p--;
	while (p > line && p[-1] >= '0' && p[-1] <= '9')
		p--;
	return atol(p);
}

/* False if there is no such process or thread. */
static bool read_status(pid_t id, pid_t *tgid, pid_t *parent, pid_t *ns_id)
{
	char path[64], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)id);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Tgid:", 5)) {
			*tgid = (pid_t)last_number(line);
			found = true;
		} else if (!strncmp(line, "PPid:", 5)) {
			*parent = (pid_t)last_number(line);
		} else if (!strncmp(line, "NSpid:", 6)) {
			*ns_id = (pid_t)last_number(line);
			break; /* it comes after the other two */
		}
	}
	fclose(f);
	if (*ns_id == id)
		*ns_id = 0;
	return found;
}

/* At most @max bytes of /proc/ID/@file; 0 if it cannot be read. */
static size_t read_file(pid_t id, const char *file, char *bytes, size_t max)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)id, file);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(bytes, 1, max, f);
	fclose(f);
	return n;
}

/* @name remains as it is if there is no such thread. */
static bool read_name(pid_t id, char *name)
{
	char text[KX_COMM_SIZE];
	size_t n = read_file(id, "comm", text, sizeof(text));

	if (!n)
		return false;
	if (text[n - 1] == '\n')
		n--;
	memcpy(name, text, n);
	name[n] = 0;
	return n;
}

bool kx_proc_thread(pid_t tid, struct kx_thread_identity *out)
{
	pid_t parent;

	out->ns_tid = 0;
	return read_status(tid, &out->pid, &parent, &out->ns_tid) && read_name(tid, out->name);
}

bool kx_proc_process(pid_t pid, pid_t *parent, pid_t *ns_pid, char name[KX_COMM_SIZE + 1])
{
	pid_t tgid;

	return read_status(pid, &tgid, parent, ns_pid) && read_name(pid, name);
}

/*
 * Servers overwrite their arguments with a title and clear what is left of them (setproctitle), which then
 * reads as empty arguments. A single one at the end may be the caller's own.
 */
static size_t without_padding(char *text, size_t n)
{
	size_t first = strnlen(text, n), end = n;

	while (end > first && !text[end - 1])
		end--;
	if (end > first || (n - first == 2 && !memchr(text, ' ', first)))
		return n;
	while (first && text[first - 1] == ' ')
		first--;
	text[first] = 0;
	return first ? first + 1 : 0;
}

size_t kx_proc_command(pid_t pid, char *text, size_t max)
{
	size_t n = read_file(pid, "cmdline", text, max - 1);

	if (n && text[n - 1])
		text[n++] = 0;
	return without_padding(text, n);
}

bool kx_proc_cgroup(pid_t pid, char *text, size_t max)
{
	size_t n = read_file(pid, "cgroup", text, max - 1);

	text[n] = 0;
	return n;
}
