/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lender's side of a borrow. Each request about a device goes to its lender's daemon as a
 * message of wire/peer.h, whether the lender is another host or this one (room.h: smartiod_ask()).
 * Each kind of object that a borrow has is in a file of its own: loan.c, bargrant.c, barview.c,
 * dma.c, devseg.c, vector.c, hold.c, quarantine.c, reset.c.
 */
#ifndef SMARTIOD_LEND_H
#define SMARTIOD_LEND_H

#include "smartiod/base/unclaimed.h"
#include "smartiod/base/peer.h"
#include "smartiod/device/devclass.h"
#include "smartiod/device/device.h"
#include "smartiod/interrupt/dint.h"
#include "smartiod/lender/loan_life.h"
#include "smartiod/lender/vector_life.h"
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

/* Whoever wants an entry: part of an operation. */
struct smartiod_requester_user {
	struct smartiod_requester_user *next;
	/*
	 * Called when the entry is there, or cannot be had (@a->error). Either way the user counts
	 * until smartiod_requester_put().
	 */
	void (*have)(struct smartiod *d, struct smartiod_requester_user *user,
		     const struct smartiod_answer *a);
};

/* The lender's entry for a device segment: where the memory lies. */
struct smartiod_dev_seg {
	struct smartiod_dev_seg *next; /* of the device */
	uint64_t private_to;	       /* the borrow; 0: shared by all */
	uint64_t creator;	       /* the borrow that made it */
	uint32_t id, node;
	uint64_t uid, bytes;
	bool lasting; /* our own memory: it stays as long as anything of its creator does */
	/*
	 * One that lasts: the program, which may live, that alone may go on with it; 0: whoever
	 * owns the registers.
	 */
	uint64_t only_session;
	uint32_t only_node;
	struct smartiod_segment *segment; /* on this host; else NULL */
	struct smartiod_lend *making;	  /* asks the port for that; NULL: it is there */
	uint32_t meeting; /* of the daemons, at which the borrower's reported it last */
	/* devseg_again.c, of @segment: */
	bool unheard;	/* its maker's daemon has not heard of it: the answer was lost */
	bool adopted;	/* of before we were started; who is connected to it is not known yet */
	bool connected; /* the same: somebody was, and it ends if nobody is */
};

/* An operation of the lender: each flow embeds it as its first member. */
struct smartiod_lend {
	struct smartiod_op op;
	struct smartiod_from from;
	struct smartiod_loan *loan; /* pinned; NULL: none */
};

/*
 * A settlement under way: the statement that a device no longer uses what one borrower, or all that
 * have ended, had mapped for it. quarantine.c.
 */
struct smartiod_word {
	struct smartiod_lend lend; /* the request */
	struct smartiod_device *device;
	uint64_t settled;    /* a borrow, or SIO_LEDGER_ALL */
	bool own;	     /* the lender's own decision: reset.c */
	bool reset;	     /* queues of all are gone: the generation goes up */
	bool keep;	     /* its borrower, which is alone, keeps its doorbells */
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
	bool said;		   /* a log line has said that the device cannot be reset */
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
	struct smartiod_assigned *assigned;
	struct smartiod_view *kept; /* of borrows that have ended: kept.c */
	bool was_gone;		    /* queues that lay in its memory before may be left */
	struct smartiod_vector *vectors;
	struct smartiod_old_vector *old_vectors;
	bool stopped; /* a borrower cleared its bus master bit */
	/* settlements under way that end all its queues: SETTLED for all, RESET */
	unsigned clearing;
	struct smartiod_reset reset;
};

/* Lender: a view of a part of a BAR, and the grants of it. */
struct smartiod_view {
	struct smartiod_view *next; /* of the loan */
	uint64_t id;		    /* the port's BAR */
	uint32_t bar, access, flags;
	uint64_t offset, length, fd_offset;
	int fd;
	unsigned users;
	bool doorbells;
	bool open;	  /* memory that every borrower has, as long as it has the device */
	bool holds;	  /* its borrower owns the registers */
	bool closed;	  /* by a reset, which took the doorbells away: in these tables alone */
	uint64_t kept_of; /* kept.c: the borrow that has ended; not in its list any more */
};
struct smartiod_view_grant {
	struct smartiod_view_grant *next;     /* of the loan */
	uint64_t view, grant;		      /* grant: the port's */
	uint32_t node, adapter, peer_adapter; /* who asked, and the way there */
	bool device;			      /* for a device of that node's: dmabar.c */
	bool pending; /* of before we were started, and that node has not said that it has it */
	bool member;  /* @grant is the port's member of @group: overlay.c */
	uint32_t group;
	uint32_t meeting; /* at which that node reported it last */
};

/* Lender: pages of the device's own memory that the owner of its registers lets a borrow use. */
struct smartiod_assigned {
	struct smartiod_assigned *next; /* of the device */
	uint64_t borrow, offset, length;
	uint32_t bar;
};

/*
 * Lender: holds on a DMA mapping that a borrow of @node took, because queues of the device lie in
 * it. The borrow may have ended.
 */
struct smartiod_hold {
	struct smartiod_hold *next;
	uint64_t borrow;
	uint32_t node, count; /* count 0: all were released */
	uint32_t meeting;     /* of the daemons, at which that node's reported them last */
};

/* Lender: a range that the device can reach for a borrower. */
struct smartiod_dma {
	struct smartiod_tree_node by_id; /* in devices->dmas; key: the port's DMA map */
	struct smartiod_dma *next;	 /* of the loan */
	struct smartiod_loan *loan;
	uint32_t exporter, adapter, peer_adapter;
	uint64_t uid, bytes;
	struct sio_dev_addr iova;
	uint64_t map, grant; /* through a window: the port's map, the exporter's grant */
	uint64_t group;	     /* the port's way to a multicast group; 0: it is none */
	struct smartiod_segment *segment; /* on this host */
	bool window;			  /* it uses the requester entry of adapter */
	bool lost;			  /* its exporter was lost since it was granted */
	bool unmapping;
	bool chosen; /* its address is the borrower's choice, who must be alone */
	/* Of BAR pages of a device: dmabar.c. */
	/* The borrow of that device; UINT64_MAX: only its lender knows it; 0: it is of memory */
	uint64_t bar_borrow;
	uint64_t view;	      /* its lender's; 0: none any more */
	uint32_t target_fdid; /* that device */
	bool cut;	      /* it leads nowhere any more; or (held) the other end sees to that */
	bool whole;	      /* all of a BAR, for a kernel's driver */
	bool kept;	      /* that borrow has ended, but its pages stay: kept.c */
	bool outlives;	      /* the port keeps it when that borrow ends (HOLD) */
	bool old_view;	      /* of before we were started, and nobody has claimed it for this */
	bool adopted;	      /* of before we were started, and no program has claimed it */
	uint64_t target;      /* adopted: the port's memory, map, or view of a BAR; 0: cut */
	uint64_t bus_addr;    /* the same, of a map: what it leads to at its exporter, */
	uint64_t there_grant; /* by which of its grants */
	bool of_bar;	      /* the same: that is pages of a BAR */
	bool disowned;	      /* the same: its exporter has reported all grants, and none for it */
	uint32_t granted_at;  /* the meeting with its exporter that reported the grant last */
	uint32_t meeting;     /* at which the borrower's daemon reported it last */
	bool before;	      /* it is of before our start, claimed or not */
	struct smartiod_hold *holds; /* smartiod_held(): not to be unmapped */
	struct smartiod_charge charge;
};

/* Lender: an interrupt vector of the device, the sender to a plain interrupt of any host. */
struct smartiod_vector {
	struct smartiod_dint_link link; /* of_device; where it leads, and what it has there */
	struct smartiod_vector *next;	/* of the device */
	uint32_t meeting;		/* of the daemons, at which the borrower's named it last */
	bool window;			/* it uses the requester entry of link.adapter, or was to */
	bool adopted; /* of before our start, and nobody has claimed it; has link.there */
	struct smartiod_device *device;
	struct smartiod_loan *loan;
	struct smartiod_lend *setting; /* NULL: it is set */
	uint32_t number;
	enum smartiod_vector_state state;
};

/*
 * Lender: a vector that a borrow has since before we were started. One that leads to another
 * host is a struct smartiod_vector again when its window is found.
 */
struct smartiod_old_vector {
	struct smartiod_old_vector *next; /* of the device */
	struct smartiod_loan *loan;
	uint32_t number;
	uint64_t irq; /* the port's: an interrupt, or the window to another host's */
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
	bool settling;	   /* the port was asked to settle it */
	bool lost;	   /* the device is gone: nothing of it stays in quarantine */
	bool forbidden;	   /* the cluster's file, which was read anew, ended it */
	bool cut_off;	   /* it ended for us alone: its program may live, and store by its maps */
	bool peers;	   /* it has a shadow that reaches BARs of others; said at a meeting */
	bool program_over; /* it ended with its program */
	uint32_t meeting;  /* at which the borrower's daemon reported it last, */
	uint32_t heard;	   /* with this generation of the device */
	bool unheard;	   /* a notice may not have reached its daemon or program: notice.c */
	struct smartiod_view *views;
	struct smartiod_view_grant *grants;
	struct smartiod_dma *dmas;
	unsigned pins;	 /* operations in progress */
	unsigned giving; /* views that the port is giving to the daemon: kept.c */
	struct smartiod_charge charge;
};

/* Has its borrower ended? */
static inline bool smartiod_loan_ended(const struct smartiod_loan *loan)
{
	return loan->state >= SMARTIOD_LOAN_WAITING_ENDED;
}
/*
 * Applies an event to the loan's state. An event that is not allowed in that state is a bug of the
 * daemon, and ends it.
 */
void smartiod_loan_enter(struct smartiod *d, struct smartiod_loan *loan,
			 enum smartiod_loan_event event);

/* ---- lend.c ---- */

void *smartiod_lend_new(struct smartiod *d, const struct smartiod_from *from, const void *request,
			size_t size, struct smartiod_loan *loan, smartiod_step *step,
			struct sio_err *reterr);
/*
 * Ends the operation, then answers: @msg must not be part of it. @fds stay the caller's; only a
 * requester on this host sees them.
 */
void smartiod_lend_done(struct smartiod *d, struct smartiod_lend *lend, void *msg, size_t len,
			const int *fds, unsigned n_fds);
/*
 * Has the daemon of another host that sent the request ended since? Then what was made must be
 * undone.
 */
static inline bool smartiod_lend_orphan(const struct smartiod_lend *lend)
{
	return !lend->from.back && smartiod_op_orphan(&lend->op);
}
/* The peer asks the same again, whose first request nobody waits for: it gets the answer. */
void smartiod_lend_take_over(struct smartiod_lend *lend, const struct smartiod_from *from,
			     const void *request);
void smartiod_lend_ok(struct smartiod *d, struct smartiod_lend *lend);
void smartiod_lend_fail(struct smartiod *d, struct smartiod_lend *lend, int error, const char *fmt,
			...) __attribute__((format(printf, 4, 5)));

/* ---- loan.c ---- */

/* The live borrow @id of the requester's node; NULL with a text. */
struct smartiod_loan *smartiod_loan_get(struct smartiod *d, const struct smartiod_from *from,
					uint32_t fdid, uint64_t id, struct sio_err *reterr);
/* The same, if it owns the registers of its device. */
struct smartiod_loan *smartiod_loan_get_holder(struct smartiod *d, const struct smartiod_from *from,
					       uint32_t fdid, uint64_t id, struct sio_err *reterr);
struct smartiod_loan *smartiod_loan_find(struct smartiod *d, uint64_t id);
/*
 * Has this host given a borrow this number, whichever of its devices that was of? Also one of
 * before our start, of which we may know nothing else.
 */
bool smartiod_loan_was_given(const struct smartiod *d, uint64_t id);
/* The loan whose owner at the port is @owner. */
struct smartiod_loan *smartiod_loan_by_owner(struct smartiod *d, uint64_t owner);
/* The borrow that a message of a meeting is about; NULL: it is lost, and its host was notified. */
struct smartiod_loan *smartiod_loan_of(struct smartiod *d, const struct smartiod_from *from,
				       uint64_t borrower, uint32_t fdid);
/* ---- loan_end.c ---- */

void smartiod_loan_end(struct smartiod *d, struct smartiod_loan *loan);
/*
 * The port has ended the owner, and has reported what the device can still reach. The caller has
 * the loan pinned.
 */
void smartiod_loan_closed(struct smartiod *d, struct smartiod_loan *loan);
/* Ends the loans of a device that is gone, and their quarantines; the borrowers are notified. */
void smartiod_loans_device_gone(struct smartiod *d, struct smartiod_device *dev);
/* The loan's owner at the port has ended, and not by a request of this daemon. */
void smartiod_loan_owner_gone(struct smartiod *d, struct smartiod_loan *loan);
/* The first loan with an id greater than @after; of all devices. */
struct smartiod_loan *smartiod_loan_after(struct smartiod *d, uint64_t after);
void smartiod_loan_unpin(struct smartiod *d, struct smartiod_loan *loan);
void smartiod_loan_free(struct smartiod *d, struct smartiod_loan *loan);
/* The port is to end its owner, if there is one yet. */
void smartiod_loan_close_owner(struct smartiod *d, struct smartiod_loan *loan);
/* Frees the loan when nothing is left of it. */
void smartiod_loan_check(struct smartiod *d, struct smartiod_loan *loan);
void smartiod_loan_node_down(struct smartiod *d, uint32_t node);
/* The daemon of @node is expected to connect again: its loans end that are still being made. */
void smartiod_loan_away(struct smartiod *d, uint32_t node);
/* The borrower's daemon is there, and is notified that the borrow ends: something of it is lost. */
void smartiod_loan_give_up(struct smartiod *d, struct smartiod_loan *loan);
/* The last path to @node is down: its loans end, and its daemon is notified. */
void smartiod_loan_link_lost(struct smartiod *d, uint32_t node);
/* Part of the room's table (base/room.h). */
struct smartiod_forbid;
void smartiod_loans_forbidden(struct smartiod *d, const struct smartiod_forbid *f);
void smartiod_loans_parting(struct smartiod *d, uint32_t node);
/* One path to @node is down, and others are up: loans that use that path end. */
void smartiod_loan_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter);
void smartiod_loan_free_all(struct smartiod *d);
/* The event OWNER_GONE of @owner, which may be a loan's owner. */
void smartiod_lender_owner_gone(struct smartiod *d, uint64_t owner);
/*
 * The cookie of a borrow's owner at the port: the number that is the borrow's within this boot, the
 * low bits of the port's id of the device, the borrower's host, how it was asked for. That of a
 * session's owner is SMARTIOD_COOKIE_SESSION and its secret, or nothing above bit 31.
 */
#define SMARTIOD_COOKIE_EXCLUSIVE (1ULL << 63)
#define SMARTIOD_COOKIE_NODE_SHIFT 53 /* the borrower's host, below SMARTIOD_COOKIE_SESSION */
#define SMARTIOD_COOKIE_DEVICES 0x1fffffu
_Static_assert(SIO_MAX_NODE < 1 << (62 - SMARTIOD_COOKIE_NODE_SHIFT), "a node's id fits");
uint64_t smartiod_loan_cookie(const struct smartiod_loan *loan, bool exclusive);

/* ---- notice.c ---- */

/* The loan's program is back, with its daemon: it gets the notice that it may have missed. */
void smartiod_notice_again(struct smartiod *d, struct smartiod_loan *loan);

/* ---- old_vector.c: vectors of before we were started ---- */

bool smartiod_old_vector_has(const struct smartiod_device *dev, uint32_t number);
/*
 * vector_adopt.c: those of any device that trigger what window @e, a map, leads to, are vectors as
 * ours from now on. Return: are there any? -ENOMEM.
 */
int smartiod_vectors_adopt(struct smartiod *d, const struct sio_list_entry *e);
/* The port has silenced the loan's vectors. */
void smartiod_old_vectors_end(struct smartiod_loan *loan);

/* An interrupt of this host is about to end: none of these vectors may refer to it any more. */
void smartiod_old_vectors_irq_ends(struct smartiod *d, uint64_t irq);

/* ---- barview.c ---- */

/* The borrow ends: its grants of BAR pages end; the port closes its views. */
void smartiod_views_end(struct smartiod *d, struct smartiod_loan *loan);
/*
 * One more mapping, @what, uses the loan's view of BAR @bar, which the port has since before this
 * daemon was started. *ret: the view; NULL: it leads nowhere, which is what a reset makes of
 * doorbells (@reset: there was a reset of which the program has not been notified).
 */
int smartiod_view_again(struct smartiod *d, struct smartiod_loan *loan, uint32_t bar,
			const struct smartiod_view_grant *what, bool reset,
			struct smartiod_view **ret, struct sio_err *reterr);
/* Part of the room's table. */
int smartiod_view_again_of(struct smartiod *d, uint64_t borrower, uint32_t generation, uint32_t bar,
			   uint64_t view, struct sio_err *reterr);
/*
 * @dev was reset: takes the next view of its doorbells from its borrower, and returns its id, for
 * the caller to close at the port. 0: none is left.
 */
uint64_t smartiod_doorbells_take(struct smartiod *d, struct smartiod_device *dev);

/* A path to @node, or every one, is down: devices there reach no pages of BARs any more. */
void smartiod_view_grants_lost(struct smartiod *d, uint32_t node,
			       const struct smartiod_path_change *path);

/* ---- bargrant.c ---- */

/* A reset of @dev is over: requests for its doorbells that waited for that continue. */
void smartiod_bars_go_on(struct smartiod *d, const struct smartiod_device *dev);

/* ---- assign.c ---- */

/*
 * The assigned pages of @loan in BAR @bar that contain [offset, end). Return: there are such pages.
 */
bool smartiod_assigned_find(const struct smartiod_loan *loan, uint32_t bar, uint64_t offset,
			    uint64_t end, struct smartiod_bar_run *ret);
/* Ends the assignments of @dev to borrow @of (0: any), which cannot reach the pages any more. */
void smartiod_assigned_end(struct smartiod_device *dev, uint64_t of);

/* ---- dmabar.c ---- */

/* Releases what @dma has of the lender of its target. */
void smartiod_dma_bar_release(struct smartiod *d, struct smartiod_dma *dma);
/*
 * Cuts the mappings, for devices of this host, of @view (0: of all) that borrow @bar_borrow has
 * here.
 */
void smartiod_dma_bars_cut(struct smartiod *d, uint64_t bar_borrow, uint64_t view);
/*
 * Mappings that the port has since before this daemon was started lead to view @e, which its borrow
 * is to claim again: smartiod_dma_bar_again(). Return: some of them outlive that borrow.
 */
bool smartiod_dma_adopt_view(struct smartiod *d, const struct sio_list_entry *e);
/* Nobody claimed @view of @owner, or a reset takes it: what leads there is cut. */
void smartiod_dma_view_ends(struct smartiod *d, uint64_t owner, uint64_t view);
/*
 * @dma of before is of BAR @bar of @loan's device. It stays cut, or is cut if its pages were taken
 * away: with @reset, which its program has not heard of, doorbells. < 0: it is of something else.
 */
int smartiod_dma_bar_again(struct smartiod *d, struct smartiod_dma *dma, struct smartiod_loan *loan,
			   uint32_t bar, bool reset, struct sio_err *reterr);
/* @dma of before, if it is of a BAR: nobody has told whose pages these are. It is cut. */
void smartiod_dma_bar_lost(struct smartiod *d, struct smartiod_dma *dma);

/* ---- bar_again.c: the same, of borrowers on other hosts ---- */

/* Is it of a BAR of another shadow of the host that has @l? */
bool smartiod_dma_is_peers(const struct smartiod_loan *l, const struct smartiod_dma *dma);
/*
 * @dma of before is of a BAR of another host's device, whose host says when it takes the pages
 * back; it is cut if that has happened.
 */
void smartiod_dma_far_again(struct smartiod *d, struct smartiod_dma *dma);
/* Its host says of which pages @dma is. */
void smartiod_dma_bar_known(struct smartiod *d, struct smartiod_dma *dma,
			    const struct sio_peer_resume_grant *q);
/*
 * The borrower of @l has reported all that it has: what devices of other hosts still have of its
 * pages from before this daemon was started stays theirs. @reset: smartiod_view_again(). < 0: some
 * of it is lost, and nobody but the borrower could be told.
 */
int smartiod_views_held_again(struct smartiod *d, struct smartiod_loan *l, bool reset,
			      struct sio_err *reterr);
/* What of it @node does not have, or has given back when nobody heard of that, ends. */
void smartiod_views_answered(struct smartiod *d, uint32_t node);
/* Of resynchronisation, the rooms' fill_grant and held_again: */
void smartiod_view_fill_grant(struct smartiod *d, uint64_t target, struct sio_peer_resume_grant *q);
void smartiod_view_held(struct smartiod *d, uint32_t node, uint64_t grant);
/*
 * The borrower's host has reported all that it has: what @l still has mapped of BARs of before this
 * daemon was started is claimed, or cut.
 */
void smartiod_dma_bars_resumed(struct smartiod *d, struct smartiod_loan *l);
/* @dev is gone, and with it the memory of it that was kept. */
void smartiod_dma_bars_gone(struct smartiod *d, struct smartiod_device *dev);
/* Cuts all mappings of BAR pages of devices of @node; @path not NULL: only those over that path. */
void smartiod_dma_bars_lost(struct smartiod *d, uint32_t node,
			    const struct smartiod_path_change *path);

/* ---- kept.c ---- */

/* Whether queues of its device may lie in @dma, which is of a BAR: -EOPNOTSUPP. */
int smartiod_kept_can(struct smartiod *d, const struct smartiod_dma *dma, struct sio_err *reterr);
/* Memory of @dev that is kept counts as registers, which nobody gets to write meanwhile. */
bool smartiod_kept_registers(const struct smartiod_device *dev);
/* The borrow ends: its views that queues of other devices lie in stay, kept by us from now on. */
void smartiod_views_keep(struct smartiod *d, struct smartiod_loan *loan);
/* @dma, which is kept, is no more. Return: the device whose memory is not kept any more; NULL. */
struct smartiod_device *smartiod_kept_release(struct smartiod *d, struct smartiod_dma *dma);
/* One of @dev is kept no more: @ret_view, which is to be closed. False: there is none. */
bool smartiod_kept_take(struct smartiod *d, struct smartiod_device *dev, uint64_t *ret_borrow,
			uint64_t *ret_view);
/* -EBUSY: there is one of @dev, or a queue lies where its memory was before it was pulled out. */
int smartiod_kept_none(struct smartiod *d, struct smartiod_device *dev, struct sio_err *reterr);
void smartiod_kept_free(struct smartiod_device *dev);

/* ---- dma.c ---- */

/* A new DMA mapping, which an operation makes for @loan. NULL: no memory. */
struct smartiod_dma *smartiod_dma_new(struct smartiod *d, struct smartiod_loan *loan);
/* The mapping could not be made: releases what it has, and frees it. */
void smartiod_dma_abandon(struct smartiod *d, struct smartiod_dma *dma);
/*
 * A mapping of the borrow at an address that its borrower has chosen, be it still being made; NULL:
 * there is none.
 */
const struct smartiod_dma *smartiod_dma_chosen(const struct smartiod *d,
					       const struct smartiod_loan *l);
/* The port has made the mapping, with id @id; dma->iova is set. */
void smartiod_dma_made(struct smartiod *d, struct smartiod_dma *dma, uint64_t id);
/* The port has answered DMAUNMAP, for which dma->unmapping was set. */
void smartiod_dma_unmapped(struct smartiod *d, struct smartiod_dma *dma, int error);
/*
 * Cuts the mapping: the port takes its pages from the device. The device may still access the
 * address, which is not given to anybody else before the mapping ends. What the mapping had is
 * released.
 */
void smartiod_dma_cut(struct smartiod *d, struct smartiod_dma *dma);

/* Adopts a mapping that the port has since before this daemon was started. -ENOMEM. */
int smartiod_dma_adopt(struct smartiod *d, struct smartiod_loan *loan,
		       const struct sio_list_entry *e);
/* Ends an adopted mapping that no program has claimed. */
void smartiod_dma_drop(struct smartiod *d, struct smartiod_dma *dma);
/* The device has released the mapping, or never could reach it: everything is released. */
void smartiod_dma_release(struct smartiod *d, struct smartiod_dma *dma);
/*
 * @node is lost, or has started again: marks mappings of its memory, which others may still ask
 * for.
 */
void smartiod_dma_node_down(struct smartiod *d, uint32_t node);
void smartiod_dma_new_start(struct smartiod *d, uint32_t node);
bool smartiod_dma_has_grant(struct smartiod *d, uint32_t node, uint64_t grant);
/* Mappings of @seg for devices of this host, by living programs of this host. */
unsigned smartiod_dma_own_mappings(struct smartiod *d, const struct smartiod_segment *seg);
/*
 * @seg has its memory again, or ends: adopted mappings of that memory that no library has claimed
 * keep it from being freed.
 */
void smartiod_dma_claim(struct smartiod *d, struct smartiod_segment *seg);
void smartiod_dma_free_all(struct smartiod *d);

/* ---- dmalend.c ---- */

/*
 * The shortest path from @l's device to the memory of @node, or to @target, a device there.
 * @adapter: the adapter of the other host where it must arrive, or SIO_PEER_ANY_ADAPTER. Through
 * the adapter of ours that @l has already to that one: what is read of the device pushes what it
 * wrote only if both go the same way.
 */
int smartiod_lend_path(struct smartiod *d, const struct smartiod_loan *l, uint32_t node,
		       const struct smartiod_device *target, uint32_t adapter, struct sio_path *ret,
		       struct sio_err *reterr);

/* ---- requester.c ---- */

/*
 * Gets a reference to the device's entry in the table of @adapter, which is made if need be:
 * user->have is called, perhaps before this returns. If @op waits for the port, its step calls
 * smartiod_requester_answer() with the answer.
 */
void smartiod_requester_get(struct smartiod *d, struct smartiod_device *dev, unsigned adapter,
			    struct smartiod_op *op, struct smartiod_requester_user *user);
void smartiod_requester_answer(struct smartiod *d, struct smartiod_requester *r,
			       const struct smartiod_answer *a,
			       struct smartiod_requester_user *user);
void smartiod_requester_put(struct smartiod *d, struct smartiod_requester *r);

/* ---- vector.c ---- */

/* The borrow has ended, and its owner was closed: its vectors send no more. */
void smartiod_vectors_end(struct smartiod *d, struct smartiod_loan *loan);
/* So that the borrower's daemon does not name it any more. */
void smartiod_vector_notify_gone(struct smartiod *d, const struct smartiod_loan *loan,
				 uint32_t number);
/*
 * Restores vector @number of before the restart: it goes on to trigger the interrupt that the port
 * says. -ENOENT: there is no such vector, or the interrupt has ended.
 */
int smartiod_vector_again(struct smartiod *d, struct smartiod_loan *loan, uint32_t number,
			  struct sio_err *reterr);
/* The borrower's daemon will ask again for those that are being set: their numbers are free. */
void smartiod_vectors_away(struct smartiod_loan *loan);
/* The borrower's daemon has named vector @number at this meeting. False: the borrow has it not. */
bool smartiod_vector_resume(struct smartiod_loan *loan, uint32_t number);
/* Those that it has not named end. */
void smartiod_vectors_unnamed_end(struct smartiod *d, struct smartiod_loan *loan);
/* Vector @number of before the restart triggers what window @e, a map, leads to. -ENOMEM. */
int smartiod_vector_adopt(struct smartiod *d, struct smartiod_loan *loan, uint32_t number,
			  const struct sio_list_entry *e);
/* How many of the device's adopted ones need its requester entry at @adapter, which is there. */
unsigned smartiod_vectors_admitted(struct smartiod_device *dev, uint32_t adapter);
/* Ends the vectors of before the restart that no program has claimed. */
void smartiod_vectors_drop(struct smartiod *d, struct smartiod_loan *loan);

/* ---- devseg.c ---- */

/*
 * The borrow has ended: ends the device segments that it made, except lasting ones. Those are its
 * program's alone then, if that may live: one with another path goes on over that. @held: it owned
 * the device's registers, and so what others had left there.
 */
void smartiod_dev_segs_end(struct smartiod *d, struct smartiod_loan *loan, bool held);
/* @node is lost: what was kept for its programs ends. */
void smartiod_dev_segs_node_down(struct smartiod *d, uint32_t node);
/* Nothing of the borrow is left: ends its lasting device segments. */
void smartiod_dev_segs_over(struct smartiod *d, struct smartiod_loan *loan);
void smartiod_dev_segs_free(struct smartiod_device *dev);
bool smartiod_dev_seg_idle(struct smartiod *d, struct smartiod_segment *seg);

/* ---- devseg_again.c ---- */

/* Restart: what lies in this host's memory is there again, before anybody says who has it. */
void smartiod_dev_segs_adopt(struct smartiod *d);
/* Restart: a device segment of before, which @loan made. */
int smartiod_dev_seg_again(struct smartiod *d, struct smartiod_loan *loan, uint32_t id,
			   uint32_t memtype, struct smartiod_unclaimed *l, struct sio_err *reterr);
/* The device segment @uid of @loan's device, if @loan may connect to it; NULL. */
struct smartiod_segment *smartiod_dev_seg_of(const struct smartiod_loan *loan, uint64_t uid);
/*
 * Resynchronisation: the borrower of @loan has a device segment in its own host's memory. -ENOMEM,
 * -EEXIST.
 */
int smartiod_dev_seg_placed(struct smartiod *d, struct smartiod_loan *loan,
			    const struct sio_peer_resume_placed *m, struct sio_err *reterr);
/*
 * Resynchronisation: @node has reported all at meeting @but. Device segments in its memory that it
 * did not report end; of those in ours that it did not report its programs have not heard.
 */
void smartiod_dev_segs_resumed(struct smartiod *d, uint32_t node, uint32_t but);
/*
 * The borrower of @loan is back. If it has the device alone, nobody else can have been connected to
 * its segments of before our start.
 */
void smartiod_dev_segs_alone(struct smartiod *d, const struct smartiod_loan *loan);
/* A peer has reported, or is lost: those of before our start that nobody has any more may end. */
void smartiod_dev_segs_idle(struct smartiod *d);

/* ---- quarantine.c ---- */

void smartiod_loan_settled(struct smartiod *d, struct smartiod_loan *loan);
/* Notifies a borrower of @event; @gone: the borrow that has ended. */
void smartiod_loan_notify(struct smartiod *d, struct smartiod_loan *loan, uint32_t event,
			  uint64_t gone);
/*
 * Notifies the owner of the registers that @gone is in quarantine; without an owner nothing
 * happens.
 */
void smartiod_holder_notify(struct smartiod *d, struct smartiod_device *dev, uint64_t gone);
/* Notifies a new owner of the registers of all borrows in quarantine. */
void smartiod_holder_welcome(struct smartiod *d, struct smartiod_loan *holder);

/*
 * Resets a device by the lender's decision: sends RESET to the port, and then acts as after SETTLED
 * for all. smartiod_reset_over() is called with the result, after the notifications to borrowers.
 */
void smartiod_word_reset(struct smartiod *d, struct smartiod_device *dev, uint32_t kind);

/* ---- reset.c ---- */

/*
 * How the port can reset the device: SIO_RESET_FUNCTION; _BUS, where it cannot do that; 0: not at
 * all.
 */
uint32_t smartiod_reset_kind(const struct smartiod_device *dev);
/*
 * @l is a new borrow of its device. Return: true: the device must be reset first. Then @op, which
 * @w is part of, is parked; its step is called with the result.
 */
bool smartiod_reset_first(struct smartiod *d, struct smartiod_loan *l, bool exclusive,
			  struct smartiod_waiter *w, struct smartiod_op *op);
/* No reset is pending for @l, or it is over: the loan uses the device from now on. */
void smartiod_reset_lend(struct smartiod *d, struct smartiod_loan *l);
/* The waiter's operation was woken, perhaps for another reason. */
void smartiod_reset_leave(struct smartiod_waiter *w);
/*
 * The port has reported all that is left of a borrow that ended. If it was the last one, a reset
 * may be due.
 */
void smartiod_reset_borrow_over(struct smartiod *d, struct smartiod_device *dev);
/* Begins a reset that is due, if the device is not in use or the reset is forced. */
void smartiod_reset_check(struct smartiod *d, struct smartiod_device *dev);
void smartiod_reset_over(struct smartiod *d, struct smartiod_device *dev, int error,
			 const char *text);
/* The daemon begins to serve: begins resets that waited for that. */
void smartiod_resets_ready(struct smartiod *d);
/* The device was opened at the port. @fresh: nobody has had it since it was added. */
void smartiod_reset_opened(struct smartiod *d, struct smartiod_device *dev, bool fresh);
void smartiod_reset_device_gone(struct smartiod *d, struct smartiod_device *dev);
/*
 * Resets the device for a client that has not borrowed it: @op is parked until that is over.
 * @force: although the device is in use.
 */
void smartiod_reset_now(struct smartiod *d, struct smartiod_device *dev, bool force,
			struct smartiod_waiter *w, struct smartiod_op *op);

/* ---- hold.c ---- */

#define SMARTIOD_MAX_HOLDERS 1024 /* borrows whose queues lie in one mapping, ended ones too */
/* One more queue lies in @dma: adds a hold of @borrow's, of @node. -ENOMEM, -ENOSPC. */
int smartiod_hold_add(struct smartiod_dma *dma, uint32_t node, uint64_t borrow,
		      struct sio_err *reterr);
/* Resynchronisation: @node has reported all. */
void smartiod_holds_resumed(struct smartiod *d, uint32_t node);
/* Does a queue lie in the mapping? */
bool smartiod_held(const struct smartiod_dma *dma);
uint32_t smartiod_hold_count(const struct smartiod_dma *dma);
/* Drops all holds of the mapping. */
void smartiod_holds_drop(struct smartiod_dma *dma);
/* The device has no queue any more: ends all holds. */
void smartiod_holds_end(struct smartiod *d, struct smartiod_device *dev);

/* ---- resume.c ---- */

/* Map @e of a borrow's owner, of before we were started: mappings lead through it. False: none. */
bool smartiod_dma_adopt_map(struct smartiod *d, const struct sio_list_entry *e);
/* The same of memory: it is a device's way to a multicast group. */
bool smartiod_dma_adopt_group(struct smartiod *d, const struct sio_list_entry *e);
/* The entry of a requester table that they pass. False: none does. */
bool smartiod_requester_adopt(struct smartiod *d, const struct sio_list_entry *e);
/* One of them leads to what @node says that it has granted: struct smartiod_room. */
bool smartiod_dma_grant_again(struct smartiod *d, uint32_t node,
			      const struct sio_peer_resume_grant *q);
void smartiod_dma_fill_held(struct smartiod *d, uint32_t node, struct sio_peer_resume_held *held);
/* What the borrowers of @node did not report ends. */
void smartiod_loans_resumed(struct smartiod *d, uint32_t node);

/* ---- config.c ---- */

/* Somebody else gets it: it may send again, if it was kept from that. */
void smartiod_config_restart(struct smartiod *d, struct smartiod_device *dev);

#endif
