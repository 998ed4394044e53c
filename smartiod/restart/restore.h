/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon that was started again, and the libraries that come back to it.
 *
 * What the port has of those who were here before is kept as leftovers, each with its descriptors.
 * A library that shows its owner's descriptor says, thing by thing, what it had (RESTORE): of the
 * leftovers, and of what is only in daemons' books. What it says is checked against the port's
 * list; nothing is handed out for it. Nobody else is served until all who live are back, or none
 * came further for a time: names would be free that are not, and what others are connected to would
 * be missing.
 */
#ifndef SMARTIOD_RESTORE_H
#define SMARTIOD_RESTORE_H

#include "smartiod/base/leftover.h"
#include "smartiod/base/room.h"
#include "smartiod/base/session.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/lender/lend.h"

/* For those who were here before, since one of them last came further; and at most. */
#define SMARTIOD_GRACE_NS 5000000000ULL
#define SMARTIOD_GRACE_MAX_NS 20000000000ULL

/* A session's owner of before; until its program is back, or gone. */
struct smartiod_awaited {
	struct smartiod_awaited *next;
	uint64_t owner, secret;
	bool back; /* a session has it */
};

/* ---- stale.c ---- */

/* Its owner has ended, and the port has it back. */
void smartiod_leftovers_owner_gone(struct smartiod *d, uint64_t owner);
/* Nobody wants what is left of @owner's: give it back to the port. */
void smartiod_leftovers_give_back(struct smartiod *d, uint64_t owner);

/* ---- recovery.c ---- */

int smartiod_recovery_await(struct smartiod *d, uint64_t owner, uint64_t cookie);
/* All is listed: the time of those who were here begins. */
void smartiod_recovery_start(struct smartiod *d);
/* HELLO with an owner's descriptor. */
int smartiod_hello_again(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr);
/* HELLO of somebody else meanwhile: it is answered later, by smartiod_hello_now(). */
int smartiod_hello_later(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr);
/* A session ends, or the owner of a program that is not back. */
void smartiod_recovery_gone(struct smartiod *d, uint64_t owner);
void smartiod_recovery_free(struct smartiod *d);
smartiod_client_fn smartiod_restore_step, smartiod_restore;
void smartiod_adopt_start(struct smartiod *d);

/* ---- restore_device.c ---- */

extern const struct smartiod_restorable smartiod_restores[];
/* All is said of what has both ends of a borrow here: what nobody claimed goes. */
void smartiod_restore_finish_devices(struct smartiod *d, struct smartiod_session *s);

#endif
