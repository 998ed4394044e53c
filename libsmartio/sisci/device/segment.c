/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments of devices, and segments mapped for devices. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/device/device.h"
#include "sisci/segment/segment.h"
#include "smartio/guest.h"

#define PLACEMENT                                                                                  \
	(SCI_FLAG_DEVICE_SIDE_ONLY | SCI_FLAG_LOCAL_ONLY | SCI_FLAG_DEVICE_PREFER_BANDWIDTH |      \
	 SCI_FLAG_HOST_PREFER_BANDWIDTH | SMARTIO_FLAG_LASTING)
#define HINTS                                                                                      \
	(SCI_MEMACCESS_MULTIHOST_READ | SCI_MEMACCESS_MULTIHOST_WRITE | SCI_MEMACCESS_P2P_READ |   \
	 SCI_MEMACCESS_P2P_WRITE)

static int check_memtype(unsigned memtype, bool bar, struct sio_err *err)
{
	if (memtype == SCI_MEMTYPE_PRIVATE || memtype == SCI_MEMTYPE_SHARED ||
	    (bar && memtype == SCI_MEMTYPE_BAR))
		return 0;
	return sio_fail(err, -EINVAL, "memtype %u is not one of %sPRIVATE (2), SHARED (4)", memtype,
			bar ? "BAR (1), " : "");
}

static int connect_segment(struct sio_library *lib, sci_smartio_device_t device,
			   sci_remote_segment_t *ret, unsigned id, unsigned memtype,
			   sci_cb_remote_segment_t callback, void *arg, unsigned flags,
			   struct sio_err *err)
{
	struct sio_msg_dev_seg_connect req = {.segment_id = sio_to_le32(id),
					      .memtype = sio_to_le32(memtype)};
	struct sio_remote_segment *seg;
	struct sio_device *d;
	int rc = sio_check_pointer(ret, "segment", err);

	if (!rc && flags & SCI_FLAG_USE_CALLBACK)
		rc = sio_check_pointer((const void *)(uintptr_t)callback, "callback", err);
	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_USE_CALLBACK,
				     SCI_FLAG_SPECIFY_PATH | SCI_FLAG_SPECIFY_SLOT, err);
	if (!rc)
		rc = check_memtype(memtype, true, err);
	if (rc)
		return rc;
	d = sio_object_get(lib, device, SIO_DEVICE, err);
	if (!d)
		return err->code;
	req.device = sio_to_le32(d->o.id);
	seg = sio_remote_segment_new(id, flags, callback, arg, err);
	if (!seg) {
		rc = err->code;
	} else {
		seg->is_bar = memtype == SCI_MEMTYPE_BAR;
		seg->fdid = d->fdid;
		rc = sio_remote_segment_connect(lib, seg, &d->o, SIO_MSG_DEV_SEG_CONNECT, &req,
						sizeof(req), err);
	}
	sio_object_put(&d->o);
	if (rc)
		return rc;
	*ret = sio_object_handle(&seg->o);
	sio_object_put(&seg->o);
	return 0;
}

void SCIConnectDeviceSegment(sci_smartio_device_t device, sci_remote_segment_t *segment,
			     unsigned int segmentId, unsigned int memtype,
			     sci_cb_remote_segment_t callback, void *callbackArg,
			     unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? connect_segment(lib, device, segment, segmentId, memtype, callback,
				       callbackArg, flags, &err)
		     : err.code;

	sio_api_leave(error, rc, &err);
}

static int check_create(unsigned id, size_t size, unsigned memtype, unsigned hints, unsigned flags,
			struct sio_err *err)
{
	int rc = sio_check_flags(flags, PLACEMENT, 0, err);

	if (!rc)
		rc = check_memtype(memtype, false, err);
	if (!rc && hints & ~HINTS)
		rc = sio_fail(err, -EINVAL,
			      "access hints %#x: only SCI_MEMACCESS_* (%#x) are right", hints,
			      HINTS);
	if (!rc && size == 0)
		rc = sio_refuse(err, SCI_ERR_SIZE_ALIGNMENT,
				"device segment %#x: size 0; at least 1 byte is needed", id);
	return rc;
}

void SCICreateDeviceSegment(sci_smartio_device_t device, unsigned int segmentId, size_t size,
			    unsigned int memtype, unsigned int accessHints, unsigned int flags,
			    sci_error_t *error)
{
	struct sio_msg_dev_seg_create req = {.segment_id = sio_to_le32(segmentId),
					     .bytes = sio_to_le64(size),
					     .memtype = sio_to_le32(memtype),
					     .hints = sio_to_le32(accessHints),
					     .flags = sio_to_le32(flags)};
	struct sio_device_call c;
	struct sio_rep_dev_seg_create rep;

	sio_device_enter(&c, device);
	if (!c.rc)
		c.rc = check_create(segmentId, size, memtype, accessHints, flags, &c.err);
	sio_device_ask(&c, SIO_MSG_DEV_SEG_CREATE, &req, sizeof(req), &req.device, &rep,
		       sizeof(rep));
	sio_device_leave(&c, error);
}

/* A segment mapped for a device. */
struct device_map {
	struct sio_object o;	   /* parent: the segment */
	struct sio_object *device; /* with a reference, and a child of it; NULL: not yet */
	unsigned adapter;
};

static void device_map_free(struct sio_object *o)
{
	struct device_map *map = (void *)o;

	sio_object_put(map->device);
	free(map);
}

/* Under the lock: the device is not returned while a segment is mapped for it. */
static int keep_device(struct device_map *map, struct sio_device *d, struct sio_err *err)
{
	int rc = 0;

	sio_session_lock(d->o.lib->session);
	if (sio_object_is_leaving(&d->o)) {
		rc = sio_fail(err, -EINVAL, "the device is being returned");
	} else {
		d->o.children++;
		sio_handle_ref(d->o.lib->handles, d->o.handle);
		map->device = &d->o;
	}
	sio_session_unlock(d->o.lib->session);
	return rc;
}

static void end_map(struct device_map *map)
{
	struct sio_object *device = map->device;

	if (device) {
		sio_session_lock(device->lib->session);
		device->children--;
		sio_session_unlock(device->lib->session);
	}
	sio_object_end(&map->o);
}

/* With the caller's reference. */
static int close_map(struct sio_object *o, int claimed, struct sio_err *err)
{
	int rc = sio_object_close(o, claimed, SIO_MSG_DMA_UNMAP, 0, err);

	if (!rc)
		end_map((struct device_map *)o);
	return rc;
}

const struct sio_kind_ops sio_device_map_kind = {
	.kind = SIO_DEVICE_MAP,
	.name = "map for a device",
	.nameless = true,
	.free = device_map_free,
	.close = close_map,
};

static int ask_map(struct device_map *map, struct sio_msg_dma_map *req, sci_ioaddr_t *ret,
		   struct sio_err *err)
{
	struct sio_rep_dma_map rep;
	struct sio_call call = {.req = &req->h,
				.req_len = sizeof(*req),
				.type = SIO_MSG_DMA_MAP,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.done = sio_object_adopt,
				.arg = &map->o};
	int rc = sio_session_call(map->o.lib->session, &call, err);

	if (rc == 0)
		*ret = sio_from_le64(rep.ioaddr);
	/* Removed at the exporter, and the event still on its way to us. */
	return sio_error_as(rc, -ENOENT, SCI_ERR_NOT_CONNECTED);
}

/* Of @req range and adapter are set. */
static int map_for_device(struct sio_library *lib, struct sio_object *segment,
			  sci_smartio_device_t device, struct sio_msg_dma_map *req,
			  sci_ioaddr_t *ret, struct sio_err *err)
{
	struct sio_device *d = sio_object_get(lib, device, SIO_DEVICE, err);
	struct device_map *map;
	int rc;

	if (!d)
		return err->code;
	map = calloc(1, sizeof(*map));
	if (!map) {
		sio_object_put(&d->o);
		return sio_no_memory(err, "a segment's map for a device");
	}
	map->o.kind = SIO_DEVICE_MAP;
	map->adapter = sio_from_le32(req->adapter);
	rc = sio_object_add(lib, &map->o, segment, err);
	if (!rc) {
		rc = keep_device(map, d, err);
		req->device = sio_to_le32(d->o.id);
		req->segment = sio_to_le32(segment->id);
		req->remote = sio_to_le32(segment->kind == SIO_REMOTE_SEGMENT);
		if (!rc)
			rc = ask_map(map, req, ret, err);
		if (rc)
			end_map(map);
		else
			sio_object_put(&map->o);
	}
	sio_object_put(&d->o);
	return rc;
}

/* Under the lock: a map of these, claimed and with a reference. */
static struct device_map *claim_map(struct sio_library *lib, const struct sio_object *segment,
				    const struct sio_object *device, unsigned adapter)
{
	for (struct sio_object *o = segment->first_child; o; o = o->sibling) {
		struct device_map *map = (void *)o;

		if (o->kind != SIO_DEVICE_MAP || sio_object_is_leaving(o) || o->id == 0 ||
		    map->device != device || map->adapter != adapter)
			continue;
		sio_object_step(o, SIO_LIFE_CLAIM);
		sio_handle_ref(lib->handles, o->handle);
		return map;
	}
	return NULL;
}

/* All of these; *@ret_n: how many there were. */
static int end_maps(struct sio_library *lib, const struct sio_object *segment,
		    const struct sio_object *device, unsigned adapter, unsigned *ret_n,
		    struct sio_err *err)
{
	struct device_map *map;
	int rc = 0;

	for (*ret_n = 0; !rc; ++*ret_n) {
		sio_session_lock(lib->session);
		map = claim_map(lib, segment, device, adapter);
		sio_session_unlock(lib->session);
		if (!map)
			break;
		rc = close_map(&map->o, 0, err);
	}
	return rc;
}

static int unmap_for_device(struct sio_library *lib, struct sio_object *segment,
			    sci_smartio_device_t device, unsigned adapter, struct sio_err *err)
{
	struct sio_device *d = sio_object_get(lib, device, SIO_DEVICE, err);
	unsigned n;
	int rc;

	if (!d)
		return err->code;
	rc = end_maps(lib, segment, &d->o, adapter, &n, err);
	if (n == 0)
		rc = sio_fail(err, -EPERM,
			      "the segment is not mapped for device %#x through adapter %u",
			      d->fdid, adapter);
	sio_object_put(&d->o);
	return rc;
}

/* The same rule wherever the device is: smartiod needs no window for one of its own. */
static int check_available(struct sio_local_segment *seg, unsigned adapter, struct sio_err *err)
{
	int rc = 0;

	sio_session_lock(seg->o.lib->session);
	if (!((seg->is_private ? seg->prepared : seg->available) >> adapter & 1))
		rc = sio_refuse(err, SCI_ERR_SEGMENT_NOT_PREPARED,
				"segment %#x is not %s on adapter %u", seg->segment_id,
				seg->is_private ? "prepared" : "available", adapter);
	sio_session_unlock(seg->o.lib->session);
	return rc;
}

/* Where the device is to have it is said in @req already. */
static int map_local(struct sio_library *lib, sci_local_segment_t segment,
		     sci_smartio_device_t device, struct sio_msg_dma_map *req, sci_ioaddr_t *ret,
		     struct sio_err *err)
{
	unsigned adapter = sio_from_le32(req->adapter);
	struct sio_local_segment *seg;
	int rc = sio_check_adapter(lib, adapter, err);

	if (rc)
		return rc;
	seg = sio_object_get(lib, segment, SIO_LOCAL_SEGMENT, err);
	if (!seg)
		return err->code;
	rc = sio_check_range(sio_from_le64(req->offset), sio_from_le64(req->bytes), seg->bytes,
			     err);
	if (!rc)
		rc = check_available(seg, adapter, err);
	if (!rc)
		rc = map_for_device(lib, &seg->o, device, req, ret, err);
	sio_object_put(&seg->o);
	return sio_error_as(rc, -EPERM, SCI_ERR_SEGMENT_NOT_PREPARED);
}

void SCIMapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int localAdapterNo,
				 sci_smartio_device_t device, sci_ioaddr_t *ioaddr, size_t offset,
				 size_t size, unsigned int flags, sci_error_t *error)
{
	struct sio_msg_dma_map req = {.adapter = sio_to_le32(localAdapterNo),
				      .offset = sio_to_le64(offset),
				      .bytes = sio_to_le64(size)};
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(ioaddr, "ioaddr", &err);
	if (!rc)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc)
		rc = map_local(lib, segment, device, &req, ioaddr, &err);
	sio_api_leave(error, rc, &err);
}

void smartio_map_segment_at(sci_local_segment_t segment, unsigned int localAdapterNo,
			    sci_smartio_device_t device, sci_ioaddr_t ioaddr, size_t offset,
			    size_t size, unsigned int flags, sci_error_t *error)
{
	struct sio_msg_dma_map req = {.adapter = sio_to_le32(localAdapterNo),
				      .offset = sio_to_le64(offset),
				      .bytes = sio_to_le64(size),
				      .ioaddr = sio_to_le64(ioaddr),
				      .flags = sio_to_le32(SIO_DMA_AT)};
	sci_ioaddr_t there;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc)
		rc = map_local(lib, segment, device, &req, &there, &err);
	sio_api_leave(error, rc, &err);
}

void SCIUnmapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int localAdapterNo,
				   sci_smartio_device_t device, unsigned int flags,
				   sci_error_t *error)
{
	struct sio_object *seg = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc) {
		seg = sio_object_get(lib, segment, SIO_LOCAL_SEGMENT, &err);
		rc = seg ? unmap_for_device(lib, seg, device, localAdapterNo, &err) : err.code;
	}
	sio_object_put(seg);
	sio_api_leave(error, rc, &err);
}

/* Where the device is to have it is said in @req already. */
static int map_remote(struct sio_library *lib, sci_remote_segment_t segment,
		      sci_smartio_device_t device, struct sio_msg_dma_map *req, sci_ioaddr_t *ret,
		      struct sio_err *err)
{
	struct sio_remote_segment *seg = sio_object_get(lib, segment, SIO_REMOTE_SEGMENT, err);
	int rc;

	if (!seg)
		return err->code;
	rc = sio_remote_segment_check(seg, err);
	if (!rc)
		rc = sio_check_range(sio_from_le64(req->offset), sio_from_le64(req->bytes),
				     seg->bytes, err);
	if (!rc)
		rc = map_for_device(lib, &seg->o, device, req, ret, err);
	sio_object_put(&seg->o);
	return rc;
}

void SCIMapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				  sci_ioaddr_t *ioaddr, size_t offset, size_t size,
				  unsigned int flags, sci_error_t *error)
{
	struct sio_msg_dma_map req = {.offset = sio_to_le64(offset), .bytes = sio_to_le64(size)};
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(ioaddr, "ioaddr", &err);
	if (!rc)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc)
		rc = map_remote(lib, segment, device, &req, ioaddr, &err);
	sio_api_leave(error, rc, &err);
}

void smartio_map_remote_segment_at(sci_remote_segment_t segment, sci_smartio_device_t device,
				   sci_ioaddr_t ioaddr, size_t offset, size_t size,
				   unsigned int flags, sci_error_t *error)
{
	struct sio_msg_dma_map req = {.offset = sio_to_le64(offset),
				      .bytes = sio_to_le64(size),
				      .ioaddr = sio_to_le64(ioaddr),
				      .flags = sio_to_le32(SIO_DMA_AT)};
	sci_ioaddr_t there;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc)
		rc = map_remote(lib, segment, device, &req, &there, &err);
	sio_api_leave(error, rc, &err);
}

void SCIUnmapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				    unsigned int flags, sci_error_t *error)
{
	struct sio_object *seg = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc) {
		seg = sio_object_get(lib, segment, SIO_REMOTE_SEGMENT, &err);
		rc = seg ? unmap_for_device(lib, seg, device, 0, &err) : err.code;
	}
	sio_object_put(seg);
	sio_api_leave(error, rc, &err);
}
