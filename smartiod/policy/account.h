/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts: how much of each quota a node or a program has. A charge is a member of the object that
 * is charged for, so the end of the object ends the charge, whichever way it ends. Pure logic: no
 * I/O, no memory of its own, no lock.
 */
#ifndef SMARTIOD_ACCOUNT_H
#define SMARTIOD_ACCOUNT_H

#include "core/policy.h"

struct smartiod_account;

/* All zero: nothing. */
struct smartiod_charge {
	struct smartiod_account *account; /* NULL: it is nobody's */
	struct smartiod_charge *next, **prev;
	enum sio_quota quota;
	uint64_t amount;
};

/* All zero: nothing. */
struct smartiod_account {
	uint64_t used[SIO_QUOTAS];
	struct smartiod_charge *charges;
};

/*
 * Is there room for @amount more? @who: "node 8 (client)"; @of: "node" or "program", as the file
 * has it. Return: 0; -ENOSPC for SIO_OUT_OF_QUOTA, with a text that says how much is used.
 */
int smartiod_account_check(const struct smartiod_account *a, const struct sio_limit *limits,
			   enum sio_quota quota, uint64_t amount, const char *who, const char *of,
			   struct sio_err *reterr);
/* @c, which is nobody's, is @a's from now on; whether there is room is not asked. */
void smartiod_account_add(struct smartiod_account *a, struct smartiod_charge *c,
			  enum sio_quota quota, uint64_t amount);
/* It is nobody's any more; nothing if it was not before. */
void smartiod_charge_drop(struct smartiod_charge *c);
/* The account ends: what it was charged with is nobody's. */
void smartiod_account_end(struct smartiod_account *a);

#endif
