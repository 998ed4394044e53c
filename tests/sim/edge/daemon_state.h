/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside a daemon: what it believes its port to hold. For oracle/books.c. */
#ifndef SIM_BOOKS_H
#define SIM_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "smartio/uapi.h"

/* Its daemon runs, and works on nothing that is not yet in its books. */
bool books_quiet(unsigned host);
/* An operation of type *@ret_type waits, and its time was over @slack ago. */
bool books_late(unsigned host, uint64_t slack, uint32_t *ret_type);
/*
 * A program that has said what it had of before the daemon was started, and something that is its
 * own and that it did not tell of. NULL: there is none.
 */
const char *books_unclaimed(unsigned host, uint64_t *ret_owner);
/*
 * Which device the port request with this cookie resets, if that is the daemon's own reset; else 0.
 */
uint32_t books_own_reset(unsigned host, uint64_t cookie);
/* @sure: it must be there; else its owner has ended, and the port may have released it. */
typedef void books_note(uint32_t kind, uint64_t id, bool sure);
/* Calls @to for each thing. */
void books_read(unsigned host, books_note *to);

/* Of a grant whose address alone is kept; the port has no such kind. */
#define BOOKS_ADDRESS SIO_KIND_IOVA
/* What a vector is known by. */
static inline uint64_t books_vector(uint64_t device, uint64_t number)
{
	return device << 32 | number;
}

#endif
