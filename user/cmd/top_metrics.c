// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/top_metrics.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "live/metrics.h"
#include "live/metrics_server.h"

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

int kx_top_metrics_check(const char *argument, struct kx_err *err)
{
	if (!argument || !is_number(argument))
		return 0;
	if (strlen(argument) <= 5 && strtoul(argument, NULL, 10) <= UINT16_MAX)
		return 0;
	return kx_err_set(err, -EINVAL,
			  "--prometheus takes a port up to 65535 or a file, not '%s' (a file of "
			  "that name: ./%s)",
			  argument, argument);
}

/* The reason as kx_output_open gives it advises another option. */
static int name_file(const char *path, int code, struct kx_err *err)
{
	return kx_err_set(err, code, "'%s' cannot be written: %s; choose another --prometheus FILE",
			  path, strerror(-code));
}

static int put_metrics(void *ctx, struct kx_text_out *out)
{
	const struct kx_top_metrics *m = ctx;

	return kx_put_metrics(out, m->rows);
}

int kx_top_metrics_try(const char *argument, struct kx_err *err)
{
	struct kx_output file = { .fd = -1 };
	struct kx_top_metrics m = { 0 };
	int code;

	if (!argument)
		return 0;
	if (is_number(argument)) {
		code = kx_top_metrics_open(&m, argument, NULL, err);
		kx_top_metrics_close(&m);
		return code;
	}
	code = kx_output_open(&file, argument, err);
	kx_output_close(&file);
	return code ? name_file(argument, code, err) : 0;
}

int kx_top_metrics_open(struct kx_top_metrics *m, const char *argument,
			const struct kx_call_rows *rows, struct kx_err *err)
{
	int code;

	m->rows = rows;
	if (argument && !is_number(argument))
		m->file = argument;
	if (!argument || m->file)
		return 0;
	code = kx_metrics_server_open((uint16_t)strtoul(argument, NULL, 10), put_metrics, m,
				      &m->server, err);
	if (!code)
		m->port = kx_metrics_server_port(m->server);
	return code;
}

int kx_top_metrics_fd(const struct kx_top_metrics *m)
{
	return m->server ? kx_metrics_server_fd(m->server) : -1;
}

int kx_top_metrics_poll(struct kx_top_metrics *m)
{
	return m->server ? kx_metrics_server_poll(m->server) : INT_MAX;
}

int kx_top_metrics_write(struct kx_top_metrics *m, struct kx_err *err)
{
	struct kx_text_out *out;
	struct kx_output file;
	int code;

	if (!m->file)
		return 0;
	out = malloc(sizeof(*out));
	if (!out)
		return kx_err_set(err, -ENOMEM, "no memory for the metrics");
	code = kx_output_open(&file, m->file, err);
	if (!code) {
		kx_text_init(out, file.fd);
		code = kx_put_metrics(out, m->rows);
		if (!code)
			code = kx_text_flush(out);
		if (code)
			name_file(m->file, code, err);
		else
			code = kx_output_keep(&file, err);
	}
	kx_output_close(&file);
	free(out);
	return code;
}

void kx_top_metrics_close(struct kx_top_metrics *m)
{
	kx_metrics_server_close(m->server);
	m->server = NULL;
}
