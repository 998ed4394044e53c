/* SPDX-License-Identifier: BSD-2-Clause */
/* What the replies that made something say of it: journal.c alone calls this. */
#ifndef SESSION_JOURNAL_FILL_H
#define SESSION_JOURNAL_FILL_H

#include "wire/client.h"

/* @m has its type. An object: its handle is in the reply. */
void sio_journal_fill_object(struct sio_msg_restore *m, const struct sio_msg *req,
			     const void *reply);
/* A part of the object that @req names. */
void sio_journal_fill_part(struct sio_msg_restore *m, const struct sio_msg *req, const void *reply);

#endif
