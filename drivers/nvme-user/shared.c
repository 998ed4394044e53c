/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "shared.h"
#include "smartio/ext.h"

#define TRIES 100u     /* that one takes is rare, so two in a row are somebody's doing */
#define TAKEN_MS 5000u /* for one of a manager before us */
#define HINTS (SCI_MEMACCESS_HOST_WRITE | SCI_MEMACCESS_MULTIHOST_READ)

static int connect_and_map(struct sio_nvme_device *d, unsigned id, size_t size, unsigned flags,
			   struct sio_nvme_shared *ret, sci_error_t *ret_err)
{
	sci_error_t err;

	SCIConnectDeviceSegment(d->handle, &ret->segment, id, SCI_MEMTYPE_SHARED, NULL, NULL, 0,
				&err);
	*ret_err = err;
	if (err != SCI_ERR_OK) {
		ret->segment = NULL;
		return sio_nvme_fail_sci(err, "%s: cannot connect its segment %#x", d->name, id);
	}
	if (SCIGetRemoteSegmentSize(ret->segment) < size)
		return sio_nvme_fail(-EPROTO, "segment %#x of %s has %zu bytes, not %zu", id,
				     d->name, SCIGetRemoteSegmentSize(ret->segment), size);
	ret->at = SCIMapRemoteSegment(ret->segment, &ret->map, 0, size, NULL, flags, &err);
	*ret_err = err;
	if (err == SCI_ERR_OK)
		return 0;
	ret->map = NULL;
	ret->at = NULL;
	return sio_nvme_fail_sci(err, "%s: cannot map its segment %#x", d->name, id);
}

int sio_nvme_shared_make(struct sio_nvme_device *d, unsigned id, size_t size, unsigned flags,
			 struct sio_nvme_shared *ret)
{
	sci_error_t err = SCI_ERR_NO_SUCH_SEGMENT;
	int rc = 0;

	/*
	 * A segment ends with its last connection: who looks at it before we have ours, and leaves,
	 * takes it away. Then it is made again; but nobody can keep us at it for ever.
	 */
	for (unsigned i = 0; i < TRIES && err == SCI_ERR_NO_SUCH_SEGMENT; i++) {
		memset(ret, 0, sizeof(*ret));
		SCICreateDeviceSegment(d->handle, id, size, SCI_MEMTYPE_SHARED, HINTS, flags, &err);
		if (err != SCI_ERR_OK)
			return sio_nvme_fail_sci(err, "%s: cannot make its segment %#x", d->name,
						 id);
		rc = connect_and_map(d, id, size, 0, ret, &err);
		if (rc)
			sio_nvme_shared_close(ret);
	}
	return rc;
}

int sio_nvme_shared_replace(struct sio_nvme_device *d, unsigned id, size_t size, unsigned flags,
			    struct sio_nvme_shared *ret)
{
	uint64_t deadline = sio_nvme_deadline(TAKEN_MS);
	unsigned n = 1000; /* sleep from the first time on */
	int rc;

	for (;;) {
		rc = sio_nvme_shared_make(d, id, size, flags, ret);
		if (rc != -EEXIST || smartio_now_ns() >= deadline)
			return rc;
		sio_nvme_pause(&n);
	}
}

int sio_nvme_shared_open(struct sio_nvme_device *d, unsigned id, size_t size, bool write,
			 struct sio_nvme_shared *ret)
{
	sci_error_t err;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = connect_and_map(d, id, size, write ? 0 : SCI_FLAG_READONLY_MAP, ret, &err);
	if (rc)
		sio_nvme_shared_close(ret);
	return rc;
}

bool sio_nvme_shared_exists(struct sio_nvme_device *d, unsigned id)
{
	sci_remote_segment_t segment;
	sci_error_t err;

	SCIConnectDeviceSegment(d->handle, &segment, id, SCI_MEMTYPE_SHARED, NULL, NULL, 0, &err);
	if (err != SCI_ERR_OK)
		return false;
	SIO_NVME_UNTIL_FREE(err, SCIDisconnectSegment(segment, 0, &err));
	return true;
}

void sio_nvme_shared_close(struct sio_nvme_shared *s)
{
	sci_error_t err;

	if (s->map)
		SCIUnmapSegment(s->map, 0, &err);
	if (s->segment)
		SIO_NVME_UNTIL_FREE(err, SCIDisconnectSegment(s->segment, 0, &err));
	memset(s, 0, sizeof(*s));
}
