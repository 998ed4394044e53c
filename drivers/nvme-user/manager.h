/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NVME_USER_MANAGER_H
#define NVME_USER_MANAGER_H

#include "book.h"
#include "controller.h"
#include "leases.h"
#include "ledger.h"
#include "protocol.h"
#include "shared.h"
#include "smartio/nvme.h"
#include "waiters.h"

/*
 * What it does. STANDBY -> SERVING when nobody serves any more; SERVING -> STANDBY when its borrow
 * was lost and it was started as a standby.
 */
enum sio_nvme_role { SIO_NVME_SERVING, SIO_NVME_STANDBY };

/* A standby's: how it learns of the end of the manager that serves, and tells others that it is. */
struct sio_nvme_watch {
	sci_remote_segment_t other;  /* that manager's segment; NULL: none is watched */
	int ended;		     /* the library told that it has gone */
	uint32_t node;		     /* of that manager, or the last one; 0: it has not said */
	uint64_t ended_ns;	     /* when its end was noticed */
	struct sio_nvme_shared self; /* the segment by which others find us */
};

struct smartio_nvme_manager {
	struct sio_nvme_device d;
	enum sio_nvme_role role;
	struct sio_nvme_watch watch;
	uint32_t takeovers, kept; /* kept: of those without a reset */
	uint64_t took_ns;	  /* the last one */
	struct sio_nvme_ctrl ctrl;
	struct sio_nvme_ledger ledger;
	struct sio_nvme_waiters waiters;
	struct sio_nvme_leases leases;
	struct sio_nvme_book book; /* of ledger, leases and admin queue */
	struct smartio_nvme_manager_options options;
	sci_local_data_interrupt_t interrupt;
	unsigned number;	       /* of that */
	struct sio_nvme_shared shared; /* the metadata, as clients see it */
	struct sio_nvme_meta meta;     /* what stands there */
	struct sio_nvme_meta wire;     /* ... in the fabric's byte order */
	/* Borrowers whose queues are gone, but the lender could not take the word of it. */
	uint64_t *unsettled;
	unsigned n_unsettled, max_unsettled;
	uint64_t settle_at; /* when it is told again */
	volatile int stop;
	int failed; /* -errno: the drive is lost to us */
	char why[256];
	uint8_t message[8192], reply[sizeof(struct sio_nvme_rep)];
};

/* manager_open.c: come to the drive once more; 0, or -errno when it is lost. */
int sio_nvme_manager_again(struct smartio_nvme_manager *m);
/* manager_open.c: the registers are ours: reset the controller and serve. */
int sio_nvme_manager_start(struct smartio_nvme_manager *m);
/*
 * takeover.c: the registers are ours: go on where the manager before us was, without a reset. 0: it
 * serves; -errno: that cannot be, and nothing was taken.
 */
int sio_nvme_manager_go_on(struct smartio_nvme_manager *m);
/* manager_open.c: the interrupt for requests is there, and clients find us. */
int sio_nvme_manager_be_found(struct smartio_nvme_manager *m);
/* serve.c: the queues of a pair, or of all that a borrower has which ended, are deleted. */
int sio_nvme_manager_delete_pair(struct smartio_nvme_manager *m, uint32_t qid);
int sio_nvme_manager_delete_pairs(struct smartio_nvme_manager *m, uint64_t borrower);
/*
 * standby.c: borrow the drive beside whoever serves it, and be found; then it is a STANDBY. -EBUSY:
 * there are standbys enough.
 */
int sio_nvme_stand(struct smartio_nvme_manager *m);
/*
 * Until the manager that serves has ended and we have taken its place (1), or another is watched
 * and @deadline has passed, or it is told to stop (0). -errno: the drive is lost.
 */
int sio_nvme_stand_by(struct smartio_nvme_manager *m, uint64_t deadline);
/* It is none any more. Half-made is fine. */
void sio_nvme_stand_down(struct smartio_nvme_manager *m);
/* serve.c: one request that came in m->message; 0, or -errno when the drive is lost. */
int sio_nvme_manager_request(struct smartio_nvme_manager *m, size_t len);
/* serve.c: tell who waits for a queue pair, if there is one. */
void sio_nvme_manager_notify(struct smartio_nvme_manager *m);
/* serve.c: the answer is an error with a text. */
void sio_nvme_refuse(struct sio_nvme_rep *rep, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* serve_admin.c: @data: what stands behind the request. */
int sio_nvme_manager_admin(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			   const void *data, struct sio_nvme_rep *rep);
/* serve.c: @from, as people are shown it, whatever a client sends. */
void sio_nvme_keep_text(char *to, const char *from, size_t size);
/* serve_lease.c */
void sio_nvme_manager_lease(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			    struct sio_nvme_rep *rep);
/* publish.c: the namespaces are others now. */
int sio_nvme_manager_republish(struct smartio_nvme_manager *m);
/* @pairs: of queues that the drive has; 0: it is asked, which it may be once after a reset. */
int sio_nvme_manager_describe(struct smartio_nvme_manager *m, uint32_t pairs);
int sio_nvme_manager_publish(struct smartio_nvme_manager *m);
/* Of the manager that tells of itself; 0: none does. */
uint32_t sio_nvme_manager_node(struct smartio_nvme_manager *m);
void sio_nvme_manager_withdraw(struct smartio_nvme_manager *m);

#endif
