/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a session has from its smartiod, as messages that say so to the next one (SIO_MSG_RESTORE).
 * Pure logic: fed with requests and their replies, with events, and with nothing else. Kept under
 * the session's lock.
 */
#ifndef SESSION_JOURNAL_H
#define SESSION_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/client.h"

struct sio_journal;
struct sio_journal_entry;

/* NULL: no memory. */
struct sio_journal *sio_journal_new(void);
/* NULL is fine. */
void sio_journal_free(struct sio_journal *j);

/*
 * Before request @type is sent: room for what it may make, so that its success cannot be forgotten.
 * *ret NULL: it makes nothing. Given back by sio_journal_done() or sio_journal_drop(). -ENOMEM.
 */
int sio_journal_prepare(uint32_t type, struct sio_journal_entry **ret);
void sio_journal_drop(struct sio_journal_entry *e);
/*
 * @req succeeded, with reply @rep (bare success where the type has none). Takes @e, which may be
 * NULL.
 */
void sio_journal_done(struct sio_journal *j, struct sio_journal_entry *e, const struct sio_msg *req,
		      const struct sio_msg *rep);
/* An event, whose size was checked. */
void sio_journal_event(struct sio_journal *j, const struct sio_msg *msg);

/*
 * Does @req take away something that is kept here? What is lost is, as long as smartiod has to hear
 * that its handle is given back.
 */
bool sio_journal_has(const struct sio_journal *j, const struct sio_msg *req);
/*
 * Does it take away something of this session, which may be lost already? Each handle is one's own.
 * But any holder of a device's registers can name any pin (DEV_HOLD) of the device, so its parts
 * are one's own if they are kept here.
 */
bool sio_journal_takes_own(const struct sio_journal *j, const struct sio_msg *req);

/*
 * Another smartiod is there: it knows nothing of what is here before it gets what
 * sio_journal_next() gives, and nothing ever of what was lost before.
 */
void sio_journal_begin(struct sio_journal *j);
/*
 * The first message of @step (SIO_MSG_RESTORE_STEP) with a number greater than *@at, which becomes
 * its number. false: none. The header is the caller's to fill. If smartiod refuses it,
 * sio_journal_gone() is to be called.
 */
bool sio_journal_next(struct sio_journal *j, unsigned step, uint64_t *at,
		      struct sio_msg_restore *ret);
/* The greatest handle that was ever given; of what was lost the program may still have one. */
uint32_t sio_journal_last_handle(const struct sio_journal *j);
/* The one with this number is gone for good. */
void sio_journal_gone(struct sio_journal *j, uint64_t number);

/* Does the request @req end the connection that @m describes? */
static inline bool sio_journal_leaves(const struct sio_msg_restore *m, const struct sio_msg *req)
{
	return sio_from_le32(req->type) == SIO_MSG_SEG_DISCONNECT &&
	       (sio_from_le32(m->type) == SIO_MSG_SEG_CONNECT ||
		sio_from_le32(m->type) == SIO_MSG_DEV_SEG_CONNECT) &&
	       ((const struct sio_msg_handle *)(const void *)req)->handle == m->handle;
}

#endif
