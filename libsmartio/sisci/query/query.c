/* SPDX-License-Identifier: BSD-2-Clause */
/* SCIQuery, and queries about mappings. */
#include <errno.h>
#include <string.h>

#include "sisci/device/device.h"
#include "sisci/query/query.h"
#include "sisci/segment/segment.h"

#define CACHE_LINE 64u

int sio_query_no_such(unsigned command, unsigned subcommand, struct sio_err *err)
{
	return sio_refuse(err, SCI_ERR_ILLEGAL_QUERY, "query %#x has no subcommand %#x", command,
			  subcommand);
}

int sio_query_not_answered(unsigned subcommand, struct sio_err *err)
{
	return sio_refuse(err, SCI_ERR_NOT_SUPPORTED, "query %#x is not supported here",
			  subcommand);
}

static int query_string(unsigned command, const sci_query_string_t *q, struct sio_err *err)
{
	const char *text = command == SCI_Q_VENDORID ? "SmartIO, open implementation of SISCI"
			   : command == SCI_Q_API    ? "SISCI API 2.x"
						     : SMARTIO_VERSION;
	size_t n = strlen(text) + 1;
	int rc = sio_check_pointer(q->str, "str", err);

	if (rc)
		return rc;
	if (q->length == 0)
		return sio_fail(err, -EINVAL, "length is 0: there is no room for an answer");
	if (n > q->length)
		n = q->length;
	memcpy(q->str, text, n);
	q->str[n - 1] = '\0';
	return 0;
}

static int query_system(const sci_query_system_t *q, struct sio_err *err)
{
	unsigned value = CACHE_LINE;
	int rc = sio_check_pointer(q->data, "data", err);

	if (rc)
		return rc;
	if (q->subcommand >= SCI_Q_SYSTEM_HOSTBRIDGE &&
	    q->subcommand <= SCI_Q_SYSTEM_WRITE_COMBINING_ENABLED)
		return sio_query_not_answered(q->subcommand, err);
	if (q->subcommand != SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE)
		return sio_query_no_such(SCI_Q_SYSTEM, q->subcommand, err);
	memcpy(q->data, &value, sizeof(value));
	return 0;
}

static int query_local_segment(struct sio_library *lib, sci_query_local_segment_t *q,
			       struct sio_err *err)
{
	struct sio_local_segment *seg = sio_object_get(lib, q->segment, SIO_LOCAL_SEGMENT, err);
	int rc = 0;

	if (!seg)
		return err->code;
	if (q->subcommand == SCI_Q_LOCAL_SEGMENT_PHYS_ADDR ||
	    q->subcommand == SCI_Q_LOCAL_SEGMENT_IOADDR)
		q->data.ioaddr = seg->phys_addr;
	else if (q->subcommand == SCI_Q_LOCAL_SEGMENT_VIRTUAL_KERNEL_ADDR)
		rc = sio_query_not_answered(q->subcommand, err);
	else
		rc = sio_query_no_such(SCI_Q_LOCAL_SEGMENT, q->subcommand, err);
	sio_object_put(&seg->o);
	return rc;
}

/* Through whatever map of it there is; 0: none. */
static uint64_t segment_address(struct sio_remote_segment *seg)
{
	uint64_t address = 0;

	sio_session_lock(seg->o.lib->session);
	for (struct sio_object *o = seg->o.first_child; o && !address; o = o->sibling) {
		const struct sio_mapping *m = (void *)o;

		if (o->kind == SIO_MAPPING && m->address)
			address = m->address - m->offset;
	}
	sio_session_unlock(seg->o.lib->session);
	return address;
}

static int query_remote_segment(struct sio_library *lib, sci_query_remote_segment_t *q,
				struct sio_err *err)
{
	struct sio_remote_segment *seg = sio_object_get(lib, q->segment, SIO_REMOTE_SEGMENT, err);
	uint64_t address;
	int rc = 0;

	if (!seg)
		return err->code;
	address = seg->is_bar ? seg->bar_address : segment_address(seg);
	if (q->subcommand != SCI_Q_REMOTE_SEGMENT_IOADDR)
		rc = sio_query_no_such(SCI_Q_REMOTE_SEGMENT, q->subcommand, err);
	else if (sio_object_is_lost(&seg->o))
		rc = sio_object_fail_lost(&seg->o, err);
	else if (!address)
		rc = sio_refuse(err, SCI_ERR_ILLEGAL_OPERATION,
				"segment %#x of node %u is not mapped: it has no address here",
				seg->segment_id, seg->node);
	else
		q->data.ioaddr = address;
	sio_object_put(&seg->o);
	return rc;
}

/* 0: it has none. */
static uint64_t map_address(struct sio_mapping *m)
{
	uint64_t address;

	sio_session_lock(m->o.lib->session);
	address = m->o.lost ? 0 : m->address;
	sio_session_unlock(m->o.lib->session);
	return address ? address + (uint64_t)((char *)m->pointer - (char *)m->base) : 0;
}

static int query_map(struct sio_library *lib, sci_query_map_t *q, struct sio_err *err)
{
	struct sio_mapping *m = sio_object_get(lib, q->map, SIO_MAPPING, err);
	uint64_t address;
	int rc = 0;

	if (!m)
		return err->code;
	switch (q->subcommand) {
	case SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET:
		q->data = m->o.parent->kind == SIO_LOCAL_SEGMENT ||
			  ((struct sio_remote_segment *)m->o.parent)->node == lib->node;
		break;
	case SCI_Q_MAP_IOADDR:
	case SCI_Q_MAP_PHYS_ADDR:
		address = map_address(m);
		if (address)
			q->data = address;
		else if (sio_object_is_lost(&m->o))
			rc = sio_object_fail_lost(&m->o, err);
		else
			rc = sio_query_not_answered(q->subcommand, err);
		break;
	default:
		rc = sio_query_no_such(SCI_Q_MAP, q->subcommand, err);
	}
	sio_object_put(&m->o);
	return rc;
}

sci_ioaddr_t SCIGetMapPhysAddr(sci_map_t map)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_mapping *m = lib ? sio_object_get(lib, map, SIO_MAPPING, &err) : NULL;
	sci_ioaddr_t address = 0;

	if (m) {
		address = map_address(m);
		sio_object_put(&m->o);
	}
	sio_api_leave(NULL, m ? 0 : err.code, &err);
	return address;
}

static int query_device(struct sio_library *lib, const sci_smartio_query_device_t *q,
			struct sio_err *err)
{
	struct sio_rep_dev_list rep;
	int rc = sio_check_pointer(q->data, "data", err);

	if (!rc && q->subcommand != SCI_Q_DEVICE_INFO)
		rc = sio_query_no_such(SCI_Q_DEVICE, q->subcommand, err);
	if (!rc && q->fdid == 0)
		rc = sio_fail(err, -ENODEV, "0 is no device id");
	if (!rc)
		rc = sio_device_next(lib, q->fdid - 1, &rep, err);
	if (rc == -ENODEV || (!rc && sio_from_le32(rep.fdid) != q->fdid))
		rc = sio_fail(err, -ENODEV, "no device with id %#x", q->fdid);
	if (!rc)
		sio_device_info(&rep, q->data);
	return rc;
}

static int query(struct sio_library *lib, unsigned command, void *data, struct sio_err *err)
{
	int rc = sio_check_pointer(data, "data", err);

	if (rc)
		return rc;
	switch (command) {
	case SCI_Q_VENDORID:
	case SCI_Q_API:
	case SCI_Q_SISCI_DRIVER_VERSION:
		return query_string(command, data, err);
	case SCI_Q_ADAPTER:
		return sio_query_adapter(lib, data, err);
	case SCI_Q_SYSTEM:
		return query_system(data, err);
	case SCI_Q_LOCAL_SEGMENT:
		return query_local_segment(lib, data, err);
	case SCI_Q_REMOTE_SEGMENT:
		return query_remote_segment(lib, data, err);
	case SCI_Q_MAP:
		return query_map(lib, data, err);
	case SCI_Q_DEVICE:
		return query_device(lib, data, err);
	case SCI_Q_DMA:
		return sio_query_dma(lib, data, err);
	default:
		return sio_refuse(err, SCI_ERR_ILLEGAL_QUERY, "there is no query %#x", command);
	}
}

void SCIQuery(unsigned int command, void *data, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags,
				     command == SCI_Q_DMA
					     ? SCI_FLAG_DMA_ADAPTER | SCI_FLAG_DMA_GLOBAL |
						       SCI_FLAG_DMA_SYSDMA
					     : 0,
				     0, &err);
	if (!rc)
		rc = query(lib, command, data, &err);
	sio_api_leave(error, rc, &err);
}
