/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What drives do wrong, between their model and everybody else (edge/dev.c). The model goes on as
 * if all were well; what it sends and reads passes here. fault/drive.c says when.
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
 * Some drive of this run may have some; set before the cluster starts. Else queues are not
 * followed.
 */
extern bool trouble_wanted;
/* How often each kind happened in this run. */
extern uint64_t trouble_count[TROUBLES];

/*
 * The @in-th completion (or fetch) from now on, or from when the one before it of its kind
 * happened, of whichever drives are in use. @ns: how late; @gap: see above.
 */
void trouble_plan(enum trouble_kind kind, unsigned in, uint64_t ns, bool gap);
/* None from now on, but for what is late already. */
void trouble_heal(void);
/*
 * A client of queue @id of the @n-th drive has nothing in flight, and can tell what is not its own:
 * if a stray one is planned, it comes. @which: of what command; 0: the next use of the slot that
 * the drive completed last, which is what a client may expect soonest. Return: whether it comes.
 */
bool trouble_stray(unsigned drive, unsigned id, uint16_t which);

/* ---- for edge/dev.c, of one drive, the @n-th of the cluster ---- */
/* @real: what the model would send to and read from. */
struct trouble *trouble_new(struct emu_dev *real, const struct sio_topo_device *topo, unsigned n);
void trouble_free(struct trouble *t);
/* It has no queues any more. */
void trouble_forget(struct trouble *t);
/* Once a step: @registers are those that count, @doorbells the index of their pages. */
void trouble_look(struct trouble *t, const volatile uint8_t *registers, unsigned doorbells);
/* What is late comes, if it is time. */
void trouble_due(struct trouble *t);
bool trouble_is_late(const struct trouble *t);
/* Is this read to fail? */
bool trouble_fails(struct trouble *t, uint64_t addr, size_t len);
/* The model read that. */
void trouble_saw(struct trouble *t, uint64_t addr, const void *buf, size_t len);
/* The model completes a command. As struct emu_dev's write. */
int trouble_complete(struct trouble *t, uint64_t addr, const void *cqe);

/* edge/dev.c, a model of drives in place of the room's: its write, by what the room gave it. */
int fabric_dev_write(struct emu_dev *real, const struct sio_topo_device *topo, uint64_t addr,
		     const void *buf, size_t len);

#endif
