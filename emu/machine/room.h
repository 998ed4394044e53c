/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine room: the hardware of a whole cluster as one step machine. It answers the port
 * (smartio/uapi.h) for every host, runs the device models, translates and counts what devices do.
 * It owns no thread, clock, socket or random number: emu/live/main.c gives it the live world, the
 * simulator another one. One thread at a time.
 */
#ifndef EMU_MACHINE_ROOM_H
#define EMU_MACHINE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/topology.h"
#include "emu/base/edge.h"
#include "smartio/uapi.h"

struct emu_room;

/* @t stays the caller's and must outlive the room. */
int emu_room_new(const struct sio_topology *t, const struct emu_ops *ops, void *ctx,
		 struct emu_room **ret, struct sio_err *reterr);
void emu_room_free(struct emu_room *r);

/* Host @host (index into the topology) is powered on: its daemon opened the port. -EBUSY: it is up.
 */
int emu_room_host_up(struct emu_room *r, unsigned host);
/* The host crashed: links down, its memory and windows gone, its devices reset. */
void emu_room_host_down(struct emu_room *r, unsigned host);
/*
 * How often accesses of devices are compared with the list of what was granted
 * (emu/memory/check.c), if the build compares at all: each that faults, the first after a
 * translation, and of the others one in
 * @n, a power of 2. A new room compares every one.
 */
void emu_room_check_every(struct emu_room *r, uint32_t n);
/*
 * How many descriptors the objects of all hosts may hold at the edge. Each host has an equal share,
 * so that none takes those of the others. A new room sets no bound.
 */
void emu_room_descriptors(struct emu_room *r, uint64_t n);
/* The host's daemon has read all that it was sent before an event was dropped. */
void emu_room_drained(struct emu_room *r, unsigned host);
/* One request of a host's daemon. @fds were received with it: the room takes or closes them. */
void emu_room_request(struct emu_room *r, unsigned host, const void *req, size_t len, int *fds,
		      unsigned n_fds);
/* Everything of a host that has an id, as LIST tells of it; the oldest first. */
void emu_room_each(struct emu_room *r, unsigned host,
		   void (*fn)(void *arg, const struct sio_list_entry *e), void *arg);
/* The last copy of an owner's descriptor was closed. */
void emu_room_owner_hup(struct emu_room *r, unsigned host, uint64_t owner);
/* Run the devices. Return: work done; 0: all idle. */
unsigned emu_room_step(struct emu_room *r, unsigned budget);
/* A device has work that needs no doorbell: step again without a pause. */
bool emu_room_busy(const struct emu_room *r);
/* Someone holds a page that a device must look at; else nothing happens without a request. */
bool emu_room_watched(const struct emu_room *r);
/*
 * Sleeping, as the edge does it: not while emu_room_naps(); else doze(true), protect the pages of
 * the FAULT watches, step once more, and only if that finds nothing wait for a watch; then
 * doze(false). What is stored before the step is found by it, what is stored later wakes.
 */
/* Somebody's stores to such a page wake nobody: look again soon. */
bool emu_room_naps(struct emu_room *r);
/* Tell the EVENT watches whether to write. */
void emu_room_doze(struct emu_room *r, bool asleep);
/* A watch woke the room. */
void emu_room_watch_fired(struct emu_room *r, unsigned host, uint64_t watch);
/* It cannot do so any more, and the edge has forgotten it. */
void emu_room_watch_broken(struct emu_room *r, unsigned host, uint64_t watch);
/* The edge waited: in a nap that a timer ends, or until something happens. */
void emu_room_rested(struct emu_room *r, bool nap);
/* Run the DMA engines of @host for a piece each. Return: work done; 0: nothing to do. */
unsigned emu_room_engine_step(struct emu_room *r, unsigned host);
/* Tell their programs whether to ring; after true step once more before sleeping. */
void emu_room_engine_doze(struct emu_room *r, unsigned host, bool asleep);
/* Record what the engines could not do. Engines that waited for this go on. */
void emu_room_engines_collect(struct emu_room *r);
/* Cut or mend the link of an adapter (fault injection). */
int emu_room_link(struct emu_room *r, unsigned host, unsigned adapter, bool up);
/*
 * A cut one will have other addresses when it is mended: windows of before through it, in both
 * directions, lead nowhere for ever.
 */
int emu_room_link_turn(struct emu_room *r, unsigned host, unsigned adapter);
/*
 * Take a cluster switch's power away, or a link between two switches out, or give it back (@in);
 * numbers of the topology. Ways that lead around it stay. -ENODEV: the topology has none of that
 * number.
 */
int emu_room_switch(struct emu_room *r, unsigned index, bool in);
int emu_room_trunk(struct emu_room *r, unsigned index, bool in);
bool emu_room_switch_in(const struct emu_room *r, unsigned index);
bool emu_room_trunk_in(const struct emu_room *r, unsigned index);
/*
 * Pull a device out of its slot, whatever it does, or put it (@in) back. -ENODEV: no such device of
 * the topology; -EALREADY: it is so; -ENOMEM, -EMFILE: no pages for it, it stays out.
 */
int emu_room_device(struct emu_room *r, unsigned host, unsigned device, bool in);

#endif
