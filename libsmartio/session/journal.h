/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal: all that a session has from its smartiod, as the messages that restore it at the
 * next one (SIO_MSG_RESTORE). Pure logic: its only input is requests and their replies, and events.
 * Kept under the session's lock.
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
 * Before request @type is sent: allocates the entry for what it may make, so that its success can
 * always be recorded.
 * *ret NULL: it makes nothing. Released by sio_journal_done() or sio_journal_drop(). -ENOMEM.
 */
int sio_journal_prepare(uint32_t type, struct sio_journal_entry **ret);
void sio_journal_drop(struct sio_journal_entry *e);
/*
 * @req succeeded, with reply @rep (bare success where the type has none). Consumes @e, which may be
 * NULL.
 */
void sio_journal_done(struct sio_journal *j, struct sio_journal_entry *e, const struct sio_msg *req,
		      const struct sio_msg *rep);
/* Records an event, whose size was checked. */
void sio_journal_event(struct sio_journal *j, const struct sio_msg *msg);

/*
 * Does @req release something that is recorded here? A lost object is recorded as long as smartiod
 * must still be sent the release of its handle.
 */
bool sio_journal_has(const struct sio_journal *j, const struct sio_msg *req);
/*
 * Does it release something of this session, which may be lost already? Handles belong to one
 * session. But any owner of a device's registers can name any pin (DEV_HOLD) of the device, so a
 * pin is this session's if it is recorded here.
 */
bool sio_journal_takes_own(const struct sio_journal *j, const struct sio_msg *req);

/*
 * Another smartiod is there: it knows nothing of what is recorded here before it is sent what
 * sio_journal_next() returns, and will never know of what was lost before.
 */
void sio_journal_begin(struct sio_journal *j);
/*
 * The first message of @step (SIO_MSG_RESTORE_STEP) with a number greater than *@at, which becomes
 * its number. false: none. The caller fills in the header. If smartiod refuses it,
 * sio_journal_gone() is to be called.
 */
bool sio_journal_next(struct sio_journal *j, unsigned step, uint64_t *at,
		      struct sio_msg_restore *ret);
/*
 * The greatest handle that was ever assigned; the program may still have a handle of a lost object.
 */
uint32_t sio_journal_last_handle(const struct sio_journal *j);
/*
 * smartiod refused the entry with this number: it is lost for good. A mapping for a device is
 * restored at the next smartiod all the same, until the program gives its handle back.
 */
void sio_journal_gone(struct sio_journal *j, uint64_t number);

/* Does the request @req end the connection, the vector, or the shadow that @m describes? */
static inline bool sio_journal_leaves(const struct sio_msg_restore *m, const struct sio_msg *req)
{
	const struct sio_msg_dev_vector *vector = (const void *)req;
	const struct sio_msg_handle *h = (const void *)req;

	switch (sio_from_le32(m->type)) {
	case SIO_MSG_SEG_CONNECT:
	case SIO_MSG_DEV_SEG_CONNECT:
		return sio_from_le32(req->type) == SIO_MSG_SEG_DISCONNECT && h->handle == m->handle;
	case SIO_MSG_DEV_VECTOR:
		return sio_from_le32(req->type) == SIO_MSG_DEV_UNVECTOR &&
		       vector->device == m->handle && vector->vector == m->number;
	case SIO_MSG_SHADOW:
		return sio_from_le32(req->type) == SIO_MSG_SHADOW_DEL && h->handle == m->handle;
	}
	return false;
}

#endif
