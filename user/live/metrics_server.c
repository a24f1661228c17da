// SPDX-License-Identifier: BSD-2-Clause
#include "live/metrics_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/mhd.h"

#define CONNECTIONS	16
#define TIMEOUT_SECONDS 10u /* of an idle connection */
#define LATEST_MS	1000
#define CONTENT_TYPE	"text/plain; version=0.0.4; charset=utf-8"

static const struct kx_mhd *mhd; /* loaded by kx_metrics_server_open */

struct kx_metrics_server {
	struct MHD_Daemon *daemon;
	int fd; /* its epoll descriptor */
	uint16_t port;
	int (*metrics)(void *ctx, struct kx_text_out *out);
	void *ctx;
};

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status, const char *type,
			      void *text, size_t size, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = mhd->MHD_create_response_from_buffer(size, text, mode);
	enum MHD_Result done;

	if (!r) {
		if (mode == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	mhd->MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		mhd->MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	done = mhd->MHD_queue_response(c, status, r);
	mhd->MHD_destroy_response(r);
	return done;
}

static enum MHD_Result answer_text(struct MHD_Connection *c, unsigned status, const char *text)
{
	return answer(c, status, "text/plain", (void *)(uintptr_t)text, strlen(text),
		      MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result answer_metrics(struct kx_metrics_server *s, struct MHD_Connection *c)
{
	struct kx_text_out *out = malloc(sizeof(*out));
	enum MHD_Result done;
	int code;

	if (!out)
		return answer_text(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory\n");
	kx_text_init_memory(out);
	code = s->metrics(s->ctx, out);
	if (!code)
		code = kx_text_flush(out);
	if (code) {
		free(out->memory);
		done = answer_text(c, MHD_HTTP_INTERNAL_SERVER_ERROR,
				   "the metrics cannot be written\n");
	} else {
		done = answer(c, MHD_HTTP_OK, CONTENT_TYPE, out->memory, out->stored,
			      MHD_RESPMEM_MUST_FREE);
	}
	free(out);
	return done;
}

/* The first call for a request comes before its body, the next when it has arrived: only then is an
 * answer due. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *size, void **request)
{
	static int begun;

	(void)version;
	(void)body;
	if (!*request) {
		*request = &begun;
		return MHD_YES;
	}
	if (*size) {
		*size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (strcmp(url, "/metrics") != 0)
		return answer_text(c, MHD_HTTP_NOT_FOUND, "kxray top: see /metrics\n");
	return answer_metrics(ctx, c);
}

static int listen_at(uint16_t port, uint16_t *got, struct kx_err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int on = 1, code, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    !bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, CONNECTIONS) &&
	    !getsockname(fd, (struct sockaddr *)&at, &size)) {
		*got = ntohs(at.sin_port);
		return fd;
	}
	code = kx_err_set(
		err, -errno,
		"metrics cannot be served at 127.0.0.1:%u: %s; choose another port, 0 for any",
		port, strerror(errno));
	if (fd >= 0)
		close(fd);
	return code;
}

int kx_metrics_server_open(uint16_t port, int (*metrics)(void *ctx, struct kx_text_out *out),
			   void *ctx, struct kx_metrics_server **out, struct kx_err *err)
{
	struct kx_metrics_server *s = calloc(1, sizeof(*s));
	const union MHD_DaemonInfo *info;
	int fd, code = s ? kx_mhd_load(&mhd, err) :
			   kx_err_set(err, -ENOMEM, "no memory for the metrics' server");

	if (code) {
		free(s);
		return code;
	}
	s->metrics = metrics;
	s->ctx = ctx;
	fd = listen_at(port, &s->port, err);
	if (fd < 0) {
		free(s);
		return fd;
	}
	s->daemon = mhd->MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, s,
				     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				     (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
				     TIMEOUT_SECONDS, MHD_OPTION_END);
	info = s->daemon ? mhd->MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		kx_metrics_server_close(s);
		return kx_err_set(err, -ENOMEM, "the metrics' server cannot be started");
	}
	s->fd = info->epoll_fd;
	*out = s;
	return 0;
}

void kx_metrics_server_close(struct kx_metrics_server *s)
{
	if (!s)
		return;
	if (s->daemon)
		mhd->MHD_stop_daemon(s->daemon);
	free(s);
}

uint16_t kx_metrics_server_port(const struct kx_metrics_server *s)
{
	return s->port;
}

int kx_metrics_server_fd(const struct kx_metrics_server *s)
{
	return s->fd;
}

int kx_metrics_server_poll(struct kx_metrics_server *s)
{
	MHD_UNSIGNED_LONG_LONG ms;

	mhd->MHD_run(s->daemon);
	if (mhd->MHD_get_timeout(s->daemon, &ms) == MHD_YES && ms < LATEST_MS)
		return (int)ms;
	return LATEST_MS;
}
