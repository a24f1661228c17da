// SPDX-License-Identifier: BSD-2-Clause
#include "binary/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "base/stop_request.h"

#define SILENT_SECONDS 20.0 /* a server that sends nothing for this long is given up */

/* libdebuginfod's functions; all NULL until it is loaded. */
static struct {
	bool tried;
	__typeof__(&debuginfod_begin) begin;
	__typeof__(&debuginfod_find_debuginfo) find_debuginfo;
	__typeof__(&debuginfod_set_progressfn) set_progressfn;
	__typeof__(&debuginfod_get_url) get_url;
	debuginfod_client *client;
} library;

static struct {
	void (*say)(void *ctx, const char *sentence);
	void *ctx;
	bool given_up; /* the servers cannot be used */
} permission;

/* The transfer that runs; there is one at a time. */
static struct {
	const char *name; /* of the binary */
	bool said;
	long bytes; /* that have come */
	double since; /* when the last ones came */
	int error; /* why it was ended here, or 0 */
} transfer;

void kx_debuginfod_allow(void (*say)(void *ctx, const char *sentence), void *ctx)
{
	permission.say = say;
	permission.ctx = ctx;
}

bool kx_debuginfod_allowed(void)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);

	return permission.say && !permission.given_up && urls && *urls;
}

static void give_up(const char *why)
{
	char text[512];

	if (permission.given_up)
		return;
	permission.given_up = true;
	snprintf(text, sizeof(text), "debuginfod is not asked any more: %s (DEBUGINFOD_URLS is '%.300s')", why,
		 getenv(DEBUGINFOD_URLS_ENV_VAR));
	if (permission.say)
		permission.say(permission.ctx, text);
}

static bool load(void)
{
	void *handle;

	if (library.tried)
		return library.begin;
	library.tried = true;
	handle = dlopen(DEBUGINFOD_SONAME, RTLD_LAZY | RTLD_LOCAL);
	if (handle) {
		library.find_debuginfo = (__typeof__(library.find_debuginfo))dlsym(handle, "debuginfod_find_debuginfo");
		library.set_progressfn = (__typeof__(library.set_progressfn))dlsym(handle, "debuginfod_set_progressfn");
		library.get_url = (__typeof__(library.get_url))dlsym(handle, "debuginfod_get_url");
		if (library.find_debuginfo && library.set_progressfn && library.get_url)
			library.begin = (__typeof__(library.begin))dlsym(handle, "debuginfod_begin");
	}
	if (!library.begin)
		give_up(DEBUGINFOD_SONAME " is not installed");
	return library.begin;
}

/* Called at least once a second while a client waits; anything but 0 ends the transfer. */
static int progress(debuginfod_client *client, long done, long size)
{
	const char *url = library.get_url(client);
	double now = kx_monotonic_seconds();
	char text[512], of[48] = "";

	if (!url) /* until a server has answered, libdebuginfod counts its own turns */
		done = 0;
	if (done != transfer.bytes || !transfer.since) {
		transfer.bytes = done;
		transfer.since = now;
	}
	if (!transfer.said && permission.say && done > 0 && url) {
		transfer.said = true;
		if (size > 0)
			snprintf(of, sizeof(of), size < 1000000 ? " (%.0f kB)" : " (%.1f MB)",
				 (double)size / (size < 1000000 ? 1e3 : 1e6));
		snprintf(text, sizeof(text), "downloading debug information of %.100s%s from %.250s; Ctrl-C ends it",
			 transfer.name, of, url);
		permission.say(permission.ctx, text);
	}
	if (kx_stop_requested())
		transfer.error = -EINTR;
	else if (!permission.say || permission.given_up)
		transfer.error = -ENOENT;
	else if (now - transfer.since > SILENT_SECONDS)
		transfer.error = -ETIME;
	return transfer.error;
}

void kx_debuginfod_limit(struct debuginfod_client *client, const char *name)
{
	if (!client || !load())
		return;
	memset(&transfer, 0, sizeof(transfer));
	transfer.name = name;
	library.set_progressfn(client, progress);
}

static int find(const char *build_id, const char *name)
{
	int fd;

	if (!kx_debuginfod_allowed() || !load())
		return -ENOENT;
	if (!library.client)
		library.client = library.begin();
	if (!library.client)
		return -ENOMEM;
	kx_debuginfod_limit(library.client, name);
	/* Length 0: the id is a string. */
	fd = library.find_debuginfo(library.client, (const unsigned char *)build_id, 0, NULL);
	if (fd >= 0)
		return fd;
	fd = transfer.error ? transfer.error : fd;
	if (fd == -ETIME)
		give_up("a server did not answer in time");
	else if (fd == -ECONNREFUSED || fd == -EHOSTUNREACH || fd == -ENETUNREACH)
		give_up("no server can be reached");
	return fd;
}

int kx_debuginfod_open(const char *build_id, const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int fd = -ENOENT;

	if (*build_id) {
		pthread_mutex_lock(&lock);
		fd = find(build_id, name);
		pthread_mutex_unlock(&lock);
	}
	return fd;
}
