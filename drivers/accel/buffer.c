/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of this host that an accelerator reaches. */
#include <errno.h>
#include <stdlib.h>

#include "inside.h"

static int make(struct smartio_accel_buffer *b)
{
	const unsigned adapter = b->a->info.adapter;
	sci_error_t err;

	SCICreateSegment(b->a->sd, &b->segment, 0, b->bytes, NULL, NULL, SCI_FLAG_AUTO_ID, &err);
	if (err != SCI_ERR_OK) {
		b->segment = NULL;
		return sio_accel_fail_sci(err, "cannot allocate memory of %zu bytes", b->bytes);
	}
	b->at = SCIMapLocalSegment(b->segment, &b->map, 0, b->bytes, NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		b->map = NULL;
		return sio_accel_fail_sci(err, "cannot map memory of %zu bytes", b->bytes);
	}
	SCIPrepareSegment(b->segment, adapter, 0, &err);
	if (err == SCI_ERR_OK)
		SCISetSegmentAvailable(b->segment, adapter, 0, &err);
	b->available = err == SCI_ERR_OK;
	if (err == SCI_ERR_OK)
		SCIMapLocalSegmentForDevice(b->segment, adapter, b->a->handle, &b->address, 0,
					    b->bytes, 0, &err);
	b->reachable = err == SCI_ERR_OK;
	if (err != SCI_ERR_OK)
		return sio_accel_fail_sci(err, "%s cannot reach memory of %zu bytes", b->a->name,
					  b->bytes);
	return 0;
}

static void done(struct smartio_accel_buffer *b)
{
	const unsigned adapter = b->a->info.adapter;
	sci_error_t err;

	if (b->reachable)
		SIO_ACCEL_UNTIL_FREE(err, SCIUnmapLocalSegmentForDevice(b->segment, adapter,
									b->a->handle, 0, &err));
	if (b->map)
		SCIUnmapSegment(b->map, 0, &err);
	if (b->available)
		SIO_ACCEL_UNTIL_FREE(err, SCISetSegmentUnavailable(b->segment, adapter, 0, &err));
	if (b->segment)
		SIO_ACCEL_UNTIL_FREE(err, SCIRemoveSegment(b->segment, 0, &err));
	free(b);
}

int smartio_accel_buffer_alloc(struct smartio_accel *a, size_t bytes,
			       struct smartio_accel_buffer **ret)
{
	struct smartio_accel_buffer *b;
	int rc;

	if (bytes == 0 || bytes > SIZE_MAX - SIO_ACCEL_PAGE)
		return sio_accel_fail(
			-EINVAL,
			"memory of %zu bytes; at least 1 byte, in the address space, is "
			"right",
			bytes);
	b = calloc(1, sizeof(*b));
	if (!b)
		return sio_accel_no_memory("a buffer");
	b->a = a;
	b->bytes = (bytes + SIO_ACCEL_PAGE - 1) / SIO_ACCEL_PAGE * SIO_ACCEL_PAGE;
	rc = make(b);
	if (rc) {
		done(b);
		return rc;
	}
	b->next = a->buffers;
	a->buffers = b;
	*ret = b;
	return 0;
}

void smartio_accel_buffer_free(struct smartio_accel_buffer *b)
{
	struct smartio_accel_buffer **at;

	if (!b)
		return;
	for (at = &b->a->buffers; *at != b; at = &(*at)->next)
		;
	*at = b->next;
	done(b);
}

volatile void *smartio_accel_buffer_data(const struct smartio_accel_buffer *b)
{
	return b->at;
}

uint64_t smartio_accel_buffer_address(const struct smartio_accel_buffer *b)
{
	return b->address;
}
