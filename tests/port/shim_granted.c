/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of other drivers, by dma-buf, granted to another host: through smartio_loop.ko, as in
 * shim_adapter.c. The other host's processor and drive reach it until it is taken back, by whom it
 * was granted or by its driver.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dmabuf.h"
#include "shim.h"

#define NEAR 0 /* adapters: who maps; who grants */
#define FAR 1

/* A dma-buf that was imported, and what was granted of it last. */
struct buffer {
	uint64_t id;	      /* as memory of the port */
	volatile uint8_t *at; /* as its driver shows it */
	struct sio_evt_grant g;
};

static uint64_t import(struct port_world *w, int dmabuf)
{
	struct shim_ask a;
	struct sio_req_import *m = (void *)&a.req;
	uint64_t id;

	shim_good(w, &a, SIO_OP_IMPORT, 0);
	m->kind = SIO_IMPORT_DMABUF;
	m->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	id = shim_expect(w, &a, dmabuf, 0, "IMPORT of a dma-buf") ? shim_id(&a) : 0;
	shim_close(&a);
	return id;
}

static bool open_it(struct port_world *w, struct buffer *b, int dmabuf)
{
	*b = (struct buffer){.at = shim_map(w, dmabuf, DMABUF_SIZE, PROT_READ | PROT_WRITE)};
	b->id = b->at ? import(w, dmabuf) : 0;
	return b->id != 0;
}

/* Return: 0 or -errno of GRANT; *ret: its answer. */
static int grant(struct port_world *w, uint64_t mem, uint64_t offset, uint64_t length,
		 struct shim_ask *ret)
{
	struct sio_req_grant *g = (void *)&ret->req;

	shim_good(w, ret, SIO_OP_GRANT, 0);
	g->source_kind = SIO_KIND_MEM;
	g->source = mem;
	g->offset = offset;
	g->length = length;
	g->adapter = FAR;
	g->peer_node = (uint32_t)w->thing[T_NODE0];
	return shim_ask(w, ret, -1);
}

static bool grant_of(struct port_world *w, struct buffer *b, uint64_t offset, uint64_t length)
{
	struct shim_ask a;

	if (!shim_check(w, grant(w, b->id, offset, length, &a) == 0, "a dma-buf is granted"))
		return false;
	memcpy(&b->g, &a.answer, sizeof(b->g));
	return true;
}

/* MAP of what was granted last. Return: 0 or -errno; *ret: its answer, whose descriptors stay. */
static int map(struct port_world *w, const struct buffer *b, struct shim_ask *ret)
{
	struct sio_req_map *m = (void *)&ret->req;

	shim_good(w, ret, SIO_OP_MAP, 0);
	m->adapter = NEAR;
	m->peer_node = (uint32_t)w->thing[T_NODE1];
	m->bus_addr = b->g.bus_addr;
	m->length = b->g.length;
	m->generation = b->g.generation;
	memcpy(m->token, b->g.token, sizeof(m->token));
	return shim_ask(w, ret, -1);
}

static int ask_end(struct port_world *w, uint32_t op, uint64_t id, uint32_t flags)
{
	struct shim_ask a;

	shim_good(w, &a, op, 0);
	((struct sio_req_free *)(void *)&a.req)->h.flags = flags;
	((struct sio_req_free *)(void *)&a.req)->id = id;
	return shim_ask(w, &a, -1);
}

static void end(struct port_world *w, uint32_t op, uint64_t id, const char *what)
{
	shim_check(w, ask_end(w, op, id, 0) == 0, what);
}

static bool behind_iommu(struct port_world *w)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_ADAPTER, 0);
	((struct sio_req_adapter *)(void *)&a.req)->index = FAR;
	shim_expect(w, &a, -1, 0, "ADAPTER");
	return ((const struct sio_evt_adapter *)(const void *)&a.answer)->iommu;
}

/* ---- reached ---- */

/* The drive of the host that maps it answers to @map. */
static void check_drive(struct port_world *w, const struct buffer *b, uint64_t offset,
			struct shim_drive *d, uint64_t map_id)
{
	struct shim_ask a;
	struct sio_req_dmamap *m = (void *)&a.req;

	shim_good(w, &a, SIO_OP_DMAMAP, 0);
	m->target_kind = SIO_KIND_MAP;
	m->target = map_id;
	m->length = b->g.length;
	if (!shim_expect(w, &a, -1, 0, "DMAMAP of the window"))
		return;
	memset((void *)(uintptr_t)b->at, 0, DMABUF_SIZE);
	shim_drive_identify(d, ((const struct sio_evt_dmamap *)(const void *)&a.answer)->iova);
	shim_check(w,
		   shim_drive_completed(d, d->tail - 1) &&
			   memcmp((const void *)(uintptr_t)(b->at + offset + 4), "SIO0", 4) == 0,
		   "the other host's drive writes to it");
	end(w, SIO_OP_DMAUNMAP, shim_id(&a), "DMAUNMAP");
}

/* The other host's processor and drive reach what was granted last, which begins at @offset. */
static void check_reach(struct port_world *w, const struct buffer *b, uint64_t offset,
			struct shim_drive *d)
{
	volatile uint8_t *here;
	struct shim_ask a;

	if (!shim_check(w, map(w, b, &a) == 0, "the other host maps it"))
		return;
	here = shim_map(w, a.fd[0], b->g.length, PROT_READ | PROT_WRITE);
	if (here) {
		here[b->g.length - 1] = 0x55;
		b->at[offset] = 0x66;
		shim_check(w, b->at[offset + b->g.length - 1] == 0x55 && here[0] == 0x66,
			   "both hosts see the same bytes");
		shim_check(w, ask_end(w, SIO_OP_FREE, b->id, 0) == -EBUSY, "it is in use");
		munmap((void *)(uintptr_t)here, b->g.length);
	}
	check_drive(w, b, offset, d, shim_id(&a));
	shim_close(&a);
	end(w, SIO_OP_UNMAP, shim_id(&a), "UNMAP");
}

/* All of it, where it is one range for the bridge; else the refusal says that it is none. */
static void check_all(struct port_world *w, const struct buffer *b, bool one_piece)
{
	const char *text;
	struct shim_ask a;
	int error = grant(w, b->id, 0, DMABUF_SIZE, &a);

	if (error == 0) {
		end(w, SIO_OP_UNGRANT, shim_id(&a), "UNGRANT of all of it");
		return;
	}
	text = ((const struct sio_evt_error *)(const void *)&a.answer)->text;
	if (one_piece || behind_iommu(w) || error != -EOPNOTSUPP || !strstr(text, "pieces"))
		port_failed(w, "GRANT of all of it: error %d, %s", -error, text);
}

static void granted(struct port_world *w, struct shim_drive *d, const char *what, int fd,
		    bool one_piece)
{
	struct buffer b;
	char line[80];

	snprintf(line, sizeof(line), "a dma-buf of %s, granted to another host%s", what,
		 fd < 0 ? " # SKIP this kernel has none" : "");
	if (fd >= 0 && open_it(w, &b, fd)) {
		if (grant_of(w, &b, SHIM_PAGE, SHIM_PAGE)) {
			check_reach(w, &b, SHIM_PAGE, d);
			end(w, SIO_OP_UNGRANT, b.g.id, "UNGRANT");
		}
		check_all(w, &b, one_piece);
		end(w, SIO_OP_FREE, b.id, "FREE");
		munmap((void *)(uintptr_t)b.at, DMABUF_SIZE);
	}
	close(fd);
	port_report(w, line);
}

/* ---- taken back ---- */

/* What is granted meanwhile does not come to lie where the lost host may still write. */
static void check_others(struct port_world *w, const struct buffer *b)
{
	uint64_t mem, at;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_ALLOC, 0);
	((struct sio_req_alloc *)(void *)&a.req)->size = SHIM_PAGE;
	if (!shim_expect(w, &a, -1, 0, "ALLOC"))
		return;
	mem = shim_id(&a);
	shim_close(&a);
	if (shim_check(w, grant(w, mem, 0, SHIM_PAGE, &a) == 0, "other memory is granted")) {
		at = ((const struct sio_evt_grant *)(const void *)&a.answer)->bus_addr;
		shim_check(w, at - b->g.bus_addr >= b->g.length, "it gets another address");
		end(w, SIO_OP_UNGRANT, shim_id(&a), "UNGRANT");
	}
	end(w, SIO_OP_FREE, mem, "FREE");
}

/* Behind an IOMMU the address alone is kept of a host that was lost, and the memory is free. */
static void keeps_address(struct port_world *w, int fd)
{
	uint32_t mems = shim_count(w, SIO_KIND_MEM);
	bool translated = behind_iommu(w);
	struct buffer b;
	struct shim_ask a;

	if (fd < 0 || !open_it(w, &b, fd))
		goto out;
	if (!grant_of(w, &b, 0, SHIM_PAGE))
		goto free;
	shim_check(w,
		   ask_end(w, SIO_OP_UNGRANT, b.g.id, SIO_UNGRANT_KEEP_ADDRESS) ==
			   (translated ? 0 : -EOPNOTSUPP),
		   "UNGRANT that keeps the address");
	if (translated) {
		shim_check(w, map(w, &b, &a) == -EACCES, "nobody is let through");
		check_others(w, &b);
		end(w, SIO_OP_FREE, b.id, "FREE while the address is kept");
		shim_check(w, shim_count(w, SIO_KIND_MEM) == mems, "no memory is listed");
	}
	end(w, SIO_OP_UNGRANT, b.g.id, "UNGRANT of the address");
free:
	if (!translated)
		end(w, SIO_OP_FREE, b.id, "FREE");
	munmap((void *)(uintptr_t)b.at, DMABUF_SIZE);
out:
	close(fd);
	port_report(w, fd < 0 ? "a dma-buf whose address is kept # SKIP this kernel has none"
			      : "a dma-buf whose address is kept");
}

/* Its driver wants it back while another host may have it mapped. */
static void taken_back(struct port_world *w)
{
	int fd = dmabuf_of_card(w), error;
	struct buffer b;
	struct shim_ask a;

	if (fd < 0) {
		port_report(w, "granted memory that its driver takes back # SKIP no such driver");
		return;
	}
	shim_check(w, dmabuf_card(CARD_PINS) == 0, "nothing is pinned that nobody was granted");
	if (!open_it(w, &b, fd) || !grant_of(w, &b, 0, DMABUF_SIZE))
		goto out;
	shim_check(w, dmabuf_card(CARD_PINS) > 0, "what is granted is pinned");
	shim_check(w, dmabuf_card(CARD_TAKE_BACK) == 0, "its driver takes it back");
	/* By a thread of the module's; the test has a limit. */
	while ((error = grant(w, b.id, 0, SHIM_PAGE, &a)) == 0) {
		end(w, SIO_OP_UNGRANT, shim_id(&a), "UNGRANT of what is still there");
		usleep(1000);
	}
	shim_check(w, error == -ENODEV, "it is granted no more");
	shim_check(w, map(w, &b, &a) == -EACCES, "nobody is let through");
	if (behind_iommu(w))
		check_others(w, &b);
	end(w, SIO_OP_UNGRANT, b.g.id, "UNGRANT");
	end(w, SIO_OP_FREE, b.id, "FREE");
	shim_check(w, dmabuf_card(CARD_PINS) == 0, "and nothing is pinned");
	munmap((void *)(uintptr_t)b.at, DMABUF_SIZE);
out:
	close(fd);
	port_report(w, "granted memory that its driver takes back");
}

void shim_granted(struct port_world *w)
{
	struct shim_drive d = {.regs_fd = -1};
	uint64_t owner, irq, entry;
	union port_packet evt;
	int owner_fd = -1;
	struct shim_ask a;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	shim_good(w, &a, SIO_OP_REQUESTER_ADD, 0);
	entry = shim_expect(w, &a, -1, 0, "REQUESTER_ADD") ? shim_id(&a) : 0;
	if (shim_drive_open(w, &d, owner, &irq)) {
		if (shim_drive_start(w, &d)) {
			granted(w, &d, "udmabuf", dmabuf_of_udmabuf(w), false);
			granted(w, &d, "a heap", dmabuf_of_heap(w), false);
			granted(w, &d, "a card", dmabuf_of_card(w), true);
			shim_drive_stop(&d);
		}
		shim_drive_close(&d);
	}
	end(w, SIO_OP_REQUESTER_DEL, entry, "REQUESTER_DEL");
	keeps_address(w, dmabuf_of_card(w));
	taken_back(w);
	close(owner_fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	port_report(w, "a drive that wrote to another host's dma-bufs");
}
