/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the device half of smartiod. Each request about a device goes to its lender's daemon; the
 * borrower's daemon asks it by the same messages (wire/peer.h), whether that is another host's or
 * itself. So there is one lender's side (loan.c, bargrant.c, barview.c, dmalend.c, devseg.c,
 * quarantine.c, reset.c) and one borrower's side (borrow.c, barmap.c, dmamap.c), and lend.c between
 * them; hold.c has both sides of its two requests.
 */
#ifndef SMARTIOD_LEND_H
#define SMARTIOD_LEND_H

#include "core/devstate.h"
#include "core/ledger.h"
#include "smartiod/device/device.h"
#include "smartiod/base/internal.h"

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

/* What the cluster counts resets of a device by: even. The port counts them, and outlives us. */
static inline uint32_t smartiod_generation(uint64_t of_port)
{
	return (uint32_t)of_port * 2;
}

/* Memory that belongs to a device, at the lender: where it is. */
struct smartiod_dev_seg {
	struct smartiod_dev_seg *next; /* of the device */
	uint64_t private_to;	       /* the borrow; 0: shared by all */
	uint64_t creator;	       /* the borrow that made it */
	uint32_t id, node;
	uint64_t uid, bytes;
	struct smartiod_segment *segment; /* on this host; else NULL */
};

/* Who asks a lender: a peer's node, or, on its own host, the operation that goes on. */
struct smartiod_from {
	uint32_t node;
	struct smartiod_op *back;
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
	enum sio_dev_state state;
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

/* A device of the cluster, ours or another host's: of the topology, or found at a real port. */
struct smartiod_device {
	struct smartiod_tree_node by_fdid;
	uint32_t fdid, node;
	const struct sio_topo_device *topo;
	struct sio_topo_device found; /* topo leads here if the topology does not know it */
	bool present;		      /* its host is up and offers it */
	bool fresh; /* ours: nobody had it since it came; borrows of before are of another */
	uint32_t generation; /* smartiod_generation() of the port's; goes up when queues are gone */
	struct sio_rep_dev_list info; /* what DEV_LIST tells, but for adapter */
	/* Ours only. */
	struct sio_evt_device port;
	struct sio_ledger ledger;
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
	bool closed; /* by a reset, which took the doorbells away: in these books alone */
};
struct smartiod_view_grant {
	struct smartiod_view_grant *next; /* of the loan */
	uint64_t view, grant;		  /* grant: the port's */
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
	bool adopted;	 /* of before we were started, and nobody has said that it is his */
	uint64_t target; /* adopted: the port's memory */
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
	uint64_t parent;	     /* adopt.c: the owner of its session */
	uint32_t node, pid;
	int owner_fd;
	bool waits;    /* until the device is reset; it has nothing of it */
	bool ready;    /* the borrower was told */
	bool ended;    /* the borrower is gone; the owner is or will be closed */
	bool closed;   /* the port said what stays */
	bool settling; /* the port was asked to settle it */
	bool lost;     /* the device is gone: nothing of it waits for a word */
	bool gone;     /* adopt.c: its owner has ended */
	bool distant;  /* adopt.c: of another host's program, which has lost it */
	struct smartiod_view *views;
	struct smartiod_view_grant *grants;
	struct smartiod_dma *dmas;
	unsigned pins; /* operations in progress */
};

/* Borrower: what a client has a handle of. */
struct smartiod_borrow {
	struct smartiod_object o;
	struct smartiod_borrow *next; /* of devices */
	struct smartiod_device *device;
	uint64_t id; /* the lender's number; 0: not yet */
	uint32_t node;
	bool lost;	     /* the lender is gone */
	bool ended;	     /* returned, or the client is gone */
	uint32_t generation; /* RESTORED: the device's when the client last heard of it */
	unsigned users;	     /* BAR connections, DMA maps */
	unsigned pins;	     /* operations in progress */
	struct smartiod_placed *placed;
	struct smartiod_bar_map *maps;	 /* of its BARs */
	struct smartiod_dma_handle *dma; /* of segments for it */
};
/* Borrower: a device segment that lies in this host's memory. */
struct smartiod_placed {
	struct smartiod_placed *next;
	struct smartiod_segment *segment;
};

/* Borrower: what a struct smartiod_map of a BAR has at port and lender. */
struct smartiod_bar_piece {
	uint64_t view, grant; /* the lender's */
	uint64_t map;	      /* our port's; 0: none */
	bool released;	      /* the lender was told that its address is nobody's */
	bool doorbells;
	bool gone;		     /* they are: a reset took them away */
	struct smartiod_op unmap;    /* embedded, so that giving back needs no memory; */
	struct smartiod_bar_map *of; /* whose it is; NULL: never asked for */
	uint64_t watch;		     /* our port's; 0: none */
	int fd;			     /* of map; -1 */
	uint64_t fd_offset;
	uint64_t offset, bytes; /* in the segment */
};
struct smartiod_bar_map {
	struct smartiod_bar_map *next; /* of the borrow */
	struct smartiod_borrow *borrow;
	struct smartiod_connection *connection; /* NULL: closed */
	uint32_t adapter, peer_adapter;		/* the way to the lender */
	uint64_t start;				/* of the lender, when it granted; 0: we are */
	bool closed; /* kept by @unmapping, pieces that the port unmaps */
	unsigned unmapping;
	unsigned n;
	struct smartiod_bar_piece piece[SIO_MAP_PIECES];
};

/* Borrower: a client's DMA map. */
struct smartiod_dma_handle {
	struct smartiod_object o;
	struct smartiod_dma_handle *next; /* of the borrow */
	struct smartiod_borrow *borrow;
	struct smartiod_connection *connection; /* pinned; NULL: a local segment */
	uint64_t map;				/* the lender's number; 0: not yet */
	bool busy;				/* an operation has it */
};

struct smartiod_devices {
	struct smartiod_tree all;   /* by fdid */
	struct smartiod_tree loans; /* by id */
	struct smartiod_tree dmas;  /* by the port's id */
	struct smartiod_borrow *borrows;
	struct smartiod_dma *loose; /* see dmalend.c */
	uint32_t last_loan;
	unsigned n_found; /* devices of ours that the topology does not know */
};

static inline struct smartiod_devices *smartiod_devices(struct smartiod *d)
{
	return d->devices;
}

/* ---- lend.c ---- */

/* Handlers of requests to a lender. 0: answered, or an operation will; -errno with a text. */
typedef int smartiod_lend_fn(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			     struct sio_err *reterr);
smartiod_lend_fn smartiod_lend_borrow, smartiod_lend_return, smartiod_lend_release_exclusive,
	smartiod_lend_borrow_end, smartiod_lend_dev_seg_create, smartiod_lend_dev_seg_lookup,
	smartiod_lend_dev_seg_end, smartiod_lend_bar_grant, smartiod_lend_bar_release,
	smartiod_lend_dma_map, smartiod_lend_dma_unmap, smartiod_lend_settled, smartiod_lend_reset,
	smartiod_lend_hold, smartiod_lend_unhold, smartiod_lend_vector, smartiod_lend_unvector;

/*
 * Send request @msg to the lender @node; op->step gets the answer, or why there is none, perhaps
 * before this returns: the caller touches nothing afterwards.
 */
void smartiod_lender_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
			 size_t len);
/* News. */
void smartiod_lender_tell(struct smartiod *d, uint32_t node, void *msg, size_t len);

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
/* An answer without an operation. */
void smartiod_from_reply(struct smartiod *d, const struct smartiod_from *from, const void *request,
			 void *msg, size_t len);

/* ---- device.c ---- */

struct smartiod_device *smartiod_device_find(struct smartiod *d, uint32_t fdid,
					     struct sio_err *reterr);
/* The same, also if it is not there now; NULL: no device of the cluster has that id. */
struct smartiod_device *smartiod_device_known(struct smartiod *d, uint32_t fdid);
/* A device of this host, for a request to the lender. */
struct smartiod_device *smartiod_device_ours(struct smartiod *d, uint32_t fdid,
					     struct sio_err *reterr);
/* The device of ours that the port calls @id and has opened; NULL. */
struct smartiod_device *smartiod_device_by_port(struct smartiod *d, uint64_t id);
/* What others are told of it, from what the port said. */
void smartiod_device_describe(struct smartiod *d, struct smartiod_device *dev);
/* Open a device that came to the port. */
void smartiod_device_look(struct smartiod *d, uint64_t id);
/* Tell all peers how it is now. */
void smartiod_device_announce(struct smartiod *d, struct smartiod_device *dev);
void smartiod_device_info(struct smartiod *d, struct smartiod_device *dev,
			  struct sio_rep_dev_list *ret);

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
void smartiod_loan_end(struct smartiod *d, struct smartiod_loan *loan);
/* Those of a device that is gone end, and so do their quarantines; the borrowers are told. */
void smartiod_loans_device_gone(struct smartiod *d, struct smartiod_device *dev);
/* Its owner has ended, and not by our word. */
void smartiod_loan_owner_gone(struct smartiod *d, struct smartiod_loan *loan);
/* The first loan with an id greater than @after; of all devices. */
struct smartiod_loan *smartiod_loan_after(struct smartiod *d, uint64_t after);
void smartiod_loan_unpin(struct smartiod *d, struct smartiod_loan *loan);
/* Frees it when nothing is left of it. */
void smartiod_loan_check(struct smartiod *d, struct smartiod_loan *loan);
void smartiod_loan_node_down(struct smartiod *d, uint32_t node);
/* The last path to it is: the same, and it is told. */
void smartiod_loan_link_lost(struct smartiod *d, uint32_t node);
/* A path to it is, and others are up: the same for those that use it. */
void smartiod_loan_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			     uint32_t peer_adapter);
void smartiod_loan_free_all(struct smartiod *d);

/* ---- adopt.c ---- */

/*
 * On a real host a daemon may die and another one start while borrowers go on. Find what the port
 * still has of borrows; then smartiod_start_done(), or smartiod_fatal().
 */
void smartiod_adopt_start(struct smartiod *d);
/* What an owner's user_cookie must say for that. */
uint64_t smartiod_adopt_cookie(const struct smartiod_loan *loan, bool exclusive);
bool smartiod_adopt_has_vector(const struct smartiod_device *dev, uint32_t number);
/* The port silenced the loan's vectors. */
void smartiod_adopt_vectors_end(struct smartiod_loan *loan);

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

/* ---- bargrant.c ---- */

/* A reset of @dev is over: those who ask for its doorbells have waited for that. */
void smartiod_bars_go_on(struct smartiod *d, const struct smartiod_device *dev);

/* ---- dmalend.c ---- */

/* A mapping that the port has since before we were started. -ENOMEM. */
int smartiod_dma_adopt(struct smartiod *d, struct smartiod_loan *loan,
		       const struct sio_list_entry *e);
/* Nobody wants one of those: it ends. */
void smartiod_dma_drop(struct smartiod *d, struct smartiod_dma *dma);
/* The device has let go of it (or never could reach it): give all back. */
void smartiod_dma_release(struct smartiod *d, struct smartiod_dma *dma);
/* adrift.c: the host whose memory they reach is lost. */
void smartiod_dma_node_down(struct smartiod *d, uint32_t node);
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
/* A vector that was waited for too long. */
void smartiod_vector_late(struct smartiod *d, uint32_t node, const struct sio_prep_vector *rep);

/* ---- devseg.c ---- */

void smartiod_dev_segs_end(struct smartiod *d, struct smartiod_loan *loan);
void smartiod_dev_segs_free(struct smartiod_device *dev);
struct smartiod_leftover;
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
/* A hold that was waited for too long. */
void smartiod_hold_late(struct smartiod *d, uint32_t node, const struct sio_prep_hold *rep);

/* ---- borrow.c ---- */

struct smartiod_borrow *smartiod_borrow_get(struct smartiod_session *s, uint32_t handle,
					    struct sio_err *reterr);
void smartiod_borrow_unpin(struct smartiod *d, struct smartiod_borrow *b);
/* A request of a client that its lender answers. */
struct smartiod_borrow_op {
	struct smartiod_op op;
	struct smartiod_borrow *borrow; /* pinned */
};
/*
 * Ask the lender; @step gets the answer, ends the operation and unpins. NULL: it is yes or no
 * alone.
 */
int smartiod_borrow_ask(struct smartiod *d, struct smartiod_session *s, const void *request,
			struct smartiod_borrow *b, smartiod_step *step, void *msg, size_t len,
			struct sio_err *reterr);
/* With a handle of @s, pinned. NULL with *reterr. */
struct smartiod_borrow *smartiod_borrow_new(struct smartiod *d, struct smartiod_session *s,
					    struct smartiod_device *dev, struct sio_err *reterr);
/* placed.c: a connection to a BAR; NULL with *reterr. */
struct smartiod_connection *smartiod_connect_bar(struct smartiod *d, struct smartiod_session *s,
						 struct smartiod_borrow *b, uint32_t bar,
						 struct sio_err *reterr);
void smartiod_borrow_unuse(struct smartiod *d, struct smartiod_borrow *b);
void smartiod_borrow_node_down(struct smartiod *d, uint32_t node);
/* The last path to it is down: the same, and it is told. */
void smartiod_borrow_link_lost(struct smartiod *d, uint32_t node);
void smartiod_borrow_path_down(struct smartiod *d, uint32_t node, uint32_t adapter,
			       uint32_t peer_adapter);
void smartiod_borrow_device_gone(struct smartiod *d, struct smartiod_device *dev);
/* The lender, @node, says that it has ended borrow @id. */
void smartiod_borrow_lost(struct smartiod *d, uint32_t node, uint64_t id);
/* An event of the lender for borrow @id of @dev. */
void smartiod_borrow_event(struct smartiod *d, struct smartiod_device *dev, uint64_t id,
			   uint32_t event, uint64_t gone);
/* A reset of @dev took its doorbells away: from borrow @id. */
void smartiod_borrow_doorbells_gone(struct smartiod *d, struct smartiod_device *dev, uint64_t id);
void smartiod_borrow_free_all(struct smartiod *d);
bool smartiod_borrow_segment_idle(struct smartiod *d, struct smartiod_segment *seg);

/* ---- barmap.c ---- */

/* The way to the lender is gone: so are its windows; the library is told. */
void smartiod_bar_map_lost(struct smartiod *d, struct smartiod_bar_map *bar);
/* The device was reset: the doorbells among its pieces lead nowhere. */
void smartiod_bar_map_doorbells_gone(struct smartiod *d, struct smartiod_bar_map *bar);
/* Is @grant of @node, a lender, mapped, or about to be? */
bool smartiod_bar_has_grant(struct smartiod *d, uint32_t node, uint64_t grant);

/* ---- barwatch.c ---- */

/* The piece goes, or gets another watch. */
void smartiod_bar_unwatch(struct smartiod *d, struct smartiod_bar_piece *p);

/* ---- dmamap.c ---- */

/* With a handle of @s, busy. @c NULL: of a local segment. NULL with *reterr. */
struct smartiod_dma_handle *smartiod_dma_handle_new(struct smartiod_session *s,
						    struct smartiod_borrow *b,
						    struct smartiod_connection *c,
						    struct sio_err *reterr);
void smartiod_dma_handles_end(struct smartiod *d, struct smartiod_session *s);
/* A mapping that was waited for too long. */
void smartiod_dma_late(struct smartiod *d, uint32_t node, const struct sio_prep_dma_map *rep);

#endif
