/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lender's side of a borrow. Each request about a device goes to its lender's daemon as a
 * message of wire/peer.h, whether that is another host's or this one (room.h: smartiod_ask()). A
 * file for each thing that a borrow has: loan.c, bargrant.c, barview.c, dmalend.c, devseg.c,
 * vector.c, hold.c, quarantine.c, reset.c.
 */
#ifndef SMARTIOD_LEND_H
#define SMARTIOD_LEND_H

#include "smartiod/base/leftover.h"
#include "smartiod/base/peer.h"
#include "smartiod/device/device.h"
#include "smartiod/interrupt/dint.h"
#include "smartiod/lender/loan_life.h"
#include "smartiod/segment/segment.h"

struct smartiod_lend;
struct smartiod_loan;

/* The requester entry of a device in one adapter's table, shared by its windows there. */
struct smartiod_requester {
	uint64_t id;	/* the port's; 0: none */
	unsigned users; /* windows that need it, those being set up included */
	bool adding;
	struct smartiod_requester_user *waiting; /* for the port's answer */
};

/* Who wants an entry: part of an operation. */
struct smartiod_requester_user {
	struct smartiod_requester_user *next;
	/*
	 * It is there, or will not be (@a->error). It counts until smartiod_requester_put(), either
	 * way.
	 */
	void (*have)(struct smartiod *d, struct smartiod_requester_user *user,
		     const struct smartiod_answer *a);
};

/* Memory that belongs to a device, at the lender: where it is. */
struct smartiod_dev_seg {
	struct smartiod_dev_seg *next; /* of the device */
	uint64_t private_to;	       /* the borrow; 0: shared by all */
	uint64_t creator;	       /* the borrow that made it */
	uint32_t id, node;
	uint64_t uid, bytes;
	bool lasting; /* our own memory: it stays as long as anything of its creator does */
	struct smartiod_segment *segment; /* on this host; else NULL */
};

/* A lender's operation: flows embed it as their first member. */
struct smartiod_lend {
	struct smartiod_op op;
	struct smartiod_from from;
	struct smartiod_loan *loan; /* pinned; NULL: none */
};

/*
 * Under way: the word that a device no longer uses what a borrower, or all that have ended, had
 * mapped for it. quarantine.c.
 */
struct smartiod_word {
	struct smartiod_lend lend; /* who said it */
	struct smartiod_device *device;
	uint64_t settled;    /* a borrow, or SIO_LEDGER_ALL */
	bool own;	     /* nobody but the lender: reset.c */
	bool reset;	     /* queues of all are gone: the generation goes up */
	bool closing;	     /* it has, and the doorbells are taken away */
	bool dozing;	     /* and the port has no memory to do that now */
	uint64_t view;	     /* that is being closed */
	uint64_t generation; /* of the port's */
	uint64_t freed;	     /* mappings that the reset ended */
};

/* An operation that waits until a device is reset: part of it. reset.c. */
struct smartiod_waiter {
	struct smartiod_waiter *next;
	struct smartiod_op *op;
	struct smartiod_device *device; /* NULL: it does not wait */
};

/* The lender's own resets of a device. */
struct smartiod_reset {
	struct smartiod_word word; /* embedded, so that a reset needs no memory */
	bool waits;		   /* for the time to try again */
	bool forced;		   /* although somebody uses it */
	bool said;		   /* that it has none */
	unsigned failed;	   /* tries in a row */
	uint64_t since;		   /* when the last one began; it took @took */
	uint64_t took;
	uint32_t settled; /* borrows whose quarantine it ended */
	struct smartiod_waiter *waiting;
};

/* What the lender keeps with each of its devices. */
struct smartiod_lent {
	struct smartiod_requester requester[SIO_MAX_ADAPTERS];
	struct smartiod_dev_seg *segs;
	struct smartiod_vector *vectors;
	struct smartiod_old_vector *old_vectors;
	unsigned clearing; /* words under way that end all its queues: SETTLED for all, RESET */
	struct smartiod_reset reset;
};

/* Lender: a part of a BAR that is handed out, and the grants of it. */
struct smartiod_view {
	struct smartiod_view *next; /* of the loan */
	uint64_t id;		    /* the port's BAR */
	uint32_t bar, access, flags;
	uint64_t offset, length, fd_offset;
	int fd;
	unsigned users;
	bool doorbells;
	bool holds;  /* who has it has the registers */
	bool closed; /* by a reset, which took the doorbells away: in these books alone */
};
struct smartiod_view_grant {
	struct smartiod_view_grant *next;     /* of the loan */
	uint64_t view, grant;		      /* grant: the port's */
	uint32_t node, adapter, peer_adapter; /* who asked, and the way there */
	bool device;			      /* for a device of that node's: dmabar.c */
};

/* Lender: queues of the device lie in a DMA map; those that a node's daemon asked for. */
struct smartiod_hold {
	struct smartiod_hold *next;
	uint32_t node, count; /* count: at least 1 */
};

/* Lender: a range that the device can reach for a borrower. */
struct smartiod_dma {
	struct smartiod_tree_node by_id; /* in devices->dmas; key: the port's DMA map */
	struct smartiod_dma *next;	 /* of the loan */
	struct smartiod_loan *loan;
	uint32_t exporter, adapter, peer_adapter;
	uint64_t uid, iova, bytes;
	uint64_t map, grant; /* through a window: the port's map, the exporter's grant */
	uint64_t group;	     /* the port's way to a multicast group; 0: it is none */
	struct smartiod_segment *segment; /* on this host */
	bool window;			  /* it uses the requester entry of adapter */
	bool lost;			  /* its exporter was, since it was granted */
	bool unmapping;
	/* Of BAR pages of a device: dmabar.c. */
	uint64_t bar_borrow;  /* the borrow of that device; 0: it is of memory */
	uint64_t view;	      /* its lender's; 0: none any more */
	uint32_t target_fdid; /* that device */
	bool cut;	      /* it leads nowhere any more; or (held) the other end sees to that */
	bool adopted;	      /* of before we were started, and nobody has said that it is his */
	uint64_t target;      /* adopted: the port's memory */
	struct smartiod_hold *holds; /* not to be unmapped */
};

/* Lender: an interrupt vector of the device, the sender to a plain interrupt of any host. */
struct smartiod_vector {
	struct smartiod_dint_link link; /* of_device; where it leads, and what it has there */
	struct smartiod_vector *next;	/* of the device */
	struct smartiod_device *device;
	struct smartiod_loan *loan;
	uint32_t number;
	bool set;	/* the port has it, or was asked for it */
	bool window;	/* it uses the requester entry of link.adapter */
	bool operation; /* one is about and frees it */
};

/* Lender: a vector that a borrow has since before we were started. */
struct smartiod_old_vector {
	struct smartiod_old_vector *next; /* of the device */
	struct smartiod_loan *loan;
	uint32_t number;
	uint64_t irq; /* the port's */
};

/* Lender: a borrow, from its request to the last thing that it left in quarantine. */
struct smartiod_loan {
	struct smartiod_tree_node by_id; /* in devices->loans; key: the borrow's number */
	struct smartiod_device *device;
	uint64_t id, session, owner; /* owner: the port's; 0: not yet */
	uint64_t ticket;	     /* the borrower's alone, and of whom it shows it to */
	uint64_t parent;	     /* adopt.c: the owner of its session */
	uint32_t node, pid;
	int owner_fd;
	enum smartiod_loan_state state;
	bool settling; /* the port was asked to settle it */
	bool lost;     /* the device is gone: nothing of it stays in quarantine */
	bool adrift;   /* it ended for us alone: its program may live, and store through its maps */
	struct smartiod_view *views;
	struct smartiod_view_grant *grants;
	struct smartiod_dma *dmas;
	unsigned pins; /* operations in progress */
};

/* Its borrower is gone. */
static inline bool smartiod_loan_ended(const struct smartiod_loan *loan)
{
	return loan->state >= SMARTIOD_LOAN_WAITING_ENDED;
}
/* Something happens to it. An event that cannot come is an error of ours: it ends the daemon. */
void smartiod_loan_enter(struct smartiod *d, struct smartiod_loan *loan,
			 enum smartiod_loan_event event);

/* ---- lend.c ---- */

void *smartiod_lend_new(struct smartiod *d, const struct smartiod_from *from, const void *request,
			size_t size, struct smartiod_loan *loan, smartiod_step *step,
			struct sio_err *reterr);
/* End the operation, then answer: @msg must not lie in it. @fds stay the caller's; nobody but an
 * asker here sees them. */
void smartiod_lend_done(struct smartiod *d, struct smartiod_lend *lend, void *msg, size_t len,
			const int *fds, unsigned n_fds);
void smartiod_lend_ok(struct smartiod *d, struct smartiod_lend *lend);
void smartiod_lend_fail(struct smartiod *d, struct smartiod_lend *lend, int error, const char *fmt,
			...) __attribute__((format(printf, 4, 5)));

/* ---- loan.c ---- */

/* The live borrow @id of @node; NULL with a text. */
struct smartiod_loan *smartiod_loan_get(struct smartiod *d, const struct smartiod_from *from,
					uint32_t fdid, uint64_t id, struct sio_err *reterr);
/* The same, if it holds the registers of its device. */
struct smartiod_loan *smartiod_loan_get_holder(struct smartiod *d, const struct smartiod_from *from,
					       uint32_t fdid, uint64_t id, struct sio_err *reterr);
struct smartiod_loan *smartiod_loan_find(struct smartiod *d, uint64_t id);
/* The one whose port owner is @owner. */
struct smartiod_loan *smartiod_loan_by_owner(struct smartiod *d, uint64_t owner);
/* ---- loan_end.c ---- */

void smartiod_loan_end(struct smartiod *d, struct smartiod_loan *loan);
/* The port ended the owner: what the device can still reach is known. The caller has it pinned. */
void smartiod_loan_closed(struct smartiod *d, struct smartiod_loan *loan);
/* Those of a device that is gone end, and so do their quarantines; the borrowers are told. */
void smartiod_loans_device_gone(struct smartiod *d, struct smartiod_device *dev);
/* Its owner has ended, and not by our word. */
void smartiod_loan_owner_gone(struct smartiod *d, struct smartiod_loan *loan);
/* The first loan with an id greater than @after; of all devices. */
struct smartiod_loan *smartiod_loan_after(struct smartiod *d, uint64_t after);
void smartiod_loan_unpin(struct smartiod *d, struct smartiod_loan *loan);
void smartiod_loan_free(struct smartiod *d, struct smartiod_loan *loan);
/* Frees it when nothing is left of it. */
void smartiod_loan_check(struct smartiod *d, struct smartiod_loan *loan);
void smartiod_loan_node_down(struct smartiod *d, uint32_t node);
/* The last path to it is: the same, and it is told. */
void smartiod_loan_link_lost(struct smartiod *d, uint32_t node);
/* A path to it is, and others are up: the same for those that use it. */
void smartiod_loan_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter);
void smartiod_loan_free_all(struct smartiod *d);
/* OWNER_GONE of @owner, which may be a loan's. */
void smartiod_lender_owner_gone(struct smartiod *d, uint64_t owner);
/*
 * The cookie of a borrow's owner at the port: the number that is the borrow's within this boot, the
 * port's id of the device, and how it was asked for. That of a session's owner is
 * SMARTIOD_COOKIE_SESSION and its secret, or nothing above bit 31.
 */
#define SMARTIOD_COOKIE_EXCLUSIVE (1ULL << 63)
uint64_t smartiod_loan_cookie(const struct smartiod_loan *loan, bool exclusive);

/* ---- old_vector.c: vectors of before we were started ---- */

bool smartiod_old_vector_has(const struct smartiod_device *dev, uint32_t number);
/* The port silenced the loan's vectors. */
void smartiod_old_vectors_end(struct smartiod_loan *loan);

/* An interrupt of ours is about to go: none of them may keep it. */
void smartiod_old_vectors_irq_ends(struct smartiod *d, uint64_t irq);

/* ---- barview.c ---- */

/* The borrow ends: its grants of BAR pages go, its views are the port's to close. */
void smartiod_views_end(struct smartiod *d, struct smartiod_loan *loan);
/*
 * One more map uses view @id of BAR @bar, which the port has since before we were started. *ret:
 * the view; NULL: it leads nowhere, which is what a reset makes of doorbells (@reset: there was one
 * that the program has not heard of).
 */
int smartiod_view_again(struct smartiod *d, struct smartiod_loan *loan, uint32_t bar, uint64_t id,
			bool reset, struct smartiod_view **ret, struct sio_err *reterr);
/*
 * @dev was reset: the next view of its doorbells that is to be closed at the port; its borrower has
 * it no more. 0: none is left.
 */
uint64_t smartiod_doorbells_take(struct smartiod *d, struct smartiod_device *dev);

/* A path to @node, or all of them, are down: devices there reach no pages of BARs any more. */
void smartiod_view_grants_lost(struct smartiod *d, uint32_t node,
			       const struct smartiod_path_change *path);

/* ---- bargrant.c ---- */

/* A reset of @dev is over: those who ask for its doorbells have waited for that. */
void smartiod_bars_go_on(struct smartiod *d, const struct smartiod_device *dev);

/* ---- dmabar.c ---- */

/* What @dma has of the lender of its target goes back. */
void smartiod_dma_bar_release(struct smartiod *d, struct smartiod_dma *dma);
/* Mappings, for devices of this host, of @view (0: of all) that borrow @bar_borrow has here. */
void smartiod_dma_bars_cut(struct smartiod *d, uint64_t bar_borrow, uint64_t view);
/* The same of all that lies with @node; @path: not NULL: of what goes over it. */
void smartiod_dma_bars_lost(struct smartiod *d, uint32_t node,
			    const struct smartiod_path_change *path);

/* ---- dmalend.c ---- */

/*
 * The port takes @dma's pages from the device, which may still send to the address: nobody else
 * gets that before the mapping ends. What it had is given back.
 */
void smartiod_dma_cut(struct smartiod *d, struct smartiod_dma *dma);

/* A mapping that the port has since before we were started. -ENOMEM. */
int smartiod_dma_adopt(struct smartiod *d, struct smartiod_loan *loan,
		       const struct sio_list_entry *e);
/* Nobody wants one of those: it ends. */
void smartiod_dma_drop(struct smartiod *d, struct smartiod_dma *dma);
/* The device has let go of it (or never could reach it): give all back. */
void smartiod_dma_release(struct smartiod *d, struct smartiod_dma *dma);
/* What is mapped of @node that others may still ask for: the host is lost, or has started anew. */
void smartiod_dma_node_down(struct smartiod *d, uint32_t node);
void smartiod_dma_new_start(struct smartiod *d, uint32_t node);
bool smartiod_dma_has_grant(struct smartiod *d, uint32_t node, uint64_t grant);
/* Mappings of @seg for devices of this host, by living programs of this host. */
unsigned smartiod_dma_own_mappings(struct smartiod *d, const struct smartiod_segment *seg);
/*
 * Mappings of before that no library has claimed: @seg, a segment again, or one that ends, is not
 * freed under them.
 */
void smartiod_dma_claim(struct smartiod *d, struct smartiod_segment *seg);
void smartiod_dma_free_all(struct smartiod *d);

/*
 * The way from here to @node; @adapter: the other's where it must arrive, or SIO_PEER_ANY_ADAPTER.
 */
int smartiod_lend_path(struct smartiod *d, uint32_t node, uint32_t adapter, struct sio_path *ret,
		       struct sio_err *reterr);

/* ---- requester.c ---- */

/*
 * Have the device's entry in the table of @adapter: user->have is called, perhaps before this
 * returns. If @op waits for the port, its step calls smartiod_requester_answer() with the answer.
 */
void smartiod_requester_get(struct smartiod *d, struct smartiod_device *dev, unsigned adapter,
			    struct smartiod_op *op, struct smartiod_requester_user *user);
void smartiod_requester_answer(struct smartiod *d, struct smartiod_requester *r,
			       const struct smartiod_answer *a,
			       struct smartiod_requester_user *user);
void smartiod_requester_put(struct smartiod *d, struct smartiod_requester *r);

/* ---- vector.c ---- */

/* The borrow ended, and its owner was closed: its vectors send no more. */
void smartiod_vectors_end(struct smartiod *d, struct smartiod_loan *loan);
/* Vector @number of before goes on to trigger what it does, by the port's word. */
int smartiod_vector_again(struct smartiod *d, struct smartiod_loan *loan, uint32_t number,
			  struct sio_err *reterr);
/* Vectors of before that nobody wants end. */
void smartiod_vectors_drop(struct smartiod *d, struct smartiod_loan *loan);

/* ---- devseg.c ---- */

/*
 * It has ended: what it made goes, but for what lasts. @held: it had the device's registers, and so
 * what others had left there.
 */
void smartiod_dev_segs_end(struct smartiod *d, struct smartiod_loan *loan, bool held);
/* Nothing of it is left: what lasted goes. */
void smartiod_dev_segs_over(struct smartiod *d, struct smartiod_loan *loan);
void smartiod_dev_segs_free(struct smartiod_device *dev);
/* A device segment of before, which @loan made. */
int smartiod_dev_seg_again(struct smartiod *d, struct smartiod_loan *loan, uint32_t id,
			   uint32_t memtype, struct smartiod_leftover *l, struct sio_err *reterr);
bool smartiod_dev_seg_idle(struct smartiod *d, struct smartiod_segment *seg);

/* ---- quarantine.c ---- */

void smartiod_loan_settled(struct smartiod *d, struct smartiod_loan *loan);
/* Tell a borrower of @event; @gone: whose end it is. */
void smartiod_loan_notify(struct smartiod *d, struct smartiod_loan *loan, uint32_t event,
			  uint64_t gone);
/* Tell whoever has the registers that @gone is in quarantine; nobody has them: nothing. */
void smartiod_holder_notify(struct smartiod *d, struct smartiod_device *dev, uint64_t gone);
/* Tell a new holder of all that wait. */
void smartiod_holder_welcome(struct smartiod *d, struct smartiod_loan *holder);

/*
 * The lender resets its device: the port is asked, and then follows what follows SETTLED for all.
 * smartiod_reset_over() is told how it went, behind the news to borrowers.
 */
void smartiod_word_reset(struct smartiod *d, struct smartiod_device *dev, uint32_t kind);

/* ---- reset.c ---- */

/* How the port can reset it: SIO_RESET_FUNCTION; _BUS, where it cannot; 0: not at all. */
uint32_t smartiod_reset_kind(const struct smartiod_device *dev);
/*
 * @l is a new borrow of its device. Return: true: that is to be reset first, and @op, which @w is
 * part of, is parked: its step is called with what became of it.
 */
bool smartiod_reset_first(struct smartiod *d, struct smartiod_loan *l, bool exclusive,
			  struct smartiod_waiter *w, struct smartiod_op *op);
/* Nothing is to be waited for, or any more: it uses the device from now on. */
void smartiod_reset_lend(struct smartiod *d, struct smartiod_loan *l);
/* Its operation was woken, perhaps by another cause. */
void smartiod_reset_leave(struct smartiod_waiter *w);
/* The port has told all that is left of a borrow that ended: was it the last? */
void smartiod_reset_borrow_over(struct smartiod *d, struct smartiod_device *dev);
/* A reset that is wanted begins, if it may. */
void smartiod_reset_check(struct smartiod *d, struct smartiod_device *dev);
void smartiod_reset_over(struct smartiod *d, struct smartiod_device *dev, int error,
			 const char *text);
/* The daemon's normal life begins: resets that waited for that. */
void smartiod_resets_ready(struct smartiod *d);
/* It was opened at the port. @fresh: nobody had it since it came. */
void smartiod_reset_opened(struct smartiod *d, struct smartiod_device *dev, bool fresh);
void smartiod_reset_device_gone(struct smartiod *d, struct smartiod_device *dev);
/*
 * Have it reset for somebody who has not borrowed it: @op is parked until that is over. @force:
 * although it is used.
 */
void smartiod_reset_now(struct smartiod *d, struct smartiod_device *dev, bool force,
			struct smartiod_waiter *w, struct smartiod_op *op);

/* ---- hold.c ---- */

/* One more queue lies in @dma. -ENOMEM, -ENOSPC. */
int smartiod_hold_add(struct smartiod_dma *dma, uint32_t node, struct sio_err *reterr);
uint32_t smartiod_hold_count(const struct smartiod_dma *dma);
/* None does any more. */
void smartiod_holds_drop(struct smartiod_dma *dma);
/* The device has no queue any more. */
void smartiod_holds_end(struct smartiod *d, struct smartiod_device *dev);

#endif
