/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Distance: the number of chips between two ends, each a device or the memory of a host, on the
 * shortest path that is up now. The daemon of the first end knows the paths from its host, so that
 * daemon answers.
 */
#include <errno.h>
#include <inttypes.h>

#include "core/hops.h"
#include "smartiod/base/hops.h"
#include "smartiod/base/peer.h"
#include "smartiod/base/room.h"
#include "smartiod/device/device.h"

struct end {
	uint32_t node;
	const struct smartiod_device *device; /* NULL: the memory */
};

static int find_end(struct smartiod *d, uint32_t node, uint32_t fdid, struct end *ret,
		    struct sio_err *reterr)
{
	const struct smartiod_peer *p;

	if (fdid) {
		ret->device = smartiod_device_find(d, fdid, reterr);
		ret->node = ret->device ? ret->device->node : 0;
		return ret->device ? 0 : reterr->code;
	}
	*ret = (struct end){.node = node};
	p = smartiod_peer_find(d, node);
	if (node != d->node && (!p || p->removed))
		return sio_fail(reterr, -EHOSTUNREACH, "no host of cluster %s has node id %" PRIu32,
				d->topology->name, node);
	return 0;
}

static const struct smartiod_hops *hops_of(struct smartiod *d, const struct end *e)
{
	if (e->device)
		return &e->device->hops;
	return e->node == d->node ? &d->hops : &smartiod_peer_find(d, e->node)->hops;
}

/* Two ends of this host. */
static unsigned within(const struct smartiod *d, const struct end *a, const struct end *b)
{
	const struct smartiod_device *one = a->device, *other = b->device;

	if (!one && !other)
		return 0;
	if (!one || !other)
		return (one ? one : other)->hops.memory;
	if (smartiod_is_real(d))
		return sio_hops_above(one->port.above, other->port.above,
				      one->port.iommu_mode != SIO_IOMMU_OFF);
	return sio_hops_within(d->host, one->topo->in, other->topo->in);
}

/* @from is of this host. */
static int find_hops(struct smartiod *d, const struct end *from, const struct end *to,
		     struct sio_rep_hops *ret, struct sio_err *reterr)
{
	struct sio_path path;
	int rc;

	if (from->device && from->device == to->device)
		return sio_fail(reterr, -EINVAL, "both ends are %s; two different ends are right",
				from->device->topo->name);
	*ret = (struct sio_rep_hops){.adapter = sio_to_le32(SIO_WIRE_NO_ADAPTER),
				     .peer_adapter = sio_to_le32(SIO_WIRE_NO_ADAPTER)};
	if (to->node == d->node) {
		ret->hops = sio_to_le32(within(d, from, to));
		return 0;
	}
	rc = smartiod_path_between(d, to->node, SIO_ADAPTER_ANY, SIO_ADAPTER_ANY, hops_of(d, from),
				   hops_of(d, to), &path, reterr);
	if (rc < 0)
		return rc;
	ret->hops = sio_to_le32(sio_hops_over(&path, hops_of(d, from)->adapter[path.adapter],
					      hops_of(d, to)->adapter[path.peer_adapter]));
	ret->adapter = sio_to_le32(path.adapter);
	ret->peer_adapter = sio_to_le32(path.peer_adapter);
	return 0;
}

static int read_ends(struct smartiod *d, const struct sio_msg_hops *m, struct end *from,
		     struct end *to, struct sio_err *reterr)
{
	int rc =
		find_end(d, sio_from_le32(m->from_node), sio_from_le32(m->from_fdid), from, reterr);

	if (rc < 0)
		return rc;
	return find_end(d, sio_from_le32(m->to_node), sio_from_le32(m->to_fdid), to, reterr);
}

static void forward_step(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	struct sio_rep_hops rep;

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		rep = *(const struct sio_rep_hops *)a->msg;
		rep.h.error = sio_to_le32(0);
		smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
	}
	smartiod_op_free(d, op);
}

static int forward(struct smartiod *d, struct smartiod_session *s, const struct sio_msg_hops *m,
		   uint32_t node, struct sio_err *reterr)
{
	struct sio_msg_hops ask = {.h.type = sio_to_le32(SIO_PEER_HOPS),
				   .from_node = m->from_node,
				   .from_fdid = m->from_fdid,
				   .to_node = m->to_node,
				   .to_fdid = m->to_fdid};
	struct smartiod_op *op = smartiod_op_new(d, s, m, sizeof(*op), forward_step, reterr);
	int rc;

	if (!op)
		return reterr->code;
	rc = smartiod_peer_ask(d, op, node, &ask, sizeof(ask));
	if (rc == 0)
		return 0;
	smartiod_op_free(d, op);
	return sio_fail(reterr, rc, "node %" PRIu32 " cannot be reached", node);
}

int smartiod_hops_query(struct smartiod *d, struct smartiod_session *s, const void *msg,
			struct sio_err *reterr)
{
	struct sio_rep_hops rep;
	struct end from, to;
	int rc = read_ends(d, msg, &from, &to, reterr);

	if (rc < 0)
		return rc;
	if (from.node != d->node)
		return forward(d, s, msg, from.node, reterr);
	rc = find_hops(d, &from, &to, &rep, reterr);
	if (rc < 0)
		return rc;
	smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
	return 0;
}

int smartiod_peer_hops(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       struct sio_err *reterr)
{
	struct sio_rep_hops rep;
	struct end a, b;
	int rc = read_ends(d, msg, &a, &b, reterr);

	if (rc == 0 && a.node != d->node)
		rc = sio_fail(reterr, -EPROTO, "%s was asked for paths from node %" PRIu32,
			      d->host->name, a.node);
	if (rc == 0)
		rc = find_hops(d, &a, &b, &rep, reterr);
	if (rc < 0)
		return rc;
	smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
	return 0;
}
