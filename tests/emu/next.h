/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of reloads: the file that takes the place of the room's. */
#ifndef TESTS_EMU_NEXT_H
#define TESTS_EMU_NEXT_H

#include "emu/devices/model.h"
#include "fake.h"

#define ADDED 9 /* slot of a device that only the next file has */

#define NEXT_CHASSIS 4
#define NEXT_SWITCHES 4
#define NEXT_TRUNKS 4

/* The next file: as the room's, until a test changes it. */
struct next {
	struct fake *f;
	struct sio_topology topo;
	struct sio_topo_host *host; /* of 8 */
	struct sio_topo_device *device[8];
	struct sio_topo_chassis *chassis[8]; /* of NEXT_CHASSIS */
	struct sio_topo_switch *sw;	     /* of NEXT_SWITCHES */
	struct sio_topo_trunk *trunk;	     /* of NEXT_TRUNKS */
	uint8_t *distance;
	struct sio_err err;
};

/* All of it is the room's after a reload: what each file has has memory of its own. */
static inline void read_next(struct fake *f, struct next *n)
{
	static struct sio_topo_device memory[96][8][4];
	static struct sio_topo_chassis chassis[96][8][NEXT_CHASSIS];
	static struct sio_topo_host host[96][8];
	static struct sio_topo_switch sw[96][NEXT_SWITCHES];
	static struct sio_topo_trunk trunk[96][NEXT_TRUNKS];
	static uint8_t distance[96][NEXT_SWITCHES * NEXT_SWITCHES];
	static unsigned at;

	assert_true(at < 96 && f->topo.n_hosts <= 8);
	assert_true(f->topo.n_switches <= NEXT_SWITCHES && f->topo.n_trunks <= NEXT_TRUNKS);
	*n = (struct next){.f = f,
			   .topo = f->topo,
			   .host = host[at],
			   .sw = sw[at],
			   .trunk = trunk[at],
			   .distance = distance[at]};
	memcpy(n->host, f->topo.host, f->topo.n_hosts * sizeof(*n->host));
	memcpy(n->sw, f->topo.sw, f->topo.n_switches * sizeof(*n->sw));
	if (f->topo.n_trunks)
		memcpy(n->trunk, f->topo.trunk, f->topo.n_trunks * sizeof(*n->trunk));
	n->topo.host = n->host;
	n->topo.sw = n->sw;
	n->topo.trunk = n->trunk;
	for (unsigned i = 0; i < 8; i++) {
		n->device[i] = memory[at][i];
		if (n->host[i].n_devices)
			memcpy(n->device[i], n->host[i].device,
			       n->host[i].n_devices * sizeof(n->device[i][0]));
		n->host[i].device = n->device[i];
		n->chassis[i] = chassis[at][i];
		assert_true(n->host[i].n_chassis <= NEXT_CHASSIS);
		if (n->host[i].n_chassis)
			memcpy(n->chassis[i], n->host[i].chassis,
			       n->host[i].n_chassis * sizeof(n->chassis[i][0]));
		n->host[i].chassis = n->chassis[i];
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

/* What the test has made of it is complete. */
static inline void measure(struct next *n)
{
	n->topo.distance = n->topo.n_trunks ? n->distance : NULL;
	if (n->topo.n_trunks)
		sio_topology_distances(&n->topo, NULL, n->distance);
}

static inline int reload(struct next *n)
{
	struct emu_change *c = NULL;
	int rc;

	measure(n);
	rc = emu_room_prepare(n->f->room, &n->topo, false, &c, &n->err);

	return rc < 0 ? rc : emu_room_commit(n->f->room, &n->f->topo, &n->topo, c, &n->err);
}

#endif
