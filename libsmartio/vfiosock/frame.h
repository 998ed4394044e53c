/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the vfio-user protocol in a stream of bytes: where one ends, and which descriptors
 * came with it. Live code, for both servers of the protocol: smartio-emu and smartio passthrough.
 */
#ifndef VFIOSOCK_FRAME_H
#define VFIOSOCK_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "vfio/message.h"

/*
 * A message that is being received: its bytes so far, and the descriptors that came with them.
 * Zeroed: none.
 */
struct sio_vfio_frame {
	size_t got;
	int fds[SIO_VFIO_MAX_FDS];
	unsigned n_fds;
	uint8_t in[SIO_VFIO_MAX_MESSAGE] __attribute__((aligned(8)));
};

/*
 * Reads once from @fd; never waits. Return: the size of the whole message in @f->in, which stays
 * until sio_vfio_frame_taken(); 0: more must arrive; -EAGAIN: nothing was there; -EPIPE: the end of
 * the stream; -EPROTO: no message of the protocol, with a text in @reterr.
 */
int sio_vfio_frame_receive(struct sio_vfio_frame *f, int fd, struct sio_err *reterr);
/* The message was handled. Return: how many @f->fds it had, which are the caller's. */
unsigned sio_vfio_frame_taken(struct sio_vfio_frame *f);
/* Closes and drops what there is of a message. */
void sio_vfio_frame_drop(struct sio_vfio_frame *f);

#endif
