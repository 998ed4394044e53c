/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of other drivers, by dma-buf: programs see it through an import, and the drive writes to
 * it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dmabuf.h"
#include "shim.h"

#define SIZE DMABUF_SIZE

static uint32_t iommu_mode(struct port_world *w)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DEVICE_LIST, 0);
	shim_expect(w, &a, -1, 0, "DEVICE_LIST");
	return ((const struct sio_evt_device *)(const void *)&a.answer)->iommu_mode;
}

#define COMMAND 4
#define COMMAND_MASTER 4u

/* The drive's command register, as PCI has it. */
static uint32_t command(struct port_world *w)
{
	struct sio_req_config *c;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_CONFIG, 0);
	c = (void *)&a.req;
	c->device = w->thing[T_DEVICE];
	c->offset = COMMAND;
	c->width = 2;
	shim_expect(w, &a, -1, 0, "CONFIG of the command register");
	return ((const struct sio_evt_config *)(const void *)&a.answer)->value;
}

static void end(struct port_world *w, uint32_t op, uint64_t id, int error)
{
	struct shim_ask a;

	shim_good(w, &a, op, 0);
	((struct sio_req_free *)(void *)&a.req)->id = id;
	shim_expect(w, &a, -1, error, "an end");
}

/* IMPORT of a dma-buf whose bytes its exporter shows @at. Return: its id; 0: it failed. */
static uint64_t import(struct port_world *w, int dmabuf, char *at)
{
	struct sio_req_import *m;
	struct shim_ask a;
	char *ours;

	shim_good(w, &a, SIO_OP_IMPORT, 0);
	m = (void *)&a.req;
	m->kind = SIO_IMPORT_DMABUF;
	m->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	m->offset = SIZE + SHIM_PAGE;
	shim_expect(w, &a, dmabuf, -EINVAL, "IMPORT of what lies behind its end");
	m->offset = 0;
	if (!shim_expect(w, &a, dmabuf, 0, "IMPORT of a dma-buf"))
		return 0;
	ours = shim_map(w, a.fd[0], SIZE, PROT_READ | PROT_WRITE);
	if (ours) {
		at[0] = 0x33;
		ours[SIZE - 1] = 77;
		shim_check(w, ours[0] == 0x33 && at[SIZE - 1] == 77,
			   "importer and exporter show the same bytes");
		munmap(ours, SIZE);
	}
	shim_close(&a);
	return shim_id(&a);
}

/* The second page alone, or all of it; @ret: its mapping and place. */
static int map(struct port_world *w, uint64_t id, uint64_t offset, uint64_t length,
	       struct sio_evt_dmamap *ret)
{
	struct sio_req_dmamap *m;
	struct shim_ask a;
	int error;

	shim_good(w, &a, SIO_OP_DMAMAP, 0);
	m = (void *)&a.req;
	m->target = id;
	m->offset = offset;
	m->length = length;
	error = shim_ask(w, &a, -1);
	memcpy(ret, &a.answer, sizeof(*ret));
	return error;
}

static void check_maps(struct port_world *w, struct shim_drive *d, uint64_t id, char *at)
{
	struct sio_evt_dmamap page, all;
	int error;

	if (!shim_check(w, map(w, id, SHIM_PAGE, SHIM_PAGE, &page) == 0, "a page is mapped"))
		return;
	end(w, SIO_OP_FREE, id, -EBUSY);
	memset(at, 0, SIZE);
	shim_drive_identify(d, page.iova);
	shim_check(w,
		   shim_drive_completed(d, d->tail - 1) &&
			   memcmp(at + SHIM_PAGE + 4, "SIO0", 4) == 0,
		   "the drive writes to the page");
	/*
	 * Several pages are one range where an IOMMU makes one of them; else if they happen to be.
	 */
	error = map(w, id, 0, SIZE, &all);
	if (iommu_mode(w) == SIO_IOMMU_OFF && error == -EOPNOTSUPP)
		goto out;
	if (!shim_check(w, error == 0, "all of it is mapped"))
		goto out;
	memset(at, 0, SIZE);
	shim_drive_identify(d, all.iova + SIZE - SHIM_PAGE);
	shim_check(w,
		   shim_drive_completed(d, d->tail - 1) &&
			   memcmp(at + SIZE - SHIM_PAGE + 4, "SIO0", 4) == 0,
		   "the drive writes to the last page");
	end(w, SIO_OP_DMAUNMAP, all.id, 0);
out:
	end(w, SIO_OP_DMAUNMAP, page.id, 0);
}

/*
 * A driver that takes its memory back: whoever has it mapped has it no more, and the drive sends
 * nothing. Last of all, for it has to be reset then.
 */
static void taken_back(struct port_world *w, struct shim_drive *d)
{
	int fd = dmabuf_card(CARD_GIVE);
	char *at = fd < 0 ? NULL : shim_map(w, fd, SIZE, PROT_READ | PROT_WRITE);
	struct sio_evt_dmamap page;
	uint64_t id;

	if (!at) {
		port_report(w, "memory that its driver takes back # SKIP there is no such driver");
		return;
	}
	id = import(w, fd, at);
	shim_check(w, dmabuf_card(CARD_PINS) == 0, "nothing is pinned that nobody has mapped");
	shim_check(w, map(w, id, 0, SHIM_PAGE, &page) == 0, "a page is mapped");
	shim_check(w, dmabuf_card(CARD_PINS) > 0, "what is mapped is pinned");
	shim_check(w, dmabuf_card(CARD_TAKE_BACK) == 0, "its driver takes it back");
	while (dmabuf_card(CARD_PINS) > 0)
		usleep(1000); /* by a thread of the module's; the test has a limit */
	memset(at, 0, SIZE);
	shim_drive_identify(d, page.iova);
	shim_check(w, (command(w) & COMMAND_MASTER) == 0 && at[4] == 0, "the drive sends nothing");
	shim_check(w, map(w, id, 0, SHIM_PAGE, &(struct sio_evt_dmamap){0}) == -ENODEV,
		   "it cannot be mapped any more");
	end(w, SIO_OP_DMAUNMAP, page.id, 0);
	end(w, SIO_OP_FREE, id, 0);
	munmap(at, SIZE);
	close(fd);
	port_report(w, "memory that its driver takes back");
}

static void share(struct port_world *w, struct shim_drive *d, int dmabuf)
{
	char *at = shim_map(w, dmabuf, SIZE, PROT_READ | PROT_WRITE);
	uint64_t id;

	if (!at)
		return;
	id = import(w, dmabuf, at);
	if (id) {
		check_maps(w, d, id, at);
		end(w, SIO_OP_FREE, id, 0);
	}
	munmap(at, SIZE);
}

static void shared(struct port_world *w, struct shim_drive *d, const char *what,
		   int (*make)(struct port_world *w))
{
	char line[64];
	int fd = make(w);

	snprintf(line, sizeof(line), "a dma-buf of %s%s", what,
		 fd < 0 ? " # SKIP this kernel has none" : "");
	if (fd >= 0) {
		share(w, d, fd);
		close(fd);
	}
	port_report(w, line);
}

void shim_dmabuf(struct port_world *w)
{
	struct shim_drive d = {.regs_fd = -1};
	union port_packet evt;
	uint64_t owner, irq;
	int owner_fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	if (shim_drive_open(w, &d, owner, &irq)) {
		if (shim_drive_start(w, &d)) {
			shared(w, &d, "udmabuf", dmabuf_of_udmabuf);
			shared(w, &d, "a heap", dmabuf_of_heap);
			shared(w, &d, "a card", dmabuf_of_card);
			taken_back(w, &d);
			shim_drive_stop(&d);
		}
		shim_drive_close(&d);
	}
	close(owner_fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	port_things_end(w);
	port_report(w, "a drive that wrote to dma-bufs");
}
