/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery of a restarted daemon, and of the libraries that connect to it again. What the port has
 * kept of the programs of before is an unclaimed resource, with its descriptors. A library that
 * shows its owner's descriptor restores object by object what its session had (RESTORE): resources
 * of the port, and what only daemons' tables had. Each claim is checked against the port's list; a
 * claim never creates anything.
 *
 * No other client is served until all living programs have finished, or none has made progress for
 * a time. Otherwise names would be free that are in use, and objects that others are connected to
 * would be missing.
 */
#ifndef SMARTIOD_RESTORE_H
#define SMARTIOD_RESTORE_H

#include "smartiod/base/unclaimed.h"
#include "smartiod/base/room.h"
#include "smartiod/base/session.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/lender/lend.h"

/*
 * Time for programs of before the restart, since one of them last made progress; and the limit of
 * the whole.
 */
#define SMARTIOD_GRACE_NS 5000000000ULL
#define SMARTIOD_GRACE_MAX_NS 20000000000ULL
/*
 * Time for the lenders of a program's borrows to be met, or lost, before its calls go on: longer
 * than a peer is expected, which only one outlasts that greets and does not say what it has.
 */
#define SMARTIOD_LENDERS_NS 32000000000ULL

/*
 * The owner of a session of before the restart, until its program has connected again, or has
 * ended.
 */
struct smartiod_expected {
	struct smartiod_expected *next;
	uint64_t owner, secret;
	bool back; /* a session has claimed it */
	bool late; /* it had not, when the time for that was over */
};

/* ---- stale.c ---- */

/* The owner has ended, and the port has freed its unclaimed resources. */
void smartiod_unclaimed_owner_gone(struct smartiod *d, uint64_t owner);
/*
 * Resynchronisation: the daemon of @node has sent what its borrowers have. Unclaimed resources of
 * its borrowers are released.
 */
void smartiod_unclaimed_resumed(struct smartiod *d, uint32_t node);
/* Releases at the port the unclaimed resources of @owner. */
void smartiod_unclaimed_give_back(struct smartiod *d, uint64_t owner);
/*
 * The same for windows to other hosts, whoever owns them: the exporters are about to ask what this
 * host has of them.
 */
void smartiod_unclaimed_windows_end(struct smartiod *d);

/* ---- recovery.c ---- */

int smartiod_recovery_expect(struct smartiod *d, uint64_t owner, uint64_t cookie);
/* Is it the owner of a program that is expected? */
bool smartiod_recovery_expects(struct smartiod *d, uint64_t owner);
/* The port's resources are listed: programs of before the restart are served from now on. */
void smartiod_recovery_start(struct smartiod *d);
/* A HELLO with an owner's descriptor, of a program of before the restart. */
int smartiod_hello_again(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr);
/* A HELLO of another program during the recovery: it is answered later, by smartiod_hello_now(). */
int smartiod_hello_later(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr);
/* A session has ended, or the owner of a program that has not connected again. */
void smartiod_recovery_gone(struct smartiod *d, uint64_t owner);
void smartiod_recovery_free(struct smartiod *d);
SIO_CLIENT_RESTART(SMARTIOD_CLIENT_FN)
void smartiod_adopt_start(struct smartiod *d);

/* ---- restore_device.c ---- */

extern const struct smartiod_restorable smartiod_restores[];
/*
 * Everything is restored that has both ends of a borrow on this host: what nobody has claimed is
 * released.
 */
void smartiod_restore_finish_devices(struct smartiod *d, struct smartiod_session *s);

#endif
