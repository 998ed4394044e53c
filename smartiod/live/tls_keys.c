/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <gnutls/x509.h>

#include "smartiod/live/tls.h"

#define MEND "make them by: smartio cluster keys"
/* What a certificate becomes by itself, or by a new list. */
#define LAPSED (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_REVOKED)

static int key_path(const char *folder, const char *name, const char *end, char *ret,
		    struct sio_err *reterr)
{
	if (snprintf(ret, PATH_MAX, "%s/%s%s", folder, name, end) >= PATH_MAX)
		return sio_fail(reterr, -ENAMETOOLONG, "%s: name too long", folder);
	return 0;
}

/* A private key that others can read is not private. */
static int check_mode(const char *path, struct sio_err *reterr)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return sio_fail(reterr, -errno, "%s: %s; " MEND, path, strerror(errno));
	if (st.st_mode & 077)
		return sio_fail(reterr, -EACCES,
				"%s: mode %04o, so others may read this private key; mend: "
				"chmod 600 %s",
				path, (unsigned)(st.st_mode & 07777), path);
	return 0;
}

static int fail_file(struct sio_err *reterr, const char *path, int r)
{
	return sio_fail(reterr, -EINVAL, "%s: %s; " MEND, path,
			r == GNUTLS_E_FILE_ERROR ? "cannot be read"
			: r == 0		 ? "holds no certificate"
						 : gnutls_strerror(r));
}

/* A list by another CA would revoke nothing. */
static int crl_is_of(const gnutls_datum_t *crl_text, const gnutls_datum_t *ca_text)
{
	gnutls_x509_crl_t crl = NULL;
	gnutls_x509_crt_t ca = NULL;
	unsigned status = 0;
	int r = gnutls_x509_crl_init(&crl);

	if (r >= 0)
		r = gnutls_x509_crt_init(&ca);
	if (r >= 0)
		r = gnutls_x509_crl_import(crl, crl_text, GNUTLS_X509_FMT_PEM);
	if (r >= 0)
		r = gnutls_x509_crt_import(ca, ca_text, GNUTLS_X509_FMT_PEM);
	if (r >= 0)
		r = gnutls_x509_crl_verify(crl, &ca, 1, 0, &status);
	if (crl)
		gnutls_x509_crl_deinit(crl);
	if (ca)
		gnutls_x509_crt_deinit(ca);
	if (r < 0)
		return r;
	return status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA |
			 GNUTLS_CERT_SIGNATURE_FAILURE)
		       ? -1
		       : 0;
}

static int check_crl(const char *crl, const char *ca, struct sio_err *reterr)
{
	gnutls_datum_t crl_text = {NULL, 0}, ca_text = {NULL, 0};
	int r = gnutls_load_file(crl, &crl_text);

	if (r >= 0)
		r = gnutls_load_file(ca, &ca_text);
	if (r >= 0)
		r = crl_is_of(&crl_text, &ca_text);
	gnutls_free(crl_text.data);
	gnutls_free(ca_text.data);
	return r < 0 ? sio_fail(reterr, -EINVAL,
				"%s: is not by the CA in %s, so that it would revoke nothing", crl,
				ca)
		     : 0;
}

static int load_files(struct tls_keys *k, const char *folder, const char *host,
		      struct sio_err *reterr)
{
	char ca[PATH_MAX], crl[PATH_MAX], cert[PATH_MAX], key[PATH_MAX];
	int r;

	if (key_path(folder, "ca", ".pem", ca, reterr) < 0 ||
	    key_path(folder, "crl", ".pem", crl, reterr) < 0 ||
	    key_path(folder, host, ".pem", cert, reterr) < 0 ||
	    key_path(folder, host, ".key", key, reterr) < 0)
		return -ENAMETOOLONG;
	r = gnutls_certificate_set_x509_trust_file(k->cred, ca, GNUTLS_X509_FMT_PEM);
	if (r <= 0)
		return fail_file(reterr, ca, r);
	/* Without a list of what is revoked nothing would be: that file is not to get lost. */
	r = gnutls_certificate_set_x509_crl_file(k->cred, crl, GNUTLS_X509_FMT_PEM);
	if (r <= 0)
		return fail_file(reterr, crl, r);
	r = check_crl(crl, ca, reterr);
	if (r < 0)
		return r;
	r = check_mode(key, reterr);
	if (r < 0)
		return r;
	r = gnutls_certificate_set_x509_key_file(k->cred, cert, key, GNUTLS_X509_FMT_PEM);
	return r < 0 ? fail_file(reterr, cert, r) : 0;
}

struct tls_keys *tls_keys_ref(struct tls_keys *k)
{
	k->refs++;
	return k;
}

void tls_keys_unref(struct tls_keys *k)
{
	if (!k || --k->refs > 0)
		return;
	gnutls_certificate_free_credentials(k->cred);
	free(k);
}

/* The one name of ours among a certificate's. */
static int read_identity(gnutls_x509_crt_t crt, struct sio_identity *ret)
{
	int found = -ENOENT;

	for (unsigned i = 0; i < 16; i++) {
		char name[SIO_IDENTITY_TEXT];
		size_t len = sizeof(name);
		int type = gnutls_x509_crt_get_subject_alt_name(crt, i, name, &len, NULL);

		if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			break;
		if (type != GNUTLS_SAN_URI || sio_identity_parse(name, len, ret) < 0)
			continue;
		if (found == 0)
			return -EEXIST; /* it may not choose who it is */
		found = 0;
	}
	return found;
}

/* @forgiven: flags of gnutls_certificate_status_t that are not looked at. */
static int verify_chain(const struct tls_keys *k, gnutls_x509_crt_t crt, unsigned forgiven,
			struct sio_err *reterr)
{
	gnutls_x509_trust_list_t list;
	gnutls_datum_t text;
	unsigned status = 0;
	int r;

	gnutls_certificate_get_trust_list(k->cred, &list);
	r = gnutls_x509_trust_list_verify_crt2(list, &crt, 1, NULL, 0, 0, &status, NULL);
	if (r < 0)
		return sio_fail(reterr, -EACCES, "its certificate: %s", gnutls_strerror(r));
	/* That it is invalid is said beside each reason. */
	if (status & forgiven && !(status & ~forgiven & ~GNUTLS_CERT_INVALID))
		status = 0;
	if (status == 0)
		return 0;
	if (status & GNUTLS_CERT_REVOKED)
		return sio_fail(reterr, -EKEYREVOKED, "its certificate was revoked");
	if (status & GNUTLS_CERT_EXPIRED)
		return sio_fail(reterr, -EACCES, "its certificate has expired");
	if (status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNATURE_FAILURE))
		return sio_fail(reterr, -EACCES,
				"its certificate is not by the CA of cluster '%s' (ca.pem)",
				k->cluster);
	r = gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
	sio_fail(reterr, -EACCES, "its certificate: %s", r < 0 ? "invalid" : (char *)text.data);
	if (r >= 0)
		gnutls_free(text.data);
	return -EACCES;
}

static int verify(const struct tls_keys *k, const gnutls_datum_t *der, unsigned forgiven,
		  struct sio_identity *ret, struct sio_err *reterr)
{
	struct sio_identity who = {.host = ""};
	gnutls_x509_crt_t crt;
	int r;

	r = gnutls_x509_crt_init(&crt);
	if (r < 0)
		return sio_fail(reterr, -EACCES, "its certificate: %s", gnutls_strerror(r));
	r = gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER);
	if (r < 0) {
		r = sio_fail(reterr, -EACCES, "its certificate: %s", gnutls_strerror(r));
		goto deinit_crt;
	}
	r = verify_chain(k, crt, forgiven, reterr);
	if (r < 0)
		goto deinit_crt;
	r = read_identity(crt, &who);
	if (r < 0)
		r = sio_fail(reterr, -EACCES,
			     "its certificate names %s as smartio:CLUSTER/HOST; one is right",
			     r == -EEXIST ? "several hosts" : "no host");
	else if (strcmp(who.cluster, k->cluster) != 0)
		r = sio_fail(reterr, -EACCES,
			     "its certificate is of cluster '%s'; one of '%s' is right",
			     who.cluster, k->cluster);
	else
		*ret = who;
deinit_crt:
	gnutls_x509_crt_deinit(crt);
	return r;
}

int tls_keys_verify(const struct tls_keys *k, const gnutls_datum_t *der, struct sio_identity *ret,
		    struct sio_err *reterr)
{
	return verify(k, der, 0, ret, reterr);
}

/* Others would refuse us as we would refuse them: said here, not by each of them. */
static int verify_own(const struct tls_keys *k, const char *folder, const char *host,
		      unsigned forgiven, struct sio_err *reterr)
{
	struct sio_identity who;
	gnutls_datum_t own;
	int r;

	r = gnutls_certificate_get_crt_raw(k->cred, 0, 0, &own);
	if (r < 0)
		return sio_fail(reterr, -EINVAL, "%s/%s.pem: %s", folder, host, gnutls_strerror(r));
	r = verify(k, &own, forgiven, &who, reterr);
	if (r == 0 && strcmp(who.host, host) != 0)
		r = sio_fail(reterr, -EACCES,
			     "the certificate is of host '%s'; that of '%s' is right", who.host,
			     host);
	return r < 0 ? sio_fail_prefix(reterr, "%s/%s.pem", folder, host) : 0;
}

int tls_keys_own(const struct tls_keys *k, const char *folder, const char *host,
		 struct sio_err *reterr)
{
	return verify_own(k, folder, host, 0, reterr);
}

int tls_keys_load(const char *folder, const char *cluster, const char *host, struct tls_keys **ret,
		  struct sio_err *reterr)
{
	struct tls_keys *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return sio_no_memory(reterr, "the keys");
	k->refs = 1;
	snprintf(k->cluster, sizeof(k->cluster), "%s", cluster);
	r = gnutls_certificate_allocate_credentials(&k->cred);
	if (r < 0) {
		free(k);
		return sio_fail(reterr, -ENOMEM, "keys: %s", gnutls_strerror(r));
	}
	r = load_files(k, folder, host, reterr);
	if (r == 0)
		r = verify_own(k, folder, host, LAPSED, reterr);
	if (r < 0)
		tls_keys_unref(k);
	else
		*ret = k;
	return r;
}

long tls_keys_days(const struct tls_keys *k)
{
	gnutls_x509_crt_t crt;
	gnutls_datum_t own;
	time_t end = 0;

	if (gnutls_certificate_get_crt_raw(k->cred, 0, 0, &own) < 0 ||
	    gnutls_x509_crt_init(&crt) < 0)
		return 0;
	if (gnutls_x509_crt_import(crt, &own, GNUTLS_X509_FMT_DER) >= 0)
		end = gnutls_x509_crt_get_expiration_time(crt);
	gnutls_x509_crt_deinit(crt);
	return (long)((end - time(NULL)) / 86400);
}
