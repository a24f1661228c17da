// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/export_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/write_all.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

#define NSIGNALS (sizeof(signals) / sizeof(signals[0]))

static char unfinished[4096]; /* what a signal must remove; "" for nothing */

static void on_signal(int signal_number)
{
	if (*unfinished)
		unlink(unfinished);
	_exit(128 + signal_number);
}

void kx_export_output_signals(void)
{
	for (size_t i = 0; i < NSIGNALS; i++)
		if (signal(signals[i], on_signal) == SIG_IGN) /* nohup and the like */
			signal(signals[i], SIG_IGN);
}

static void hold_signals(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < NSIGNALS; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* Copies the existing file to which the format appends. */
static int copy_existing(const char *from, int to, struct kx_err *err)
{
	static char buf[64 << 10];
	int fd = open(from, O_RDONLY | O_CLOEXEC), r = 0;
	ssize_t n = 1;

	if (fd < 0)
		return errno == ENOENT ? 0 : kx_err_set(err, -errno, "%s: cannot be opened: %s",
							from, strerror(errno));
	while (!r && n > 0) {
		n = read(fd, buf, sizeof(buf));
		if (n < 0)
			r = -errno;
		else
			r = kx_write_all(to, &(struct iovec){ buf, (size_t)n }, 1);
	}
	close(fd);
	return r ? kx_err_set(err, r, "%s: cannot be copied to add to it: %s", from, strerror(-r))
		 : 0;
}

int kx_export_output_open(struct kx_export_output *o, const char *path, bool append,
			  struct kx_err *err)
{
	struct stat st;
	int r;

	memset(o, 0, sizeof(*o));
	o->file.fd = -1;
	o->fd = STDOUT_FILENO;
	if (!path || !strcmp(path, "-"))
		return 0;
	o->path = path;
	if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		/* a pipe or device: nothing to rename */
		o->fd = open(path, O_WRONLY | O_CLOEXEC);
		return o->fd >= 0 ? 0 : kx_err_set(err, -errno, "'%s' cannot be written: %s", path,
						   strerror(errno));
	}
	hold_signals(true);
	r = kx_output_open(&o->file, path, err);
	if (!r)
		snprintf(unfinished, sizeof(unfinished), "%s", o->file.temp_path);
	hold_signals(false);
	o->is_temporary = true;
	o->fd = o->file.fd;
	return !r && append ? copy_existing(path, o->fd, err) : r;
}

int kx_export_output_keep(struct kx_export_output *o, struct kx_err *err)
{
	int r;

	if (!o->is_temporary)
		return 0;
	hold_signals(true);
	r = kx_output_keep(&o->file, err);
	if (!r)
		*unfinished = 0;
	hold_signals(false);
	return r;
}

void kx_export_output_close(struct kx_export_output *o)
{
	if (o->is_temporary)
		kx_output_close(&o->file);
	else if (o->path && o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}
