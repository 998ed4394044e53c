/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages in a stream of bytes, as daemons of different machines exchange them: each is preceded
 * by its length. Pure: bytes come from any source, in pieces of any size.
 */
#ifndef WIRE_FRAME_H
#define WIRE_FRAME_H

#include "core/err.h"
#include "wire/wire.h"

struct sio_frame_header {
	sio_le32 length;   /* bytes of the message that follows, 1 to SIO_WIRE_MAX */
	sio_le32 reserved; /* 0: no descriptors are beside it, which no stream carries */
};
SIO_WIRE_SIZE(struct sio_frame_header, 8);

/* One end's reading place. Zeroed: nothing was read yet. */
struct sio_frame {
	uint8_t header[sizeof(struct sio_frame_header)];
	size_t have;   /* of header and message together */
	size_t length; /* of the message, once its header is there */
	_Alignas(8) uint8_t message[SIO_WIRE_MAX];
};

/*
 * Takes bytes up to the end of one message. *ret_used: how many were taken; the rest is for the
 * next call. Return: 1 f->message holds f->length bytes of a whole message, until the next call; 0
 * all bytes were taken, and more must arrive; -EPROTO with a text: no message begins like this, and
 * nothing that follows has a meaning.
 */
int sio_frame_take(struct sio_frame *f, const void *data, size_t len, size_t *ret_used,
		   struct sio_err *reterr);
/* The header of a message of @length bytes. */
struct sio_frame_header sio_frame_header(size_t length);

#endif
