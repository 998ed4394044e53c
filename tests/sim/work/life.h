/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs of the workloads have in common: how they begin, act and end, and which drive they
 * want.
 */
#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include "run/run.h"

struct sim_life {
	unsigned acts;		  /* most, beside the first nine */
	void (*act)(void *state); /* one after the other, with pauses drawn */
	void (*tear_down)(
		void *state);  /* before SCIClose(); one program in four leaves out both. NULL */
	sci_error_t close_may; /* what SCIClose() may give, too */
};

/* SCIInitialize(). False: it failed as it may. */
bool sim_initialize(void);
/*
 * A whole life in the library: initialized, *@sd opened, acts, all given back or not. False: it did
 * not begin.
 */
bool sim_live(const struct sim_life *life, void *state, sci_desc_t *sd);
/* The end of the program: SCITerminate(). */
void sim_terminate(struct sim_proc *p);
/* The same, but one in eight exits without a word. */
void sim_exit(struct sim_proc *p);
/* A program that is nothing but such a life. */
void sim_live_and_exit(struct sim_proc *p, const struct sim_life *life, void *state,
		       sci_desc_t *sd);

/*
 * To be asked for again, after a pause: now there is no memory, or a lender does not answer; it
 * will, or the device is lost.
 */
bool sim_later(sci_error_t e);

/* For .fits: does the cluster have drives? */
bool sim_has_drives(unsigned host);
/* Any of the cluster's, and where it is; NULL where that does not matter. There must be one. */
const struct sio_topo_device *sim_pick_drive(unsigned *ret_host, unsigned *ret_device);

#endif
