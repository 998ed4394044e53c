/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Daemons of different machines: TLS 1.3 over TCP, at the addresses of the topology. Both ends show
 * a certificate of their cluster's CA, which names the host. The keys are read again when their
 * folder changes; connections of hosts that are revoked by that are closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include <gnutls/crypto.h>

#include "smartiod/live/tls.h"
#include "smartiod/live/transport.h"

#define TCP_BACKLOG 128
#define TCP_IDLE_S 5 /* then it is asked whether it is there ... */
#define TCP_ASK_S 2  /* ... so often ... */
#define TCP_ASK_TIMES 5
#define TCP_UNHEARD_MS 15000 /* what was sent and is not acknowledged by then: it is gone */
#define SOON_DAYS 30	     /* before a certificate's end it is said that it comes */

struct live_tls {
	char folder[LIVE_PATH];
	struct tls_keys *keys;
	sd_event_source *watch;
};

/* ---- addresses ---- */

static socklen_t to_sockaddr(const struct sio_topo_address *a, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};

	if (a->v6) {
		memcpy(&v6.sin6_addr, a->ip, sizeof(v6.sin6_addr));
		memcpy(ret, &v6, sizeof(v6));
		return sizeof(v6);
	}
	memcpy(&v4.sin_addr, a->ip, sizeof(v4.sin_addr));
	memcpy(ret, &v4, sizeof(v4));
	return sizeof(v4);
}

static void address_text(const struct sio_topo_address *a, bool port, char out[LIVE_SOURCE])
{
	char ip[INET6_ADDRSTRLEN] = "";

	inet_ntop(a->v6 ? AF_INET6 : AF_INET, a->ip, ip, sizeof(ip));
	if (port)
		snprintf(out, LIVE_SOURCE, a->v6 ? "[%s]:%u" : "%s:%u", ip, a->port);
	else
		snprintf(out, LIVE_SOURCE, "%s", ip);
}

/* Without the port: limits are for all that comes from there. */
static void source_of(int fd, char out[LIVE_SOURCE])
{
	struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(from);
	struct sio_topo_address a = {.port = 0};

	snprintf(out, LIVE_SOURCE, "?");
	if (getpeername(fd, (struct sockaddr *)&from, &len) < 0)
		return;
	a.v6 = from.ss_family == AF_INET6;
	if (a.v6)
		memcpy(a.ip, &((struct sockaddr_in6 *)&from)->sin6_addr, 16);
	else
		memcpy(a.ip, &((struct sockaddr_in *)&from)->sin_addr, 4);
	address_text(&a, false, out);
}

static int tcp_socket(const struct sio_topo_address *a, struct sio_err *reterr)
{
	int fd = socket(a->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? sio_fail(reterr, -errno, "socket: %s", strerror(errno)) : fd;
}

/* A machine that lost its power says no more than one that has nothing to say. */
static void watch_over(int fd)
{
	static const struct {
		int level, name, value;
	} option[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
		      {SOL_SOCKET, SO_KEEPALIVE, 1},
		      {IPPROTO_TCP, TCP_KEEPIDLE, TCP_IDLE_S},
		      {IPPROTO_TCP, TCP_KEEPINTVL, TCP_ASK_S},
		      {IPPROTO_TCP, TCP_KEEPCNT, TCP_ASK_TIMES},
		      {IPPROTO_TCP, TCP_USER_TIMEOUT, TCP_UNHEARD_MS}};

	for (unsigned i = 0; i < sizeof(option) / sizeof(option[0]); i++)
		setsockopt(fd, option[i].level, option[i].name, &option[i].value, sizeof(int));
}

/* ---- keys ---- */

static void log_expiry(struct live *l)
{
	long days = tls_keys_days(l->tls->keys);

	struct sio_err err;

	if (tls_keys_own(l->tls->keys, l->tls->folder, l->host->name, &err) < 0)
		live_log(l, LOG_WARNING,
			 "%s: other hosts refuse it; mend: smartio cluster keys --renew %s",
			 err.text, l->host->name);
	else if (days < SOON_DAYS)
		live_log(l, LOG_WARNING,
			 "%s/%s.pem expires in %ld days; mend: smartio cluster keys --renew %s",
			 l->tls->folder, l->host->name, days, l->host->name);
}

/*
 * What is not whole yet will be: the one before counts until then. A certificate of our own that
 * others refuse keeps no list of revoked ones out.
 */
static int on_change(sd_event_source *s, const struct inotify_event *event, void *data)
{
	struct live *l = data;
	struct tls_keys *keys;
	struct sio_err err;

	(void)s;
	(void)event;
	if (tls_keys_load(l->tls->folder, l->topology->name, l->host->name, &keys, &err) < 0) {
		live_log(l, LOG_WARNING, "%s: the keys in use stay", err.text);
		return 0;
	}
	tls_keys_unref(l->tls->keys);
	l->tls->keys = keys;
	live_log(l, LOG_INFO, "%s: keys read anew", l->tls->folder);
	log_expiry(l);
	live_peers_check(l);
	return 0;
}

static int open_keys(struct live *l, struct sio_err *reterr)
{
	struct live_tls *t = l->tls;
	int r;

	if (l->options.keys)
		r = snprintf(t->folder, sizeof(t->folder), "%s", l->options.keys);
	else
		r = snprintf(t->folder, sizeof(t->folder), "%s/keys", l->options.state);
	if (r >= (int)sizeof(t->folder))
		return sio_fail(reterr, -ENAMETOOLONG, "folder of keys: name too long");
	/* Watched first: no change is missed. */
	r = sd_event_add_inotify(l->event, &t->watch, t->folder,
				 IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR, on_change, l);
	if (r < 0)
		return sio_fail(reterr, r, "%s: %s; keys are made by: smartio cluster keys",
				t->folder, strerror(-r));
	r = tls_keys_load(t->folder, l->topology->name, l->host->name, &t->keys, reterr);
	if (r == 0)
		r = tls_keys_own(t->keys, t->folder, l->host->name, reterr);
	if (r == 0)
		log_expiry(l);
	return r;
}

/* ---- the transport ---- */

static int tls_listen(struct live *l, void (*accepted)(struct live *l, int fd),
		      struct sio_err *reterr)
{
	const struct sio_topo_address *a = &l->host->address;
	struct sockaddr_storage to;
	socklen_t len = to_sockaddr(a, &to);
	char text[LIVE_SOURCE];
	int fd, on = 1, r;

	address_text(a, true, text);
	fd = tcp_socket(a, reterr);
	if (fd < 0)
		return sio_fail_prefix(reterr, "%s", text);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->v6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&to, len) < 0 || listen(fd, TCP_BACKLOG) < 0) {
		r = sio_fail(reterr, -errno, "address %s of host '%s': %s", text, l->host->name,
			     strerror(errno));
		close(fd);
		return r;
	}
	return live_listener_init_fd(&l->peers_listener, l, text, fd, accepted, reterr);
}

/* SHA-256 does not fail; if it did, the file would be as another one's. */
static void tls_digest(struct live *l)
{
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, l->file.text, l->file.len, l->digest) < 0)
		memset(l->digest, 0, sizeof(l->digest));
}

static int tls_open(struct live *l, void (*accepted)(struct live *l, int fd),
		    struct sio_err *reterr)
{
	int r;

	l->tls = calloc(1, sizeof(*l->tls));
	if (!l->tls)
		return sio_no_memory(reterr, "the connections between machines");
	tls_digest(l);
	r = open_keys(l, reterr);
	return r < 0 ? r : tls_listen(l, accepted, reterr);
}

static void tls_close(struct live *l)
{
	live_listener_done(&l->peers_listener);
	if (!l->tls)
		return;
	sd_event_source_disable_unref(l->tls->watch);
	tls_keys_unref(l->tls->keys);
	free(l->tls);
	l->tls = NULL;
}

/* Takes @fd. */
static int start(struct live *l, int fd, const char *expected, const char *source,
		 struct live_conn *c, const struct live_conn_handler *handler, void *ctx,
		 struct sio_err *reterr)
{
	struct tls_session *s;
	int r;

	watch_over(fd);
	r = tls_session_new(l->tls->keys, fd, expected, source, &s, reterr);
	if (r < 0) {
		close(fd);
		return r;
	}
	r = live_conn_init_io(c, l->event, fd, LIVE_PEER_QUEUE, handler, ctx, &tls_session_io, s);
	return r < 0 ? sio_fail(reterr, r, "%s: %s", source, strerror(-r)) : 0;
}

static int tls_connect(struct live *l, const struct sio_topo_host *to, struct live_conn *c,
		       const struct live_conn_handler *handler, void *ctx, struct sio_err *reterr)
{
	struct sockaddr_storage address;
	socklen_t len = to_sockaddr(&to->address, &address);
	char text[LIVE_SOURCE];
	int fd, r;

	address_text(&to->address, true, text);
	fd = tcp_socket(&to->address, reterr);
	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&address, len) < 0 && errno != EINPROGRESS) {
		r = sio_fail(reterr, -errno, "%s: %s", text, strerror(errno));
		close(fd);
		return r;
	}
	return start(l, fd, to->name, text, c, handler, ctx, reterr);
}

static int tls_accept(struct live *l, int fd, struct live_conn *c,
		      const struct live_conn_handler *handler, void *ctx, struct sio_err *reterr)
{
	char source[LIVE_SOURCE];

	source_of(fd, source);
	return start(l, fd, NULL, source, c, handler, ctx, reterr);
}

static int tls_check(struct live *l, struct live_conn *c, const struct sio_topo_host *host,
		     pid_t *ret_pid, struct sio_err *reterr)
{
	const char *name = tls_session_host(c->io_ctx);
	int r;

	*ret_pid = 0;
	/* The keys may have been read again since its handshake began. */
	r = tls_session_verify(c->io_ctx, l->tls->keys, reterr);
	if (r < 0)
		return r;
	if (name && strcmp(name, host->name) == 0)
		return 0;
	return sio_fail(reterr, -EACCES,
			"it says that it is host '%s', and its certificate that it is '%s'",
			host->name, name ? name : "?");
}

static void tls_source(const struct live_conn *c, char out[LIVE_SOURCE])
{
	snprintf(out, LIVE_SOURCE, "%s", tls_session_source(c->io_ctx));
}

/* Was its certificate revoked? */
static int tls_recheck(struct live *l, struct live_conn *c, struct sio_err *reterr)
{
	return tls_session_verify(c->io_ctx, l->tls->keys, reterr);
}

const struct live_transport live_transport_tls = {
	.open = tls_open,
	.close = tls_close,
	.connect = tls_connect,
	.accept = tls_accept,
	.check = tls_check,
	.source = tls_source,
	.recheck = tls_recheck,
	.digest = tls_digest,
	.welcomes = true,
};
