/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that use the daemon's protocol without the library, which would check their requests.
 * They make, connect and map segments, borrow devices, and request what the daemon must refuse: a
 * mapping that extends beyond its segment, the end of a connection that is mapped, the return of a
 * device while they are connected to its BAR.
 */
#include <errno.h>

#include "work/life.h"
#include "work/raw.h"
#include "smartio/ext.h"
#include "run/run.h"

#define FIRST_ID 0x70u
#define IDS 3u
#define BYTES 0x3000u

uint32_t sim_raw_ask(struct sim_raw *r, struct sio_msg *m, size_t len, uint32_t type)
{
	int fds[SIO_WIRE_MAX_FDS];
	ssize_t got = 1;
	unsigned n;

	m->size = sio_to_le32((uint32_t)len);
	m->type = sio_to_le32(type);
	m->id = sio_to_le32(++r->id);
	sim_call("a request without the library", 0);
	if (r->w->send(r->w, r->fd, m, len, NULL, 0) < 0)
		got = 0;
	while (got > 0) {
		n = 0;
		got = r->w->recv(r->w, r->fd, &r->reply, sizeof(r->reply), fds, SIO_WIRE_MAX_FDS,
				 &n, SIO_FOREVER);
		for (unsigned i = 0; got > 0 && i < n; i++)
			/*
			 * Those of HELLO stay open: the daemon learns of the program's end by them.
			 */
			if (fds[i] >= 0 && type != SIO_MSG_HELLO)
				r->w->close(r->w, fds[i]);
		if (got > 0 && sio_from_le32(r->reply.h.id) == r->id)
			break; /* else it is an event */
	}
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	return got > 0 ? sio_from_le32(r->reply.h.error) : ~0u;
}

static uint32_t handle_call(struct sim_raw *r, uint32_t type, uint32_t handle)
{
	struct sio_msg_handle m = {.handle = sio_to_le32(handle)};

	return sim_raw_ask(r, &m.h, sizeof(m), type);
}

static void must_refuse(const char *what, uint32_t error)
{
	if (error == 0)
		sim_fail("states", "%s: %s", sim_self()->name, what);
}

static void offer(struct sim_raw *r)
{
	struct sio_msg_seg_create make = {.segment_id =
						  sio_to_le32(FIRST_ID + (uint32_t)sim_pick(IDS)),
					  .bytes = sio_to_le64(BYTES)};
	struct sio_msg_seg_adapter m = {.adapter = sio_to_le32(0)};

	if (sim_raw_ask(r, &make.h, sizeof(make), SIO_MSG_SEG_CREATE) != 0)
		return;
	m.handle = ((const struct sio_rep_seg_create *)&r->reply)->handle;
	if (sim_raw_ask(r, &m.h, sizeof(m), SIO_MSG_SEG_PREPARE) == 0)
		(void)sim_raw_ask(r, &m.h, sizeof(m), SIO_MSG_SEG_AVAILABLE);
}

/* Return: the mapping's handle; 0: it was refused. */
static uint32_t map(struct sim_raw *r, uint32_t connection, uint64_t offset, uint64_t bytes)
{
	struct sio_msg_seg_map m = {.handle = sio_to_le32(connection),
				    .offset = sio_to_le64(offset),
				    .bytes = sio_to_le64(bytes)};

	if (sim_raw_ask(r, &m.h, sizeof(m), SIO_MSG_SEG_MAP) != 0)
		return 0;
	if (offset + bytes > BYTES)
		must_refuse("a map ends behind its segment", 0);
	return sio_from_le32(((const struct sio_rep_seg_map *)&r->reply)->map);
}

static void visit(struct sim_raw *r)
{
	struct sio_msg_seg_connect m = {.node = sio_to_le32(0)};
	uint32_t connection, at;
	uint64_t offset, bytes;

	/* Drawn in statements of their own: compilers choose the order within an expression. */
	m.node = sio_to_le32(sim_node((unsigned)sim_pick(sim_hosts())));
	m.segment_id = sio_to_le32(FIRST_ID + (uint32_t)sim_pick(IDS));
	if (sim_raw_ask(r, &m.h, sizeof(m), SIO_MSG_SEG_CONNECT) != 0)
		return;
	connection = sio_from_le32(((const struct sio_rep_seg_connect *)&r->reply)->handle);
	for (unsigned i = 0; i < 4; i++) {
		offset = 0x1000 * sim_pick(5);
		bytes = 0x1000 * (1 + sim_pick(3));
		at = map(r, connection, offset, bytes);
		if (!at)
			continue;
		must_refuse("a mapped segment is disconnected",
			    handle_call(r, SIO_MSG_SEG_DISCONNECT, connection));
		(void)handle_call(r, SIO_MSG_SEG_UNMAP, at);
	}
	(void)handle_call(r, SIO_MSG_SEG_DISCONNECT, connection);
}

static void borrow(struct sim_raw *r)
{
	struct sio_msg_dev_seg_connect bar = {.memtype = sio_to_le32(SCI_MEMTYPE_BAR)};
	struct sio_msg_dev_borrow m = {.flags = sio_to_le32(0)};
	uint32_t device, connection;
	unsigned host, i;

	if (!sim_has_drives(sim_self()->host))
		return;
	m.fdid = sio_to_le32(sim_pick_drive(&host, &i)->fdid);
	if (sim_raw_ask(r, &m.h, sizeof(m), SIO_MSG_DEV_BORROW) != 0)
		return;
	bar.device = ((const struct sio_rep_dev_borrow *)&r->reply)->handle;
	device = sio_from_le32(bar.device);
	if (sim_raw_ask(r, &bar.h, sizeof(bar), SIO_MSG_DEV_SEG_CONNECT) == 0) {
		connection = sio_from_le32(((const struct sio_rep_seg_connect *)&r->reply)->handle);
		must_refuse("a device is returned, and a connection to its BAR stays",
			    handle_call(r, SIO_MSG_DEV_RETURN, device));
		(void)handle_call(r, SIO_MSG_SEG_DISCONNECT, connection);
	}
	(void)handle_call(r, SIO_MSG_DEV_RETURN, device);
}

bool sim_raw_greet(struct sim_raw *r, uint32_t kind)
{
	struct sio_msg_hello m = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				  .pid = sio_to_le32(sim_self()->pid),
				  .kind = sio_to_le32(kind)};

	return sim_raw_ask(r, &m.h, sizeof(m), SIO_MSG_HELLO) == 0;
}

static void raw_main(struct sim_proc *p)
{
	struct sim_raw r = {.w = &p->world, .fd = p->world.connect(&p->world)};
	uint64_t acts = 4 + sim_pick(60);

	if (r.fd < 0)
		return;
	if (sim_raw_greet(&r, SIO_CLIENT_LIBRARY)) {
		offer(&r);
		for (; acts > 0 && !sim_stopping_programs(); acts--) {
			if (sim_pick(4))
				visit(&r);
			else
				borrow(&r);
			sim_sleep(sim_pick(20 * SIM_MS));
		}
	}
	p->world.close(&p->world, r.fd);
	p->result = 0;
}

const struct sim_workload sim_work_raw = {.name = "raw", .weight = 1, .main = raw_main};
