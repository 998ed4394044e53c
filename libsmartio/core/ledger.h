/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ledger of one device: who has borrowed it, and who may do what with it. Kept by the lender.
 * Pure logic: no I/O; memory for the entries alone.
 *
 * An entry lives until its borrower ends, and then, if the device may still reach what the borrower
 * had mapped, in quarantine until it is settled. The registers belong to one entry at a time: to
 * the one that borrowed exclusively, also after it opened the device to others; while there is
 * none, to the first that takes them.
 */
#ifndef CORE_LEDGER_H
#define CORE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/types.h"

#define SIO_LEDGER_ALL UINT64_MAX /* every entry in quarantine */

enum sio_borrow_state {
	SIO_BORROW_LIVE,
	SIO_BORROW_ENDED, /* its resources are being taken back; what stays is not known yet */
	SIO_BORROW_QUARANTINED, /* the device may still reach some of them */
};

struct sio_borrow {
	uint64_t id;	  /* of this borrow; no other one ever has it */
	uint64_t session; /* the borrower's, as its own host numbers them */
	uint32_t node;	  /* the borrower's host */
	enum sio_borrow_state state;
	bool exclusive; /* nobody else may borrow now */
	bool first;	/* borrowed exclusively: the registers are its alone */
	bool adopted;	/* made before this ledger was: what it has is not known */
	bool opened;	/* its exclusiveness has ended, and it may not have heard */
	struct sio_borrow *next;
};

struct sio_ledger {
	char name[SIO_DEVICE_NAME_LEN]; /* the device's, for texts */
	struct sio_borrow *borrows;	/* ascending by id */
	uint64_t last_id;
	uint64_t holder; /* who has the registers; 0: nobody */
};

void sio_ledger_init(struct sio_ledger *l, const char *name);
void sio_ledger_done(struct sio_ledger *l);

/*
 * Adds an entry; @id is greater than every one before. Return: 0; -EACCES: borrowed exclusively, or
 * exclusive use is wanted of a device in use; -ENOMEM; -EINVAL: @id.
 */
int sio_ledger_borrow(struct sio_ledger *l, uint64_t id, uint32_t node, uint64_t session,
		      bool exclusive, struct sio_err *reterr);
/*
 * Adds an entry that the previous daemon of this lender made, for a borrower that had asked for
 * exclusive use, or not. To be called before any other borrow; in any order. Whether that borrower
 * opened the device to others, or owns the registers, is unknown: it did open it if there is a
 * later entry, and nobody else gets the registers or may reset while the entry lives. -EINVAL: @id
 * is taken; -ENOMEM.
 */
int sio_ledger_adopt(struct sio_ledger *l, uint64_t id, uint32_t node, bool exclusive,
		     struct sio_err *reterr);
/*
 * The borrower of an adopted entry is back: it is session @session, and says whether it opened the
 * device to others. If it owns the registers it says so by sio_ledger_hold_again(), because the
 * port knows the owner: false if another borrower does.
 */
void sio_ledger_restore(struct sio_ledger *l, uint64_t id, uint64_t session, bool released);
/*
 * The borrower goes on reporting what it has (@known false): as before, nobody else gets the
 * registers or may reset. Or it has reported all.
 */
void sio_ledger_known(struct sio_ledger *l, uint64_t id, bool known);
/*
 * The borrower says whether it has heard that the device was opened to others, as it asked. If not,
 * it asks once more.
 */
void sio_ledger_heard(struct sio_ledger *l, uint64_t id, bool released);
bool sio_ledger_hold_again(struct sio_ledger *l, uint64_t id);
/* Opens an exclusive borrow to others. -ENOENT; -EPERM: the borrow is not exclusive. */
int sio_ledger_release_exclusive(struct sio_ledger *l, uint64_t id, struct sio_err *reterr);
/*
 * The borrower has ended: its entry releases the device and the registers. -ENOENT: it ended
 * before.
 */
int sio_ledger_end(struct sio_ledger *l, uint64_t id);
/*
 * For an ended entry it is known now whether something stays in quarantine; if not, the entry is
 * removed.
 */
void sio_ledger_closed(struct sio_ledger *l, uint64_t id, bool quarantined);

/*
 * May @id have the registers writable? Changes nothing. -ENOENT; -EACCES: another borrower owns
 * them.
 */
int sio_ledger_may_hold(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr);
/*
 * Makes @id the owner of the registers. *ret_new: it was not the owner before, and is to be
 * notified of everything in quarantine.
 */
int sio_ledger_take_registers(struct sio_ledger *l, uint64_t id, bool *ret_new,
			      struct sio_err *reterr);
/* @id has no writable view any more; others may take the registers unless @id is the first. */
void sio_ledger_drop_registers(struct sio_ledger *l, uint64_t id);

/*
 * May @id settle (only the owner of the registers)? May it reset (that owner, the exclusive
 * borrower, or anybody while the registers are unowned)?
 */
int sio_ledger_may_settle(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr);
int sio_ledger_may_reset(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr);
/* Ends quarantines: of one entry or of all. Return: how many entries were removed. */
unsigned sio_ledger_settle(struct sio_ledger *l, uint64_t borrower);

const struct sio_borrow *sio_ledger_find(const struct sio_ledger *l, uint64_t id);
/* The live entry that borrowed exclusively, whose the registers are alone; 0: none. */
uint64_t sio_ledger_first(const struct sio_ledger *l);
/* The first entry with an id greater than @after; NULL: none. */
const struct sio_borrow *sio_ledger_after(const struct sio_ledger *l, uint64_t after);
struct sio_ledger_count {
	unsigned live, quarantined;
	bool exclusive;
};
struct sio_ledger_count sio_ledger_count(const struct sio_ledger *l);

#endif
