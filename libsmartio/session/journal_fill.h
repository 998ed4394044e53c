/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills journal entries from the replies that created their objects: only journal.c calls this. */
#ifndef SESSION_JOURNAL_FILL_H
#define SESSION_JOURNAL_FILL_H

#include "wire/client.h"

/* @m has its type. For an object: its handle is in the reply. */
void sio_journal_fill_object(struct sio_msg_restore *m, const struct sio_msg *req,
			     const void *reply);
/* For a part of the object that @req names. */
void sio_journal_fill_part(struct sio_msg_restore *m, const struct sio_msg *req, const void *reply);

#endif
