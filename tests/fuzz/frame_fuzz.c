/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of another machine's daemon, whatever its bytes, in pieces whose sizes the first byte
 * chooses: the same messages come out as of the whole stream at once, and the same end.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "wire/frame.h"
#include "wire/identity.h"

struct result {
	int end; /* of the last call */
	size_t messages, bytes;
	uint32_t sum;
};

static struct result read_all(const uint8_t *data, size_t size, size_t piece, size_t step)
{
	struct sio_frame *f = calloc(1, sizeof(*f));
	struct result r = {0};
	struct sio_err err;
	size_t at = 0, used;

	if (!f)
		abort();
	while (r.end >= 0 && at < size) {
		size_t len = size - at < piece ? size - at : piece;

		r.end = sio_frame_take(f, data + at, len, &used, &err);
		if (used > len || (r.end == 0 && used != len))
			abort();
		at += used;
		piece = (piece + step) % 4096 + 1;
		if (r.end != 1)
			continue;
		if (f->length == 0 || f->length > SIO_WIRE_MAX)
			abort();
		r.messages++;
		r.bytes += f->length;
		for (size_t i = 0; i < f->length; i++)
			r.sum = r.sum * 31 + f->message[i];
	}
	free(f);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sio_identity id;
	char text[SIO_IDENTITY_TEXT];
	struct result whole, pieces;

	if (size == 0)
		return 0;
	whole = read_all(data + 1, size - 1, SIO_WIRE_MAX * 2, 0);
	pieces = read_all(data + 1, size - 1, 1 + data[0] % 16, data[0] / 16);
	if (whole.messages != pieces.messages || whole.bytes != pieces.bytes ||
	    whole.sum != pieces.sum || (whole.end < 0) != (pieces.end < 0))
		abort();
	/* The same bytes as a name: what is one is written as it was read. */
	if (sio_identity_parse((const char *)data, size, &id) == 0 &&
	    (strlen(sio_identity_text(&id, text)) != size || memcmp(text, data, size) != 0))
		abort();
	return 0;
}
