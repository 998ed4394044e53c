/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine room: the hardware of a whole cluster as one step machine. It answers the port
 * (smartio/uapi.h) for every host, runs the device models, translates and counts the accesses of
 * devices. It owns no thread, clock, socket or random number: emu/live/main.c gives it the live
 * world, the simulator another one. One thread at a time.
 */
#ifndef EMU_MACHINE_ROOM_H
#define EMU_MACHINE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/pcie.h"
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
/*
 * Machines (hosts of kind machine) stand beside the room; those that are connected to its hosts are
 * reported here. Adapter @adapter of the machine with id @node is on, in its start @start (0: off).
 * -ENODEV: there is none.
 */
int emu_room_machine(struct emu_room *r, uint32_t node, unsigned adapter, uint64_t start);
/*
 * What devices and programs of the room's hosts have sent to that adapter. *ret_messages: of the
 * writes, interrupts. -ENODEV: there is none.
 */
int emu_room_machine_passed(const struct emu_room *r, uint32_t node, unsigned adapter,
			    struct sio_pcie_count *ret, uint64_t *ret_messages);
/* The number of a host's present start, as machines see it; 0: it is off. */
uint64_t emu_room_start(const struct emu_room *r, unsigned host);
/*
 * An access of a machine to memory that one of the hosts granted it. Return: 0: *ret is the memory,
 * to be used now; 1: it was a message to an interrupt, and has been delivered; -EACCES: no such
 * range is granted; -EPERM: it is granted, but not for this kind of access.
 */
int emu_room_inbound(struct emu_room *r, const struct emu_inbound *x, uint8_t **ret);
/* The host crashed: links down, its memory and windows gone, its devices reset. */
void emu_room_host_down(struct emu_room *r, unsigned host);
/*
 * How often accesses of devices are compared with the list of what was granted
 * (emu/memory/check.c), if the build compares at all: each that faults, the first after a
 * translation, and one in @n of the others, a power of 2. A new room compares every one.
 */
void emu_room_check_every(struct emu_room *r, uint32_t n);
/*
 * How many descriptors the objects of all hosts may hold at the edge. Each host has an equal share,
 * so that none takes those of the others. A new room sets no bound.
 */
void emu_room_descriptors(struct emu_room *r, uint64_t n);
/* The host's daemon has read everything that was sent to it before an event was dropped. */
void emu_room_drained(struct emu_room *r, unsigned host);
/* One request of a host's daemon. @fds were received with it: the room takes or closes them. */
void emu_room_request(struct emu_room *r, unsigned host, const void *req, size_t len, int *fds,
		      unsigned n_fds);
/* Calls for each object of a host, as LIST reports it; the oldest first. */
void emu_room_each(struct emu_room *r, unsigned host,
		   void (*fn)(void *arg, const struct sio_list_entry *e), void *arg);
/* The last copy of an owner's descriptor was closed. */
void emu_room_owner_hup(struct emu_room *r, unsigned host, uint64_t owner);
/* Runs the devices. Return: work done; 0: all idle. */
unsigned emu_room_step(struct emu_room *r, unsigned budget);
/* Does a device have work that needs no doorbell? Then step again without a pause. */
bool emu_room_busy(const struct emu_room *r);
/*
 * Is a page mapped that a device, or we for a machine's, must poll? Otherwise nothing happens
 * without a request.
 */
bool emu_room_watched(const struct emu_room *r);
/*
 * How the edge sleeps: not while emu_room_naps(); otherwise doze(true), protect the pages of the
 * FAULT watches, step once more, and only if that finds nothing wait for a watch; then doze(false).
 * A store before the step is found by it, a later one wakes the room.
 */
/* Are there stores to such a page that wake nobody? Then check again soon. */
bool emu_room_naps(struct emu_room *r);
/* Notes for the EVENT watches whether stores must be followed by a write to the descriptor. */
void emu_room_doze(struct emu_room *r, bool asleep);
/* A watch woke the room. */
void emu_room_watch_fired(struct emu_room *r, unsigned host, uint64_t watch);
/* A watch does not work any more, and the edge has dropped it. */
void emu_room_watch_broken(struct emu_room *r, unsigned host, uint64_t watch);
/* The edge has waited: in a nap that a timer ends, or until something happened. */
void emu_room_rested(struct emu_room *r, bool nap);
/* Runs the DMA engines of @host for a piece each. Return: work done; 0: nothing to do. */
unsigned emu_room_engine_step(struct emu_room *r, unsigned host);
/*
 * Notes in the rings whether programs must ring the doorbell; after true step once more before
 * sleeping.
 */
void emu_room_engine_doze(struct emu_room *r, unsigned host, bool asleep);
/* When the engines of @host have to be stepped again without a doorbell; UINT64_MAX: not. */
uint64_t emu_room_engine_due(const struct emu_room *r, unsigned host);
/* Records the faults of the engines. Engines that waited for this go on. */
void emu_room_engines_collect(struct emu_room *r);
/* Cuts or restores the link of an adapter (fault injection). */
int emu_room_link(struct emu_room *r, unsigned host, unsigned adapter, bool up);
/*
 * A link that is cut will have other addresses when it is restored: earlier windows through it, in
 * both directions, lead nowhere forever.
 */
int emu_room_link_turn(struct emu_room *r, unsigned host, unsigned adapter);
/* The link of an adapter has errors: sequences over it begin anew, and nothing else happens. */
int emu_room_link_errors(struct emu_room *r, unsigned host, unsigned adapter, uint32_t n);
/* From now on transfers of DMA engines over the link take so much longer. */
int emu_room_link_delay(struct emu_room *r, unsigned host, unsigned adapter, uint64_t ns);
/*
 * A host that is off is to have other addresses from its next start on; @own is the room's
 * topology. -EBUSY: it is on; -EOPNOTSUPP: machines are in the cluster; as emu_layout_move().
 */
int emu_room_host_move(struct emu_room *r, struct sio_topology *own, unsigned host,
		       struct sio_err *reterr);
/*
 * Takes a cluster switch, or a link between two switches, down, or up again (@in); numbers of the
 * topology. Paths that lead around it stay. -ENODEV: the topology has none of that number.
 */
int emu_room_switch(struct emu_room *r, unsigned index, bool in);
int emu_room_trunk(struct emu_room *r, unsigned index, bool in);
bool emu_room_switch_in(const struct emu_room *r, unsigned index);
bool emu_room_trunk_in(const struct emu_room *r, unsigned index);
/*
 * Pulls a device out of its slot, whatever it does, or puts it (@in) back. -ENODEV: no such device
 * of the topology; -EALREADY: it is in that state; -ENOMEM, -EMFILE: no pages for it, it stays out.
 */
int emu_room_device(struct emu_room *r, unsigned host, unsigned device, bool in);
/*
 * The cluster's file changes to @next while the room runs: devices come and go, and where the edge
 * grows and no machine is described hosts, switches and cables do, too. Hosts keep their numbers:
 * @next has them where the room's topology has them (sio_topology_align()), unless there are
 * machines. First everything that can fail: -EOPNOTSUPP: something else differs, -EINVAL, -ENOMEM
 * and what a drive's file gives: nothing has changed. @try: it is only asked, and files of drives
 * are not touched. *ret is for one of the two functions below; the room, and @next, may be used
 * meanwhile.
 */
struct emu_change;
int emu_room_prepare(struct emu_room *r, const struct sio_topology *next, bool try,
		     struct emu_change **ret, struct sio_err *reterr);
void emu_room_drop(struct emu_room *r, struct emu_change *c);
/*
 * Users of devices that go are notified as of those that are pulled out, and peers of hosts that
 * go as of those that crash; all others go on, over paths that join their adapters still. A new
 * host is off. Hosts and cables of the room's topology, @own, and those of @next are swapped;
 * where there are machines their devices alone, so that what refers to hosts and adapters of the
 * topology stays right. @next may be freed. -ENOMEM, -EMFILE: there were no pages for a new
 * device, which is out of its slot; all else was done.
 */
int emu_room_commit(struct emu_room *r, struct sio_topology *own, struct sio_topology *next,
		    struct emu_change *c, struct sio_err *reterr);
/*
 * What the kernel of the device's host does that is told a number of virtual functions: those that
 * are there go, and @n come. -ENODEV: no such device, or it is not there; -EINVAL: it has less;
 * -ENOMEM, -EMFILE: no pages for one, which is missing.
 */
int emu_room_functions(struct emu_room *r, unsigned host, unsigned device, unsigned n,
		       struct sio_err *reterr);
/*
 * From now on the device has this fault; NULL: no fault any more. -ENODEV; -EOPNOTSUPP: devices of
 * its type have no faults; otherwise as struct emu_dev_model's fault().
 */
struct emu_dev_fault;
int emu_room_fault(struct emu_room *r, unsigned host, unsigned device,
		   const struct emu_dev_fault *f, struct sio_err *reterr);

#endif
