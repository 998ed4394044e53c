/* SPDX-License-Identifier: BSD-2-Clause */
/* SCIQuery, SCIGetLocalNodeId, SCIProbeNode. */
#include <errno.h>
#include <string.h>

#include "sisci/device.h"
#include "sisci/segment.h"

#define CACHE_LINE 64u

static int no_such(unsigned command, unsigned subcommand, struct sio_err *err)
{
	return sio_refuse(err, SCI_ERR_ILLEGAL_QUERY, "query %#x has no subcommand %#x", command,
			  subcommand);
}

static int not_answered(unsigned subcommand, struct sio_err *err)
{
	return sio_refuse(err, SCI_ERR_NOT_SUPPORTED, "query %#x is not answered here", subcommand);
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

static int ask_adapter(struct sio_library *lib, unsigned adapter, struct sio_rep_adapter *rep,
		       struct sio_err *err)
{
	struct sio_msg_adapter req = {.adapter = sio_to_le32(adapter)};
	int rc = sio_check_adapter(lib, adapter, err);

	if (rc)
		return rc;
	return sio_ask(lib, SIO_MSG_ADAPTER, &req, sizeof(req), rep, sizeof(*rep), err);
}

static int adapter_value(unsigned subcommand, const struct sio_rep_adapter *rep, unsigned *ret,
			 struct sio_err *err)
{
	switch (subcommand) {
	case SCI_Q_ADAPTER_NODEID:
		*ret = sio_from_le32(rep->node);
		return 0;
	case SCI_Q_ADAPTER_CONFIGURED:
	case SCI_Q_ADAPTER_NUMBER_OF_LINKS:
		*ret = 1;
		return 0;
	case SCI_Q_ADAPTER_BDF:
		*ret = sio_from_le32(rep->bdf);
		return 0;
	case SCI_Q_ADAPTER_MCAST_MAX_GROUPS:
		*ret = sio_from_le32(rep->mcast_groups);
		return 0;
	case SCI_Q_ADAPTER_LINK_OPERATIONAL:
		*ret = sio_from_le32(rep->link_up) != 0;
		return 0;
	case SCI_Q_ADAPTER_LINK_WIDTH:
		*ret = sio_from_le32(rep->link_width);
		return 0;
	case SCI_Q_ADAPTER_LINK_SPEED:
		*ret = sio_from_le32(rep->link_generation);
		return 0;
	case SCI_Q_ADAPTER_SERIAL_NUMBER:
	case SCI_Q_ADAPTER_CARD_TYPE:
	case SCI_Q_ADAPTER_DMA_MTU:
	case SCI_Q_ADAPTER_LINK_UPTIME:
	case SCI_Q_ADAPTER_LINK_DOWNTIME:
	case SCI_Q_ADAPTER_LINK_CABLE_INSERTED:
	case SCI_Q_ADAPTER_LINK_ENABLED:
	case SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO:
		return not_answered(subcommand, err);
	default:
		return no_such(SCI_Q_ADAPTER, subcommand, err);
	}
}

static int query_adapter(struct sio_library *lib, const sci_query_adapter_t *q, struct sio_err *err)
{
	struct sio_rep_adapter rep;
	unsigned value;
	unsigned short bdf;
	int rc = sio_check_pointer(q->data, "data", err);

	if (!rc)
		rc = ask_adapter(lib, q->localAdapterNo, &rep, err);
	if (!rc)
		rc = adapter_value(q->subcommand, &rep, &value, err);
	/* portNo is only set, and only looked at, for the queries about one link. */
	if (!rc && q->subcommand >= SCI_Q_ADAPTER_LINK_OPERATIONAL && q->portNo != 0)
		rc = sio_fail(err, -EINVAL, "adapter %u has one link, port 0; not %u",
			      q->localAdapterNo, q->portNo);
	if (rc)
		return rc;
	bdf = (unsigned short)value;
	if (q->subcommand == SCI_Q_ADAPTER_BDF)
		memcpy(q->data, &bdf, sizeof(bdf));
	else
		memcpy(q->data, &value, sizeof(value));
	return 0;
}

static int query_system(const sci_query_system_t *q, struct sio_err *err)
{
	unsigned value = CACHE_LINE;
	int rc = sio_check_pointer(q->data, "data", err);

	if (rc)
		return rc;
	if (q->subcommand != SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE)
		return no_such(SCI_Q_SYSTEM, q->subcommand, err);
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
		rc = not_answered(q->subcommand, err);
	else
		rc = no_such(SCI_Q_LOCAL_SEGMENT, q->subcommand, err);
	sio_object_put(&seg->o);
	return rc;
}

static int query_remote_segment(struct sio_library *lib, const sci_query_remote_segment_t *q,
				struct sio_err *err)
{
	struct sio_object *o = sio_object_get(lib, q->segment, SIO_REMOTE_SEGMENT, err);

	if (!o)
		return err->code;
	sio_object_put(o);
	if (q->subcommand == SCI_Q_REMOTE_SEGMENT_IOADDR)
		return not_answered(q->subcommand, err);
	return no_such(SCI_Q_REMOTE_SEGMENT, q->subcommand, err);
}

static int query_map(struct sio_library *lib, sci_query_map_t *q, struct sio_err *err)
{
	struct sio_mapping *m = sio_object_get(lib, q->map, SIO_MAPPING, err);
	const struct sio_local_segment *local;
	bool is_local;
	int rc = 0;

	if (!m)
		return err->code;
	is_local = m->o.parent->kind == SIO_LOCAL_SEGMENT;
	local = (void *)m->o.parent;
	switch (q->subcommand) {
	case SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET:
		q->data = is_local || ((struct sio_remote_segment *)m->o.parent)->node == lib->node;
		break;
	case SCI_Q_MAP_IOADDR:
	case SCI_Q_MAP_PHYS_ADDR:
		if (is_local)
			q->data = local->phys_addr + m->offset +
				  (uint64_t)((char *)m->pointer - (char *)m->base);
		else
			rc = not_answered(q->subcommand, err);
		break;
	default:
		rc = no_such(SCI_Q_MAP, q->subcommand, err);
	}
	sio_object_put(&m->o);
	return rc;
}

static int query_device(struct sio_library *lib, const sci_smartio_query_device_t *q,
			struct sio_err *err)
{
	struct sio_rep_dev_list rep;
	int rc = sio_check_pointer(q->data, "data", err);

	if (!rc && q->subcommand != SCI_Q_DEVICE_INFO)
		rc = no_such(SCI_Q_DEVICE, q->subcommand, err);
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
		return query_adapter(lib, data, err);
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
		return not_answered(command, err);
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
		rc = sio_check_flags(
			flags, 0, SCI_FLAG_DMA_ADAPTER | SCI_FLAG_DMA_GLOBAL | SCI_FLAG_DMA_SYSDMA,
			&err);
	if (!rc)
		rc = query(lib, command, data, &err);
	sio_api_leave(error, rc, &err);
}

void SCIGetLocalNodeId(unsigned int adapterNo, unsigned int *nodeId, unsigned int flags,
		       sci_error_t *error)
{
	struct sio_rep_adapter rep;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(nodeId, "nodeId", &err);
	if (!rc)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc)
		rc = ask_adapter(lib, adapterNo, &rep, &err);
	if (!rc)
		*nodeId = sio_from_le32(rep.node);
	sio_api_leave(error, rc, &err);
}

int SCIProbeNode(sci_desc_t sd, unsigned int localAdapterNo, unsigned int nodeId,
		 unsigned int flags, sci_error_t *error)
{
	struct sio_msg_node_probe req = {.adapter = sio_to_le32(localAdapterNo)};
	struct sio_object *desc = NULL;
	struct sio_msg rep;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc)
		rc = sio_check_adapter(lib, localAdapterNo, &err);
	if (!rc)
		rc = sio_check_node(lib, &nodeId, &err);
	if (!rc) {
		desc = sio_object_get(lib, sd, SIO_DESC, &err);
		req.node = sio_to_le32(nodeId);
		rc = desc ? sio_ask(lib, SIO_MSG_NODE_PROBE, &req, sizeof(req), &rep, sizeof(rep),
				    &err)
			  : err.code;
	}
	sio_object_put(desc);
	sio_api_leave(error, rc, &err);
	return rc == 0;
}
