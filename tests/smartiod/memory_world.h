/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive with a controller memory buffer, and a program that holds its registers: what the program
 * does is cut at each of its events, and refused at each request to the port.
 */
#ifndef TESTS_SMARTIOD_MEMORY_WORLD_H
#define TESTS_SMARTIOD_MEMORY_WORLD_H

#include "device_calls.h"
#include "fake_device.h"

#define FDID 0x400001
#define PAGE 4096u
#define BOTH (SIO_ACCESS_READ | SIO_ACCESS_WRITE)

enum memory_cut {
	MEMORY_KILL,
	MEMORY_CRASH_BORROWER,
	MEMORY_CRASH_LENDER,
	MEMORY_LINK_DOWN,
	MEMORY_CUT_OFF, /* the two daemons from each other */
	MEMORY_PULL_OUT,
	MEMORY_CUTS
};

struct memory_run {
	struct fake_device fake;
	struct world *w;
	struct world_client *c;
	unsigned host; /* its */
	enum memory_cut cut;
	uint64_t left; /* events until then; 0: none */
	bool refused;  /* the port has refused a request that cannot fail */
};

/* Of a drive whose memory it may write, for it holds the registers. */
struct memory_holder {
	struct call_borrow b;
	uint32_t bar, map, memory; /* handles */
};

/* The lender is host 0, the program's @host. */
void memory_start(struct memory_run *r, unsigned host, uint64_t seed);
/* All come back; the next who has the device alone finds nothing of the one before. */
void memory_end(struct memory_run *r);
/* Calls may fail: somebody may be dead. */
void memory_hold(struct world *w, struct world_client *c, struct memory_holder *h);

/* What a program does, where calls may fail. Return: how much of it there was. */
typedef unsigned memory_play(struct world *w, struct world_client *c);
/* @whole: what play() returns where nothing is cut. */
void memory_cut_everywhere(enum memory_cut cut, memory_play *play, unsigned whole);
void memory_refuse_everywhere(memory_play *play);

#endif
