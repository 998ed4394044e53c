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
/* A segment or connection that it had is lost: the event @type. */
void smartiod_restore_tell_lost(struct smartiod *d, struct smartiod_session *s, uint32_t type,
				sio_le32 handle);

/* ---- restore_base.c, restore_share.c, restore_device.c: one thing of each kind ---- */

typedef int smartiod_restore_fn(struct smartiod *d, struct smartiod_session *s,
				const struct sio_msg_restore *m, struct sio_err *reterr);
smartiod_restore_fn smartiod_restore_segment, smartiod_restore_attachment,
	smartiod_restore_connection, smartiod_restore_map, smartiod_restore_dint,
	smartiod_restore_ring, smartiod_restore_dint_link, smartiod_restore_borrow,
	smartiod_restore_dev_seg, smartiod_restore_dev_connection, smartiod_restore_bar_map,
	smartiod_restore_dma_map, smartiod_restore_vector, smartiod_restore_hold;
/* All is said: what nobody claimed goes, and the library hears what it missed. */
void smartiod_restore_finish_base(struct smartiod *d, struct smartiod_session *s);
void smartiod_restore_finish_devices(struct smartiod *d, struct smartiod_session *s);
/* The segment that lies in the port's memory @mem; NULL with *reterr ENOENT. */
struct smartiod_segment *smartiod_segment_by_mem(struct smartiod *d, uint64_t mem,
						 struct sio_err *reterr);
/*
 * Nobody has a handle of the segment in memory @mem, and who tells of it was connected to it: it
 * was removed, and is kept again (segment_life.h). NULL with *reterr.
 */
struct smartiod_segment *smartiod_restore_kept(struct smartiod *d, uint64_t mem, uint32_t id,
					       struct sio_err *reterr);
/*
 * Nobody claimed this memory, and devices reach it: it ends when none does any more, as its owner's
 * end is far, or there is no owner. Takes @l. false: none does, or no memory for that.
 */
bool smartiod_restore_end_mapped(struct smartiod *d, struct smartiod_leftover *l);
/*
 * @number is that of a segment with memory: an empty one of somebody who says that he had it gives
 * way.
 */
void smartiod_restore_take_number(struct smartiod *d, uint32_t number);
/* What @m says of a segment's state. */
void smartiod_restore_state(struct smartiod *d, struct smartiod_segment *seg,
			    const struct sio_msg_restore *m);

#endif
