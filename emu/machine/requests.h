/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about the whole machine room, and the tables of all kinds. */
#ifndef EMU_MACHINE_REQUESTS_H
#define EMU_MACHINE_REQUESTS_H

#include "emu/device/device.h"

struct emu_change;

/* requests.c, kinds.c, models.c */
extern const struct emu_operation emu_operations[SIO_OP_COUNT];
extern const struct emu_kind *const emu_kinds[EMU_LAST_KIND + 1];
extern const struct emu_dev_model *const emu_models[]; /* ends with NULL */

/*
 * room.c: a host without devices, which is off, and what it takes to be one. One that is in a place
 * where another one was continues its counts.
 */
int emu_host_init(struct emu_host *h, struct emu_room *r, unsigned index,
		  const struct sio_topo_host *topo, struct sio_err *reterr);
void emu_host_done(struct emu_host *h);
/* Counts for all links of @t that are no adapter's, and where of them each host's begin. */
int emu_links_new(const struct sio_topology *t, struct emu_links *ret);
void emu_links_place(struct emu_room *r);

/* differ.c: -EOPNOTSUPP: @next differs in what takes a restart, as *reterr says. */
int emu_change_check(const struct emu_room *r, const struct sio_topology *next,
		     struct sio_err *reterr);

/* reload.c: emu_room_prepare(), _drop() and _commit() while engines stand still. */
int emu_change_new(struct emu_room *r, const struct sio_topology *next, bool try,
		   struct emu_change **ret, struct sio_err *reterr);
void emu_change_drop(struct emu_room *r, struct emu_change *c);
/* Does the host of this number go? It must be off then. */
bool emu_change_removes(const struct emu_change *c, unsigned host);
int emu_change_apply(struct emu_room *r, struct sio_topology *own, struct sio_topology *next,
		     struct emu_change *c, struct sio_err *reterr);
/*
 * adapters.c: adapters of hosts that stay and come, go, or are other ones by the next file. Those
 * that come are made beforehand, with their tables, apart from the room.
 */
struct emu_fresh;
/* -EBUSY: something uses one in the place of which another one is to come. */
int emu_adapters_prepare(struct emu_room *r, const struct sio_topology *next,
			 struct emu_fresh **ret, struct sio_err *reterr);
void emu_adapters_drop(struct emu_room *r, struct emu_fresh *list);
/* While the file of before is in force: links are down, and those without users end. */
void emu_adapters_leave(struct emu_room *r, const struct sio_topology *next,
			struct emu_fresh *list);
/* The topology has the new ones now. They are reported, and *list is empty. The first error. */
int emu_adapters_come(struct emu_fresh **list, struct sio_err *reterr);
/* Ends those behind the ones of the topology that nothing uses any more. */
void emu_adapters_bury(struct emu_host *h);

/* Frees what is left of removed devices that nothing refers to any more. */
void emu_removed_bury(struct emu_room *r);

#endif
