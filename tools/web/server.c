/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread serves all connections and blocks on none; another one makes the data (watch.c). A
 * connection that sends nothing needs no token, so a client could open many: then it loses the
 * oldest of them, and there is always room for the next.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/output.h"
#include "web/server.h"

#define CONNECTIONS_MOST 256
#define STRANGERS_MOST 64 /* connections that have shown no token */
#define SILENT_S 15	  /* a connection on which nothing moves for so long is closed */
#define MEMORY_EACH 16384 /* bytes for the headers of a request */

/* A connection that has shown no token; the oldest is the first. */
struct stranger {
	struct stranger *next;
	int fd;
};

struct tool_web_server {
	struct MHD_Daemon *daemon;
	struct tool_web_watch *watch;
	char token[TOOL_WEB_TOKEN + 1];
	/* Of the serving thread. */
	struct stranger *first;
	unsigned n_strangers;
};

/* ---- connections ---- */

static void forget(struct tool_web_server *s, struct stranger *who)
{
	struct stranger **at = &s->first;

	while (*at && *at != who)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = who->next;
	s->n_strangers--;
}

/* The server closes the connection as soon as it sees the end. */
static void hang_up_on_the_oldest(struct tool_web_server *s)
{
	struct stranger *oldest = s->first;

	shutdown(oldest->fd, SHUT_RDWR);
	forget(s, oldest);
}

static void remember(struct tool_web_server *s, struct stranger *who)
{
	struct stranger **at = &s->first;

	if (s->n_strangers >= STRANGERS_MOST)
		hang_up_on_the_oldest(s);
	while (*at)
		at = &(*at)->next;
	who->next = NULL;
	*at = who;
	s->n_strangers++;
}

static void on_connection(void *arg, struct MHD_Connection *c, void **own,
			  enum MHD_ConnectionNotificationCode code)
{
	struct tool_web_server *s = arg;
	struct stranger *who = *own;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (who)
			forget(s, who);
		free(who);
		return;
	}
	who = tool_alloc(1, sizeof(*who));
	who->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	remember(s, who);
	*own = who;
}

/* ---- requests ---- */

static enum MHD_Result count_host(void *arg, enum MHD_ValueKind kind, const char *key,
				  const char *value)
{
	struct tool_web_request *r = arg;

	(void)kind;
	if (strcasecmp(key, MHD_HTTP_HEADER_HOST) != 0)
		return MHD_YES;
	r->host = value ? value : "";
	r->n_hosts++;
	return MHD_YES;
}

static void add_headers(struct MHD_Response *r, const char *type)
{
	static const char *const header[][2] = {
		{"Content-Security-Policy", tool_web_policy},
		{"Referrer-Policy", "no-referrer"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cache-Control", "no-store"},
	};

	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	for (unsigned i = 0; i < sizeof(header) / sizeof(header[0]); i++)
		MHD_add_response_header(r, header[i][0], header[i][1]);
}

static enum MHD_Result send_it(struct MHD_Connection *c, unsigned status, struct MHD_Response *r,
			       const char *type)
{
	enum MHD_Result result;

	add_headers(r, type);
	result = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *why)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%u: %s\n", status, why);
	struct MHD_Response *r =
		MHD_create_response_from_buffer((size_t)n, text, MHD_RESPMEM_MUST_COPY);

	if (!r)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET);
	return send_it(c, status, r, "text/plain; charset=utf-8");
}

static enum MHD_Result send_page(struct MHD_Connection *c)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		strlen(tool_web_html), (void *)(uintptr_t)tool_web_html, MHD_RESPMEM_PERSISTENT);

	return r ? send_it(c, MHD_HTTP_OK, r, "text/html; charset=utf-8") : MHD_NO;
}

static enum MHD_Result send_live(struct tool_web_server *s, struct MHD_Connection *c)
{
	int64_t age_ms;
	char *text = tool_web_watch_read(s->watch, &age_ms), age[24];
	struct MHD_Response *r;

	if (!text)
		return MHD_NO;
	r = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(text);
		return MHD_NO;
	}
	snprintf(age, sizeof(age), "%lld", (long long)(age_ms / 1000));
	MHD_add_response_header(r, MHD_HTTP_HEADER_AGE, age);
	return send_it(c, MHD_HTTP_OK, r, "application/json");
}

/*
 * Called when the headers have arrived, and again with the rest of the request. A reply at the
 * first call closes the connection, which is right for a refusal.
 */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **state)
{
	struct tool_web_server *s = arg;
	struct tool_web_request r = {.method = method, .path = url};
	enum tool_web_page page;
	const char *why;
	unsigned status;

	(void)version;
	(void)upload;
	if (*upload_size)
		return MHD_NO; /* a GET with a body */
	MHD_get_connection_values(c, MHD_HEADER_KIND, count_host, &r);
	r.token = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
	r.origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN);
	r.site = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Sec-Fetch-Site");
	status = tool_web_check(&r, s->token, &page, &why);
	if (status)
		return refuse(c, status, why);
	if (!*state) {
		*state = s;
		return MHD_YES;
	}
	forget(s, MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
	return page == TOOL_WEB_HTML ? send_page(c) : send_live(s, c);
}

/* ---- the server ---- */

static int listen_here(uint16_t port, int *ret_fd, uint16_t *ret_port, struct sio_err *reterr)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int one = 1, r, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return sio_fail(reterr, -errno, "a socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, SOMAXCONN) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) < 0) {
		r = sio_fail(reterr, -errno, "cannot listen on 127.0.0.1:%u: %s%s", port,
			     strerror(errno),
			     errno == EADDRINUSE ? "; without --port a free one is taken" : "");
		close(fd);
		return r;
	}
	*ret_fd = fd;
	*ret_port = ntohs(at.sin_port);
	return 0;
}

static void log_nothing(void *arg, const char *fmt, va_list ap)
{
	(void)arg;
	(void)fmt;
	(void)ap;
}

int tool_web_server_start(uint16_t port, const char token[TOOL_WEB_TOKEN + 1],
			  struct tool_web_watch *watch, struct tool_web_server **ret,
			  uint16_t *ret_port, struct sio_err *reterr)
{
	struct tool_web_server *s;
	int fd = -1, r = listen_here(port, &fd, ret_port, reterr);

	if (r < 0)
		return r;
	s = tool_alloc(1, sizeof(*s));
	s->watch = watch;
	memcpy(s->token, token, sizeof(s->token));
	s->daemon = MHD_start_daemon(
		MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		on_request, s, MHD_OPTION_EXTERNAL_LOGGER, log_nothing, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS_MOST, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_EACH,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
	if (!s->daemon) {
		free(s);
		close(fd);
		return sio_fail(reterr, -ENOMEM, "libmicrohttpd cannot start a server");
	}
	*ret = s;
	return 0;
}

void tool_web_server_stop(struct tool_web_server *s)
{
	MHD_stop_daemon(s->daemon); /* closes its socket */
	free(s);
}
