/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NVME_USER_MANAGER_H
#define NVME_USER_MANAGER_H

#include "record.h"
#include "controller.h"
#include "hold.h"
#include "leases.h"
#include "ledger.h"
#include "protocol.h"
#include "shared.h"
#include "smartio/nvme.h"
#include "waiters.h"

/*
 * The role of a manager. STANDBY -> SERVING when no manager serves any more; SERVING -> STANDBY
 * when its borrow was lost and it was started as a standby.
 */
enum sio_nvme_role { SIO_NVME_SERVING, SIO_NVME_STANDBY };

/*
 * How a standby learns of the end of the manager that serves, and publishes that it is a standby.
 */
struct sio_nvme_watch {
	sci_remote_segment_t other;  /* the serving manager's segment; NULL: none is watched */
	int ended;		     /* the library has reported the end of that segment */
	uint32_t node;		     /* of that manager, or the last one; 0: unknown */
	uint64_t ended_ns;	     /* when its end was noticed */
	uint64_t refused_ns;	     /* when its record was first refused to us; 0: it was not */
	struct sio_nvme_shared self; /* the segment by which others find us */
};

/* The client that asked for the slow command (ctrl.slow), and gets a reply when it is done. */
struct sio_nvme_asker {
	bool waits;			    /* false: it gave up, or asked the previous manager */
	bool changes;			    /* the namespaces may differ afterwards */
	uint8_t opcode;			    /* 0: only the previous manager knew */
	uint32_t node, interrupt, pause_ms; /* pause_ms: until the next look */
	uint64_t sequence, deadline;
};

struct smartio_nvme_manager {
	struct sio_nvme_device d;
	struct sio_nvme_hold hold; /* of @d, while it serves */
	uint32_t process;	   /* whose it is: a child of it has the registers mapped, too */
	enum sio_nvme_role role;
	struct sio_nvme_watch watch;
	uint32_t takeovers, kept; /* kept: of those without a reset */
	uint32_t returns;	  /* to the drive, over another path than the one lost */
	uint32_t returns_kept;	  /* of those without a reset */
	uint64_t took_ns;	  /* the last one */
	struct sio_nvme_ctrl ctrl;
	struct sio_nvme_ledger ledger;
	struct sio_nvme_waiters waiters;
	struct sio_nvme_leases leases;
	struct sio_nvme_asker asker;
	/* a place of a shared pair is free, and waiting clients are not notified yet */
	bool place_free;
	bool owes; /* some sharers of a pair that has ended are not notified yet */
	struct sio_nvme_record record; /* of ledger, leases and admin queue */
	struct smartio_nvme_manager_options options;
	sci_local_data_interrupt_t interrupt;
	unsigned number;	       /* of that */
	struct sio_nvme_shared shared; /* the metadata, as clients see it */
	struct sio_nvme_meta meta;     /* what stands there */
	struct sio_nvme_meta wire;     /* ... in the fabric's byte order */
	/*
	 * Borrowers whose queues are deleted, but whose settlement the lender could not accept yet.
	 */
	uint64_t *unsettled;
	unsigned n_unsettled, max_unsettled;
	uint64_t settle_at; /* when it is reported to the lender again */
	volatile int stop;
	int failed; /* -errno: this manager has lost the drive */
	char why[256];
	uint8_t message[8192], reply[sizeof(struct sio_nvme_rep)];
};

/* manager_open.c: borrows the drive once more; 0, or -errno when it is lost. */
int sio_nvme_manager_again(struct smartio_nvme_manager *m);
/* manager_open.c: this manager owns the registers: resets the controller and serves. */
int sio_nvme_manager_start(struct smartio_nvme_manager *m);
/*
 * takeover.c: this manager owns the registers: continues where the previous manager was, without a
 * reset. 0: it serves; -errno: that is impossible, and nothing was changed.
 */
int sio_nvme_manager_go_on(struct smartio_nvme_manager *m);
/* manager_open.c: creates the interrupt for requests, and publishes the manager to clients. */
int sio_nvme_manager_be_found(struct smartio_nvme_manager *m);
/* serve.c: deletes the queues of a pair, or of all pairs of a borrower that has ended. */
int sio_nvme_manager_delete_pair(struct smartio_nvme_manager *m, uint32_t qid);
int sio_nvme_manager_delete_pairs(struct smartio_nvme_manager *m, uint64_t borrower);
/* serve.c: records the next state of a pair before it is entered. */
void sio_nvme_manager_enter(struct smartio_nvme_manager *m, uint32_t qid,
			    enum sio_nvme_pair_state state);
int sio_nvme_manager_unhold(struct smartio_nvme_manager *m, uint32_t qid);
void sio_nvme_manager_release(struct smartio_nvme_manager *m, uint32_t qid);
/* serve.c: sends a reply. Return: whether it arrived where the client can take it. */
bool sio_nvme_manager_send(struct smartio_nvme_manager *m, uint32_t node, uint32_t interrupt,
			   const struct sio_nvme_rep *rep);
/* serve_share.c: checks what a request says of a shared pair; refuses it if that is wrong. */
bool sio_nvme_manager_may_share(const struct sio_nvme_req *req, struct sio_nvme_rep *rep);
/*
 * serve_share.c: is a pair of its own to raise a vector, which the client could not have? Then it
 * can join others.
 */
bool sio_nvme_manager_lacks_vector(const struct sio_nvme_req *req);
/* serve_share.c: takes a place in a pair of other programs of the same host. 0: there is none. */
uint32_t sio_nvme_manager_join(struct smartio_nvme_manager *m, const struct sio_nvme_req *req);
/* serve_share.c: the program of that place has left the pair, with nothing in flight. */
void sio_nvme_manager_part(struct smartio_nvme_manager *m, uint32_t qid, uint32_t place);
/*
 * serve_share.c: deletes the queues of a shared pair, if it has any. The programs that shared it
 * and still live are notified; the pair's number stays in use until one of them has closed its
 * lock.
 */
int sio_nvme_manager_end_shared(struct smartio_nvme_manager *m, uint32_t qid);
/* The same, after the drive has deleted its queues. */
int sio_nvme_manager_shared_ended(struct smartio_nvme_manager *m, uint32_t qid);
/*
 * serve_share.c: notifies the sharers of a pair whose queues are deleted. Those that cannot be
 * reached are notified later.
 */
void sio_nvme_manager_notify_ended(struct smartio_nvme_manager *m);
/*
 * serve_multi.c: checks what a request says of the completion queue of another pair; refuses it if
 * that is wrong.
 */
bool sio_nvme_manager_may_complete(const struct smartio_nvme_manager *m,
				   const struct sio_nvme_req *req, struct sio_nvme_rep *rep);
/* serve_multi.c: do others complete in its completion queue? Then refuses to delete the pair. */
bool sio_nvme_manager_is_used(const struct smartio_nvme_manager *m, uint32_t qid,
			      struct sio_nvme_rep *rep);
/* serve_multi.c: deletes the submission queues that complete in its completion queue. */
int sio_nvme_manager_delete_users(struct smartio_nvme_manager *m, uint32_t qid);
/*
 * standby.c: borrows the drive beside the manager that serves it, and publishes a standby; then the
 * role is STANDBY. -EBUSY: there are enough standbys.
 */
int sio_nvme_stand(struct smartio_nvme_manager *m);
/*
 * Waits until the manager that serves has ended and this one has taken over (1), or another is
 * watched and @deadline has passed, or this one is asked to stop (0). -errno: the drive is lost.
 */
int sio_nvme_stand_by(struct smartio_nvme_manager *m, uint64_t deadline);
/* Ends the standby. A half-made one is fine. */
void sio_nvme_stand_down(struct smartio_nvme_manager *m);
/* serve.c: handles one request that arrived in m->message; 0, or -errno when the drive is lost. */
int sio_nvme_manager_request(struct smartio_nvme_manager *m, size_t len);
/* serve.c: notifies the clients that wait for a queue pair, if one is free. */
void sio_nvme_manager_notify(struct smartio_nvme_manager *m);
/* serve.c: makes the reply an error with a text. */
void sio_nvme_refuse(struct sio_nvme_rep *rep, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* serve.c: the lender's refusal of @what, for a cause of its own. */
void sio_nvme_refuse_sci(struct sio_nvme_rep *rep, sci_error_t err, const char *what);
/* Return of sio_nvme_manager_admin(): the reply follows later. */
#define SIO_NVME_LATER 1
/*
 * serve_admin.c: handles an admin command. @data: the bytes behind the request. 0; SIO_NVME_LATER;
 * -errno: the drive is lost.
 */
int sio_nvme_manager_admin(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			   const void *data, struct sio_nvme_rep *rep);
/* serve_admin.c: checks the slow command, if there is one. 1: it has ended; 0; -errno. */
int sio_nvme_manager_look(struct smartio_nvme_manager *m);
/* serve_admin.c: the longest time until the next check; UINT32_MAX: none is running. */
uint32_t sio_nvme_manager_pause(struct smartio_nvme_manager *m);
/*
 * serve_admin.c: does the drive execute a command, such as Format, during which clients may have no
 * queue and no lease? Then @rep has the error.
 */
bool sio_nvme_manager_is_occupied(const struct smartio_nvme_manager *m, struct sio_nvme_rep *rep);
/* serve.c: fills in the head of a reply to @op. */
void sio_nvme_manager_head(const struct smartio_nvme_manager *m, uint32_t op, uint64_t sequence,
			   struct sio_nvme_rep *rep);
/* serve.c: copies @from as printable text, whatever bytes a client sends. */
void sio_nvme_keep_text(char *to, const char *from, size_t size);
/*
 * cmb.c: takes pages of the drive's own memory for a submission queue of @entries; @pair records
 * which; or refuses. -errno: the drive is lost.
 */
int sio_nvme_manager_place(struct smartio_nvme_manager *m, struct sio_nvme_pair *pair,
			   uint32_t entries, struct sio_nvme_rep *rep);
/* serve_cancel.c: undoes a request whose answer did not come. 0; -errno: the drive is lost. */
int sio_nvme_manager_cancel(struct smartio_nvme_manager *m, const struct sio_nvme_req *req);
/* serve_lease.c: ends the leases of borrows that have ended without this manager's knowledge. */
void sio_nvme_manager_end_leases(struct smartio_nvme_manager *m);
/* serve_lease.c */
void sio_nvme_manager_lease(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			    struct sio_nvme_rep *rep);
/* publish.c: publishes the namespaces again, which have changed. */
int sio_nvme_manager_republish(struct smartio_nvme_manager *m);
/*
 * @pairs: the number of queue pairs of the drive; 0: the drive is asked, which is possible once
 * after a reset.
 */
int sio_nvme_manager_describe(struct smartio_nvme_manager *m, uint32_t pairs);
int sio_nvme_manager_publish(struct smartio_nvme_manager *m);
/* The node of the manager that has published itself; 0: none. */
uint32_t sio_nvme_manager_node(struct smartio_nvme_manager *m);
void sio_nvme_manager_withdraw(struct smartio_nvme_manager *m);

#endif
