/* SPDX-License-Identifier: BSD-2-Clause */
/* LIST: rows of the daemon's own tables and of the port's, for listings and the audit. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "smartiod/daemon/dispatch.h"
#include "smartiod/daemon/view.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/segment.h"

bool smartiod_node_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	const struct sio_topo_host *h = NULL;
	const struct smartiod_peer *p;
	uint32_t flags = 0;

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
	ret->memory = sio_to_le32(h->n_adapters);
	if (!p || p->state == SMARTIOD_PEER_READY)
		flags = SIO_ROW_LIVE | SIO_ROW_UP;
	ret->flags = sio_to_le32(flags | (h->machine ? SIO_ROW_MACHINE : 0));
	ret->owner = sio_to_le64(p ? p->generation : d->boot_generation);
	snprintf(ret->name, sizeof(ret->name), "%s", h->name);
	return true;
}

static void list_rows(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		      const struct smartiod_rows *rows)
{
	const struct sio_peer_list *m = msg;
	uint64_t after = sio_from_le64(m->after);
	struct sio_wire_row row = {.key = sio_to_le64(0)};
	struct sio_rep_list rep = {.count = sio_to_le32(0)};
	uint32_t n = 0;

	while (n < SIO_LIST_ROWS && rows->row(d, after, &rep.row[n]))
		after = sio_from_le64(rep.row[n++].key);
	rep.count = sio_to_le32(n);
	rep.more = sio_to_le32(n == SIO_LIST_ROWS && rows->row(d, after, &row));
	smartiod_from_reply(d, from, msg, &rep, sizeof(rep));
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

/* Of what it is: not where the cookie is our own word to the next daemon. */
static bool shows_cookie(const struct sio_list_entry *e)
{
	if (e->kind == SIO_KIND_OWNER)
		return e->cookie && !(e->cookie & SMARTIOD_COOKIE_SESSION);
	return e->cookie && !(e->kind == SIO_KIND_MEM && e->cookie & SMARTIOD_COOKIE_SEGMENT);
}

static void port_row(struct smartiod *d, const struct sio_list_entry *e, struct sio_wire_row *ret)
{
	bool quarantined = e->state == SIO_STATE_QUARANTINED ||
			   (e->kind == SIO_KIND_GRANT && smartiod_grant_orphaned(d, e->id));

	ret->key = sio_to_le64(e->id);
	ret->owner = sio_to_le64(e->owner);
	ret->bytes = sio_to_le64(e->length);
	ret->address = sio_to_le64(e->address);
	ret->id = sio_to_le32((uint32_t)e->device);
	ret->node = sio_to_le32(e->node);
	ret->refs = sio_to_le32(e->refs);
	ret->flags = sio_to_le32(quarantined ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE);
	if (shows_cookie(e))
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
		smartiod_view_error(d, op, a->error, a->text);
	} else {
		uint32_t n = evt->count < SIO_LIST_MAX ? evt->count : SIO_LIST_MAX;

		for (uint32_t i = 0; i < n; i++)
			port_row(d, &evt->entry[i], &rep.row[i]);
		rep.count = sio_to_le32(n);
		rep.more = sio_to_le32(evt->more != 0);
		smartiod_view_reply(d, op, &rep, sizeof(rep));
	}
}

static int list_port(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		     struct sio_err *reterr)
{
	const struct sio_peer_list *m = msg;
	struct sio_req_list req = {
		.h.op = SIO_OP_LIST,
		.kind = sio_from_le32(m->kind) - SIO_LIST_PORT,
		.after = sio_from_le64(m->after),
	};

	return smartiod_view_port(d, from, msg, &req, sizeof(req), list_step, reterr);
}

int smartiod_peer_list(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       struct sio_err *reterr)
{
	const struct sio_peer_list *m = msg;
	uint32_t kind = sio_from_le32(m->kind);
	const struct smartiod_rows *rows = smartiod_room_rows(d, kind);

	if (rows) {
		list_rows(d, from, msg, rows);
		return 0;
	}
	if (kind > SIO_LIST_PORT && kind <= SIO_LIST_PORT + SIO_KIND_VECTOR)
		return list_port(d, from, msg, reterr);
	return sio_fail(reterr, -EINVAL, "there is no list of kind %u", kind);
}

int smartiod_list(struct smartiod *d, struct smartiod_session *s, const void *msg,
		  struct sio_err *reterr)
{
	const struct sio_msg_list *m = msg;
	struct sio_peer_list ask = {
		.h.type = sio_to_le32(SIO_PEER_LIST), .kind = m->kind, .after = m->after};

	return smartiod_view(d, s, msg, sio_from_le32(m->node), &ask, sizeof(ask), reterr);
}
