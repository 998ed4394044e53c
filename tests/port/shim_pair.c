/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two functions. The second, whose place is in $PORT_PEER, is an NVMe controller with a memory
 * buffer: the processor writes to it combined, the first function reaches it from device to device.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim.h"

#define CMB_BAR 2
#define CMBMSC 0x50 /* NVMe 1.4, 3.1.13 */
#define CMB_ON 3    /* CRE, CMSE */
#define VS 8	    /* the version register */
#define ONES 0xffffffffu

struct peer {
	const char *bdf;
	uint64_t id, owner, cmb; /* cmb: where it lies on the bus */
	uint32_t iommu_mode;
	int owner_fd;
};

struct view {
	uint64_t id;
	int fd;
	volatile uint32_t *at; /* NULL: none */
	size_t length;
};

/* ---- the second function ---- */

/* What DEVICE_LIST tells of @bdf. */
static bool find(struct port_world *w, const char *bdf, struct sio_evt_device *ret)
{
	struct sio_req_device_list *m;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DEVICE_LIST, 0);
	m = (void *)&a.req;
	m->after = 0;
	while (shim_ask(w, &a, -1) == 0) {
		memcpy(ret, &a.answer, sizeof(*ret));
		if (strcmp(ret->name, bdf) == 0)
			return true;
		m->after = ret->id;
	}
	return shim_check(w, false, "the second function is listed");
}

static void try_view(struct port_world *w, const struct peer *p, uint32_t bar, uint32_t caching,
		     uint64_t offset, uint64_t length, int error, struct view *ret)
{
	struct sio_req_bar *m;
	struct shim_ask a;
	void *at;

	*ret = (struct view){.fd = -1, .length = length};
	shim_good(w, &a, SIO_OP_BAR, p->owner);
	m = (void *)&a.req;
	m->device = p->id;
	m->bar = bar;
	m->caching = caching;
	m->offset = offset;
	m->length = length;
	if (!shim_expect(w, &a, -1, error, "BAR") || error)
		return;
	ret->id = shim_id(&a);
	ret->fd = a.fd[0];
	/* By VFIO it is all of the device. */
	offset = ((const struct sio_evt_bar *)(const void *)&a.answer)->offset;
	at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, (off_t)offset);
	ret->at = at == MAP_FAILED ? NULL : at;
	shim_check(w, ret->at, "a view can be mapped");
}

static void close_view(struct port_world *w, struct view *v, int error)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_BAR_CLOSE, 0);
	((struct sio_req_bar_close *)(void *)&a.req)->id = v->id;
	shim_expect(w, &a, -1, error, "BAR_CLOSE");
	if (error)
		return;
	if (v->at)
		munmap((void *)(uintptr_t)v->at, v->length);
	close(v->fd);
}

static bool buffer_on(struct port_world *w, const struct peer *p)
{
	struct view regs;

	try_view(w, p, 0, SIO_CACHE_UNCACHED, 0, SHIM_PAGE, 0, &regs);
	if (!regs.at)
		return false;
	regs.at[CMBMSC / 4] = CMB_ON | (uint32_t)p->cmb;
	regs.at[CMBMSC / 4 + 1] = (uint32_t)(p->cmb >> 32);
	shim_check(w, regs.at[VS / 4] != ONES, "it has registers");
	close_view(w, &regs, 0);
	return true;
}

/* Open, its buffer switched on. */
static bool open_it(struct port_world *w, struct peer *p)
{
	struct sio_evt_device device;
	struct shim_ask a;

	if (!find(w, p->bdf, &device))
		return false;
	p->id = device.id;
	p->cmb = device.bar_addr[CMB_BAR];
	p->iommu_mode = device.iommu_mode;
	shim_good(w, &a, SIO_OP_DEVICE_OPEN, 0);
	((struct sio_req_device_open *)(void *)&a.req)->device = p->id;
	return shim_expect(w, &a, -1, 0, "DEVICE_OPEN") && buffer_on(w, p);
}

/* And bound before. */
static bool begin(struct port_world *w, struct peer *p)
{
	union port_packet evt;
	char file[64];

	snprintf(file, sizeof(file), "bus/pci/devices/%s/driver_override", p->bdf);
	shim_sysfs(w, file, "smartio");
	shim_sysfs(w, "bus/pci/drivers/smartio/bind", p->bdf);
	shim_event(w, SIO_EV_DEVICE_BACK, &evt); /* else it came and went before we looked */
	return open_it(w, p);
}

static void leave(struct port_world *w, const struct peer *p)
{
	union port_packet evt;
	char file[64];

	shim_sysfs(w, "bus/pci/drivers/smartio/unbind", p->bdf);
	shim_event(w, SIO_EV_DEVICE_GONE, &evt);
	snprintf(file, sizeof(file), "bus/pci/devices/%s/driver_override", p->bdf);
	shim_sysfs(w, file, "\n");
}

/* ---- write-combined views ---- */

/*
 * How often the kernel has reserved the page at @address as write-combined; -1: it does not tell.
 */
static int combined(uint64_t address)
{
	FILE *f = fopen("/sys/kernel/debug/x86/pat_memtype_list", "re");
	unsigned long long from, to;
	char line[200], type[40];
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "PAT: [mem %llx-%llx] %39s", &from, &to, type) == 3)
			n += from <= address && address < to && strstr(type, "write-combining");
	fclose(f);
	return n;
}

static void expect_combined(struct port_world *w, const struct peer *p, int n)
{
	int got = combined(p->cmb + 4 * SHIM_PAGE);

	if (got >= 0 && got != n)
		port_failed(w, "%d reservations of write-combined memory, %d are right", got, n);
}

/* A page is combined for all or for none, as long as somebody has it. */
static void caching(struct port_world *w, struct peer *p)
{
	struct view plain, first, second, none;

	try_view(w, p, CMB_BAR, SIO_CACHE_DEFAULT, 0, 2 * SHIM_PAGE, 0, &plain);
	try_view(w, p, CMB_BAR, SIO_CACHE_WRITE_COMBINED, SHIM_PAGE, SHIM_PAGE, -EBUSY, &none);
	try_view(w, p, CMB_BAR, SIO_CACHE_WRITE_COMBINED, 4 * SHIM_PAGE, 2 * SHIM_PAGE, 0, &first);
	try_view(w, p, CMB_BAR, SIO_CACHE_WRITE_COMBINED, 4 * SHIM_PAGE, SHIM_PAGE, 0, &second);
	try_view(w, p, CMB_BAR, SIO_CACHE_UNCACHED, 5 * SHIM_PAGE, SHIM_PAGE, -EBUSY, &none);
	expect_combined(w, p, 2);
	if (!plain.at || !first.at || !second.at)
		return;
	for (uint32_t i = 0; i < SHIM_PAGE / 4; i++)
		first.at[i] = i * 0x01010101u;
	__sync_synchronize(); /* and what was combined is on its way */
	for (uint32_t i = 0; i < SHIM_PAGE / 4; i++)
		if (second.at[i] != i * 0x01010101u) {
			port_failed(w, "word %u of the buffer is %#x", i, second.at[i]);
			break;
		}
	close_view(w, &first, 0);
	expect_combined(w, p, 1);
	close_view(w, &second, 0);
	close_view(w, &plain, 0);
	expect_combined(w, p, 0);
	try_view(w, p, CMB_BAR, SIO_CACHE_UNCACHED, 4 * SHIM_PAGE, SHIM_PAGE, 0, &plain);
	if (plain.at) {
		shim_check(w, plain.at[77] == 77 * 0x01010101u, "it is in the buffer");
		close_view(w, &plain, 0);
	}
	port_report(w, "views that combine writes");
}

/* Whoever still has a view does not decide how the next driver finds the pages. */
static void gone_with_view(struct port_world *w, struct peer *p)
{
	struct view v;

	try_view(w, p, CMB_BAR, SIO_CACHE_WRITE_COMBINED, 4 * SHIM_PAGE, SHIM_PAGE, 0, &v);
	expect_combined(w, p, 1);
	leave(w, p);
	expect_combined(w, p, 0);
	shim_check(w, v.at && v.at[77] == ONES, "it reads as ones");
	if (begin(w, p))
		shim_check(w, v.at && v.at[77] == ONES, "for ever");
	close_view(w, &v, 0);
	port_report(w, "a view that combines writes, of a function that goes");
}

/* ---- from function to function ---- */

static uint64_t map_for(struct port_world *w, uint64_t device, const struct peer *p,
			const struct view *v, uint32_t access, int error, uint64_t *ret_iova)
{
	struct sio_req_dmamap *m;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DMAMAP, p->owner);
	m = (void *)&a.req;
	m->device = device;
	m->target_kind = SIO_KIND_BAR;
	m->target = v->id;
	m->length = v->length;
	m->access = access;
	if (!shim_expect(w, &a, -1, error, "DMAMAP of a view") || error)
		return 0;
	*ret_iova = ((const struct sio_evt_dmamap *)(const void *)&a.answer)->iova;
	return shim_id(&a);
}

static void unmap(struct port_world *w, const struct peer *p, uint64_t map, uint32_t flags,
		  const char *what)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DMAUNMAP, p->owner);
	((struct sio_req_dmaunmap *)(void *)&a.req)->h.flags = flags;
	((struct sio_req_dmaunmap *)(void *)&a.req)->id = map;
	shim_expect(w, &a, -1, 0, what);
}

/* The drive answers into @v of the second function, which is in use from then on. */
static bool reaches(struct port_world *w, struct shim_drive *d, const struct peer *p,
		    struct view *v, uint64_t *map, uint64_t *iova)
{
	const volatile char *text;

	try_view(w, p, CMB_BAR, SIO_CACHE_UNCACHED, SHIM_PAGE, SHIM_PAGE, 0, v);
	map_for(w, p->id, p, v, SIO_ACCESS_WRITE, -EOPNOTSUPP, iova); /* its own */
	*map = map_for(w, w->thing[T_DEVICE], p, v, SIO_ACCESS_READ | SIO_ACCESS_WRITE, 0, iova);
	if (!v->at || !*map)
		return false;
	v->at[1] = v->at[2] = 0;
	text = (const volatile char *)v->at;
	shim_drive_identify(d, *iova);
	shim_check(w, shim_drive_completed(d, d->tail - 1), "the drive has answered");
	shim_check(w, text[4] == 'S' && text[5] == 'I' && text[6] == 'O' && text[7] == '0',
		   "its answer lies in the other one's buffer");
	close_view(w, v, -EBUSY);
	v->at[1] = 0;
	return true;
}

/* What it answers to @iova goes nowhere, and does not stop it. */
static void goes_nowhere(struct port_world *w, struct shim_drive *d, uint64_t iova)
{
	shim_drive_identify(d, iova);
	shim_check(w, shim_drive_completed(d, d->tail - 1), "the drive is there still");
}

/* And no more when the mapping, or the second function, is gone. */
static void reach(struct port_world *w, struct shim_drive *d, struct peer *p)
{
	uint64_t map, iova = 0;
	struct view v;

	if (!reaches(w, d, p, &v, &map, &iova))
		return;
	leave(w, p);
	shim_check(w, v.at[1] == ONES, "the buffer is gone for the processor");
	if (p->iommu_mode != SIO_IOMMU_OFF)
		goes_nowhere(w, d, iova);
	unmap(w, p, map, 0, "DMAUNMAP of what has gone");
	close_view(w, &v, 0);
	if (!begin(w, p))
		return;
	try_view(w, p, CMB_BAR, SIO_CACHE_UNCACHED, SHIM_PAGE, SHIM_PAGE, 0, &v);
	shim_check(w, v.at && v.at[1] == 0, "nor did the drive reach it");
	close_view(w, &v, 0);
}

/* The mapping is cut while both are there: it leads nowhere, and releases the buffer. */
static void cut(struct port_world *w, struct shim_drive *d, struct peer *p)
{
	uint64_t map, iova = 0;
	struct view v;

	try_view(w, p, CMB_BAR, SIO_CACHE_UNCACHED, SHIM_PAGE, SHIM_PAGE, 0, &v);
	map = map_for(w, w->thing[T_DEVICE], p, &v, SIO_ACCESS_READ | SIO_ACCESS_WRITE, 0, &iova);
	if (!v.at || !map)
		return;
	v.at[1] = 0;
	unmap(w, p, map, SIO_DMAUNMAP_KEEP_ADDRESS, "DMAUNMAP that keeps the address");
	unmap(w, p, map, SIO_DMAUNMAP_KEEP_ADDRESS, "once more");
	if (p->iommu_mode != SIO_IOMMU_OFF) {
		goes_nowhere(w, d, iova);
		shim_check(w, v.at[1] == 0, "it does not reach the buffer");
	}
	close_view(w, &v, 0);
	unmap(w, p, map, 0, "DMAUNMAP of what was cut");
}

static void hold(struct port_world *w, uint64_t map, int error, const char *what)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_HOLD, 0);
	((struct sio_req_hold *)(void *)&a.req)->id = map;
	shim_expect(w, &a, -1, error, what);
}

/* The flags of mapping @id, as they are listed. */
static uint32_t listed(struct port_world *w, uint64_t id)
{
	const struct sio_evt_list *evt;
	struct sio_req_list *m;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_LIST, 0);
	m = (void *)&a.req;
	m->kind = SIO_KIND_DMAMAP;
	m->after = id - 1;
	evt = (const void *)&a.answer;
	return shim_expect(w, &a, -1, 0, "LIST") && evt->count && evt->entry[0].id == id
		       ? evt->entry[0].node
		       : 0;
}

/*
 * The owner of the view ends: the mapping is cut, unless it is held. Then it leads to the buffer
 * until it is unmapped, and with it the view is there, whose pages no program has.
 */
static void outlive(struct port_world *w, struct shim_drive *d, const struct peer *p, bool held)
{
	struct peer theirs = *p;
	uint64_t map, iova = 0;
	union port_packet evt;
	const uint32_t views = shim_count(w, SIO_KIND_BAR);
	struct view v, own;
	int fd = -1;

	theirs.owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);
	try_view(w, &theirs, CMB_BAR, SIO_CACHE_UNCACHED, SHIM_PAGE, SHIM_PAGE, 0, &v);
	try_view(w, p, CMB_BAR, SIO_CACHE_UNCACHED, SHIM_PAGE, SHIM_PAGE, 0, &own);
	map = map_for(w, w->thing[T_DEVICE], p, &v, SIO_ACCESS_READ | SIO_ACCESS_WRITE, 0, &iova);
	if (!v.at || !own.at || !map)
		return;
	hold(w, map + 1, -ENOENT, "HOLD of nothing");
	if (held) {
		hold(w, map, 0, "HOLD");
		hold(w, map, 0, "HOLD once more");
	}
	shim_check(w, listed(w, map) == (held ? SIO_LIST_HELD : 0), "LIST says what is held");
	own.at[1] = 0;
	close(fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	shim_check(w, v.at[1] == ONES, "no program has the pages of an owner that has ended");
	if (held || p->iommu_mode != SIO_IOMMU_OFF) {
		goes_nowhere(w, d, iova);
		shim_check(w, (own.at[1] != 0) == held, "the drive reaches what is held alone");
	}
	if (!held)
		hold(w, map, -EINVAL, "HOLD of what was cut");
	unmap(w, p, map, held ? SIO_DMAUNMAP_KEEP_ADDRESS : 0, "DMAUNMAP");
	if (held) {
		own.at[1] = 0;
		goes_nowhere(w, d, iova);
		shim_check(w, p->iommu_mode == SIO_IOMMU_OFF || own.at[1] == 0, "and no more");
		unmap(w, p, map, 0, "DMAUNMAP of what was cut");
	}
	munmap((void *)(uintptr_t)v.at, v.length);
	close(v.fd);
	close_view(w, &own, 0);
	shim_check(w, shim_count(w, SIO_KIND_BAR) == views, "the view ends with its mapping");
}

static void peer_to_peer(struct port_world *w, struct peer *p)
{
	struct shim_drive d = {.regs_fd = -1};
	uint64_t irq;

	if (shim_drive_open(w, &d, p->owner, &irq) && shim_drive_start(w, &d)) {
		cut(w, &d, p);
		outlive(w, &d, p, false);
		outlive(w, &d, p, true);
		reach(w, &d, p);
		shim_drive_stop(&d);
		shim_drive_close(&d);
	}
	port_report(w, "a function reaches another one's memory");
}

void shim_pair(struct port_world *w)
{
	struct peer p = {.bdf = getenv("PORT_PEER"), .owner_fd = -1};
	union port_packet evt;

	if (!p.bdf) {
		port_report(w, "two functions # SKIP here is one");
		return;
	}
	p.owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &p.owner_fd);
	if (begin(w, &p)) {
		caching(w, &p);
		gone_with_view(w, &p);
		peer_to_peer(w, &p);
		leave(w, &p);
	}
	close(p.owner_fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	port_things_end(w);
	port_report(w, "two functions come and go");
}

/* ---- by VFIO ---- */

static void reset_it(struct port_world *w, const struct peer *p)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_RESET, 0);
	((struct sio_req_reset *)(void *)&a.req)->device = p->id;
	shim_expect(w, &a, -1, 0, "RESET of the second function");
}

/* The drive reaches the buffer, and no more when the second function was reset. */
static void reach_until_reset(struct port_world *w, struct shim_drive *d, struct peer *p)
{
	uint64_t map, iova = 0;
	struct view v;

	if (!reaches(w, d, p, &v, &map, &iova))
		return;
	reset_it(w, p);
	buffer_on(w, p);
	v.at[1] = 0;
	goes_nowhere(w, d, iova);
	shim_check(w, v.at[1] == 0, "it does not reach the buffer of one that was reset");
	close_view(w, &v, 0);
	unmap(w, p, map, 0, "DMAUNMAP of what was cut");
}

/* As whoever lends a machine's functions does it. */
static bool add_it(struct port_world *w, struct peer *p)
{
	union port_packet evt;
	char command[128];

	snprintf(command, sizeof(command), "smartio device add %s --vfio 2>/dev/null", p->bdf);
	if (!shim_check(w, system(command) == 0, "the second function is added"))
		return false;
	shim_event(w, SIO_EV_DEVICE_BACK, &evt);
	return open_it(w, p);
}

void shim_pair_vfio(struct port_world *w)
{
	struct peer p = {.bdf = getenv("PORT_PEER"), .owner_fd = -1};
	struct shim_drive d = {.regs_fd = -1};
	union port_packet evt;
	struct view v;
	uint64_t irq, iova;

	if (!p.bdf) {
		port_report(w, "two functions # SKIP here is one");
		return;
	}
	p.owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &p.owner_fd);
	if (add_it(w, &p) && p.iommu_mode == SIO_IOMMU_IOMMUFD && !getenv("PORT_DMABUFS")) {
		try_view(w, &p, CMB_BAR, SIO_CACHE_UNCACHED, SHIM_PAGE, SHIM_PAGE, 0, &v);
		map_for(w, w->thing[T_DEVICE], &p, &v, SIO_ACCESS_READ, -EOPNOTSUPP, &iova);
		close_view(w, &v, 0);
	} else if (p.id && shim_drive_open(w, &d, p.owner, &irq) && shim_drive_start(w, &d)) {
		cut(w, &d, &p);
		reach_until_reset(w, &d, &p);
		shim_drive_stop(&d);
		shim_drive_close(&d);
	}
	close(p.owner_fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	reset_it(w, &p);
	port_things_end(w);
	port_report(w, "a function reaches another one's memory, by VFIO");
}
