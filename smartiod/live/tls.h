/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS 1.3 between daemons, by GnuTLS: this host's keys, and one session. */
#ifndef SMARTIOD_LIVE_TLS_H
#define SMARTIOD_LIVE_TLS_H

#include <gnutls/gnutls.h>

#include "core/err.h"
#include "core/topology.h"
#include "smartiod/live/conn.h"
#include "wire/identity.h"

/* ---- tls_keys.c ---- */

/*
 * What a daemon has of its cluster's keys, from one folder: ca.pem, crl.pem, HOST.pem, HOST.key.
 * Counted, for sessions that began with it keep it when it is read again.
 */
struct tls_keys {
	unsigned refs;
	char cluster[SIO_NAME_LEN];
	gnutls_certificate_credentials_t cred;
};

/*
 * Read them, and see that they are this host's, and of this cluster. -errno with a text that names
 * the file, and what would be right. That this host's own certificate has expired or was revoked is
 * no error: what the folder says of others counts all the same.
 */
int tls_keys_load(const char *folder, const char *cluster, const char *host, struct tls_keys **ret,
		  struct sio_err *reterr);
/*
 * Is our own certificate one that others accept: of today, not revoked? -EACCES or -EKEYREVOKED
 * with a text as above.
 */
int tls_keys_own(const struct tls_keys *k, const char *folder, const char *host,
		 struct sio_err *reterr);
struct tls_keys *tls_keys_ref(struct tls_keys *k);
void tls_keys_unref(struct tls_keys *k); /* NULL is fine */
/*
 * Is @der a certificate of a host of this cluster, made by its CA, of today, not revoked? Return: 0
 * and whose it is; -EKEYREVOKED if it was revoked, else -EACCES, with a text.
 */
int tls_keys_verify(const struct tls_keys *k, const gnutls_datum_t *der, struct sio_identity *ret,
		    struct sio_err *reterr);
/* Days until our own certificate ends; negative: it has. */
long tls_keys_days(const struct tls_keys *k);

/* ---- tls_session.c ---- */

struct tls_session;

/*
 * A session over @fd, for a connection with tls_session_io. @expected: the host that we connect to
 * (its TCP connection may not be there yet); NULL: @fd was accepted. @source: where it comes from.
 */
int tls_session_new(struct tls_keys *k, int fd, const char *expected, const char *source,
		    struct tls_session **ret, struct sio_err *reterr);
extern const struct live_conn_io tls_session_io; /* io_ctx: a struct tls_session */
const char *tls_session_source(const struct tls_session *s);
/* The host at the other end; NULL: it has not shown its certificate yet. */
const char *tls_session_host(const struct tls_session *s);
/* Is the certificate that it showed one by @k, too? Return: 0; or as there. */
int tls_session_verify(const struct tls_session *s, const struct tls_keys *k,
		       struct sio_err *reterr);

#endif
