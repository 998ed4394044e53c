/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every message has in common: little-endian types, the header, and the checks made before
 * anything else in a message is trusted. SOCK_SEQPACKET: one message in each packet, with its
 * descriptors.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>

#define SIO_WIRE_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define SIO_WIRE_MAX 8192   /* bytes of the largest message */
#define SIO_WIRE_MAX_FDS 16 /* descriptors beside one message */
#define SIO_WIRE_TEXT 192   /* bytes of an error text, NUL included */

#ifdef __CHECKER__
#define SIO_BITWISE __attribute__((bitwise))
#else
#define SIO_BITWISE
#endif
typedef uint32_t SIO_BITWISE sio_le32;
typedef uint64_t SIO_BITWISE sio_le64;

static inline sio_le32 sio_to_le32(uint32_t v)
{
	return (sio_le32)htole32(v);
}
static inline sio_le64 sio_to_le64(uint64_t v)
{
	return (sio_le64)htole64(v);
}
static inline uint32_t sio_from_le32(sio_le32 v)
{
	return le32toh((uint32_t)v);
}
static inline uint64_t sio_from_le64(sio_le64 v)
{
	return le64toh((uint64_t)v);
}

struct sio_msg {
	sio_le32 size;	/* of the whole message */
	sio_le32 type;	/* SIO_MSG_*, SIO_EVM_*, SIO_PEER_* */
	sio_le32 id;	/* the asker's number for a request; comes back in its reply; 0: an event */
	sio_le32 error; /* reply: 0 or errno (positive); else 0 */
};
SIO_WIRE_SIZE(struct sio_msg, 16);

/* A reply with error != 0 is this and nothing more. */
struct sio_msg_error {
	struct sio_msg h;
	sio_le32 reason; /* what ran out: SIO_OUT_OF_* of smartio/uapi.h; 0: nothing did */
	sio_le32 reserved;
	char text[SIO_WIRE_TEXT];
};
SIO_WIRE_SIZE(struct sio_msg_error, 216);

#endif
