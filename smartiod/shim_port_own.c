/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that the module leaves to us, in whole or in part. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "smartiod/shim_port_own.h"

#define SERVED (1ULL << SIO_OP_CONFIG | 1ULL << SIO_OP_STATUS | 1ULL << SIO_OP_STATS)

/* What a request of ours must look like. False: it was refused. */
static bool formed(struct shim_call *c, size_t size, size_t reserved, uint32_t flags)
{
	uint32_t more = 0;

	if (reserved && c->len >= size)
		memcpy(&more, (const char *)&c->req + reserved, sizeof(more));
	if (c->len != size || c->req.h.size != size)
		shim_call_refuse(c, -EINVAL, "size %u in a packet of %zu bytes, %zu is right",
				 c->req.h.size, c->len, size);
	else if (c->req.h.reserved || more)
		shim_call_refuse(c, -EINVAL, "h.reserved is %#x, reserved2 is %#x, 0 is right",
				 c->req.h.reserved, more);
	else if (c->req.h.flags & ~flags)
		shim_call_refuse(c, -EINVAL, "flags %#x, allowed are %#x", c->req.h.flags, flags);
	else if (c->n_fds)
		shim_call_refuse(c, -EINVAL, "%u descriptors came along, 0 is right", c->n_fds);
	else
		return true;
	return false;
}

/* Ask the module something for ourselves; its answer in @q. Return: 0 or -errno. */
static int ask(const struct shim_call *c, struct shim_call *q, uint32_t op, size_t size)
{
	q->node = c->node;
	q->n_fds = 0;
	q->req.h = (struct sio_req){.size = (uint32_t)size, .op = op};
	q->len = size;
	shim_call_module(q);
	return q->answer.h.error;
}

/* The function that has number @id. Return: 0 or -ENODEV. */
static int find_device(const struct shim_call *c, uint64_t id, struct sio_evt_device *ret)
{
	struct shim_call q = {.req.words[sizeof(struct sio_req) / 8] = id - 1};

	if (id == 0 || ask(c, &q, SIO_OP_DEVICE_LIST, sizeof(struct sio_req_device_list)) < 0)
		return -ENODEV;
	memcpy(ret, &q.answer, sizeof(*ret));
	return ret->id == id ? 0 : -ENODEV;
}

/* ---- CONFIG, STATUS ---- */

static void config(struct shim_call *c)
{
	const struct sio_req_config *m = (const void *)&c->req;
	struct sio_evt_device device;

	if (!formed(c, sizeof(*m), offsetof(struct sio_req_config, reserved2), SIO_CONFIG_WRITE))
		return;
	if (find_device(c, m->device, &device) < 0)
		shim_call_refuse(c, -ENODEV, "no device %#" PRIx64 " is here", (uint64_t)m->device);
	else
		shim_device_config(c, device.name, m);
}

/* A page that tells of no path: this host has no adapter. */
static int status_page(void)
{
	static const struct sio_status_page page = {.magic = SIO_STATUS_MAGIC,
						    .version = SIO_PORT_VERSION};
	int fd = memfd_create("smartio-status", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (write(fd, &page, sizeof(page)) == sizeof(page) &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
		return fd;
	close(fd);
	return -1;
}

static void status(struct shim_call *c)
{
	struct sio_evt_status *evt;
	int fd;

	if (!formed(c, sizeof(struct sio_req_status), 0, 0))
		return;
	fd = status_page();
	if (fd < 0) {
		shim_call_refuse(c, -errno, "no page can be made: %s", strerror(errno));
		return;
	}
	evt = shim_call_answer(c, sizeof(*evt));
	evt->size = sizeof(struct sio_status_page);
	c->answer_fd[c->n_answer_fds++] = fd;
}

/* ---- STATS ---- */

struct tally {
	uint64_t n, bytes;
};

static void list(const struct shim_call *c, uint32_t kind, uint64_t device, struct tally *ret)
{
	struct shim_call q = {.n_fds = 0};
	struct sio_req_list *m = (void *)&q.req;
	const struct sio_evt_list *l = (const void *)&q.answer;

	*ret = (struct tally){0, 0};
	do {
		m->kind = kind;
		if (ask(c, &q, SIO_OP_LIST, sizeof(*m)) < 0)
			return;
		for (uint32_t i = 0; i < l->count; i++) {
			m->after = l->entry[i].id;
			ret->n += !device || l->entry[i].device == device;
			ret->bytes += l->entry[i].device == device ? l->entry[i].length : 0;
		}
	} while (l->more);
}

static void count(struct sio_evt_stats *evt, const char *name, uint64_t value)
{
	struct sio_counter *counter = &evt->counter[evt->count++];

	snprintf(counter->name, sizeof(counter->name), "%s", name);
	counter->value = value;
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
		   {SIO_KIND_IRQ, "irqs"}};
	struct sio_evt_stats *evt = shim_call_answer(c, sizeof(*evt));
	struct shim_call q = {.n_fds = 0};
	struct sio_req_info *m = (void *)&q.req;
	const struct sio_evt_info *info = (const void *)&q.answer;
	struct tally t;

	m->version_min = m->version_max = SIO_PORT_VERSION;
	count(evt, "requests", c->requests);
	count(evt, "requests_refused", c->refused);
	if (ask(c, &q, SIO_OP_INFO, sizeof(*m)) == 0) {
		count(evt, "ram_total", info->ram_total);
		count(evt, "ram_free", info->ram_free);
	}
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		list(c, row[i].kind, 0, &t);
		count(evt, row[i].name, t.n);
	}
}

static void device_stats(struct shim_call *c, const struct sio_evt_device *device)
{
	struct sio_evt_stats *evt = shim_call_answer(c, sizeof(*evt));
	struct tally t;

	list(c, SIO_KIND_DMAMAP, device->id, &t);
	count(evt, "generation", device->generation);
	count(evt, "dmamaps", t.n);
	count(evt, "dmamap_bytes", t.bytes);
	count(evt, "interrupts", shim_device_number(device->name, "interrupts"));
}

static void stats(struct shim_call *c)
{
	const struct sio_req_stats *m = (const void *)&c->req;
	struct sio_evt_device device;

	if (!formed(c, sizeof(*m), offsetof(struct sio_req_stats, reserved2), 0))
		return;
	if (m->kind == 0 && m->id)
		shim_call_refuse(c, -EINVAL, "id %#" PRIx64 " of the host, 0 is right",
				 (uint64_t)m->id);
	else if (m->kind == 0)
		host_stats(c);
	else if (m->kind == SIO_KIND_ADAPTER)
		shim_call_refuse(c, -ENODEV, "no adapter %" PRIu64 " is here", (uint64_t)m->id);
	else if (m->kind != SIO_KIND_DEVICE)
		shim_call_refuse(c, -EINVAL,
				 "kind %u, 0 (host), %d (adapter) or %d (device) is right", m->kind,
				 SIO_KIND_ADAPTER, SIO_KIND_DEVICE);
	else if (find_device(c, m->id, &device) < 0)
		shim_call_refuse(c, -ENODEV, "no device %#" PRIx64 " is here", (uint64_t)m->id);
	else
		device_stats(c, &device);
}

/* ---- IMPORT of a memfd: we map it, pin what we mapped, and import that ---- */

static bool is_of_kind(int fd, uint32_t kind)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || !S_ISREG(st.st_mode))
		return false;
	return (unsigned long)fs.f_type ==
	       (kind == SIO_IMPORT_MEMFD ? TMPFS_MAGIC : HUGETLBFS_MAGIC);
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

static void serve_by_module(struct shim_call *c)
{
	shim_call_module(c);
	if (c->answer.h.error)
		return;
	if (c->req.h.op == SIO_OP_INFO)
		((struct sio_evt_info *)(void *)&c->answer)->served |= SERVED;
	if (c->req.h.op == SIO_OP_DEVICE_LIST || c->req.h.op == SIO_OP_DEVICE_OPEN)
		shim_device_look((void *)&c->answer);
}

void shim_call_serve(struct shim_call *c)
{
	const struct sio_req_import *m = (const void *)&c->req;

	switch (c->req.h.op) {
	case SIO_OP_CONFIG:
		config(c);
		return;
	case SIO_OP_STATUS:
		status(c);
		return;
	case SIO_OP_STATS:
		stats(c);
		return;
	case SIO_OP_ADAPTER:
	case SIO_OP_GRANT:
	case SIO_OP_MAP:
	case SIO_OP_REQUESTER_ADD:
		shim_call_refuse(c, -ENODEV, "no adapter is here");
		return;
	case SIO_OP_UNGRANT:
	case SIO_OP_UNMAP:
	case SIO_OP_REQUESTER_DEL:
		shim_call_refuse(c, -ENOENT,
				 "no adapter is here, so there is nothing of that kind");
		return;
	case SIO_OP_IMPORT:
		if (c->len == sizeof(*m) && c->n_fds == 1 &&
		    (m->kind == SIO_IMPORT_MEMFD || m->kind == SIO_IMPORT_HUGETLB)) {
			import(c);
			return;
		}
		break;
	default:
		break;
	}
	serve_by_module(c);
}
