/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests: the form of each is checked in the same way; then one table names its handler. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/port_vfio/vfio_own.h"

/* A request that waits until its device was reset, with copies of its descriptors. */
struct vfio_waiting {
	struct vfio_waiting *next;
	size_t len;
	union {
		struct sio_req h;
		uint64_t words[SIO_PORT_MAX_PACKET / 8];
	} req;
};

/* ---- what concerns no device and no memory ---- */

static int op_info(struct vfio_request *rq, const void *msg, void *answer);

static int op_owner_new(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_owner_new *m = msg;
	struct sio_evt_owner_new *evt = answer;
	struct vfio_port *p = rq->port;
	bool child = m->h.flags & SIO_OWNER_CHILD;
	struct vfio_object *o;
	int r;

	if (m->h.owner && !child)
		return sio_fail(&rq->err, -EINVAL,
				"OWNER_NEW: h.owner is %#" PRIx64
				", 0 is right for all but a child",
				(uint64_t)m->h.owner);
	o = vfio_object_new(rq, SIO_KIND_OWNER);
	if (!o)
		return rq->err.code;
	o->cookie = m->user_cookie;
	o->child = child;
	evt->id = o->id;
	if (child)
		return 0;
	r = p->ops->owner_new(p->ctx, o->id, &rq->fd[0]);
	if (r < 0) {
		vfio_object_free(p, o);
		return sio_fail(&rq->err, r, "OWNER_NEW: no descriptor for another owner");
	}
	rq->n_fd = 1;
	rq->close = true;
	return 0;
}

static int op_owner_close(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_owner_close *m = msg;
	struct vfio_object *o = vfio_object_find(rq->port, SIO_KIND_OWNER, m->h.owner);

	(void)answer;
	if (m->h.owner == 0)
		return sio_fail(&rq->err, -EINVAL, "OWNER_CLOSE: owner 0 is the daemon itself");
	if (!o)
		return sio_fail(&rq->err, -ENOENT, "OWNER_CLOSE: no owner %#" PRIx64,
				(uint64_t)m->h.owner);
	if (o->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"OWNER_CLOSE: owner %#" PRIx64 " has ended already: once is right",
				(uint64_t)m->h.owner);
	vfio_owner_end(rq->port, o);
	return 0;
}

static int op_status(struct vfio_request *rq, const void *msg, void *answer)
{
	struct sio_evt_status *evt = answer;
	struct vfio_port *p = rq->port;

	(void)msg;
	if (p->status_fd < 0 && p->ops->status_new(p->ctx, &p->status_fd, &p->status_size) < 0)
		return sio_fail(&rq->err, -ENOMEM, "STATUS: no memory for its page");
	evt->size = p->status_size;
	rq->fd[0] = p->status_fd;
	rq->n_fd = 1;
	return 0;
}

static int op_adapter(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_adapter *m = msg;

	(void)answer;
	return sio_fail(&rq->err, -ENODEV, "ADAPTER: no adapter %u: VFIO has none", m->index);
}

/* ---- the table ---- */

/* Whose h.owner must live (0: the daemon's), or is looked at by the handler. */
enum rule { LIVES, SUBJECT };

static const struct {
	vfio_handler *handler;
	enum rule rule;
} table[SIO_OP_COUNT] = {
	[SIO_OP_INFO] = {op_info, LIVES},
	[SIO_OP_OWNER_NEW] = {op_owner_new, LIVES},
	[SIO_OP_OWNER_CLOSE] = {op_owner_close, SUBJECT},
	[SIO_OP_LIST] = {vfio_op_list, LIVES},
	[SIO_OP_ADAPTER] = {op_adapter, LIVES},
	[SIO_OP_ALLOC] = {vfio_op_alloc, LIVES},
	[SIO_OP_FREE] = {vfio_op_free, LIVES},
	[SIO_OP_IMPORT] = {vfio_op_import, LIVES},
	[SIO_OP_DEVICE_LIST] = {vfio_op_device_list, LIVES},
	[SIO_OP_DEVICE_OPEN] = {vfio_op_device_open, LIVES},
	[SIO_OP_DEVICE_CLOSE] = {vfio_op_device_close, LIVES},
	[SIO_OP_RESET] = {vfio_op_reset, LIVES},
	[SIO_OP_CONFIG] = {vfio_op_config, LIVES},
	[SIO_OP_BAR] = {vfio_op_bar, LIVES},
	[SIO_OP_BAR_CLOSE] = {vfio_op_bar_close, LIVES},
	[SIO_OP_DMAMAP] = {vfio_op_dmamap, LIVES},
	[SIO_OP_DMAUNMAP] = {vfio_op_dmaunmap, LIVES},
	[SIO_OP_IRQ_NEW] = {vfio_op_irq_new, LIVES},
	[SIO_OP_IRQ_FREE] = {vfio_op_irq_free, LIVES},
	[SIO_OP_VECTOR] = {vfio_op_vector, LIVES},
	[SIO_OP_SETTLE] = {vfio_op_settle, SUBJECT},
	[SIO_OP_STATUS] = {op_status, LIVES},
	[SIO_OP_STATS] = {vfio_op_stats, LIVES},
	[SIO_OP_IDENTIFY] = {vfio_op_identify, LIVES},
	[SIO_OP_REOPEN] = {vfio_op_reopen, LIVES},
	[SIO_OP_GIVE] = {vfio_op_give, LIVES},
};

/* What to use instead of what VFIO cannot do. */
static const char *instead(uint32_t op)
{
	switch (op) {
	case SIO_OP_GRANT:
	case SIO_OP_MAP:
	case SIO_OP_SHADOW:
	case SIO_OP_MCAST:
		return "VFIO knows no other hosts: that takes smartio.ko and a bridge";
	case SIO_OP_WATCH:
		return "a real device does not sleep";
	case SIO_OP_DMA:
		return "VFIO has no DMA engine";
	default:
		return "not served by the port by VFIO";
	}
}

static int op_info(struct vfio_request *rq, const void *msg, void *answer)
{
	const struct sio_req_info *m = msg;
	struct sio_evt_info *evt = answer;
	const struct vfio_port *p = rq->port;

	if (m->version_min > SIO_PORT_VERSION || m->version_max < SIO_PORT_VERSION ||
	    m->version_min > m->version_max)
		return sio_fail(&rq->err, -EPROTO,
				"INFO: versions %u to %u, the port by VFIO speaks %u",
				m->version_min, m->version_max, SIO_PORT_VERSION);
	evt->version = SIO_PORT_VERSION;
	evt->world = SIO_WORLD_VFIO;
	evt->page_size = 4096;
	evt->boot_generation = p->start.boot_generation;
	memcpy(evt->boot_id, p->start.boot_id, sizeof(evt->boot_id));
	for (uint32_t i = 0; i < SIO_OP_COUNT; i++)
		if (table[i].handler && i != SIO_OP_ADAPTER)
			evt->served |= 1ULL << i;
	evt->ram_total = p->start.ram_total;
	evt->ram_free = p->start.memory_limit - p->memory;
	return 0;
}

static int check_form(struct vfio_request *rq, const struct sio_req *h, size_t len)
{
	const struct sio_port_form *form = sio_port_form(h->op);
	uint32_t zero;

	if (!form)
		return sio_fail(&rq->err, -EOPNOTSUPP, "operation %u: known are %u to %u", h->op,
				SIO_OP_INFO, SIO_OP_COUNT - 1);
	if (h->size != form->size || len != form->size)
		return sio_fail(&rq->err, -EINVAL,
				"%s: size %u in a packet of %zu bytes, %u is right", form->name,
				h->size, len, form->size);
	memcpy(&zero, (const char *)h + form->zero, sizeof(zero));
	if (h->reserved || zero)
		return sio_fail(&rq->err, -EINVAL, "%s: h.reserved is %#x, %s is %#x, 0 is right",
				form->name, h->reserved, "reserved2", zero);
	if ((h->op == SIO_OP_IRQ_NEW && h->flags & SIO_IRQ_EVENTFD) ||
	    (h->op == SIO_OP_RESET && h->flags & SIO_RESET_KEEP_DOORBELLS))
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"%s: flags %#x are for relays to virtual machines", form->name,
				h->flags);
	if (h->flags & ~form->flags)
		return sio_fail(&rq->err, -EINVAL, "%s: flags %#x, allowed are %#x", form->name,
				h->flags, form->flags);
	if (!table[h->op].handler)
		return sio_fail(&rq->err, -EOPNOTSUPP, "%s: %s", form->name, instead(h->op));
	if (rq->n_fds > form->fds)
		return sio_fail(&rq->err, -EINVAL, "%s: %u descriptors came along, %u are right",
				form->name, rq->n_fds, form->fds);
	return 0;
}

static int check_owner(struct vfio_request *rq, const struct sio_req *h)
{
	const char *name = sio_port_form(h->op)->name;

	if (table[h->op].rule == SUBJECT || h->owner == 0)
		return 0;
	rq->owner = vfio_object_find(rq->port, SIO_KIND_OWNER, h->owner);
	if (!rq->owner)
		return sio_fail(&rq->err, -ENOENT, "%s: no owner %#" PRIx64, name,
				(uint64_t)h->owner);
	if (rq->owner->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"%s: owner %#" PRIx64
				" has ended: one of a living program is right",
				name, (uint64_t)h->owner);
	return 0;
}

/* ---- waiting for a reset ---- */

/* The device that a request is about; it is their first field. */
static struct vfio_device *device_of(const struct vfio_port *p, const struct sio_req *h)
{
	const struct sio_req_reset *m = (const void *)h;

	switch (h->op) {
	case SIO_OP_DEVICE_OPEN:
	case SIO_OP_DEVICE_CLOSE:
	case SIO_OP_RESET:
	case SIO_OP_CONFIG:
	case SIO_OP_BAR:
	case SIO_OP_DMAMAP:
	case SIO_OP_VECTOR:
	case SIO_OP_SETTLE:
		return vfio_device_find(p, m->device);
	default:
		return NULL;
	}
}

/* The device whose registers it maps for another: the kernel waits until their reset is done. */
static const struct vfio_device *target_of(const struct vfio_port *p, const struct sio_req *h)
{
	const struct sio_req_dmamap *m = (const void *)h;
	const struct vfio_object *view = NULL;

	if (h->op == SIO_OP_DMAMAP && m->target_kind == SIO_KIND_BAR)
		view = vfio_object_find(p, SIO_KIND_BAR, m->target);
	return view ? view->device : NULL;
}

static bool waits(struct vfio_port *p, const struct sio_req *h, size_t len)
{
	const struct vfio_device *d = len >= sizeof(*h) + 8 ? device_of(p, h) : NULL;
	const struct vfio_device *target = target_of(p, h);
	struct vfio_waiting **at = &p->waiting, *w;

	if (!(d && d->resetting) && !(target && target->resetting) &&
	    !(h->op == SIO_OP_OWNER_CLOSE && vfio_owner_waits(p, h->owner)))
		return false;
	w = calloc(1, sizeof(*w));
	if (!w)
		return false; /* the kernel makes it wait */
	memcpy(&w->req, h, len);
	w->len = len;
	while (*at)
		at = &(*at)->next;
	*at = w;
	return true;
}

void vfio_waiting_drop(struct vfio_port *p)
{
	struct vfio_waiting *w;

	while ((w = p->waiting)) {
		p->waiting = w->next;
		free(w);
	}
}

/* ---- all requests ---- */

static void answer(struct vfio_port *p, const struct sio_req *h, struct vfio_request *rq, void *evt,
		   int error)
{
	const struct sio_port_form *form = sio_port_form(h->op);
	struct sio_evt_error refusal = {.h.size = sizeof(refusal)};
	struct sio_evt *e = error ? &refusal.h : evt;

	if (error) {
		refusal.h.error = error;
		refusal.h.reason = sio_err_reason(&rq->err, error);
		snprintf(refusal.text, sizeof(refusal.text), "%.*s", (int)sizeof(refusal.text) - 1,
			 *rq->err.text ? rq->err.text : "out of memory: " SIO_MORE_MEMORY);
		p->refused++;
	} else {
		e->size = form->answer;
	}
	e->op = h->op;
	e->cookie = h->cookie;
	e->owner = h->owner;
	p->ops->send(p->ctx, e, e->size, rq->fd, error ? 0 : rq->n_fd);
	for (unsigned i = 0; rq->close && i < rq->n_fd; i++)
		p->ops->close(p->ctx, rq->fd[i]);
}

static void serve(struct vfio_port *p, const struct sio_req *h, size_t len, const int *fds,
		  unsigned n_fds)
{
	struct vfio_request rq = {.port = p, .fds = fds, .n_fds = n_fds};
	uint64_t evt[SIO_PORT_MAX_PACKET / 8] = {0};
	int r;

	p->requests++;
	r = check_form(&rq, h, len);
	if (r == 0)
		r = check_owner(&rq, h);
	if (r == 0)
		r = table[h->op].handler(&rq, h, evt);
	vfio_sync(p); /* what was answered is so, for whoever comes after us, too */
	if (!rq.later)
		answer(p, h, &rq, evt, r);
	vfio_owners_bury(p);
}

int vfio_port_request(struct vfio_port *p, const void *req, size_t len, const int *fds,
		      unsigned n_fds)
{
	union {
		struct sio_req h;
		uint64_t words[SIO_PORT_MAX_PACKET / 8];
	} copy = {.words = {0}};

	if (len < sizeof(copy.h) || len > sizeof(copy))
		return -EMSGSIZE;
	memcpy(&copy, req, len);
	if (!waits(p, &copy.h, len))
		serve(p, &copy.h, len, fds, n_fds);
	return 0;
}

void vfio_port_reset_done(struct vfio_port *p, uint64_t id, int error)
{
	struct vfio_request rq = {.port = p};
	struct vfio_device *d = p->devices;
	struct vfio_waiting *w = p->waiting;
	struct sio_evt_reset evt = {.freed = 0};

	while (d && d->info.id != id)
		d = d->next;
	if (!d || !d->resetting)
		return;
	d->resetting = false;
	if (!d->present)
		error = sio_fail(&rq.err, -ENODEV, "%s went while it was reset", d->info.name);
	else if (error)
		sio_fail(&rq.err, error, "RESET: %s: %s", d->info.name, strerror(-error));
	else
		vfio_device_was_reset(p, d, &evt);
	vfio_sync(p);
	/* Answers to what it never asked would be the end of a daemon that came meanwhile. */
	if (d->reset_daemon == p->daemon)
		answer(p, &d->reset.h, &rq, &evt, error);
	vfio_owners_bury(p);
	vfio_owners_end_closed(p);
	p->waiting = NULL;
	for (struct vfio_waiting *next; w; w = next) {
		next = w->next;
		if (!waits(p, &w->req.h, w->len))
			serve(p, &w->req.h, w->len, NULL, 0);
		free(w);
	}
}

/* ---- life ---- */

int vfio_port_new(const struct vfio_ops *ops, void *ctx, const struct vfio_start *start,
		  struct vfio_port **ret)
{
	struct vfio_port *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->ops = ops;
	p->ctx = ctx;
	p->start = *start;
	p->status_fd = -1;
	*ret = p;
	return 0;
}

void vfio_port_free(struct vfio_port *p)
{
	struct vfio_object *o, *tmp;

	vfio_waiting_drop(p);
	/* The devices go first: then no mapping needs to. */
	for (struct vfio_device *d = p->devices; d; d = d->next)
		if (d->open)
			p->ops->device_close(p->ctx, d->info.id);
	HASH_ITER (hh, p->objects, o, tmp) {
		HASH_DEL(p->objects, o);
		if (o->kind == SIO_KIND_OWNER && o->state == SIO_STATE_LIVE)
			p->ops->owner_free(p->ctx, o->id);
		if (o->fd >= 0)
			p->ops->close(p->ctx, o->fd);
		free(o);
	}
	for (struct vfio_device *d; (d = p->devices);) {
		p->devices = d->next;
		vfio_space_leave(d);
		free(d);
	}
	if (p->status_fd >= 0)
		p->ops->close(p->ctx, p->status_fd);
	free(p);
}
