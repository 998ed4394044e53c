/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that a program uses without a driver: the borrow, the device's registers and memory, and
 * memory of the program that is mapped for the device. A function that fails in an allowed way
 * leaves what it could not make out; the others release what there is, in the order that the API
 * requires.
 */
#ifndef SIM_HELD_H
#define SIM_HELD_H

#include "run/run.h"

/* How long a program waits for the device before it gives everything back. */
#define SIM_PATIENCE (200 * SIM_MS)

struct sim_held {
	const struct sio_topo_device *topo; /* NULL: none was drawn */
	unsigned host, boots;
	uint64_t since;
	sci_smartio_device_t device; /* NULL: it is not borrowed */
	sci_remote_segment_t bar, ram;
	sci_map_t map; /* of its registers and doorbells */
	volatile uint8_t *regs;
};

/* Borrows @d->topo, which lies in @d->host. */
bool sim_held_borrow(sci_desc_t sd, struct sim_held *d, bool alone);
/* Maps @bytes of BAR 0, which makes the program the owner of the registers. */
bool sim_held_registers(struct sim_held *d, size_t bytes);
/* Connects to the BAR of its memory, or of a drive's controller memory buffer. */
bool sim_held_memory(struct sim_held *d);
void sim_held_drop(struct sim_held *d);
/* The program ends without returning the device. */
void sim_held_forget(const struct sim_held *d);
/* Has nothing been lost there since the device was borrowed? */
bool sim_held_is_sound(const struct sim_held *d);
/* May a fault of this seed lose what is in flight between hosts? */
bool sim_is_lossy(void);

/* Memory of the program, mapped for itself and for a device. */
struct sim_own {
	sci_local_segment_t segment;
	sci_map_t map;
	volatile uint8_t *at;
	sci_ioaddr_t io; /* for the device; 0: it is not mapped */
};

bool sim_own_make(sci_desc_t sd, struct sim_own *m, const struct sim_held *d, size_t bytes);
/* To be called before the device is returned, which must not use the memory any more; and after. */
void sim_own_unmap(struct sim_own *m, const struct sim_held *d);
void sim_own_remove(struct sim_own *m);

#endif
