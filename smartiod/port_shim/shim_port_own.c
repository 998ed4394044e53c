/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that the module leaves to smartiod, in whole or in part. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/pci_regs.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "smartiod/port_shim/shim_port_own.h"

/* By the module or by us; where there are adapters, more. */
static const uint8_t served_by_adapters[] = {
	SIO_OP_ADAPTER,	   SIO_OP_GRANT,	 SIO_OP_UNGRANT,       SIO_OP_MAP,
	SIO_OP_UNMAP,	   SIO_OP_REQUESTER_ADD, SIO_OP_REQUESTER_DEL, SIO_OP_SHADOW,
	SIO_OP_SHADOW_DEL, SIO_OP_SHADOW_ANSWER, SIO_OP_SHADOW_PEER,   SIO_OP_APERTURE,
	SIO_OP_DMA,	   SIO_OP_DMA_FREE,	 SIO_OP_DMA_ATTACH,    SIO_OP_DMA_DETACH,
	SIO_OP_MCAST,
};
static const uint8_t served[] = {
	SIO_OP_INFO,	    SIO_OP_OWNER_NEW,	 SIO_OP_OWNER_CLOSE, SIO_OP_LIST,
	SIO_OP_ALLOC,	    SIO_OP_FREE,	 SIO_OP_IMPORT,	     SIO_OP_DEVICE_LIST,
	SIO_OP_DEVICE_OPEN, SIO_OP_DEVICE_CLOSE, SIO_OP_RESET,	     SIO_OP_CONFIG,
	SIO_OP_BAR,	    SIO_OP_BAR_CLOSE,	 SIO_OP_DMAMAP,	     SIO_OP_DMAUNMAP,
	SIO_OP_IRQ_NEW,	    SIO_OP_IRQ_FREE,	 SIO_OP_VECTOR,	     SIO_OP_SETTLE,
	SIO_OP_STATUS,	    SIO_OP_STATS,	 SIO_OP_IDENTIFY,    SIO_OP_REOPEN,
	SIO_OP_GIVE,	    SIO_OP_HOLD,
};

/* ---- the form of requests that the module does not see, or sees changed ---- */

struct form {
	const char *name;
	size_t size, reserved; /* reserved: offset of reserved2; 0: none */
	uint32_t flags;
};

#define FORM(op, type, ...) [SIO_OP_##op] = {#op, sizeof(struct sio_req_##type), __VA_ARGS__}
#define RESERVED(type) .reserved = offsetof(struct sio_req_##type, reserved2)

static const struct form forms[SIO_OP_COUNT] = {
	FORM(LIST, list, RESERVED(list)),
	FORM(DEVICE_OPEN, device_open, .flags = SIO_DEVICE_FORCE),
	FORM(CONFIG, config, RESERVED(config), .flags = SIO_CONFIG_WRITE),
	/* SIO_DMAUNMAP_SETTLED is for us alone. */
	FORM(DMAUNMAP, dmaunmap, .flags = SIO_DMAUNMAP_KEEP_ADDRESS),
	FORM(SETTLE, settle, RESERVED(settle)),
	FORM(STATS, stats, RESERVED(stats)),
	FORM(IDENTIFY, identify),
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

/* ---- asking for ourselves ---- */

int shim_call_ask(const struct shim_call *c, struct shim_call *q, uint32_t op, size_t size)
{
	struct sio_ioc_packet packet = {.data = (uintptr_t)&q->req,
					.answer = (uintptr_t)&q->answer,
					.size = (uint32_t)size};

	q->req.h = (struct sio_req){.size = (uint32_t)size, .op = op, .flags = q->req.h.flags};
	if (ioctl(c->node, SIO_IOC_REQUEST, &packet) < 0)
		return -errno;
	q->unsettled = packet.unsettled;
	return q->answer.h.error;
}

int shim_call_find_device(const struct shim_call *c, uint64_t id, struct sio_evt_device *ret)
{
	struct shim_call q = {.req.words[sizeof(struct sio_req) / 8] = id - 1};
	int r = -ENOENT;

	if (id)
		r = shim_call_ask(c, &q, SIO_OP_DEVICE_LIST, sizeof(struct sio_req_device_list));
	if (r < 0)
		return r == -ENOENT ? -ENODEV : r;
	memcpy(ret, &q.answer, sizeof(*ret));
	if (ret->id != id)
		return -ENODEV;
	shim_device_look(ret);
	return 0;
}

bool shim_call_needs_device(struct shim_call *c, const char *who, uint64_t id,
			    struct sio_evt_device *ret)
{
	int r = shim_call_find_device(c, id, ret);

	if (r == -ENODEV)
		shim_call_refuse(c, r, "%sno device %#" PRIx64 " is here", who, id);
	else if (r < 0)
		shim_call_refuse(c, r,
				 "%sthe kernel module does not report device %#" PRIx64 ": %s", who,
				 id, strerror(-r));
	return r == 0;
}

/* ---- CONFIG ---- */

static void config(struct shim_call *c)
{
	const struct sio_req_config *m = (const void *)&c->req;
	struct sio_evt_device device;

	if (!shim_call_formed(c, 0))
		return;
	/* The kernel keeps that bit, and what the device sent must arrive before it is answered. */
	if (m->h.flags & SIO_CONFIG_WRITE && m->offset == PCI_COMMAND && m->width == 2 &&
	    m->mask == PCI_COMMAND_MASTER)
		shim_call_module(c);
	else if (shim_call_needs_device(c, "CONFIG: ", m->device, &device))
		shim_device_config(c, device.name, m);
}

/* ---- STATS ---- */

struct tally {
	uint64_t device; /* of which; 0: all */
	uint64_t n, bytes;
};

static void tally_one(const struct sio_list_entry *e, void *data)
{
	struct tally *t = data;

	if (t->device && e->device != t->device)
		return;
	t->n++;
	t->bytes += e->length;
}

static void count(struct sio_evt_stats *evt, const char *name, uint64_t value)
{
	struct sio_counter *counter = &evt->counter[evt->count++];

	snprintf(counter->name, sizeof(counter->name), "%s", name);
	counter->value = value;
}

static void cannot_count(struct shim_call *c, int error)
{
	shim_call_refuse(c, error, "the kernel module does not list all objects: %s",
			 strerror(-error));
}

static void host_stats(struct shim_call *c)
{
	static const struct {
		uint32_t kind;
		const char *name;
	} row[] = {{SIO_KIND_OWNER, "owners"},
		   {SIO_KIND_MEM, "mems"},
		   {SIO_KIND_BAR, "bars"},
		   {SIO_KIND_DMAMAP, "dmamaps"},
		   {SIO_KIND_IRQ, "irqs"},
		   {SIO_KIND_DMA, "dma_channels"},
		   {SIO_KIND_DMA_RANGE, "dma_ranges"}};
	struct sio_evt_stats *evt = shim_call_answer(c, sizeof(*evt));

	count(evt, "requests", c->requests);
	count(evt, "requests_refused", c->refused);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct tally t = {0, 0, 0};
		int r = shim_call_for_all(c, row[i].kind, tally_one, &t);

		if (r < 0) {
			cannot_count(c, r);
			return;
		}
		count(evt, row[i].name, t.n);
	}
}

static void device_stats(struct shim_call *c, const struct sio_evt_device *device)
{
	struct sio_evt_stats *evt = shim_call_answer(c, sizeof(*evt));
	struct tally t = {device->id, 0, 0};
	int r = shim_call_for_all(c, SIO_KIND_DMAMAP, tally_one, &t);

	if (r < 0) {
		cannot_count(c, r);
		return;
	}
	count(evt, "generation", device->generation);
	count(evt, "dmamaps", t.n);
	count(evt, "dmamap_bytes", t.bytes);
	count(evt, "interrupts", shim_device_interrupts(device->name));
}

struct channels {
	uint64_t adapter, n;
};

static void count_channel(const struct sio_list_entry *e, void *data)
{
	struct channels *of = data;

	of->n += e->device == of->adapter;
}

/* What a processor copies for the programs of an adapter. */
static void engine_stats(struct shim_call *c, uint64_t adapter)
{
	struct shim_call q = {.req.words[sizeof(struct sio_req) / 8] = adapter};
	struct channels of = {adapter, 0};
	struct sio_evt_stats *evt;
	int r = adapter > UINT32_MAX
			? -ENODEV
			: shim_call_ask(c, &q, SIO_OP_ADAPTER, sizeof(struct sio_req_adapter));

	if (r == 0)
		r = shim_call_for_all(c, SIO_KIND_DMA, count_channel, &of);
	if (r == -ENODEV) {
		shim_call_refuse(c, r, "no adapter %" PRIu64 " is here", adapter);
		return;
	}
	if (r < 0) {
		cannot_count(c, r);
		return;
	}
	evt = shim_call_answer(c, sizeof(*evt));
	count(evt, "channels", of.n);
}

static void stats(struct shim_call *c)
{
	const struct sio_req_stats *m = (const void *)&c->req;
	struct sio_evt_device device;

	if (!shim_call_formed(c, 0))
		return;
	if (m->kind == 0 && m->id)
		shim_call_refuse(c, -EINVAL, "id %#" PRIx64 " of the host, 0 is right",
				 (uint64_t)m->id);
	else if (m->kind == 0)
		host_stats(c);
	else if (m->kind == SIO_KIND_ADAPTER)
		shim_call_module(c);
	else if (m->kind == SIO_KIND_DMA)
		engine_stats(c, m->id);
	else if (m->kind != SIO_KIND_DEVICE)
		shim_call_refuse(c, -EINVAL,
				 "kind %u, 0 (host), %d (adapter), %d (its DMA engine) or %d "
				 "(device) is right",
				 m->kind, SIO_KIND_ADAPTER, SIO_KIND_DMA, SIO_KIND_DEVICE);
	else if (shim_call_needs_device(c, "", m->id, &device))
		device_stats(c, &device);
}

/* ---- DEVICE_OPEN ---- */

static void report_device(struct sio_evt_device *evt)
{
	evt->present = 1;
	shim_device_look(evt);
}

static void device_open(struct shim_call *c)
{
	const struct sio_req_device_open *m = (const void *)&c->req;
	struct sio_evt_device device;

	if (!shim_call_formed(c, 0))
		return;
	if (!(c->req.h.flags & SIO_DEVICE_FORCE)) {
		if (!shim_call_needs_device(c, "DEVICE_OPEN: ", m->device, &device))
			return;
		if (device.present == SHIM_DEVICE_OPEN) {
			shim_call_refuse(c, -EBUSY, "DEVICE_OPEN: %s is open", device.name);
			return;
		}
	}
	shim_call_module(c);
	if (!c->answer.h.error)
		report_device((void *)&c->answer);
}

/* ---- IMPORT of a memfd: we map it, pin what we mapped, and import that ---- */

static bool is_of_kind(int fd, uint32_t kind)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || !S_ISREG(st.st_mode))
		return false;
	return ((unsigned long)fs.f_type == TMPFS_MAGIC && kind != SIO_IMPORT_HUGETLB) ||
	       ((unsigned long)fs.f_type == HUGETLBFS_MAGIC && kind != SIO_IMPORT_MEMFD);
}

/* Return: a descriptor that keeps the range pinned; -errno. */
static int pin(int node, int fd, uint64_t offset, uint64_t length)
{
	struct sio_ioc_pin p = {.length = length, .access = SIO_ACCESS_READ | SIO_ACCESS_WRITE};
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	int pins;

	if (at == MAP_FAILED)
		return -errno;
	p.address = (uintptr_t)at;
	pins = ioctl(node, SIO_IOC_PIN, &p);
	if (pins < 0)
		pins = -errno;
	munmap(at, length);
	return pins;
}

static void import(struct shim_call *c)
{
	struct sio_req_import *m = (void *)&c->req;
	uint64_t size, length = m->length;
	struct stat st;
	int pins;

	if (c->n_fds != 1 || !is_of_kind(c->fd[0], m->kind) || fstat(c->fd[0], &st) < 0) {
		shim_call_refuse(c, c->n_fds ? -EBADF : -EINVAL,
				 "IMPORT: a descriptor of kind %u is right", m->kind);
		return;
	}
	size = (uint64_t)st.st_size;
	if (!length && m->offset < size)
		length = size - m->offset;
	if (!length || (length | m->offset) % 4096 || m->offset > size ||
	    length > size - m->offset) {
		shim_call_refuse(c, -EINVAL,
				 "IMPORT: range %#" PRIx64 " + %#" PRIx64 " of %#" PRIx64 " bytes",
				 (uint64_t)m->offset, length, size);
		return;
	}
	pins = pin(c->node, c->fd[0], m->offset, length);
	if (pins < 0) {
		shim_call_refuse(c, pins, "IMPORT: the pages cannot be held in place: %s",
				 strerror(-pins));
		if (pins == -ENOMEM)
			c->answer.h.reason = SIO_OUT_OF_LOCKED_MEMORY;
		return;
	}
	close(c->fd[0]);
	c->fd[0] = pins;
	m->kind = SIO_IMPORT_USER_PAGES;
	m->offset = 0;
	m->length = 0;
	shim_call_module(c);
}

/* ---- all ---- */

static void info(struct sio_evt_info *evt)
{
	struct sysinfo ram;

	for (size_t i = 0; i < sizeof(served); i++)
		evt->served |= 1ULL << served[i];
	for (size_t i = 0; evt->adapters && i < sizeof(served_by_adapters); i++)
		evt->served |= 1ULL << served_by_adapters[i];
	if (sysinfo(&ram) < 0)
		return;
	evt->ram_total = (uint64_t)ram.totalram * ram.mem_unit;
	evt->ram_free = (uint64_t)ram.freeram * ram.mem_unit;
}

static void serve_by_module(struct shim_call *c)
{
	shim_call_module(c);
	if (c->answer.h.error)
		return;
	if (c->req.h.op == SIO_OP_INFO)
		info((void *)&c->answer);
	if (c->req.h.op == SIO_OP_DEVICE_LIST)
		report_device((void *)&c->answer);
	if (c->req.h.op == SIO_OP_ADAPTER) {
		struct sio_evt_adapter *a = (void *)&c->answer;

		shim_device_above(a->bdf, a->above);
	}
}

/*
 * The kernel resets a function by the first way that it has, a bus reset last, and only if nothing
 * else is on the bus. So where that is the only way, it is what the module's function reset does.
 */
static void choose_reset(struct shim_call *c)
{
	struct sio_req_reset *m = (void *)&c->req;
	struct sio_evt_device device;

	if (c->len != sizeof(*m) || m->kind != SIO_RESET_BUS ||
	    shim_call_find_device(c, m->device, &device) < 0)
		return;
	shim_device_look(&device);
	if (device.resets == 1u << SIO_RESET_BUS)
		m->kind = SIO_RESET_FUNCTION;
}

void shim_call_serve(struct shim_call *c)
{
	const struct sio_req_import *m = (const void *)&c->req;

	switch (c->req.h.op) {
	case SIO_OP_CONFIG:
		config(c);
		return;
	case SIO_OP_STATS:
		stats(c);
		return;
	case SIO_OP_SETTLE:
		shim_call_settle(c);
		return;
	case SIO_OP_IDENTIFY:
		shim_call_identify(c);
		return;
	case SIO_OP_LIST:
		shim_call_list(c);
		return;
	case SIO_OP_DEVICE_OPEN:
		device_open(c);
		return;
	case SIO_OP_RESET:
		choose_reset(c);
		break;
	case SIO_OP_DMAUNMAP:
		if (!shim_call_formed(c, 0))
			return;
		break;
	case SIO_OP_IMPORT:
		if (c->len == sizeof(*m) && c->n_fds == 1 &&
		    (m->kind == SIO_IMPORT_MEMFD || m->kind == SIO_IMPORT_HUGETLB ||
		     m->kind == SIO_IMPORT_FILE)) {
			import(c);
			return;
		}
		break;
	default:
		break;
	}
	serve_by_module(c);
}
