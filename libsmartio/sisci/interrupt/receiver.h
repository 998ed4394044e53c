/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's side of interrupts, with data and without: number, descriptor, begin and end. */
#ifndef SISCI_RECEIVER_H
#define SISCI_RECEIVER_H

#include "sisci/base/library.h"

extern const struct sio_kind_ops sio_local_int_kind, sio_local_dint_kind;
extern const struct sio_kind_ops sio_remote_int_kind, sio_remote_dint_kind;

/* The first member of both kinds. */
struct sio_receiver {
	struct sio_object o;
	uint32_t number;
	int fd;			     /* -1: none yet */
	struct sio_world_lock *lock; /* for what the kinds say */
	bool calls;		     /* it has a callback */
};

/* Checks what can be checked before smartiod is asked. @served: flags. */
int sio_receiver_check(struct sio_library *lib, const void *ret, const unsigned *number,
		       unsigned adapter, bool callback, unsigned flags, unsigned served,
		       struct sio_err *err);
/*
 * Begins the life of @r, zeroed except for o.kind and calls; NULL: no memory. @sent:
 * the flags that smartiod gets; *number is requested if SCI_FLAG_FIXED_INTNO is among them. Success
 * sets *number and leaves the caller a reference; on failure @r was freed.
 * @eventfd: with SIO_DINT_EVENTFD among @sent the descriptor that is triggered, else -1; it stays
 * the caller's, and the receiver has no descriptor then.
 */
int sio_receiver_begin(struct sio_library *lib, sci_desc_t sd, struct sio_receiver *r,
		       unsigned adapter, unsigned *number, unsigned sent, int eventfd,
		       struct sio_err *err);
/*
 * Ends the receiver at smartiod; no callback is called for it from now on. The caller ends its
 * waits, and then the receiver by sio_object_end().
 */
int sio_receiver_remove(struct sio_library *lib, const void *handle, enum sio_kind kind,
			unsigned flags, struct sio_receiver **ret, struct sio_err *err);
/*
 * Under the lock, for event() of each kind of interrupt and of connection to one: a connection
 * whose receiver is gone, so what is sent would be lost; or a receiver that a restarted smartiod
 * could not take over, so nothing arrives any more.
 */
bool sio_interrupt_lost(struct sio_library *lib, enum sio_kind kind, const struct sio_msg *msg);
/* For both kinds of receivers: true, they always belong to this program. */
bool sio_receiver_is_own(const struct sio_object *o);
/* For free() of its kind: frees everything except its memory. */
void sio_receiver_done(struct sio_receiver *r);
/*
 * Are there no more callbacks, also because it was lost and @lost_mutes? Then its descriptor is not
 * watched any more.
 */
bool sio_receiver_is_muted(struct sio_receiver *r, bool lost_mutes);

#endif
