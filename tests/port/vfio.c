/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port by VFIO as a world: "fake": what decides, in this process, on a machine that the test is;
 * "kept": the same, where another process goes on before each request; else smartio-vfio itself, by its socket in the state directory that is named.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "packet/packet.h"
#include "shim.h"
#include "smartiod/port_vfio/vfio_port.h"
#include "vfio_fake.h"

#define PATIENCE_MS 60000
#define HUGE_PAGE (2u << 20)

static bool is_fake(const struct fake *f)
{
	return f->socket < 0;
}

/* ---- the transport ---- */

static int connect_real(struct fake *f)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	memcpy(sa.sun_path, f->path, sizeof(f->path));
	f->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return f->socket < 0 || connect(f->socket, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno
											   : 0;
}

static int vfio_open(const char *where, void **ret)
{
	struct fake *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	*ret = f;
	if (strcmp(where, "fake") == 0 || strcmp(where, "kept") == 0)
		return fake_open(f, strcmp(where, "kept") == 0);
	snprintf(f->path, sizeof(f->path), "%s/vfio.port", where);
	r = connect_real(f);
	return r;
}

static int vfio_send(void *world, unsigned host, const void *req, size_t len, const int *fds,
		     unsigned n_fds)
{
	struct fake *f = world;
	ssize_t n;

	(void)host;
	if (f->kept)
		f->wrong |= fake_restart(f) < 0;
	if (is_fake(f))
		return vfio_port_request(f->port, req, len, fds, n_fds);
	/* It would cut us off: run_short() has its turn with the fake. */
	if (len < sizeof(struct sio_req) || len > SIO_PORT_MAX_PACKET)
		return -EMSGSIZE;
	n = sio_packet_send(f->socket, req, len, fds, n_fds, true);
	return n < 0 ? (int)n : 0;
}

static long fake_event(struct fake *f, void *evt, int *fds, unsigned *ret_fds)
{
	struct fake_evt *e;
	size_t len;

	fake_look(f);
	e = f->first;
	if (!e)
		return -ETIMEDOUT;
	len = e->len;
	memcpy(evt, e->data, len);
	memcpy(fds, e->fds, sizeof(e->fds));
	*ret_fds = e->n_fds;
	f->first = e->next;
	if (!f->first)
		f->last = &f->first;
	f->queued--;
	free(e);
	if (!f->first) {
		f->overflowed = false;
		vfio_port_drained(f->port);
	}
	return (long)len;
}

static long vfio_event(void *world, unsigned host, void *evt, size_t size, int *fds,
		       unsigned *ret_fds)
{
	struct fake *f = world;
	struct pollfd p = {.fd = f->socket, .events = POLLIN};
	bool lost;

	(void)host;
	*ret_fds = 0;
	if (is_fake(f))
		return fake_event(f, evt, fds, ret_fds);
	if (poll(&p, 1, PATIENCE_MS) != 1)
		return -ETIMEDOUT;
	return sio_packet_recv(f->socket, evt, size, fds, SIO_PORT_MAX_FDS, ret_fds, &lost);
}

static long vfio_descriptors(void *world)
{
	(void)world;
	return -1;
}

static int vfio_reopen(void *world, unsigned host)
{
	struct fake *f = world;

	(void)host;
	if (!is_fake(f)) {
		close(f->socket);
		return connect_real(f);
	}
	fake_drop_events(f);
	fake_look(f);
	vfio_port_connected(f->port);
	return 0;
}

static int vfio_close(void *world)
{
	struct fake *f = world;
	int wrong = is_fake(f) ? fake_close(f) : close(f->socket);

	free(f);
	return wrong;
}

/* What VFIO answers otherwise than the machine room. */
static const struct port_other others[] = {
	{"STATS.kind = SIO_KIND_ADAPTER", -ENODEV, -ENODEV},
	{"STATS.kind = SIO_KIND_DMA", -EINVAL, -EINVAL},
	/* Served, and asked about things that are not there. */
	{"IMPORT.kind = SIO_IMPORT_DMABUF", -EOPNOTSUPP, -EOPNOTSUPP},
	{"DMAMAP.iova = 0", -EINVAL, -EINVAL},
	{"DMAMAP.iova = 1ULL << 52", -EINVAL, 0},
	{"IRQ_NEW.h.flags = SIO_IRQ_EVENTFD", -EOPNOTSUPP, -EOPNOTSUPP},
	{"RESET.h.flags = SIO_RESET_KEEP_DOORBELLS", -EOPNOTSUPP, -EOPNOTSUPP},
	{"IDENTIFY", -EBADF, -EBADF},
	{"REOPEN", -EINVAL, -EINVAL},
};

const struct port_other *port_vfio_otherwise(const struct port_row *row)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i].what, row->what) == 0)
			return &others[i];
	return NULL;
}

const struct port_transport port_vfio = {
	.one_host = true,
	.open = vfio_open,
	.send = vfio_send,
	.event = vfio_event,
	.descriptors = vfio_descriptors,
	.reopen = vfio_reopen,
	.close = vfio_close,
};

/* ---- what the table does not ask ---- */

static uint64_t find(struct port_world *w, uint32_t kind, struct sio_list_entry *ret)
{
	const struct sio_evt_list *l;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_LIST, 0);
	((struct sio_req_list *)(void *)&a.req)->kind = kind;
	l = (const void *)&a.answer;
	if (!shim_expect(w, &a, -1, 0, "LIST") || l->count == 0)
		return 0;
	*ret = l->entry[0];
	return ret->id;
}

/* A daemon that is started again maps a view where it was before. */
static void view_again(struct port_world *w)
{
	uint64_t id, offset;
	struct sio_list_entry e = {.id = 0};
	struct sio_req_reopen *r;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_BAR, 0);
	if (!shim_expect(w, &a, -1, 0, "BAR"))
		return;
	id = shim_id(&a);
	offset = ((const struct sio_evt_bar *)(const void *)&a.answer)->offset;
	shim_close(&a);
	shim_check(w, offset != 0, "a view of the second page begins behind the first");
	shim_check(w, find(w, SIO_KIND_BAR, &e) == id && e.length == SHIM_PAGE, "it is listed");
	shim_good(w, &a, SIO_OP_REOPEN, 0);
	r = (void *)&a.req;
	r->kind = SIO_KIND_BAR;
	r->id = id;
	if (shim_expect(w, &a, -1, 0, "REOPEN of a view"))
		shim_check(w,
			   ((const struct sio_evt_reopen *)(const void *)&a.answer)->offset ==
				   offset,
			   "it is where it was");
	shim_close(&a);
	port_things_end(w);
	port_report(w, "a view, for a daemon that starts again");
}

/* A request about a device that is being reset waits; others do not. */
static void waits_for_reset(struct port_world *w)
{
	uint64_t reset, info, config;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_RESET, 0);
	reset = shim_send(w, &a);
	shim_good(w, &a, SIO_OP_CONFIG, 0);
	((struct sio_req_config *)(void *)&a.req)->device = w->thing[T_DEVICE];
	((struct sio_req_config *)(void *)&a.req)->width = 4;
	config = shim_send(w, &a);
	shim_good(w, &a, SIO_OP_INFO, 0);
	info = shim_send(w, &a);
	/* In this order: the daemon would have taken another one for a fault of ours. */
	port_await(w, 0, info, &a.answer, &a.n_fds);
	port_await(w, 0, reset, &a.answer, &a.n_fds);
	shim_check(w, a.answer.evt.error == 0, "the reset is done");
	port_await(w, 0, config, &a.answer, &a.n_fds);
	shim_check(w, a.answer.evt.error == 0, "and then the other is answered");
	port_report(w, "what waits for a reset");
}

/* Two vectors of one owner go to one interrupt, which ends with the last of them. */
static void shared_interrupt(struct port_world *w)
{
	uint32_t vectors = shim_count(w, SIO_KIND_VECTOR), irqs = shim_count(w, SIO_KIND_IRQ);
	uint64_t session, loan, irq;
	struct sio_req_vector *v;
	union port_packet evt;
	struct shim_ask a;
	int fd = -1;

	session = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	irq = shim_make(w, SIO_OP_IRQ_NEW, session, NULL);
	shim_good(w, &a, SIO_OP_OWNER_NEW, session);
	a.req.req.flags = SIO_OWNER_CHILD;
	shim_expect(w, &a, -1, 0, "a child");
	loan = shim_id(&a);
	for (uint32_t i = 0; i < 3; i++) {
		shim_good(w, &a, SIO_OP_VECTOR, loan);
		v = (void *)&a.req;
		v->irq = irq;
		v->vector = i;
		v->mask = i == 2;
		shim_expect(w, &a, -1, 0, "VECTOR");
	}
	shim_good(w, &a, SIO_OP_IRQ_FREE, session);
	((struct sio_req_irq_free *)(void *)&a.req)->id = irq;
	shim_expect(w, &a, -1, -EBUSY, "IRQ_FREE of one in use");
	close(fd);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	shim_check(w, shim_count(w, SIO_KIND_VECTOR) == vectors, "no vector is left");
	shim_check(w, shim_count(w, SIO_KIND_IRQ) == irqs, "no interrupt is left");
	port_things_end(w);
	port_report(w, "an interrupt of several vectors ends");
}

/* Huge pages, mapped for the drive as a whole and in part; others where there are none left. */
static void huge_pages(struct port_world *w)
{
	struct sio_req_dmamap *map;
	struct sio_req_alloc *m;
	uint64_t mem[2] = {0, 0};
	bool huge[2] = {false, false};
	struct statfs fs;
	struct shim_ask a;

	for (unsigned i = 0; i < 2; i++) { /* the machine has two of them */
		shim_good(w, &a, SIO_OP_ALLOC, 0);
		m = (void *)&a.req;
		m->kind = SIO_ALLOC_HUGE;
		m->size = (i ? 1u : 2u) * HUGE_PAGE;
		if (shim_expect(w, &a, -1, 0, "ALLOC of huge pages"))
			huge[i] = fstatfs(a.fd[0], &fs) == 0 &&
				  (unsigned long)fs.f_type == HUGETLBFS_MAGIC;
		mem[i] = shim_id(&a);
		shim_close(&a);
	}
	shim_check(w, huge[0] && !huge[1], "the first has the huge pages");
	for (unsigned i = 0; i < 4; i++) {
		shim_good(w, &a, SIO_OP_DMAMAP, 0);
		map = (void *)&a.req;
		map->target = mem[i / 2];
		map->offset = i % 2 ? HUGE_PAGE / 2 : 0;
		map->length = i % 2 ? HUGE_PAGE / 4 : HUGE_PAGE;
		shim_expect(w, &a, -1, 0, "DMAMAP of huge pages");
	}
	port_things_end(w);
	port_report(w, "huge pages");
}

static void comes_back(struct port_world *w, struct fake *f)
{
	struct sio_evt_device info = {.bar_size = {16384},
				      .bdf = 0x100,
				      .msix_count = 17,
				      .resets = 1u << SIO_RESET_FUNCTION,
				      .name = "0000:01:00.0"};
	union port_packet evt;
	struct shim_ask a;

	f->device = w->thing[T_DEVICE] = vfio_port_device_here(f->port, &info);
	shim_event(w, SIO_EV_DEVICE_BACK, &evt);
	shim_good(w, &a, SIO_OP_DEVICE_OPEN, 0);
	a.req.req.flags = 0;
	shim_expect(w, &a, -1, 0, "DEVICE_OPEN");
}

/* The device goes, and comes back: what was mapped leads nowhere, and ends as always. */
static void goes_and_comes(struct port_world *w, struct fake *f)
{
	uint64_t number = f->device;
	union port_packet evt;
	struct shim_ask a;

	port_things_make(w);
	vfio_port_device_gone(f->port, f->device);
	shim_event(w, SIO_EV_DEVICE_GONE, &evt);
	shim_check(w, shim_count(w, SIO_KIND_VECTOR) == 0, "its vectors have ended");
	shim_check(w, f->maps == 0 && f->vectors == 0, "the machine has nothing of it");
	shim_good(w, &a, SIO_OP_DMAMAP, 0);
	shim_expect(w, &a, -1, -ENODEV, "DMAMAP without the device");
	comes_back(w, f);
	shim_check(w, f->device == number, "it keeps its number");
	port_things_end(w);
	shim_check(w, f->maps == 0, "what was of before is not unmapped from the new one");
	port_report(w, "a device that goes and comes back");
}

/* The machine has fewer interrupts than the device, and it is told how many. */
static void few_vectors(struct port_world *w, struct fake *f)
{
	const struct sio_evt_device *info;
	struct sio_req_vector *v;
	union port_packet evt;
	struct shim_ask a;

	vfio_port_device_gone(f->port, f->device);
	shim_event(w, SIO_EV_DEVICE_GONE, &evt);
	f->few = 5;
	comes_back(w, f);
	shim_good(w, &a, SIO_OP_DEVICE_LIST, 0);
	info = (const void *)&a.answer;
	shim_check(w, shim_expect(w, &a, -1, 0, "DEVICE_LIST") && info->msix_count == 5,
		   "it has 5 vectors");
	shim_good(w, &a, SIO_OP_VECTOR, 0);
	v = (void *)&a.req;
	v->irq = shim_make(w, SIO_OP_IRQ_NEW, 0, NULL);
	v->vector = 5;
	shim_expect(w, &a, -1, -EINVAL, "the sixth VECTOR");
	vfio_port_device_gone(f->port, f->device);
	shim_event(w, SIO_EV_DEVICE_GONE, &evt);
	f->few = 0;
	comes_back(w, f);
	port_things_end(w);
	port_report(w, "a machine with few interrupts");
}

/* @offset: where in @mem the page is. Return: its address for the device; its number in *ret_id. */
static uint64_t map_page(struct port_world *w, uint64_t owner, uint64_t mem, uint64_t offset,
			 uint64_t *ret_id)
{
	struct sio_req_dmamap *m;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	m = (void *)&a.req;
	m->target = mem;
	m->offset = offset;
	if (!shim_expect(w, &a, -1, 0, "DMAMAP"))
		return 0;
	*ret_id = shim_id(&a);
	return ((const struct sio_evt_dmamap *)(const void *)&a.answer)->iova;
}

static void unmap_page(struct port_world *w, uint64_t owner, uint64_t map)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DMAUNMAP, owner);
	((struct sio_req_dmaunmap *)(void *)&a.req)->id = map;
	shim_expect(w, &a, -1, 0, "DMAUNMAP");
}

/*
 * The store has lost a program's memory: a device that was told its address may use that still, so
 * it leads nowhere, and is nobody else's.
 */
static void lost_memory(struct port_world *w, struct fake *f)
{
	uint64_t owner, lost, other, iova, map[2] = {0, 0};
	struct sio_list_entry e = {.id = 0};
	union port_packet evt;
	unsigned maps = f->maps;
	int fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	lost = shim_make(w, SIO_OP_ALLOC, owner, NULL);
	iova = map_page(w, owner, lost, 0, &map[0]);
	fake_lose(f, lost);
	shim_check(w, shim_count(w, SIO_KIND_MEM) == 0, "the memory has ended");
	shim_check(w, f->maps == maps, "nothing leads there");
	shim_check(w, find(w, SIO_KIND_DMAMAP, &e) == map[0] && e.address == iova,
		   "the mapping is there, without it");
	other = shim_make(w, SIO_OP_ALLOC, owner, NULL);
	shim_check(w, map_page(w, owner, other, 0, &map[1]) != iova,
		   "its address is not given to others");
	for (unsigned i = 0; i < 2; i++)
		unmap_page(w, owner, map[i]);
	close(fd);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	port_report(w, "memory that the store has lost");
}

/* What is in no record is unmapped, however many addresses there are. */
static void wide_space(struct port_world *w, struct fake *f)
{
	union port_packet evt;

	for (unsigned i = 0; i < 2; i++) {
		vfio_port_device_gone(f->port, f->device);
		shim_event(w, SIO_EV_DEVICE_GONE, &evt);
		f->wide = i == 0;
		comes_back(w, f);
		shim_check(w, fake_restart(f) == 0 && f->gaps, "all of it was looked through");
	}
	port_report(w, "an IOMMU of 64 bits");
}

/* More devices than there are records for: what was of one is gone, and nobody stumbles over it. */
static void lost_device(struct port_world *w, struct fake *f)
{
	uint64_t owner, mem, irq, map;
	struct sio_req_vector *v;
	union port_packet evt;
	struct shim_ask a;
	int fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	mem = shim_make(w, SIO_OP_ALLOC, owner, NULL);
	map_page(w, owner, mem, 0, &map);
	irq = shim_make(w, SIO_OP_IRQ_NEW, owner, NULL);
	shim_good(w, &a, SIO_OP_VECTOR, owner);
	v = (void *)&a.req;
	v->irq = irq;
	shim_expect(w, &a, -1, 0, "VECTOR");
	f->kept->device[0] = (struct vfio_device_record){.present = false};
	f->maps = f->vectors = f->opens = 0; /* its descriptors were closed */
	f->mapped = f->bytes = 0;
	shim_check(w, fake_restart(f) == 0, "another process goes on");
	shim_check(w, shim_count(w, SIO_KIND_DMAMAP) == 0, "no mapping is left");
	shim_check(w, shim_count(w, SIO_KIND_VECTOR) == 0, "no vector is left");
	close(fd);
	shim_event(w, SIO_EV_OWNER_END, &evt);
	comes_back(w, f);
	port_report(w, "a device that has no record");
}

static uint64_t memory_left(struct port_world *w)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_INFO, 0);
	return shim_expect(w, &a, -1, 0, "INFO")
		       ? ((const struct sio_evt_info *)(const void *)&a.answer)->ram_free
		       : 0;
}

/* IMPORT of a page of a program's own. Return: its id; 0: not, as it should be. */
static uint64_t import_page(struct port_world *w, int fd, int error)
{
	struct sio_req_import *m;
	uint64_t id = 0;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_IMPORT, 0);
	m = (void *)&a.req;
	m->kind = SIO_IMPORT_MEMFD;
	m->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	if (shim_expect(w, &a, fd, error, "IMPORT") && error == 0) {
		id = shim_id(&a);
		shim_close(&a);
	}
	return id;
}

static void free_memory(struct port_world *w, uint64_t id)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_FREE, 0);
	((struct sio_req_free *)(void *)&a.req)->id = id;
	shim_expect(w, &a, -1, 0, "FREE");
}

/* A device that it is mapped for holds it in place, so it counts as other memory does. */
static void imports_count(struct port_world *w)
{
	int fd = memfd_create("import", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint64_t left = memory_left(w), import, rest;
	struct shim_ask a;

	shim_check(w,
		   fd >= 0 && ftruncate(fd, SHIM_PAGE) == 0 &&
			   fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
		   "a memfd");
	import = import_page(w, fd, 0);
	shim_check(w, memory_left(w) == left - SHIM_PAGE, "a page less is left");
	shim_good(w, &a, SIO_OP_ALLOC, 0);
	((struct sio_req_alloc *)(void *)&a.req)->size = left - SHIM_PAGE;
	shim_expect(w, &a, -1, 0, "ALLOC of all that is left");
	rest = shim_id(&a);
	shim_close(&a);
	import_page(w, fd, -ENOSPC);
	free_memory(w, import);
	free_memory(w, import_page(w, fd, 0));
	free_memory(w, rest);
	shim_check(w, memory_left(w) == left, "all of it is back");
	close(fd);
	port_report(w, "imported memory counts");
}

/* A device that is to reach the second page of @mem, from @offset on of its file, reaches that. */
static void map_second_page(struct port_world *w, const struct fake *f, uint64_t mem,
			    uint64_t offset)
{
	uint64_t map = 0;

	map_page(w, 0, mem, SHIM_PAGE, &map);
	shim_check(w, f->offset == offset + SHIM_PAGE, "its pages of the file are mapped");
	unmap_page(w, 0, map);
}

static void import_range(struct port_world *w, const struct fake *f, int fd, uint32_t kind,
			 uint64_t offset, uint64_t length, int error)
{
	struct sio_req_import *m;
	struct shim_ask a;
	uint64_t id;

	shim_good(w, &a, SIO_OP_IMPORT, 0);
	m = (void *)&a.req;
	m->kind = kind;
	m->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	m->offset = offset;
	m->length = length;
	if (!shim_expect(w, &a, fd, error, "IMPORT of a range") || error)
		return;
	id = shim_id(&a);
	shim_check(w,
		   ((const struct sio_evt_import *)(const void *)&a.answer)->size ==
			   (length ? length : 4 * SHIM_PAGE - offset),
		   "all of the range is memory");
	shim_check(w, ((const struct sio_evt_import *)(const void *)&a.answer)->offset == offset,
		   "and begins in the file where it was asked for");
	shim_close(&a);
	shim_good(w, &a, SIO_OP_REOPEN, 0);
	((struct sio_req_reopen *)(void *)&a.req)->kind = SIO_KIND_MEM;
	((struct sio_req_reopen *)(void *)&a.req)->id = id;
	if (shim_expect(w, &a, -1, 0, "REOPEN of what was imported"))
		shim_check(w,
			   ((const struct sio_evt_reopen *)(const void *)&a.answer)->offset ==
				   offset,
			   "and says where in the file it begins");
	shim_close(&a);
	if (is_fake(f) && length > SHIM_PAGE)
		map_second_page(w, f, id, offset);
	free_memory(w, id);
}

/* What of a program's file is memory, and which files are none. */
static void imports_ranges(struct port_world *w, const struct fake *f)
{
	int fd = memfd_create("import", MFD_CLOEXEC | MFD_ALLOW_SEALING), other = -1;
	char path[64];

	shim_check(w,
		   fd >= 0 && ftruncate(fd, 4 * SHIM_PAGE) == 0 &&
			   fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0,
		   "a memfd");
	import_range(w, f, fd, SIO_IMPORT_FILE, 0, 0, 0);
	import_range(w, f, fd, SIO_IMPORT_FILE, SHIM_PAGE, 2 * SHIM_PAGE, 0);
	import_range(w, f, fd, SIO_IMPORT_MEMFD, 3 * SHIM_PAGE, 0, 0);
	import_range(w, f, fd, SIO_IMPORT_FILE, 1, SHIM_PAGE, -EINVAL);
	import_range(w, f, fd, SIO_IMPORT_FILE, SHIM_PAGE, 4 * SHIM_PAGE, -EINVAL);
	import_range(w, f, fd, SIO_IMPORT_FILE, ~0xfffull, SHIM_PAGE, -EINVAL);
	other = open("/dev/null", O_RDWR | O_CLOEXEC);
	import_range(w, f, other, SIO_IMPORT_FILE, 0, SHIM_PAGE, -EBADF);
	close(other);
	if (!is_fake(f)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		other = open(path, O_RDONLY | O_CLOEXEC);
		import_range(w, f, other, SIO_IMPORT_FILE, 0, SHIM_PAGE, -EINVAL);
		close(other);
		import_range(w, f, fd, SIO_IMPORT_HUGETLB, 0, SHIM_PAGE, -EBADF);
		shim_check(w, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0, "nobody has it mapped");
		import_range(w, f, fd, SIO_IMPORT_FILE, 0, SHIM_PAGE, -EINVAL);
	}
	close(fd);
	port_report(w, "ranges of files are imported");
}

/* The daemon is killed while a reset goes on: the next one hears no answer to what it asked. */
static void restart_in_a_reset(struct port_world *w, struct fake *f)
{
	union port_packet evt;
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;
	struct shim_ask a;

	for (unsigned i = 0; i < 2; i++) {
		shim_good(w, &a, i ? SIO_OP_CONFIG : SIO_OP_RESET, 0);
		a.req.req.cookie = ++w->cookie;
		if (i)
			((struct sio_req_config *)(void *)&a.req)->device = f->device;
		w->t->send(w->ctx, 0, &a.req, a.req.req.size, NULL, 0);
	}
	shim_check(w, f->resetting == f->device, "it is being reset");
	fake_drop_events(f);
	vfio_port_connected(f->port);
	shim_good(w, &a, SIO_OP_CONFIG, 0);
	((struct sio_req_config *)(void *)&a.req)->device = f->device;
	((struct sio_req_config *)(void *)&a.req)->width = 4;
	shim_send(w, &a);
	shim_check(w,
		   w->t->event(w->ctx, 0, &evt, sizeof(evt), fds, &n_fds) > 0 &&
			   evt.evt.cookie == a.req.req.cookie && evt.evt.error == 0,
		   "the first that the new daemon hears is the answer to its own request");
	shim_check(w, w->t->event(w->ctx, 0, &evt, sizeof(evt), fds, &n_fds) == -ETIMEDOUT,
		   "and it hears nothing else");
	port_things_end(w);
	port_report(w, "a daemon that starts in the middle of a reset");
}

void port_of_vfio(struct port_world *w)
{
	struct fake *f = w->ctx;

	shim_owners(w);
	view_again(w);
	waits_for_reset(w);
	shared_interrupt(w);
	imports_count(w);
	imports_ranges(w, f);
	if (is_fake(f)) {
		restart_in_a_reset(w, f);
		goes_and_comes(w, f);
		few_vectors(w, f);
		vfio_group_test(w, f);
		vfio_bar_test(w, f);
		vfio_bar_in_reset(w, f);
		vfio_end_in_reset(w, f);
		if (f->kept) {
			lost_memory(w, f);
			wide_space(w, f);
			lost_device(w, f);
		}
	} else {
		huge_pages(w);
		shim_nvme(w);
		shim_pair_vfio(w);
	}
}
