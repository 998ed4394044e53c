/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "wire/frame.h"

#define HEADER sizeof(struct sio_frame_header)

/* Bytes of @data that fit behind the @have of @size. */
static size_t fill(uint8_t *to, size_t size, size_t have, const uint8_t *data, size_t len)
{
	size_t n = size - have < len ? size - have : len;

	memcpy(to + have, data, n);
	return n;
}

static int read_header(struct sio_frame *f, struct sio_err *reterr)
{
	struct sio_frame_header h;
	uint32_t length, reserved;

	memcpy(&h, f->header, sizeof(h));
	length = sio_from_le32(h.length);
	reserved = sio_from_le32(h.reserved);
	if (length == 0 || length > SIO_WIRE_MAX)
		return sio_fail(reterr, -EPROTO, "a message of %u bytes; 1 to %d is right", length,
				SIO_WIRE_MAX);
	if (reserved)
		return sio_fail(reterr, -EPROTO,
				"a message with the reserved word %#x; 0 is right: "
				"no descriptors go to another machine",
				reserved);
	f->length = length;
	return 0;
}

int sio_frame_take(struct sio_frame *f, const void *data, size_t len, size_t *ret_used,
		   struct sio_err *reterr)
{
	const uint8_t *at = data;
	size_t n;

	/* The message before has been seen. */
	if (f->have >= HEADER && f->have == HEADER + f->length)
		f->have = f->length = 0;
	*ret_used = 0;
	if (f->have < HEADER) {
		n = fill(f->header, HEADER, f->have, at, len);
		f->have += n;
		*ret_used = n;
		if (f->have < HEADER)
			return 0;
		if (read_header(f, reterr) < 0) {
			f->have = f->length = 0;
			return -EPROTO;
		}
	}
	n = fill(f->message, f->length, f->have - HEADER, at + *ret_used, len - *ret_used);
	f->have += n;
	*ret_used += n;
	return f->have == HEADER + f->length;
}

struct sio_frame_header sio_frame_header(size_t length)
{
	return (struct sio_frame_header){.length = sio_to_le32((uint32_t)length)};
}
