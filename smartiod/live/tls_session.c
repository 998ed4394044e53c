/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TLS session as a connection's packets. Outgoing data goes through memory: GnuTLS never waits
 * for the socket, and a packet is accepted whole or not at all.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "smartiod/live/tls.h"
#include "smartiod/live/transport.h"
#include "wire/frame.h"

#define TLS_PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3"
#define TLS_BEFORE (64u << 10)	/* bytes from whoever has not shown its certificate */
#define TLS_HANDSHAKE_MAX 16384 /* bytes of one message of a handshake */
#define TLS_OUT (64u << 10)   /* bytes that wait for the socket: a packet or a handshake's flight */
#define TLS_PIECE (16u << 10) /* the largest record */
#define TLS_ALERTS 8	      /* warnings within one turn */

enum tls_state {
	TLS_CONNECTING, /* TCP is not there yet */
	TLS_HANDSHAKE,
	TLS_OPEN,
	TLS_FAILED, /* err says why */
};

struct tls_session {
	gnutls_session_t tls;
	struct tls_keys *keys;
	enum tls_state state;
	int fd;
	char source[LIVE_SOURCE], expected[SIO_NAME_LEN];
	struct sio_identity who;
	bool known; /* who it is */
	gnutls_datum_t certificate;
	struct sio_err err;
	size_t before; /* bytes that came before it was open */
	size_t out_len;
	size_t in_at, in_len; /* decrypted, and not yet taken */
	struct sio_frame frame;
	uint8_t out[TLS_OUT], in[TLS_PIECE];
};

const char *tls_session_source(const struct tls_session *s)
{
	return s->source;
}

const char *tls_session_host(const struct tls_session *s)
{
	return s->known ? s->who.host : NULL;
}

/* ---- GnuTLS's way to the socket ---- */

static ssize_t pull(gnutls_transport_ptr_t ptr, void *data, size_t size)
{
	struct tls_session *s = ptr;
	ssize_t n;

	if (s->state != TLS_OPEN && s->before >= TLS_BEFORE) {
		sio_fail(&s->err, -EPROTO, "more than %u bytes before it showed who it is",
			 TLS_BEFORE);
		gnutls_transport_set_errno(s->tls, EIO);
		return -1;
	}
	do
		n = recv(s->fd, data, size, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		gnutls_transport_set_errno(s->tls, errno);
	else
		s->before += (size_t)n;
	return n;
}

static int pull_timeout(gnutls_transport_ptr_t ptr, unsigned ms)
{
	struct tls_session *s = ptr;
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	(void)ms;
	return poll(&p, 1, 0);
}

static ssize_t push(gnutls_transport_ptr_t ptr, const void *data, size_t size)
{
	struct tls_session *s = ptr;

	if (size > TLS_OUT - s->out_len) {
		gnutls_transport_set_errno(s->tls, ENOBUFS);
		return -1;
	}
	memcpy(s->out + s->out_len, data, size);
	s->out_len += size;
	return (ssize_t)size;
}

/* What the socket takes of what waits. Return: 0; -errno. */
static int drain(struct tls_session *s)
{
	size_t at = 0;

	while (at < s->out_len) {
		ssize_t n = send(s->fd, s->out + at, s->out_len - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	memmove(s->out, s->out + at, s->out_len - at);
	s->out_len -= at;
	return 0;
}

/* ---- who is there ---- */

static int fail(struct live_conn *c, int error)
{
	struct tls_session *s = c->io_ctx;

	if (s->state == TLS_FAILED)
		return s->err.code;
	s->state = TLS_FAILED;
	s->err.code = error;
	if (*s->err.text)
		c->why = s->err.text;
	return error;
}

static int keep_certificate(struct tls_session *s)
{
	unsigned n = 0;
	const gnutls_datum_t *list = gnutls_certificate_get_peers(s->tls, &n);

	if (!list || n == 0)
		return sio_fail(&s->err, -EACCES, "it shows no certificate");
	s->certificate.data = gnutls_malloc(list[0].size);
	if (!s->certificate.data)
		return sio_no_memory(&s->err, "a certificate");
	memcpy(s->certificate.data, list[0].data, list[0].size);
	s->certificate.size = list[0].size;
	return 0;
}

/* Called in the handshake, so that the other end hears of a refusal. */
static int verify(gnutls_session_t tls)
{
	struct tls_session *s = gnutls_session_get_ptr(tls);
	int r;

	if (!s->certificate.data && keep_certificate(s) < 0)
		return GNUTLS_E_CERTIFICATE_ERROR;
	r = tls_keys_verify(s->keys, &s->certificate, &s->who, &s->err);
	if (r == 0 && *s->expected && strcmp(s->who.host, s->expected) != 0)
		r = sio_fail(&s->err, -EACCES,
			     "its certificate is of host '%s'; that of '%s' is right", s->who.host,
			     s->expected);
	s->known = r == 0;
	return r < 0 ? GNUTLS_E_CERTIFICATE_ERROR : 0;
}

int tls_session_verify(const struct tls_session *s, const struct tls_keys *k,
		       struct sio_err *reterr)
{
	struct sio_identity who;

	return s->known ? tls_keys_verify(k, &s->certificate, &who, reterr) : 0;
}

/* ---- the handshake ---- */

static int handshake_failed(struct live_conn *c, int r)
{
	struct tls_session *s = c->io_ctx;

	drain(s); /* the alert that tells the other end */
	if (*s->err.text)
		return fail(c, s->err.code == -EPROTO ? -EPROTO : -EACCES);
	switch (r) {
	case GNUTLS_E_NO_CERTIFICATE_FOUND:
	case GNUTLS_E_CERTIFICATE_REQUIRED:
		sio_fail(&s->err, -EACCES, "it shows no certificate");
		break;
	case GNUTLS_E_FATAL_ALERT_RECEIVED:
		sio_fail(&s->err, -EACCES, "it refuses us: %s",
			 gnutls_alert_get_name(gnutls_alert_get(s->tls)));
		break;
	case GNUTLS_E_PREMATURE_TERMINATION:
	case GNUTLS_E_PULL_ERROR:
		/* A daemon that has just ended is no complaint; a stranger that hangs up is. */
		if (!*s->expected)
			sio_fail(&s->err, -EPROTO, "it hung up before it showed who it is");
		return fail(c, *s->expected ? -ECONNRESET : -EPROTO);
	default:
		sio_fail(&s->err, -EPROTO, "no handshake of TLS 1.3: %s", gnutls_strerror(r));
	}
	return fail(c, s->err.code);
}

static int step_connect(struct live_conn *c)
{
	struct tls_session *s = c->io_ctx;
	struct pollfd p = {.fd = s->fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&p, 1, 0) <= 0)
		return 0;
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		sio_fail(&s->err, -error, "%s: %s", s->source, strerror(error));
		return fail(c, -error);
	}
	s->state = TLS_HANDSHAKE;
	return 0;
}

static int step_handshake(struct live_conn *c)
{
	struct tls_session *s = c->io_ctx;
	int r = GNUTLS_E_AGAIN;

	for (int i = 0; i < TLS_ALERTS; i++) {
		r = gnutls_handshake(s->tls);
		if (r != GNUTLS_E_WARNING_ALERT_RECEIVED && r != GNUTLS_E_INTERRUPTED)
			break;
	}
	if (r < 0 && r != GNUTLS_E_AGAIN)
		return handshake_failed(c, r);
	if (r == 0)
		s->state = TLS_OPEN;
	return 0;
}

/* As far as it goes without waiting. Return: 0; -errno: it has failed. */
static int session_flush(struct live_conn *c)
{
	struct tls_session *s = c->io_ctx;
	int r = 0;

	if (s->state == TLS_CONNECTING)
		r = step_connect(c);
	if (r == 0 && s->state == TLS_HANDSHAKE)
		r = step_handshake(c);
	if (r < 0 || s->state == TLS_FAILED)
		return s->err.code;
	r = drain(s);
	return r == -EPIPE || r == -ECONNRESET ? r : r < 0 ? fail(c, r) : 0;
}

/* ---- packets ---- */

static ssize_t session_send(struct live_conn *c, const void *buf, size_t len, const int *fds,
			    unsigned n_fds)
{
	struct tls_session *s = c->io_ctx;
	uint8_t frame[sizeof(struct sio_frame_header) + SIO_WIRE_MAX];
	struct sio_frame_header h = sio_frame_header(len);
	ssize_t n;
	int r;

	(void)fds;
	if (n_fds > 0 || len == 0 || len > SIO_WIRE_MAX) {
		sio_fail(&s->err, -EOPNOTSUPP,
			 "a message of %zu bytes with %u descriptors; 1 to %d bytes and none go to "
			 "another machine",
			 len, n_fds, SIO_WIRE_MAX);
		return fail(c, -EOPNOTSUPP);
	}
	r = session_flush(c);
	if (r < 0)
		return r;
	if (s->state != TLS_OPEN || s->out_len > 0)
		return -EAGAIN;
	memcpy(frame, &h, sizeof(h));
	memcpy(frame + sizeof(h), buf, len);
	n = gnutls_record_send(s->tls, frame, sizeof(h) + len);
	if (n != (ssize_t)(sizeof(h) + len)) {
		sio_fail(&s->err, -EIO, "%s", n < 0 ? gnutls_strerror((int)n) : "cut short");
		return fail(c, -EIO);
	}
	r = drain(s);
	return r < 0 ? r : (ssize_t)len;
}

/* More of the stream. Return: 1; 0 the end; -EAGAIN; another -errno. */
static int read_more(struct live_conn *c)
{
	struct tls_session *s = c->io_ctx;
	ssize_t n = gnutls_record_recv(s->tls, s->in, sizeof(s->in));

	s->in_at = 0;
	s->in_len = n > 0 ? (size_t)n : 0;
	if (n > 0)
		return 1;
	if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ||
	    n == GNUTLS_E_WARNING_ALERT_RECEIVED)
		return -EAGAIN;
	if (n == 0)
		return 0;
	if (n == GNUTLS_E_PREMATURE_TERMINATION || n == GNUTLS_E_PULL_ERROR)
		return fail(c, -ECONNRESET);
	if (n == GNUTLS_E_FATAL_ALERT_RECEIVED)
		sio_fail(&s->err, -EACCES, "it refuses us: %s",
			 gnutls_alert_get_name(gnutls_alert_get(s->tls)));
	else
		sio_fail(&s->err, -EPROTO, "%s", gnutls_strerror((int)n));
	return fail(c, s->err.code);
}

static ssize_t session_recv(struct live_conn *c, void *buf, size_t len, int *fds,
			    unsigned *ret_n_fds)
{
	struct tls_session *s = c->io_ctx;
	size_t used;
	int r;

	(void)fds;
	*ret_n_fds = 0;
	r = session_flush(c);
	if (s->state == TLS_FAILED)
		return s->err.code;
	if (s->state != TLS_OPEN)
		return r < 0 ? fail(c, r) : -EAGAIN;
	for (;;) {
		r = sio_frame_take(&s->frame, s->in + s->in_at, s->in_len - s->in_at, &used,
				   &s->err);
		s->in_at += used;
		if (r < 0)
			return fail(c, r);
		if (r == 1)
			break;
		r = read_more(c);
		if (r <= 0)
			return r;
	}
	if (s->frame.length > len)
		return fail(c, -EMSGSIZE);
	memcpy(buf, s->frame.message, s->frame.length);
	return (ssize_t)s->frame.length;
}

static uint32_t session_events(const struct live_conn *c, bool queued)
{
	const struct tls_session *s = c->io_ctx;
	bool out = s->state == TLS_CONNECTING || s->out_len > 0 || (s->state == TLS_OPEN && queued);

	return out ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

static bool session_pending(const struct live_conn *c)
{
	const struct tls_session *s = c->io_ctx;

	return s->in_at < s->in_len || gnutls_record_check_pending(s->tls) > 0;
}

static void session_free(struct tls_session *s)
{
	if (s->tls)
		gnutls_deinit(s->tls);
	tls_keys_unref(s->keys);
	gnutls_free(s->certificate.data);
	free(s);
}

static void session_done(struct live_conn *c)
{
	struct tls_session *s = c->io_ctx;

	/* A clean end, if the socket takes it; the end of TCP says the same. */
	if (s->state == TLS_OPEN)
		gnutls_bye(s->tls, GNUTLS_SHUT_WR);
	drain(s);
	c->why = NULL;
	session_free(s);
}

const struct live_conn_io tls_session_io = {
	.send = session_send,
	.recv = session_recv,
	.events = session_events,
	.flush = session_flush,
	.pending = session_pending,
	.done = session_done,
};

static int set_up(struct tls_session *s, bool connects)
{
	int r = gnutls_init(&s->tls, (connects ? GNUTLS_CLIENT : GNUTLS_SERVER) | GNUTLS_NONBLOCK |
					     GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);

	if (r >= 0)
		r = gnutls_priority_set_direct(s->tls, TLS_PRIORITY, NULL);
	if (r >= 0)
		r = gnutls_credentials_set(s->tls, GNUTLS_CRD_CERTIFICATE, s->keys->cred);
	if (r < 0)
		return r;
	if (!connects)
		gnutls_certificate_server_set_request(s->tls, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_ptr(s->tls, s);
	gnutls_session_set_verify_function(s->tls, verify);
	gnutls_handshake_set_max_packet_length(s->tls, TLS_HANDSHAKE_MAX);
	gnutls_transport_set_ptr(s->tls, s);
	gnutls_transport_set_push_function(s->tls, push);
	gnutls_transport_set_pull_function(s->tls, pull);
	gnutls_transport_set_pull_timeout_function(s->tls, pull_timeout);
	return 0;
}

int tls_session_new(struct tls_keys *k, int fd, const char *expected, const char *source,
		    struct tls_session **ret, struct sio_err *reterr)
{
	struct tls_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return sio_no_memory(reterr, "a TLS session");
	s->keys = tls_keys_ref(k);
	s->fd = fd;
	s->state = expected ? TLS_CONNECTING : TLS_HANDSHAKE;
	snprintf(s->source, sizeof(s->source), "%s", source);
	snprintf(s->expected, sizeof(s->expected), "%s", expected ? expected : "");
	r = set_up(s, expected);
	if (r < 0) {
		session_free(s);
		return sio_fail(reterr, -ENOMEM, "TLS: %s", gnutls_strerror(r));
	}
	*ret = s;
	return 0;
}
