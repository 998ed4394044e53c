/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's side of interrupts, with data and without: a number, a descriptor, a life. */
#ifndef SISCI_RECEIVER_H
#define SISCI_RECEIVER_H

#include "sisci/base/library.h"

extern const struct sio_kind_ops sio_local_int_kind, sio_local_dint_kind;
extern const struct sio_kind_ops sio_remote_int_kind, sio_remote_dint_kind;

/* First member of both kinds. */
struct sio_receiver {
	struct sio_object o;
	uint32_t number;
	int fd;			     /* -1: none yet */
	struct sio_world_lock *lock; /* for what the kinds say */
	bool calls;		     /* it has a callback */
};

/* What can be said before smartiod is asked. @served: flags. */
int sio_receiver_check(struct sio_library *lib, const void *ret, const unsigned *number,
		       unsigned adapter, bool callback, unsigned flags, unsigned served,
		       struct sio_err *err);
/*
 * Begin the life of @r, zeroed but for o.kind and calls; NULL: no memory. @sent:
 * the flags that smartiod gets; *number is wanted if SCI_FLAG_FIXED_INTNO is among them. Success
 * sets *number and leaves the caller a reference; on failure it was freed.
 */
int sio_receiver_begin(struct sio_library *lib, sci_desc_t sd, struct sio_receiver *r,
		       unsigned adapter, unsigned *number, unsigned sent, struct sio_err *err);
/*
 * End it at smartiod; no callback is called for it from now on. The caller ends its waits, and then
 * it by sio_object_end().
 */
int sio_receiver_remove(struct sio_library *lib, const void *handle, enum sio_kind kind,
			unsigned flags, struct sio_receiver **ret, struct sio_err *err);
/*
 * Under the lock, for event() of each kind of interrupt and of connection to one: the receiver's
 * end is gone, so what is sent would go nowhere. Or it is that end, which a smartiod that was
 * started again could not take over: nothing comes there any more.
 */
bool sio_interrupt_lost(struct sio_library *lib, enum sio_kind kind, const struct sio_msg *msg);
/* Of both kinds of receivers: always this program's own. */
bool sio_receiver_is_own(const struct sio_object *o);
/* For its kind's free(): all but its memory. */
void sio_receiver_done(struct sio_receiver *r);
/* No more callbacks, also if it was lost and @lost_mutes. It is watched no more then. */
bool sio_receiver_is_muted(struct sio_receiver *r, bool lost_mutes);

#endif
