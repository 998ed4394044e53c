/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of drives, between their model and everything else (edge/dev.c). The model itself works
 * correctly; its writes and reads pass through here. fault/drive.c decides when.
 */
#ifndef SIM_TROUBLE_H
#define SIM_TROUBLE_H

#include "emu/devices/model.h"

enum trouble_kind {
	TROUBLE_LOST, /* a completion never comes; the next takes its place, or leaves it empty */
	TROUBLE_LATE, /* it comes after others, with its interrupt */
	TROUBLE_DOUBLED, /* it comes again */
	TROUBLE_PHASE,	 /* it has the other phase; the next takes its place, or the one behind */
	TROUBLE_FETCH,	 /* a submission queue cannot be read: fatal status */
	TROUBLE_STRAY,	 /* one of what nobody asked for, while its client waits for nothing */
	TROUBLES,
};

struct trouble;

/*
 * Some drive of this run may have faults; set before the cluster starts. Otherwise queues are not
 * tracked.
 */
extern bool trouble_wanted;
/* How often each kind happened in this run. */
extern uint64_t trouble_count[TROUBLES];

/*
 * Plans the fault for the @in-th completion (or fetch) from now on, or from when the previous one
 * of its kind happened, of whichever drives are in use. @ns: how late; @gap: see above.
 */
void trouble_plan(enum trouble_kind kind, unsigned in, uint64_t ns, bool gap);
/* No faults from now on; what is delayed already still arrives. */
void trouble_heal(void);
/*
 * A client of queue @id of the @n-th drive has nothing in flight, and can detect a completion that
 * is not its own: a stray one that is planned arrives now. @which: of what command; 0: the next use
 * of the slot that the drive completed last, which a client expects soonest. Return: whether it
 * arrives.
 */
bool trouble_stray(unsigned drive, unsigned id, uint16_t which);

/* ---- for edge/dev.c, of one drive, the @n-th of the cluster ---- */
/* @real: where the model's accesses would go. */
struct trouble *trouble_new(struct emu_dev *real, const struct sio_topo_device *topo, unsigned n);
void trouble_free(struct trouble *t);
/* The drive has no queues any more. */
void trouble_forget(struct trouble *t);
/* To be called once a step: @registers are the valid ones, @doorbells the index of their pages. */
void trouble_look(struct trouble *t, const volatile uint8_t *registers, unsigned doorbells);
/* Delivers what is late, if it is time. */
void trouble_due(struct trouble *t);
bool trouble_is_late(const struct trouble *t);
/* Is this read to fail? */
bool trouble_fails(struct trouble *t, uint64_t addr, size_t len);
/* The model has read this. */
void trouble_saw(struct trouble *t, uint64_t addr, const void *buf, size_t len);
/* The model completes a command. As struct emu_dev's write. */
int trouble_complete(struct trouble *t, uint64_t addr, const void *cqe);

/* edge/dev.c, a model of drives in place of the room's: its write, with what the room gave it. */
int fabric_dev_write(struct emu_dev *real, const struct sio_topo_device *topo, uint64_t addr,
		     const void *buf, size_t len);

#endif
