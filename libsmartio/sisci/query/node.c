/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes: the id of this one, which others can be reached, and their names. */
#include <errno.h>
#include <string.h>

#include "sisci/query/query.h"

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
		rc = sio_ask_adapter(lib, adapterNo, &rep, &err);
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
	if (rc == -ENETDOWN)
		rc = sio_status_link(lib, localAdapterNo, rc);
	sio_api_leave(error, rc, &err);
	return rc == 0;
}

/* The row of the host with this name; *ret_node 0: there is none. */
static int find_node(struct sio_library *lib, const char *name, unsigned *ret_node,
		     struct sio_err *err)
{
	struct sio_msg_list req = {.kind = sio_to_le32(SIO_LIST_NODES)};
	struct sio_rep_list rep;
	uint32_t n;
	int rc;

	*ret_node = 0;
	do {
		rc = sio_ask(lib, SIO_MSG_LIST, &req, sizeof(req), &rep, sizeof(rep), err);
		if (rc)
			return rc;
		n = sio_from_le32(rep.count);
		if (n > SIO_LIST_ROWS)
			return sio_fail(err, -EPROTO, "smartiod listed %u nodes at once", n);
		for (uint32_t i = 0; i < n && !*ret_node; i++)
			if (strncmp(rep.row[i].name, name, sizeof(rep.row[i].name)) == 0)
				*ret_node = sio_from_le32(rep.row[i].node);
		if (n)
			req.after = rep.row[n - 1].key;
	} while (n && sio_from_le32(rep.more) && !*ret_node);
	return 0;
}

/* The first adapter with a path to @node that is up; without one the first that there is. */
static unsigned way_to(struct sio_library *lib, unsigned node)
{
	for (unsigned a = 0; a < sio_adapters(lib); a++) {
		struct sio_msg_node_probe req = {.adapter = sio_to_le32(a),
						 .node = sio_to_le32(node)};
		struct sio_err err = {.code = 0};
		struct sio_msg rep;

		if (sio_ask(lib, SIO_MSG_NODE_PROBE, &req, sizeof(req), &rep, sizeof(rep), &err) ==
		    0)
			return a;
	}
	return 0;
}

static int by_name(struct sio_library *lib, const char *name, unsigned *adapters,
		   dis_nodeId_list_t *nodes, dis_virt_adapter_t *type, unsigned flags,
		   struct sio_err *err)
{
	unsigned node = 0;
	int rc = sio_check_pointer(name, "adaptername", err);

	if (!rc)
		rc = sio_check_pointer(nodes, "the list of node ids", err);
	if (!rc)
		rc = sio_check_flags(flags, 0, 0, err);
	if (!rc)
		rc = find_node(lib, name, &node, err);
	if (rc)
		return rc;
	memset(*nodes, 0, sizeof(*nodes));
	(*nodes)[0] = node;
	if (adapters) {
		memset(adapters, 0, DIS_MAX_NSCIS * sizeof(*adapters));
		adapters[0] = node ? way_to(lib, node) : 0;
	}
	if (type)
		*type = node ? DIS_ADAPTER_TYPE_NTB : DIS_ADAPTER_TYPE_UNKNOWN;
	return 0;
}

void SCIGetNodeIdByAdapterName(char *adaptername, dis_nodeId_list_t *nodeId,
			       dis_virt_adapter_t *type, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? by_name(lib, adaptername, NULL, nodeId, type, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

void SCIGetNodeInfoByAdapterName(char *adaptername, unsigned int *adapterNo,
				 dis_nodeId_list_t *nodeIdlist, dis_adapter_type_t *type,
				 unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(adapterNo, "adapterNo", &err);
	if (!rc)
		rc = by_name(lib, adaptername, adapterNo, nodeIdlist, type, flags, &err);
	sio_api_leave(error, rc, &err);
}

const char *SCIGetAdapterTypeString(unsigned int type)
{
	return type == DIS_ADAPTER_TYPE_NTB ? "PCIe non-transparent bridge" : "unknown adapter";
}

const char *SCIGetAdapterFamilyString(unsigned int family)
{
	return family == DIS_ADAPTER_TYPE_NTB ? "PCIe NTB" : "unknown family";
}
