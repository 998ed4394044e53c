/* SPDX-License-Identifier: BSD-2-Clause */
/* The state inside a daemon: what its tables say that its port holds. For oracle/records.c. */
#ifndef SIM_DAEMON_STATE_H
#define SIM_DAEMON_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "smartio/uapi.h"

/* Does the daemon run, with no operation whose result is not yet in its tables? */
bool tables_quiet(unsigned host);
/* Does an operation of type *@ret_type wait, whose deadline was @slack ago? */
bool tables_late(unsigned host, uint64_t slack, uint32_t *ret_type);
/*
 * Finds a program that has reported all that it had before the daemon was started, and an object of
 * its own that it did not report. NULL: there is none.
 */
const char *tables_unclaimed(unsigned host, uint64_t *ret_owner);
/*
 * The device that the port request with this cookie resets, if it is the daemon's own reset; else
 * 0.
 */
uint32_t tables_own_reset(unsigned host, uint64_t cookie);
/*
 * @sure: the object must be there; otherwise its owner has ended, and the port may have released
 * it.
 */
typedef void tables_note(uint32_t kind, uint64_t id, bool sure);
/* Calls @to for each object. */
void tables_read(unsigned host, tables_note *to);

/* The kind of a grant whose address alone is kept; the port has no such kind. */
#define RECORDS_ADDRESS SIO_KIND_IOVA
/* A key that identifies a vector. */
static inline uint64_t tables_vector(uint64_t device, uint64_t number)
{
	return device << 32 | number;
}

#endif
