/* SPDX-License-Identifier: BSD-2-Clause */
/* INFO: which world this is, and the properties of a host. */
#include "emu/machine/requests.h"

int emu_op_info(struct emu_request *rq, const void *msg)
{
	const struct sio_req_info *m = msg;
	struct emu_host *h = rq->host;
	struct sio_evt_info evt;

	if (m->version_min > SIO_PORT_VERSION || m->version_max < SIO_PORT_VERSION)
		return sio_fail(&rq->err, -EPROTO,
				"INFO: versions %u to %u, the machine room speaks %d",
				m->version_min, m->version_max, SIO_PORT_VERSION);
	memset(&evt, 0, sizeof(evt));
	evt.version = SIO_PORT_VERSION;
	evt.world = emu_outlives(h->room) ? SIO_WORLD_SHIM : SIO_WORLD_ROOM;
	evt.page_size = SIO_PAGE_SIZE;
	evt.adapters = emu_outlives(h->room) ? 0 : h->topo->n_adapters;
	evt.boot_generation = h->boot_generation;
	memcpy(evt.boot_id, h->boot_id, sizeof(evt.boot_id));
	evt.served = emu_served(h->room);
	evt.ram_total = h->topo->ram_size;
	evt.ram_free = emu_ram_free_bytes(h);
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}
