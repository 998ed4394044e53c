/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checks that a message must pass before it is used: header, type, exact size, reserved fields.
 * A message that passes may be cast to the type's structure; the handler checks the values inside.
 */
#ifndef WIRE_CHECK_H
#define WIRE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "wire/client.h"
#include "wire/peer.h"
#include "wire/wire.h"

#define SIO_WIRE_ERRORS 4096u /* errno values are below */

/* A header in the machine's own byte order. */
struct sio_wire_header {
	uint32_t size, type, id, error;
};

/* Type of a reply's request between peers; client replies have the request's own type. */
#define SIO_PEER_TYPE(type) ((type) & ~SIO_PEER_REPLY)

/*
 * Checks the header alone. Return: 0; -EPROTO: shorter than a header, longer than SIO_WIRE_MAX, or
 * not of the size that it states.
 */
int sio_wire_header(const void *msg, size_t len, struct sio_wire_header *ret,
		    struct sio_err *reterr);

/* The field of a message that is 0; at 0, in the header: it has none. */
struct sio_wire_zero {
	const char *field;
	uint16_t at;
};
#define SIO_WIRE_ZERO(type, field) #field, offsetof(struct type, field)
/*
 * Return: 0; @rc with a text that names message (@kind @name) and field: the field is not 0.
 */
int sio_wire_zero(const void *msg, const struct sio_wire_zero *zero, const char *kind,
		  const char *name, int rc, struct sio_err *reterr);

/*
 * Checks a refusal (struct sio_msg_error), between peers or to a client. -EPROTO: its text is not
 * terminated, its reason is unknown, or reserved is not 0.
 */
int sio_wire_refusal(const struct sio_msg_error *msg, struct sio_err *reterr);

/*
 * Client to daemon. -EPROTO: malformed (the connection is to be closed); -EINVAL: well-formed, but
 * a reserved field is not 0 (reply with the error).
 */
int sio_client_check_request(const void *msg, size_t len, struct sio_wire_header *ret,
			     struct sio_err *reterr);
/*
 * Daemon to client: the reply to a request of @type. -EPROTO: malformed. Return 0 also for a reply
 * that is an error: then ret->error is set and the message is a struct sio_msg_error with a
 * terminated text.
 */
int sio_client_check_reply(uint32_t type, const void *msg, size_t len, struct sio_wire_header *ret,
			   struct sio_err *reterr);
int sio_client_check_event(const void *msg, size_t len, struct sio_wire_header *ret,
			   struct sio_err *reterr);

/* Between peers: request, notification or reply, distinguished by type and id. -EPROTO. */
int sio_peer_check(const void *msg, size_t len, struct sio_wire_header *ret,
		   struct sio_err *reterr);

/* Sizes by type; 0: no such type. Requests and events of clients; requests and replies of peers. */
size_t sio_client_request_size(uint32_t type);
size_t sio_client_event_size(uint32_t type);
size_t sio_peer_size(uint32_t type);
/* 1 if the peer type is a notification (id 0), else 0. */
int sio_peer_is_notification(uint32_t type);

#endif
