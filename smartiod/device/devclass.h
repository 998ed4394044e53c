/* SPDX-License-Identifier: BSD-2-Clause */
/* The purpose of each page of a device's BARs, by the class of the device. Pure logic. */
#ifndef SMARTIOD_DEVCLASS_H
#define SMARTIOD_DEVCLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "smartio/uapi.h"

enum smartiod_bar_use {
	SMARTIOD_BAR_REGISTERS, /* one borrower writes, the others read a mirror */
	SMARTIOD_BAR_DOORBELLS, /* every borrower writes */
	SMARTIOD_BAR_MEMORY,	/* every borrower reads and writes; a reset leaves it in place */
	SMARTIOD_BAR_HOLDER,	/* memory, which the owner of the registers has */
	SMARTIOD_BAR_ASSIGNED,	/* a part of that, which it lets one other borrower have */
};

struct smartiod_bar_run {
	uint64_t offset, length; /* whole pages */
	enum smartiod_bar_use use;
};

#define SMARTIOD_BAR_RUNS 4

/*
 * The runs of pages of BAR @bar that borrowers may have, ascending. Pages with the interrupt table
 * are in none: whoever writes it can make the device write anywhere. Of a class that is not known
 * all is registers. Return: how many.
 */
unsigned smartiod_devclass_runs(const struct sio_evt_device *device, unsigned bar,
				struct smartiod_bar_run ret[SMARTIOD_BAR_RUNS]);
/*
 * Is its class known? Of others all is registers, though some BARs are memory: those the port can
 * tell, where it has to.
 */
bool smartiod_devclass_known(const struct sio_evt_device *device);
/*
 * All of it up to the interrupt table, as one run of registers, for whoever has the device alone.
 * Return: is there something?
 */
bool smartiod_devclass_whole(const struct sio_evt_device *device, unsigned bar,
			     struct smartiod_bar_run *ret);
/* A word for the class, as topology files name types of devices. */
const char *smartiod_devclass_name(uint32_t class_code);

#endif
