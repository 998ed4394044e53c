/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys by which the daemons of a cluster know each other, in one folder:
 *   ca.key, ca.pem     the cluster's own authority; its key stays with who administers the cluster
 *   crl.pem            what was revoked
 *   HOST.key, HOST.pem a host's; its certificate names it as smartio:CLUSTER/HOST
 *   issued.pem         every certificate that was made, so that all of a host's can be revoked
 * A host's daemon needs ca.pem, crl.pem, HOST.key and HOST.pem.
 */
#ifndef TOOLS_KEYS_H
#define TOOLS_KEYS_H

#include "core/err.h"
#include "core/topology.h"

#define TOOL_KEYS_DAYS 730     /* of a host's certificate */
#define TOOL_KEYS_CA_DAYS 3650 /* of the authority's */

/*
 * Makes @folder if it is missing, and in it the authority and keys for each host. -EEXIST with a
 * text: a file of these names exists; nothing was changed.
 */
int tool_keys_make(const char *folder, const struct sio_topology *t, unsigned days,
		   struct sio_err *reterr);
/* Makes a new key and certificate for @host. Earlier certificates stay valid until they expire. */
int tool_keys_renew(const char *folder, const struct sio_topology *t,
		    const struct sio_topo_host *host, unsigned days, struct sio_err *reterr);
/*
 * Revokes all certificates that host @host of @cluster has had until now, also one that the
 * cluster's file does not have any more. *ret: how many these were; -ENOENT: there was none.
 */
int tool_keys_revoke(const char *folder, const char *cluster, const char *host, unsigned *ret,
		     struct sio_err *reterr);
/* The same of all hosts of @t's cluster that @t does not have. *ret may be 0. */
int tool_keys_revoke_removed(const char *folder, const struct sio_topology *t, unsigned *ret,
			     struct sio_err *reterr);

#endif
