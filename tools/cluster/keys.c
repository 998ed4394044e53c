/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/x509.h>

#include "base/state.h"
#include "cluster/keys.h"
#include "wire/identity.h"

#define KEYS_SERIAL 20	  /* bytes of a certificate's number */
#define KEYS_EARLY_S 3600 /* allows for a clock of another host that is behind */

struct authority {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
	int lock; /* the folder, locked; -1 */
};

static int fail_tls(struct sio_err *reterr, const char *what, int r)
{
	return sio_fail(reterr, -EINVAL, "%s: %s", what, gnutls_strerror(r));
}

/* ---- files ---- */

/* Replaces the file in one step: a reader meanwhile reads the old one. */
static int write_file(const char *folder, const char *name, mode_t mode, const void *data,
		      size_t len, struct sio_err *reterr)
{
	char path[PATH_MAX], draft[PATH_MAX];
	int fd, r;

	r = tool_path(path, sizeof(path), reterr, "%s/%s", folder, name);
	if (r == 0)
		r = tool_path(draft, sizeof(draft), reterr, "%s/.new-%s", folder, name);
	if (r < 0)
		return r;
	unlink(draft);
	fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", draft, strerror(errno));
	if (write(fd, data, len) != (ssize_t)len || fchmod(fd, mode) < 0 || fsync(fd) < 0) {
		r = sio_fail(reterr, -EIO, "%s: %s", draft, strerror(errno));
		close(fd);
		unlink(draft);
		return r;
	}
	close(fd);
	if (rename(draft, path) == 0)
		return 0;
	r = sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	unlink(draft);
	return r;
}

static int read_file(const char *folder, const char *name, gnutls_datum_t *ret,
		     struct sio_err *reterr)
{
	char path[PATH_MAX];
	int r = tool_path(path, sizeof(path), reterr, "%s/%s", folder, name);

	if (r < 0)
		return r;
	r = gnutls_load_file(path, ret);
	if (r < 0)
		return sio_fail(reterr, -ENOENT, "%s: %s; make the cluster's keys first", path,
				errno ? strerror(errno) : gnutls_strerror(r));
	return 0;
}

static int refuse_existing(const char *folder, const char *name, struct sio_err *reterr)
{
	char path[PATH_MAX];
	int r = tool_path(path, sizeof(path), reterr, "%s/%s", folder, name);

	if (r < 0)
		return r;
	if (access(path, F_OK) == 0 || errno != ENOENT)
		return sio_fail(reterr, -EEXIST,
				"%s is there already and is not overwritten; a new folder, or "
				"--renew or --revoke, is right",
				path);
	return 0;
}

/* ---- keys and certificates ---- */

static int new_key(gnutls_x509_privkey_t *ret, struct sio_err *reterr)
{
	int r = gnutls_x509_privkey_init(ret);

	if (r < 0)
		return fail_tls(reterr, "key", r);
	r = gnutls_x509_privkey_generate(*ret, GNUTLS_PK_ECDSA,
					 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	if (r < 0)
		gnutls_x509_privkey_deinit(*ret);
	return r < 0 ? fail_tls(reterr, "key", r) : 0;
}

static int save_key(const char *folder, const char *name, gnutls_x509_privkey_t key,
		    struct sio_err *reterr)
{
	gnutls_datum_t pem;
	int r = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem);

	if (r < 0)
		return fail_tls(reterr, name, r);
	r = write_file(folder, name, 0600, pem.data, pem.size, reterr);
	gnutls_memset(pem.data, 0, pem.size);
	gnutls_free(pem.data);
	return r;
}

static int save_crt(const char *folder, const char *name, gnutls_x509_crt_t crt,
		    struct sio_err *reterr)
{
	gnutls_datum_t pem;
	int r = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem);

	if (r < 0)
		return fail_tls(reterr, name, r);
	r = write_file(folder, name, 0644, pem.data, pem.size, reterr);
	gnutls_free(pem.data);
	return r;
}

/* Sets what all certificates have in common. Return: 0 or GnuTLS's error. */
static int begin_crt(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, const char *cluster,
		     const char *name, unsigned days)
{
	unsigned char serial[KEYS_SERIAL];
	time_t now = time(NULL);
	int r;

	r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
	serial[0] = (serial[0] & 0x3f) | 0x40; /* positive, and of full length */
	if (r >= 0)
		r = gnutls_x509_crt_set_version(crt, 3);
	if (r >= 0)
		r = gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
	if (r >= 0)
		r = gnutls_x509_crt_set_activation_time(crt, now - KEYS_EARLY_S);
	if (r >= 0)
		r = gnutls_x509_crt_set_expiration_time(crt, now + (time_t)days * 86400);
	if (r >= 0)
		r = gnutls_x509_crt_set_key(crt, key);
	if (r >= 0)
		r = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0,
						  cluster, (unsigned)strlen(cluster));
	if (r >= 0)
		r = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
						  (unsigned)strlen(name));
	return r;
}

static int end_crt(gnutls_x509_crt_t crt, const struct authority *by)
{
	unsigned char id[64];
	size_t len = sizeof(id);
	int r = gnutls_x509_crt_get_key_id(crt, 0, id, &len);

	if (r >= 0)
		r = gnutls_x509_crt_set_subject_key_id(crt, id, len);
	return r >= 0 ? gnutls_x509_crt_sign2(crt, by->crt, by->key, GNUTLS_DIG_SHA256, 0) : r;
}

static void authority_done(struct authority *a)
{
	if (a->crt)
		gnutls_x509_crt_deinit(a->crt);
	if (a->key)
		gnutls_x509_privkey_deinit(a->key);
	if (a->lock >= 0)
		close(a->lock);
}

/*
 * One after the other: of two that add to issued.pem at once, or to the list of what is revoked,
 * one would be forgotten. Waits for the other, which takes milliseconds. authority_done() ends it.
 */
static int lock_folder(struct authority *a, const char *folder, struct sio_err *reterr)
{
	a->lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->lock < 0)
		return sio_fail(reterr, -errno, "%s: %s", folder, strerror(errno));
	while (flock(a->lock, LOCK_EX) < 0)
		if (errno != EINTR)
			return sio_fail(reterr, -errno, "%s: no lock: %s", folder, strerror(errno));
	return 0;
}

static int make_authority(struct authority *a, const char *folder, const char *cluster,
			  struct sio_err *reterr)
{
	int r = new_key(&a->key, reterr);

	if (r < 0) {
		a->key = NULL;
		return r;
	}
	r = gnutls_x509_crt_init(&a->crt);
	if (r >= 0)
		r = begin_crt(a->crt, a->key, cluster, "SmartIO authority", TOOL_KEYS_CA_DAYS);
	if (r >= 0)
		r = gnutls_x509_crt_set_basic_constraints(a->crt, 1, 0);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_usage(a->crt,
						  GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
	if (r >= 0)
		r = end_crt(a->crt, a);
	if (r < 0)
		return fail_tls(reterr, "ca.pem", r);
	r = save_key(folder, "ca.key", a->key, reterr);
	return r < 0 ? r : save_crt(folder, "ca.pem", a->crt, reterr);
}

static int load_authority(struct authority *a, const char *folder, struct sio_err *reterr)
{
	gnutls_datum_t pem;
	int r = lock_folder(a, folder, reterr);

	if (r == 0)
		r = read_file(folder, "ca.pem", &pem, reterr);
	if (r < 0)
		return r;
	r = gnutls_x509_crt_init(&a->crt);
	if (r >= 0)
		r = gnutls_x509_crt_import(a->crt, &pem, GNUTLS_X509_FMT_PEM);
	gnutls_free(pem.data);
	if (r < 0)
		return fail_tls(reterr, "ca.pem", r);
	r = read_file(folder, "ca.key", &pem, reterr);
	if (r < 0)
		return r;
	r = gnutls_x509_privkey_init(&a->key);
	if (r >= 0)
		r = gnutls_x509_privkey_import(a->key, &pem, GNUTLS_X509_FMT_PEM);
	gnutls_memset(pem.data, 0, pem.size);
	gnutls_free(pem.data);
	return r < 0 ? fail_tls(reterr, "ca.key", r) : 0;
}

/* ---- issued and revoked certificates ---- */

static int remember(const char *folder, gnutls_x509_crt_t crt, struct sio_err *reterr)
{
	gnutls_datum_t pem, old = {.data = NULL};
	unsigned char *all;
	char path[PATH_MAX];
	int r = tool_path(path, sizeof(path), reterr, "%s/issued.pem", folder);

	if (r == 0 && access(path, F_OK) == 0)
		r = read_file(folder, "issued.pem", &old, reterr);
	if (r < 0)
		return r;
	r = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem);
	if (r < 0) {
		gnutls_free(old.data);
		return fail_tls(reterr, "issued.pem", r);
	}
	all = malloc(old.size + pem.size);
	if (all) {
		if (old.size)
			memcpy(all, old.data, old.size);
		memcpy(all + old.size, pem.data, pem.size);
		r = write_file(folder, "issued.pem", 0644, all, old.size + pem.size, reterr);
	} else {
		r = sio_no_memory(reterr, "the list of certificates");
	}
	free(all);
	gnutls_free(old.data);
	gnutls_free(pem.data);
	return r;
}

/* Signs @crl as of now, with a number greater than before. */
static int save_crl(const char *folder, gnutls_x509_crl_t crl, const struct authority *a,
		    struct sio_err *reterr)
{
	struct timespec now;
	unsigned char number[8];
	gnutls_datum_t pem;
	uint64_t n;
	int r;

	clock_gettime(CLOCK_REALTIME, &now);
	n = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	for (unsigned i = 0; i < sizeof(number); i++)
		number[i] = (unsigned char)(n >> (56 - 8 * i));
	r = gnutls_x509_crl_set_version(crl, 2);
	if (r >= 0)
		r = gnutls_x509_crl_set_this_update(crl, now.tv_sec - KEYS_EARLY_S);
	if (r >= 0)
		r = gnutls_x509_crl_set_next_update(crl,
						    gnutls_x509_crt_get_expiration_time(a->crt));
	if (r >= 0)
		r = gnutls_x509_crl_set_number(crl, number, sizeof(number));
	if (r >= 0)
		r = gnutls_x509_crl_sign2(crl, a->crt, a->key, GNUTLS_DIG_SHA256, 0);
	if (r >= 0)
		r = gnutls_x509_crl_export2(crl, GNUTLS_X509_FMT_PEM, &pem);
	if (r < 0)
		return fail_tls(reterr, "crl.pem", r);
	r = write_file(folder, "crl.pem", 0644, pem.data, pem.size, reterr);
	gnutls_free(pem.data);
	return r;
}

static int make_crl(const char *folder, const struct authority *a, struct sio_err *reterr)
{
	gnutls_x509_crl_t crl;
	int r = gnutls_x509_crl_init(&crl);

	if (r < 0)
		return fail_tls(reterr, "crl.pem", r);
	r = save_crl(folder, crl, a, reterr);
	gnutls_x509_crl_deinit(crl);
	return r;
}

/* ---- hosts ---- */

static int issue(const char *folder, const struct authority *a, const struct sio_topology *t,
		 const struct sio_topo_host *host, unsigned days, struct sio_err *reterr)
{
	struct sio_identity who = {.cluster = ""};
	char uri[SIO_IDENTITY_TEXT], name[SIO_NAME_LEN + 8];
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	int r = new_key(&key, reterr);

	if (r < 0)
		return r;
	snprintf(who.cluster, sizeof(who.cluster), "%s", t->name);
	snprintf(who.host, sizeof(who.host), "%s", host->name);
	sio_identity_text(&who, uri);
	r = gnutls_x509_crt_init(&crt);
	if (r < 0) {
		r = fail_tls(reterr, host->name, r);
		goto deinit_key;
	}
	r = begin_crt(crt, key, t->name, host->name, days);
	if (r >= 0)
		r = gnutls_x509_crt_set_basic_constraints(crt, 0, -1);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_CLIENT, 0);
	if (r >= 0)
		r = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
	if (r >= 0)
		r = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_URI, uri,
							 (unsigned)strlen(uri), GNUTLS_FSAN_SET);
	if (r >= 0)
		r = end_crt(crt, a);
	if (r < 0) {
		r = fail_tls(reterr, host->name, r);
		goto deinit_crt;
	}
	/* It is recorded first: a certificate that nobody could revoke must not be handed out. */
	r = remember(folder, crt, reterr);
	snprintf(name, sizeof(name), "%s.key", host->name);
	if (r == 0)
		r = save_key(folder, name, key, reterr);
	snprintf(name, sizeof(name), "%s.pem", host->name);
	if (r == 0)
		r = save_crt(folder, name, crt, reterr);
deinit_crt:
	gnutls_x509_crt_deinit(crt);
deinit_key:
	gnutls_x509_privkey_deinit(key);
	return r;
}

/* Hosts, and machines that have daemons, have keys: struct sio_topology has both in one array. */
static bool has_keys(const struct sio_topology *t, unsigned i)
{
	return i < t->n_hosts || t->host[i].address.port;
}

static int check_free(const char *folder, const struct sio_topology *t, struct sio_err *reterr)
{
	static const char *const ours[] = {"ca.key", "ca.pem", "crl.pem", "issued.pem"};
	char name[SIO_NAME_LEN + 8];
	int r = 0;

	for (unsigned i = 0; r == 0 && i < sizeof(ours) / sizeof(ours[0]); i++)
		r = refuse_existing(folder, ours[i], reterr);
	for (unsigned i = 0; r == 0 && i < 2 * (t->n_hosts + t->n_machines); i++) {
		if (!has_keys(t, i / 2))
			continue;
		snprintf(name, sizeof(name), "%s.%s", t->host[i / 2].name, i % 2 ? "pem" : "key");
		r = refuse_existing(folder, name, reterr);
	}
	return r;
}

int tool_keys_make(const char *folder, const struct sio_topology *t, unsigned days,
		   struct sio_err *reterr)
{
	struct authority a = {.lock = -1};
	int r;

	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++)
		if (strcmp(t->host[i].name, "ca") == 0 || strcmp(t->host[i].name, "crl") == 0 ||
		    strcmp(t->host[i].name, "issued") == 0)
			return sio_fail(reterr, -EINVAL,
					"host '%s': its files would be the authority's; a host of "
					"another name is right",
					t->host[i].name);
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return sio_fail(reterr, -errno, "%s: %s", folder, strerror(errno));
	r = lock_folder(&a, folder, reterr);
	if (r == 0)
		r = check_free(folder, t, reterr);
	if (r == 0)
		r = make_authority(&a, folder, t->name, reterr);
	if (r == 0)
		r = make_crl(folder, &a, reterr);
	for (unsigned i = 0; r == 0 && i < t->n_hosts + t->n_machines; i++)
		if (has_keys(t, i))
			r = issue(folder, &a, t, &t->host[i], days, reterr);
	authority_done(&a);
	return r;
}

int tool_keys_renew(const char *folder, const struct sio_topology *t,
		    const struct sio_topo_host *host, unsigned days, struct sio_err *reterr)
{
	struct authority a = {.lock = -1};
	int r = load_authority(&a, folder, reterr);

	if (r == 0)
		r = issue(folder, &a, t, host, days, reterr);
	authority_done(&a);
	return r;
}

/* Whose certificates are revoked: those of @host, or, NULL, of all hosts that @t does not have. */
struct condemned {
	const char *cluster, *host;
	const struct sio_topology *t;
};

static bool has_host(const struct sio_topology *t, const char *name)
{
	for (unsigned i = 0; i < t->n_hosts + t->n_machines; i++)
		if (strcmp(t->host[i].name, name) == 0)
			return true;
	return false;
}

static bool is_condemned(gnutls_x509_crt_t crt, const struct condemned *c)
{
	char name[SIO_IDENTITY_TEXT] = "";
	size_t len = sizeof(name);
	struct sio_identity who;

	if (gnutls_x509_crt_get_subject_alt_name(crt, 0, name, &len, NULL) != GNUTLS_SAN_URI ||
	    sio_identity_parse(name, strlen(name), &who) < 0 ||
	    strcmp(who.cluster, c->cluster) != 0)
		return false;
	return c->host ? strcmp(who.host, c->host) == 0 : !has_host(c->t, who.host);
}

static bool is_revoked(gnutls_x509_crt_t crt, gnutls_x509_crl_t crl)
{
	return gnutls_x509_crt_check_revocation(crt, &crl, 1) == 1;
}

/* Adds to @crl what of issued.pem is condemned, and not there yet. */
static int add_all(const char *folder, const struct condemned *c, gnutls_x509_crl_t crl,
		   unsigned *ret, struct sio_err *reterr)
{
	gnutls_x509_crt_t *list = NULL;
	unsigned n = 0;
	gnutls_datum_t pem;
	int r = read_file(folder, "issued.pem", &pem, reterr);

	if (r < 0)
		return r;
	r = gnutls_x509_crt_list_import2(&list, &n, &pem, GNUTLS_X509_FMT_PEM, 0);
	gnutls_free(pem.data);
	if (r < 0)
		return fail_tls(reterr, "issued.pem", r);
	r = 0;
	for (unsigned i = 0; i < n; i++) {
		if (r >= 0 && is_condemned(list[i], c) && !is_revoked(list[i], crl)) {
			r = gnutls_x509_crl_set_crt(crl, list[i], time(NULL));
			(*ret)++;
		}
		gnutls_x509_crt_deinit(list[i]);
	}
	gnutls_free(list);
	return r < 0 ? fail_tls(reterr, "crl.pem", r) : 0;
}

static int load_crl(const char *folder, gnutls_x509_crl_t *ret, struct sio_err *reterr)
{
	gnutls_datum_t pem;
	int r = read_file(folder, "crl.pem", &pem, reterr);

	if (r < 0)
		return r;
	r = gnutls_x509_crl_init(ret);
	if (r >= 0) {
		r = gnutls_x509_crl_import(*ret, &pem, GNUTLS_X509_FMT_PEM);
		if (r < 0)
			gnutls_x509_crl_deinit(*ret);
	}
	gnutls_free(pem.data);
	return r < 0 ? fail_tls(reterr, "crl.pem", r) : 0;
}

static int revoke_all(const char *folder, const struct condemned *c, unsigned *ret,
		      struct sio_err *reterr)
{
	struct authority a = {.lock = -1};
	gnutls_x509_crl_t crl;
	int r = load_authority(&a, folder, reterr);

	*ret = 0;
	if (r == 0)
		r = load_crl(folder, &crl, reterr);
	if (r == 0) {
		r = add_all(folder, c, crl, ret, reterr);
		if (r == 0 && *ret)
			r = save_crl(folder, crl, &a, reterr);
		gnutls_x509_crl_deinit(crl);
	}
	authority_done(&a);
	return r;
}

int tool_keys_revoke(const char *folder, const char *cluster, const char *host, unsigned *ret,
		     struct sio_err *reterr)
{
	const struct condemned c = {.cluster = cluster, .host = host};
	int r = revoke_all(folder, &c, ret, reterr);

	if (r == 0 && *ret == 0)
		r = sio_fail(reterr, -ENOENT,
			     "host '%s' of cluster '%s' has no certificate that is not revoked "
			     "already",
			     host, cluster);
	return r;
}

int tool_keys_revoke_removed(const char *folder, const struct sio_topology *t, unsigned *ret,
			     struct sio_err *reterr)
{
	const struct condemned c = {.cluster = t->name, .t = t};

	return revoke_all(folder, &c, ret, reterr);
}
