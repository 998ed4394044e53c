/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of reloads: the file that takes the place of the room's. */
#ifndef TESTS_EMU_NEXT_H
#define TESTS_EMU_NEXT_H

#include "emu/devices/model.h"
#include "fake.h"

#define ADDED 9 /* slot of a device that only the next file has */

/* The next file: as the room's, until a test changes it. */
struct next {
	struct fake *f;
	struct sio_topology topo;
	struct sio_topo_host *host; /* of 8 */
	struct sio_topo_device *device[8];
	struct sio_topo_switch sw[2];
	struct sio_topo_trunk trunk;
	struct sio_err err;
};

/* Hosts and devices are the room's after a reload: those of each file have memory of their own. */
static inline void read_next(struct fake *f, struct next *n)
{
	static struct sio_topo_device memory[96][8][4];
	static struct sio_topo_host host[96][8];
	static unsigned at;

	assert_true(at < 96 && f->topo.n_hosts <= 8);
	*n = (struct next){.f = f, .topo = f->topo, .trunk = f->trunk, .host = host[at]};
	memcpy(n->host, f->topo.host, f->topo.n_hosts * sizeof(*n->host));
	memcpy(n->sw, f->topo.sw, sizeof(n->sw));
	n->topo.host = n->host;
	n->topo.sw = n->sw;
	n->topo.trunk = &n->trunk;
	for (unsigned i = 0; i < 8; i++) {
		n->device[i] = memory[at][i];
		if (n->host[i].n_devices)
			memcpy(n->device[i], n->host[i].device,
			       n->host[i].n_devices * sizeof(n->device[i][0]));
		n->host[i].device = n->device[i];
	}
	at++;
}

static inline struct sio_topo_device *add(struct next *n, unsigned host)
{
	struct sio_topo_device *d = &n->device[host][n->host[host].n_devices++];

	*d = (struct sio_topo_device){.bdf = 0x100 + (ADDED << 3),
				      .slot = ADDED,
				      .fdid = DEV(host, ADDED),
				      .bar_base = 0x90000000,
				      .dma_bits = 64,
				      .reset = SIO_TOPO_RESET_FUNCTION};
	snprintf(d->name, sizeof(d->name), "added");
	snprintf(d->type, sizeof(d->type), "fake");
	return d;
}

static inline void take_out(struct next *n, unsigned host, unsigned index)
{
	struct sio_topo_host *h = &n->host[host];

	memmove(&h->device[index], &h->device[index + 1],
		(--h->n_devices - index) * sizeof(h->device[0]));
}

static inline int reload(struct next *n)
{
	struct emu_change *c = NULL;
	int rc = emu_room_prepare(n->f->room, &n->topo, false, &c, &n->err);

	return rc < 0 ? rc : emu_room_commit(n->f->room, &n->f->topo, &n->topo, c, &n->err);
}

#endif
