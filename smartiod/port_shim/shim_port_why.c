/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was wrong, in words. The module refuses by a number alone; what it looked at lies in the
 * request, and in LIST.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/port_shim/shim_port_own.h"

#define PAGE 4096u

/* What all requests of an operation look like. */
struct form {
	const char *name;
	size_t size, reserved; /* reserved: offset of reserved2; 0: none */
	uint32_t flags;
};

#define FORM(op, type, ...) [SIO_OP_##op] = {#op, sizeof(struct sio_req_##type), __VA_ARGS__}
#define RESERVED(type) .reserved = offsetof(struct sio_req_##type, reserved2)

static const struct form forms[SIO_OP_COUNT] = {
	FORM(INFO, info),
	FORM(OWNER_NEW, owner_new, RESERVED(owner_new), .flags = SIO_OWNER_CHILD),
	FORM(OWNER_CLOSE, owner_close),
	FORM(LIST, list, RESERVED(list)),
	FORM(ALLOC, alloc),
	FORM(FREE, free),
	FORM(GIVE, give),
	FORM(IMPORT, import, .flags = SIO_IMPORT_POOL),
	FORM(DEVICE_LIST, device_list),
	FORM(DEVICE_OPEN, device_open, .flags = SIO_DEVICE_FORCE),
	FORM(DEVICE_CLOSE, device_close),
	FORM(RESET, reset, RESERVED(reset)),
	FORM(CONFIG, config, RESERVED(config), .flags = SIO_CONFIG_WRITE),
	FORM(BAR, bar, RESERVED(bar)),
	FORM(BAR_CLOSE, bar_close),
	FORM(DMAMAP, dmamap, .flags = SIO_DMAMAP_STRICT),
	FORM(DMAUNMAP, dmaunmap, .flags = 0),
	FORM(IRQ_NEW, irq_new),
	FORM(IRQ_FREE, irq_free),
	FORM(VECTOR, vector, RESERVED(vector)),
	FORM(SETTLE, settle, RESERVED(settle)),
	FORM(STATUS, status),
	FORM(STATS, stats, RESERVED(stats)),
	FORM(IDENTIFY, identify),
	FORM(REOPEN, reopen, RESERVED(reopen)),
};

bool shim_call_formed(struct shim_call *c, unsigned max_fds)
{
	const struct sio_req *h = &c->req.h;
	const struct form *f = h->op < SIO_OP_COUNT && forms[h->op].name ? &forms[h->op] : NULL;
	uint32_t more = 0;

	if (!f)
		return true;
	if (f->reserved && c->len >= f->size)
		memcpy(&more, (const char *)&c->req + f->reserved, sizeof(more));
	if (h->size != f->size || c->len != f->size)
		shim_call_refuse(c, -EINVAL, "%s: size %u in a packet of %zu bytes, %zu is right",
				 f->name, h->size, c->len, f->size);
	else if (h->reserved || more)
		shim_call_refuse(c, -EINVAL, "%s: h.reserved is %#x, reserved2 is %#x, 0 is right",
				 f->name, h->reserved, more);
	else if (h->flags & ~f->flags)
		shim_call_refuse(c, -EINVAL, "%s: flags %#x, allowed are %#x", f->name, h->flags,
				 f->flags);
	else if (c->n_fds > max_fds)
		shim_call_refuse(c, -EINVAL, "%s: %u descriptors came along, at most %u are right",
				 f->name, c->n_fds, max_fds);
	else
		return true;
	return false;
}

/* ---- -EINVAL ---- */

#define SAY(...) snprintf(text, SIO_PORT_TEXT, __VA_ARGS__)

/* A number alone, and the module was asked in vain what it looked at. */
static void untold(char *text, int refused, int error)
{
	SAY("%s; the kernel module does not tell more: %s", strerror(-refused), strerror(-error));
}

static void bad_range(char *text, const char *of, uint64_t offset, uint64_t length)
{
	if (!length || (offset | length) % PAGE)
		SAY("range %#" PRIx64 " + %#" PRIx64 " is not of whole pages", offset, length);
	else
		SAY("range %#" PRIx64 " + %#" PRIx64 " ends behind %s", offset, length, of);
}

static void bad_alloc(char *text, const struct sio_req_alloc *m)
{
	if (m->kind > SIO_ALLOC_CONTIGUOUS)
		SAY("kind %u, 0 to %d are right", m->kind, SIO_ALLOC_CONTIGUOUS);
	else if (m->access > (SIO_ACCESS_READ | SIO_ACCESS_WRITE))
		SAY("access %#x, 0 to 3 are right", m->access);
	else if (m->align & (m->align - 1))
		SAY("align %#" PRIx64 ", 0 or a power of 2 is right", (uint64_t)m->align);
	else
		SAY("size %" PRIu64 ", at least 1 is right", (uint64_t)m->size);
}

static void bad_import(char *text, const struct shim_call *c, const struct sio_req_import *m)
{
	if (m->kind < SIO_IMPORT_MEMFD || m->kind > SIO_IMPORT_USER_PAGES)
		SAY("kind %u, %d to %d are right", m->kind, SIO_IMPORT_MEMFD,
		    SIO_IMPORT_USER_PAGES);
	else if (c->n_fds != 1)
		SAY("%u descriptors came along, 1 is right", c->n_fds);
	else if (m->access != (SIO_ACCESS_READ | SIO_ACCESS_WRITE) || m->address)
		SAY("access %#x and address %#" PRIx64 ", 3 and 0 are right", m->access,
		    (uint64_t)m->address);
	else if (m->h.flags & SIO_IMPORT_POOL && (m->kind == SIO_IMPORT_DMABUF || m->h.owner))
		SAY("a pool is made of memfds, and for owner 0 alone");
	else
		bad_range(text, "what came along", m->offset, m->length);
}

static void bad_bar(char *text, const struct sio_req_bar *m, const struct sio_evt_device *device)
{
	char of[64];

	if (m->access != SIO_ACCESS_READ && m->access != (SIO_ACCESS_READ | SIO_ACCESS_WRITE)) {
		SAY("access %#x, 1 or 3 is right", m->access);
	} else if (m->caching > SIO_CACHE_WRITE_COMBINED) {
		SAY("caching %u, 0 to %d are right", m->caching, SIO_CACHE_WRITE_COMBINED);
	} else if (m->bar >= SIO_DEVICE_BARS || device->bar_size[m->bar] < PAGE) {
		SAY("%s has no BAR %u of whole pages", device->name, m->bar);
	} else {
		snprintf(of, sizeof(of), "BAR %u of %#" PRIx64 " bytes", m->bar,
			 (uint64_t)device->bar_size[m->bar]);
		bad_range(text, of, m->offset, m->length);
	}
}

static void bad_dmamap(char *text, const struct sio_req_dmamap *m)
{
	if (m->access == 0 || m->access > (SIO_ACCESS_READ | SIO_ACCESS_WRITE))
		SAY("access %#x, 1 to 3 are right", m->access);
	else if (m->iova != SIO_PORT_ANY && m->iova % PAGE)
		SAY("address %#" PRIx64 " is not of a whole page", (uint64_t)m->iova);
	else if (m->target_kind != SIO_KIND_MEM && m->target_kind != SIO_KIND_BAR)
		SAY("target kind %u, %d (memory) or %d (BAR view) is right", m->target_kind,
		    SIO_KIND_MEM, SIO_KIND_BAR);
	else if (m->iova != SIO_PORT_ANY)
		SAY("address %#" PRIx64 " wanted, but the target lies elsewhere and no IOMMU "
		    "translates: ask for any",
		    (uint64_t)m->iova);
	else
		bad_range(text, m->target_kind == SIO_KIND_MEM ? "memory" : "BAR view", m->offset,
			  m->length);
}

static void bad_vector(char *text, const struct sio_req_vector *m,
		       const struct sio_evt_device *device)
{
	if (m->vector >= device->msix_count)
		SAY("%s has %u vectors, %u is none of them", device->name, device->msix_count,
		    m->vector);
	else if (m->mask > 1)
		SAY("mask %u, 0 or 1 is right", m->mask);
	else if (m->irq)
		SAY("name an interrupt, or address and data, not both");
	else
		SAY("data %#x and mask %u without an interrupt, 0 is right", m->data, m->mask);
}

/* What is wrong with a request that is judged by what its device has. */
static void bad_for_device(const struct shim_call *c, char *text)
{
	const void *m = &c->req;
	struct sio_evt_device device;
	int r = shim_call_find_device(c, ((const struct sio_req_bar *)m)->device, &device);

	if (r < 0)
		untold(text, -EINVAL, r);
	else if (c->req.h.op == SIO_OP_BAR)
		bad_bar(text, m, &device);
	else
		bad_vector(text, m, &device);
}

static void invalid(const struct shim_call *c, char *text)
{
	const void *m = &c->req;

	switch (c->req.h.op) {
	case SIO_OP_OWNER_NEW:
		SAY("h.owner is %#" PRIx64 ", 0 is right for all but a child",
		    (uint64_t)c->req.h.owner);
		return;
	case SIO_OP_OWNER_CLOSE:
		SAY("owner 0 is the daemon itself");
		return;
	case SIO_OP_ALLOC:
		bad_alloc(text, m);
		return;
	case SIO_OP_IMPORT:
		bad_import(text, c, m);
		return;
	case SIO_OP_DEVICE_OPEN:
		SAY("devices are the daemon's: h.owner %#" PRIx64 ", 0 is right",
		    (uint64_t)c->req.h.owner);
		return;
	case SIO_OP_RESET:
		SAY("kind %u, %d (function) or %d is right",
		    ((const struct sio_req_reset *)m)->kind, SIO_RESET_FUNCTION, SIO_RESET_DONE);
		return;
	case SIO_OP_BAR:
	case SIO_OP_VECTOR:
		bad_for_device(c, text);
		return;
	case SIO_OP_DMAMAP:
		bad_dmamap(text, m);
		return;
	case SIO_OP_REOPEN:
		SAY("kind %u, %d (memory), %d (BAR view) or %d (interrupt) is right",
		    ((const struct sio_req_reopen *)m)->kind, SIO_KIND_MEM, SIO_KIND_BAR,
		    SIO_KIND_IRQ);
		return;
	default:
		SAY("bad fields");
	}
}

/* ---- the others ---- */

/* What the request names, besides its owner and its device. */
static uint64_t named(const struct shim_call *c, uint32_t *ret_kind)
{
	static const uint32_t kind[SIO_OP_COUNT] = {
		[SIO_OP_FREE] = SIO_KIND_MEM,	     [SIO_OP_BAR_CLOSE] = SIO_KIND_BAR,
		[SIO_OP_DMAUNMAP] = SIO_KIND_DMAMAP, [SIO_OP_IRQ_FREE] = SIO_KIND_IRQ,
		[SIO_OP_VECTOR] = SIO_KIND_IRQ,	     [SIO_OP_GIVE] = SIO_KIND_MEM,
	};
	const struct sio_req_dmamap *map = (const void *)&c->req;
	const struct sio_req_reopen *reopen = (const void *)&c->req;
	const struct sio_req_vector *vector = (const void *)&c->req;
	const struct sio_req_free *end = (const void *)&c->req;

	*ret_kind = kind[c->req.h.op];
	switch (c->req.h.op) {
	case SIO_OP_DMAMAP:
		*ret_kind = map->target_kind;
		return map->target;
	case SIO_OP_REOPEN:
		*ret_kind = reopen->kind;
		return reopen->id;
	case SIO_OP_VECTOR:
		return vector->irq;
	default:
		return end->id;
	}
}

static const char *kind_name(uint32_t kind)
{
	static const char *const name[] = {
		[SIO_KIND_MEM] = "memory",
		[SIO_KIND_BAR] = "BAR view",
		[SIO_KIND_DMAMAP] = "DMA mapping",
		[SIO_KIND_IRQ] = "interrupt",
	};

	return kind < sizeof(name) / sizeof(name[0]) && name[kind] ? name[kind] : "object";
}

static void missing(const struct shim_call *c, char *text)
{
	uint32_t kind;
	uint64_t id = named(c, &kind);
	struct sio_list_entry e;
	int r = c->req.h.owner ? shim_call_find(c, SIO_KIND_OWNER, c->req.h.owner, &e) : 0;

	if (r == -ENOENT)
		SAY("no owner %#" PRIx64, (uint64_t)c->req.h.owner);
	else if (r < 0)
		untold(text, -ENOENT, r);
	else if (c->req.h.op == SIO_OP_DEVICE_LIST)
		SAY("no device is bound behind %#" PRIx64, id);
	else if (c->req.h.op == SIO_OP_DEVICE_CLOSE)
		SAY("no open device %#" PRIx64, id);
	else
		SAY("no %s %#" PRIx64, kind_name(kind), id);
}

static void not_permitted(const struct shim_call *c, char *text)
{
	uint32_t kind;
	uint64_t id = named(c, &kind), owner = c->req.h.owner;
	struct sio_list_entry e = {.state = SIO_STATE_LIVE};
	int r = owner ? shim_call_find(c, SIO_KIND_OWNER, owner, &e) : 0;
	bool ended = r == 0 && e.state != SIO_STATE_LIVE;

	if (!ended && (r == 0 || r == -ENOENT))
		r = kind ? shim_call_find(c, kind, id, &e) : -ENOENT;
	if (ended)
		SAY("owner %#" PRIx64 " has ended", owner);
	else if (r == -ENOENT)
		SAY("the device is not open; DEVICE_OPEN first");
	else if (r < 0)
		untold(text, -EPERM, r);
	else if (owner && e.owner != owner)
		SAY("%s %#" PRIx64 " belongs to owner %#" PRIx64 ", not to %#" PRIx64,
		    kind_name(kind), id, (uint64_t)e.owner, owner);
	else if (kind == SIO_KIND_DMAMAP)
		SAY("DMA mapping %#" PRIx64 " is in quarantine: SETTLE or RESET", id);
	else
		SAY("owner %#" PRIx64 " of %s %#" PRIx64 " has ended", (uint64_t)e.owner,
		    kind_name(kind), id);
}

static void busy(const struct shim_call *c, char *text)
{
	uint32_t kind;
	uint64_t id = named(c, &kind);
	struct sio_list_entry e;
	int r;

	if (c->req.h.op == SIO_OP_VECTOR)
		SAY("the vector belongs to another owner");
	else if (c->req.h.op == SIO_OP_BAR)
		SAY("there are views of these pages with another caching");
	else if (c->req.h.op == SIO_OP_RESET)
		SAY("somebody else resets or unbinds it just now");
	else if (c->req.h.op == SIO_OP_DEVICE_CLOSE)
		SAY("mappings, views or vectors of it are left");
	else if (kind == 0)
		SAY("it is in use");
	else if ((r = shim_call_find(c, kind, id, &e)) < 0)
		untold(text, -EBUSY, r);
	else if (e.refs == 0)
		SAY("memory that ALLOC took from the pool is in use");
	else
		SAY("%u grants, mappings, views or vectors of it are left", e.refs);
}

static void no_room(const struct shim_call *c, char *text)
{
	const struct sio_req_alloc *alloc = (const void *)&c->req;
	const struct sio_req_dmamap *map = (const void *)&c->req;

	if (c->req.h.op == SIO_OP_ALLOC)
		SAY("%" PRIu64 " bytes wanted; so many are free neither in a pool nor, under "
		    "memory_limit and in one piece of at most 4 MiB, in the kernel",
		    (uint64_t)alloc->size);
	else if (c->req.h.op == SIO_OP_DMAMAP)
		SAY("the kernel cannot map %#" PRIx64 " bytes up to %#" PRIx64
		    " for it without copying",
		    (uint64_t)map->length, (uint64_t)map->highest);
	else
		SAY("the kernel has no interrupt left for this vector");
}

static void not_supported(const struct shim_call *c, char *text)
{
	const struct sio_req_dmamap *map = (const void *)&c->req;

	if (c->req.h.op >= SIO_OP_COUNT || !forms[c->req.h.op].name)
		SAY("operation %u is not served by smartio.ko", c->req.h.op);
	else if (c->req.h.op == SIO_OP_VECTOR)
		SAY("messages go to interrupts of this host");
	else if (c->req.h.op == SIO_OP_RESET)
		SAY("the kernel has no such reset for it");
	else if (map->iova != SIO_PORT_ANY)
		SAY("address %#" PRIx64 " wanted, but here the kernel chooses it: ask for any",
		    (uint64_t)map->iova);
	else
		SAY("it is not one range for this device: it lies in pieces that no IOMMU joins, "
		    "or is its own BAR, or of one that has gone");
}

void shim_call_explain(struct shim_call *c, int error)
{
	char text[SIO_PORT_TEXT];
	uint64_t device = c->req.words[sizeof(struct sio_req) / 8];

	if (error == -EINVAL && !shim_call_formed(c, c->req.h.op == SIO_OP_IMPORT))
		return;
	if (error == -EINVAL)
		invalid(c, text);
	else if (error == -ENOENT)
		missing(c, text);
	else if (error == -EPERM)
		not_permitted(c, text);
	else if (error == -EBUSY)
		busy(c, text);
	else if (error == -ENOSPC)
		no_room(c, text);
	else if (error == -EOPNOTSUPP)
		not_supported(c, text);
	else if (error == -ENODEV)
		SAY("no device %#" PRIx64 " is here", device);
	else if (error == -EPROTO)
		SAY("versions %u to %u, smartio.ko speaks %d", (uint32_t)device,
		    (uint32_t)(device >> 32), SIO_PORT_VERSION);
	else if (error == -EACCES)
		SAY("%s", c->req.h.op == SIO_OP_BAR ? "the interrupt table is not given out"
						    : "the BAR view is read-only");
	else if (error == -EBADF)
		SAY("the descriptor is none of that kind");
	else
		SAY("%s", strerror(-error));
	shim_call_refuse(c, error, "%s: %s",
			 c->req.h.op < SIO_OP_COUNT && forms[c->req.h.op].name
				 ? forms[c->req.h.op].name
				 : "request",
			 text);
}
