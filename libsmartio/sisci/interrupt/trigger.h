/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's side of data interrupts: shared by its two files. */
#ifndef SISCI_TRIGGER_H
#define SISCI_TRIGGER_H

#include "sisci/base/library.h"
#include "wire/ring.h"

/* A connection, or several under one handle (SCI_FLAG_BROADCAST), which has no ring of its own. */
struct sio_remote_dint {
	struct sio_object o;
	uint32_t node, number;
	uint32_t path; /* place in the status page; 0: none */
	void *base;    /* NULL: not mapped yet. Under the session's lock */
	size_t bytes;
	int trigger;
	struct sio_world_lock
		*lock; /* threads take turns at the ring, or at those of all members */
	struct sio_ring ring;
	struct sio_remote_dint **member; /* with references; NULL: it is one connection */
	unsigned n_members;
};

/* Makes an object without a connection, added as a child of @parent, with a reference. -errno. */
int sio_remote_dint_new(struct sio_library *lib, struct sio_object *parent, uint32_t node,
			uint32_t number, struct sio_remote_dint **ret, struct sio_err *err);
/* Requests its connection. @flags: 0 or SCI_FLAG_BROADCAST: to receivers with that flag only. */
int sio_remote_dint_connect(struct sio_remote_dint *d, unsigned adapter, unsigned flags,
			    struct sio_err *err);

/*
 * trigger_group.c: connects to all receivers that there are; drops them; sends to each, or to none.
 */
int sio_remote_dint_group(struct sio_library *lib, sci_desc_t sd, sci_remote_data_interrupt_t *ret,
			  unsigned adapter, unsigned number, struct sio_err *err);
void sio_remote_dint_group_drop(struct sio_remote_dint *d);
int sio_remote_dint_group_send(struct sio_remote_dint *d, const void *data, uint32_t len,
			       struct sio_err *err);

#endif
