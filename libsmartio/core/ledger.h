/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has borrowed one device, and who may do what with it. Kept by the lender. Pure logic: no I/O;
 * memory for the entries alone.
 *
 * An entry lives until its borrower ends, and then, if the device may still reach what the borrower
 * had mapped, in quarantine until it is settled. The registers belong to one entry at a time: to
 * the one that borrowed exclusively, also after it opened the device to others; while none such
 * lives, to the first that takes them.
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
 * A new entry; @id greater than every one before. Return: 0; -EACCES: held exclusively, or
 * exclusive wanted of a device in use; -ENOMEM; -EINVAL: @id.
 */
int sio_ledger_borrow(struct sio_ledger *l, uint64_t id, uint32_t node, uint64_t session,
		      bool exclusive, struct sio_err *reterr);
/*
 * An entry made by a lender before us (its daemon was started again) that had asked for the device
 * exclusively, or not. Before any other borrow; in any order. Whether it opened the device to
 * others, or has the registers, we cannot know: it did if there is a later one, and nobody else
 * gets the registers or may reset as long as it lives. -EINVAL: @id is taken; -ENOMEM.
 */
int sio_ledger_adopt(struct sio_ledger *l, uint64_t id, uint32_t node, bool exclusive,
		     struct sio_err *reterr);
/*
 * Who made an adopted entry is back: it is session @session, and says whether it opened the device
 * to others. If it holds the registers it says so by sio_ledger_hold_again(), for the port knows:
 * false if another does.
 */
void sio_ledger_restore(struct sio_ledger *l, uint64_t id, uint64_t session, bool released);
bool sio_ledger_hold_again(struct sio_ledger *l, uint64_t id);
/* Open an exclusive borrow to others. -ENOENT; -EPERM: it is not exclusive. */
int sio_ledger_release_exclusive(struct sio_ledger *l, uint64_t id, struct sio_err *reterr);
/* The borrower ended: the entry frees the device and the registers. -ENOENT: it has ended before.
 */
int sio_ledger_end(struct sio_ledger *l, uint64_t id);
/* Of an ended entry it is known now whether something stays in quarantine; if not, it goes. */
void sio_ledger_closed(struct sio_ledger *l, uint64_t id, bool quarantined);

/* May @id have the registers writable? Changes nothing. -ENOENT; -EACCES: another one's. */
int sio_ledger_may_hold(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr);
/* Make @id the holder. *ret_new: it was not before, and is to be told of all in quarantine. */
int sio_ledger_take_registers(struct sio_ledger *l, uint64_t id, bool *ret_new,
			      struct sio_err *reterr);
/* @id has no writable view any more; others may take the registers unless @id is the first. */
void sio_ledger_drop_registers(struct sio_ledger *l, uint64_t id);

/* May @id settle (only the holder)? May it reset (holder, exclusive, or nobody holds)? */
int sio_ledger_may_settle(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr);
int sio_ledger_may_reset(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr);
/* End quarantines: of one entry or of all. Return: how many entries went. */
unsigned sio_ledger_settle(struct sio_ledger *l, uint64_t borrower);

const struct sio_borrow *sio_ledger_find(const struct sio_ledger *l, uint64_t id);
/* The first entry with an id greater than @after; NULL: none. */
const struct sio_borrow *sio_ledger_after(const struct sio_ledger *l, uint64_t after);
struct sio_ledger_count {
	unsigned live, quarantined;
	bool exclusive;
};
struct sio_ledger_count sio_ledger_count(const struct sio_ledger *l);

#endif
