/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST: rows of the daemon's own tables and of the port's, for listings and the audit. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "smartiod/device/device.h"
#include "smartiod/interrupt/dint.h"
#include "smartiod/base/internal.h"

/* The row with the smallest key greater than @after; false: none. */
typedef bool row_fn(struct smartiod *d, uint64_t after, struct sio_wire_row *ret);

static bool node_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	const struct sio_topo_host *h = NULL;
	const struct smartiod_peer *p;

	for (unsigned i = 0; i < d->topology->n_hosts && !h; i++)
		if (d->topology->host[i].node > after)
			h = &d->topology->host[i];
	if (!h)
		return false;
	p = smartiod_peer_find(d, h->node);
	ret->key = sio_to_le64(h->node);
	ret->node = sio_to_le32(h->node);
	ret->bytes = sio_to_le64(h->ram_size);
	ret->refs = sio_to_le32(h->n_devices);
	if (!p || p->state == SMARTIOD_PEER_READY)
		ret->flags = sio_to_le32(SIO_ROW_LIVE | SIO_ROW_UP);
	ret->owner = sio_to_le64(p ? p->generation : d->boot_generation);
	snprintf(ret->name, sizeof(ret->name), "%s", h->name);
	return true;
}

static bool segment_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	const struct smartiod_segment *seg;
	bool ended;

	seg = SMARTIOD_OF(smartiod_tree_after(&d->segments, after), struct smartiod_segment,
			  by_uid);
	if (!seg)
		return false;
	ended = seg->state == SMARTIOD_SEGMENT_ENDED;
	ret->key = sio_to_le64(seg->uid);
	ret->owner = sio_to_le64(seg->owner);
	ret->bytes = sio_to_le64(seg->bytes);
	ret->address = sio_to_le64(seg->phys);
	ret->id = sio_to_le32(seg->id);
	ret->node = sio_to_le32(d->node);
	ret->refs = sio_to_le32(seg->n_refs + seg->n_grants + seg->dma);
	ret->flags = sio_to_le32((ended ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE) |
				 (seg->available ? SIO_ROW_AVAILABLE : 0));
	/* Of who made it; when that has let go of it, of one who attached to it. */
	ret->pid = sio_to_le32(seg->let_go && seg->attachments ? seg->attachments->o.session->pid
							       : seg->pid);
	if (seg->device)
		snprintf(ret->name, sizeof(ret->name), "device segment");
	else if (seg->state == SMARTIOD_SEGMENT_KEPT)
		snprintf(ret->name, sizeof(ret->name), "removed");
	return true;
}

static bool client_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	static const char *const kind[] = {"greeting", "library", "tool", "keeper"};
	const struct smartiod_session *s;

	s = SMARTIOD_OF(smartiod_tree_after(&d->sessions, after), struct smartiod_session,
			by_client);
	if (!s)
		return false;
	ret->key = sio_to_le64(s->client);
	ret->owner = sio_to_le64(s->owner);
	ret->id = sio_to_le32(s->kind);
	ret->node = sio_to_le32(d->node);
	ret->bytes = sio_to_le64(s->version);
	ret->refs = sio_to_le32(s->objects.count);
	ret->flags = sio_to_le32(s->ending ? 0 : SIO_ROW_LIVE);
	ret->pid = sio_to_le32(s->pid);
	snprintf(ret->name, sizeof(ret->name), "%s",
		 kind[s->kind <= SIO_CLIENT_KEEPER ? s->kind : 0]);
	return true;
}

static bool connection_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	static const char *const route[] = {"local", "remote", "bar", "group"};
	const struct smartiod_connection *c;

	c = SMARTIOD_OF(smartiod_tree_after(&d->connections, after), struct smartiod_connection,
			by_id);
	if (!c)
		return false;
	ret->key = sio_to_le64(c->id);
	ret->owner = sio_to_le64(c->o.session ? c->o.session->owner : 0);
	ret->bytes = sio_to_le64(c->bytes);
	ret->address = sio_to_le64(c->map_bus_addr);
	ret->id = sio_to_le32(c->segment_id);
	ret->node = sio_to_le32(c->node);
	ret->refs = sio_to_le32(c->n_maps + c->dma);
	ret->flags = sio_to_le32(c->lost ? 0 : SIO_ROW_LIVE);
	ret->pid = sio_to_le32(c->pid);
	snprintf(ret->name, sizeof(ret->name), "%s", route[c->route]);
	return true;
}

static bool dint_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	const struct smartiod_dint *i;
	char at[24];

	i = SMARTIOD_OF(smartiod_tree_after(&d->dints, after), struct smartiod_dint, by_uid);
	if (!i)
		return false;
	ret->key = sio_to_le64(i->uid);
	ret->owner = sio_to_le64(i->owner);
	ret->id = sio_to_le32(i->number);
	ret->node = sio_to_le32(d->node);
	ret->refs = sio_to_le32(i->plain ? 0 : i->n_rings);
	ret->flags = sio_to_le32(i->removed ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE);
	ret->pid = sio_to_le32(i->pid);
	snprintf(ret->name, sizeof(ret->name), "%s%s%s", smartiod_dint_adapter(i, at, sizeof(at)),
		 i->plain ? ", plain" : "", i->is_hub ? ", shared" : "");
	return true;
}

static bool borrow_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	return smartiod_device_row(d, SIO_LIST_BORROWS, after, ret);
}

static bool dma_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	return smartiod_device_row(d, SIO_LIST_DMA_MAPS, after, ret);
}

static void list_rows(struct smartiod *d, struct smartiod_session *s, const void *msg, row_fn *fn)
{
	const struct sio_msg_list *m = msg;
	uint64_t after = sio_from_le64(m->after);
	struct sio_wire_row row = {.key = sio_to_le64(0)};
	struct sio_rep_list rep = {.count = sio_to_le32(0)};
	uint32_t n = 0;

	while (n < SIO_LIST_ROWS && fn(d, after, &rep.row[n]))
		after = sio_from_le64(rep.row[n++].key);
	rep.count = sio_to_le32(n);
	rep.more = sio_to_le32(n == SIO_LIST_ROWS && fn(d, after, &row));
	smartiod_reply(d, s, msg, &rep, sizeof(rep), NULL, 0);
}

/* ---- the port's ---- */

static const char *kind_name(uint32_t kind)
{
	static const char *const name[] = {
		[SIO_KIND_OWNER] = "owner",
		[SIO_KIND_MEM] = "memory",
		[SIO_KIND_GRANT] = "grant",
		[SIO_KIND_MAP] = "map",
		[SIO_KIND_REQUESTER] = "requester",
		[SIO_KIND_DEVICE] = "device",
		[SIO_KIND_BAR] = "bar",
		[SIO_KIND_DMAMAP] = "dmamap",
		[SIO_KIND_IOVA] = "iova",
		[SIO_KIND_IRQ] = "irq",
		[SIO_KIND_APERTURE] = "aperture",
		[SIO_KIND_ALL_RAM] = "ram",
		[SIO_KIND_ADAPTER] = "adapter",
		[SIO_KIND_WATCH] = "watch",
		[SIO_KIND_DMA] = "dma channel",
		[SIO_KIND_DMA_RANGE] = "dma range",
		[SIO_KIND_VECTOR] = "vector",
	};

	return kind < sizeof(name) / sizeof(name[0]) && name[kind] ? name[kind] : "";
}

static void port_row(struct smartiod *d, const struct sio_list_entry *e, struct sio_wire_row *ret)
{
	bool quarantined = e->state == SIO_STATE_QUARANTINED ||
			   (e->kind == SIO_KIND_GRANT && smartiod_grant_adrift(d, e->id));

	ret->key = sio_to_le64(e->id);
	ret->owner = sio_to_le64(e->owner);
	ret->bytes = sio_to_le64(e->length);
	ret->address = sio_to_le64(e->address);
	ret->id = sio_to_le32((uint32_t)e->device);
	ret->node = sio_to_le32(e->node);
	ret->refs = sio_to_le32(e->refs);
	ret->flags = sio_to_le32(quarantined ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE);
	if (e->cookie && !(e->kind == SIO_KIND_OWNER && e->cookie & SMARTIOD_COOKIE_SESSION))
		snprintf(ret->name, sizeof(ret->name), "%s of %" PRIu64, kind_name(e->kind),
			 (uint64_t)e->cookie);
	else
		snprintf(ret->name, sizeof(ret->name), "%s", kind_name(e->kind));
}

static void list_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	const struct sio_evt_list *evt = a->msg;
	struct sio_rep_list rep = {.count = sio_to_le32(0)};

	_Static_assert(SIO_LIST_MAX <= SIO_LIST_ROWS, "a port's page fits");
	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
	} else {
		uint32_t n = evt->count < SIO_LIST_MAX ? evt->count : SIO_LIST_MAX;

		for (uint32_t i = 0; i < n; i++)
			port_row(d, &evt->entry[i], &rep.row[i]);
		rep.count = sio_to_le32(n);
		rep.more = sio_to_le32(evt->more != 0);
		smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
	}
	smartiod_op_free(d, op);
}

static int list_port(struct smartiod *d, struct smartiod_session *s, const void *msg,
		     struct sio_err *reterr)
{
	const struct sio_msg_list *m = msg;
	struct sio_req_list req = {
		.h.op = SIO_OP_LIST,
		.kind = sio_from_le32(m->kind) - SIO_LIST_PORT,
		.after = sio_from_le64(m->after),
	};
	struct smartiod_op *op = smartiod_op_new(d, s, msg, sizeof(*op), list_step, reterr);

	if (!op)
		return reterr->code;
	smartiod_port_ask(d, op, &req, sizeof(req));
	return 0;
}

int smartiod_list(struct smartiod *d, struct smartiod_session *s, const void *msg,
		  struct sio_err *reterr)
{
	static row_fn *const rows[] = {
		[SIO_LIST_NODES] = node_row,	 [SIO_LIST_SEGMENTS] = segment_row,
		[SIO_LIST_CLIENTS] = client_row, [SIO_LIST_CONNECTIONS] = connection_row,
		[SIO_LIST_BORROWS] = borrow_row, [SIO_LIST_DMA_MAPS] = dma_row,
		[SIO_LIST_DINTS] = dint_row,
	};
	const struct sio_msg_list *m = msg;
	uint32_t kind = sio_from_le32(m->kind);

	if (kind < sizeof(rows) / sizeof(rows[0]) && rows[kind]) {
		list_rows(d, s, msg, rows[kind]);
		return 0;
	}
	if (kind > SIO_LIST_PORT && kind <= SIO_LIST_PORT + SIO_KIND_VECTOR)
		return list_port(d, s, msg, reterr);
	return sio_fail(reterr, -EINVAL, "there is no list of kind %u", kind);
}
