/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs of the workloads have in common: how they begin, act and end, and which drive they
 * use.
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

/* SCIInitialize(). False: it failed in an allowed way. */
bool sim_initialize(void);
/*
 * A whole life in the library: initialises, opens *@sd, acts, and releases everything or not.
 * False: it did not begin.
 */
bool sim_live(const struct sim_life *life, void *state, sci_desc_t *sd);
/* The end of the program: SCITerminate(). */
void sim_terminate(struct sim_proc *p);
/* The same, but one program in eight exits without calling it. */
void sim_exit(struct sim_proc *p);
/* A program that consists of such a life. */
void sim_live_and_exit(struct sim_proc *p, const struct sim_life *life, void *state,
		       sci_desc_t *sd);

/*
 * Should the call be repeated after a pause? There is no memory now, or a lender does not answer;
 * that will change, or the device is lost.
 */
bool sim_later(sci_error_t e);

/* Is the device a drive? */
bool sim_is_drive(const struct sio_topo_device *d);
/*
 * Draws a device of the cluster, except the malicious host's, for which @fits is true, and its
 * host; NULL: there is none.
 */
const struct sio_topo_device *sim_pick_device(bool (*fits)(const struct sio_topo_device *d),
					      unsigned *ret_host);
bool sim_is_memory(const struct sio_topo_device *d);
/* Numbers of shares of a device that no other program of this run has had: zeroed at first. */
struct sim_shares {
	uint64_t model; /* of this run */
	uint32_t next;
};
uint32_t sim_next_share(struct sim_shares *p);
/* For .fits: does the cluster have drives? */
bool sim_has_drives(unsigned host);
/*
 * Draws any drive of the cluster, and its host; NULL where that does not matter. There must be one.
 */
const struct sio_topo_device *sim_pick_drive(unsigned *ret_host, unsigned *ret_device);

#endif
