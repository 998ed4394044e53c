/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs of the workloads have in common: how they begin, act and end, and which drive they
 * use.
 */
#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include "run/run.h"

struct sim_life {
	unsigned acts; /* it acts 10 to 9 + @acts times */
	/* One act; between two of them the program sleeps for a time that is drawn. */
	void (*act)(void *state);
	/* Before SCIClose(). One program in four leaves out both; so do all if this is NULL. */
	void (*tear_down)(void *state);
	sci_error_t close_may; /* an error that SCIClose() may give, beside the common ones */
};

/* SCIInitialize(). False: it failed in an allowed way. */
bool sim_initialize(void);
/*
 * The life of a program up to SCITerminate(): initialises the library, opens *@sd, acts, and
 * releases everything or nothing. False: the library could not be initialised.
 */
bool sim_live(const struct sim_life *life, void *state, sci_desc_t *sd);
/* The end of the program: SCITerminate(), after which no descriptor may be open. */
void sim_terminate(struct sim_proc *p);
/* sim_terminate(), except that one program in eight exits without it. */
void sim_exit(struct sim_proc *p);
/* sim_live(), and sim_exit() if it began. */
void sim_live_and_exit(struct sim_proc *p, const struct sim_life *life, void *state,
		       sci_desc_t *sd);

/*
 * Is a call that failed with @e to be repeated? It is if it failed for lack of memory, or because a
 * lender did not answer: either that changes, or the device is lost. Sleeps for a millisecond
 * before the repetition. False also if the program's host has crashed meanwhile.
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
/*
 * Gives each program of a run a number of its own, by which programs have different parts of a
 * device's memory. A static variable, zeroed at first.
 */
struct sim_shares {
	uint64_t model; /* the run that @next belongs to */
	uint32_t next;
};
uint32_t sim_next_share(struct sim_shares *p);
/* For .fits: does the cluster have drives, beside the malicious host's? */
bool sim_has_drives(unsigned host);
/*
 * Draws a drive of the cluster, except the malicious host's; *ret_host and *ret_device say where it
 * is (NULL: that does not matter). There must be one.
 */
const struct sio_topo_device *sim_pick_drive(unsigned *ret_host, unsigned *ret_device);
/* The first one of them. */
const struct sio_topo_device *sim_first_drive(unsigned *ret_host, unsigned *ret_device);

/*
 * Has this seed the workload @name, which was added later than others? Drawn by itself, with @salt,
 * so that what else a seed has stays as it was: one seed in @seen_in.
 */
bool sim_drawn_apart(const char *name, uint64_t salt, unsigned seen_in);

#endif
