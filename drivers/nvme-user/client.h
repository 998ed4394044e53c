/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the client. */
#ifndef NVME_USER_CLIENT_H
#define NVME_USER_CLIENT_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include "device.h"
#include "failover.h"
#include "far.h"
#include "protocol.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvme.h"
#include "wait.h"

/*
 * The doorbells as they have been mapped since a reset. The next reset cuts the mapping; it is kept
 * for queues from before the reset, which may be about to ring.
 */
struct sio_nvme_doorbells {
	sci_map_t map;
	volatile uint8_t *at;
	const volatile uint32_t *sleeps; /* smartio_map_sleep_word(); NULL: never mind */
	uint32_t generation;
	unsigned users; /* queues; and the client, of the last ones */
};

/*
 * Of a request that was not answered: what takes it back (SIO_NVME_OP_CANCEL), or does it again
 * (SIO_NVME_OP_UNLEASE).
 */
struct sio_nvme_owed {
	struct sio_nvme_req req;
	uint64_t borrower; /* whose request it was: the end of that borrow ends it */
	struct sio_nvme_owed *next;
};

/*
 * What a client has of the drive over its adapter. A leg that was lost is torn down and set up
 * again in steps, between which others get the lock.
 */
enum sio_nvme_leg_stage {
	SIO_NVME_LEG_SHUT,     /* nothing */
	SIO_NVME_LEG_BORROWED, /* the drive is borrowed */
	SIO_NVME_LEG_FOUND,    /* and its manager is found */
	SIO_NVME_LEG_RINGS,    /* doorbells are mapped, and buffers, one after the other */
	SIO_NVME_LEG_OPEN,     /* everything is set up */
	SIO_NVME_LEG_CLOSING,  /* the memory of queues is released */
	SIO_NVME_LEG_PARTING   /* buffers are released */
};

/* A step of something. Return: 1: there are more; else it has ended. */
typedef int sio_nvme_task(struct smartio_nvme *n, void *of);

/*
 * Work that may wait for the lender's daemon or the manager, in a thread of the library, so that no
 * I/O waits for it: aside.c. One at a time.
 */
struct sio_nvme_aside {
	/* The thread has not ended: whoever sets it may start the next one. */
	bool working;
	smartio_thread_t thread; /* the last one; of whoever has set @working */
	/* Under the lock: what it does, step by step, and of which queue or path. NULL: nothing. */
	sio_nvme_task *task;
	void *of;
};

/* Can the queue return to its own path? Asked aside, and answered once. */
enum sio_nvme_home { SIO_NVME_HOME_UNKNOWN, SIO_NVME_HOME_READY, SIO_NVME_HOME_NOT_READY };

struct smartio_nvme {
	struct sio_nvme_device d;
	uint32_t process; /* whose it is */
	enum sio_nvme_leg_stage stage;
	sci_remote_segment_t bar;
	struct sio_nvme_doorbells *doorbells; /* the last ones; under @lock */
	const volatile uint32_t *generation;  /* of the device, a word of the library's */
	/* what the manager publishes; a copy that is being read */
	struct sio_nvme_meta meta, scratch;
	struct smartio_nvme_namespace *ns; /* as it was at the open, like the four below */
	uint32_t n_ns, n_pairs, stride, formats, sgls;
	/* The connection to the manager; under @lock. */
	sci_local_data_interrupt_t reply;
	unsigned reply_number;
	sci_remote_data_interrupt_t manager; /* of meta.instance; NULL: not connected */
	uint64_t sequence;
	uint8_t message[8192], request[SIO_NVME_REQ_LARGEST];
	const void *request_data; /* that goes behind the request */
	unsigned patience_ms;	  /* to wait for the manager, for one request; 0: the default */
	bool trusts; /* the next request goes to the manager of @meta, unless that fails */
	struct sio_nvme_owed *owed; /* what goes ahead of the next request */
	/* What the program has open of this drive; under @lock. */
	struct smartio_nvme_queue *queues;
	struct smartio_nvme_queue *opening; /* not open yet, and perhaps waiting without the lock */
	struct smartio_nvme_buffer *buffers;
	unsigned foreign; /* how many of them are the program's own pages */
	struct smartio_nvme_lease *leases;
	uint64_t join_at;	    /* when they are joined again that could not be */
	struct sio_nvme_mem *spare; /* queue memory to use again */
	/*
	 * Queues that were closed, but whose memory the drive may still use: no manager could
	 * delete them.
	 */
	struct smartio_nvme_queue *kept;
	int lock;
	/*
	 * The same drive, borrowed over another adapter (second.c): a client in itself, which has
	 * no queues and no buffers in its lists, and uses this client's lock. NULL: none.
	 */
	struct smartio_nvme *second;
	/*
	 * Of lost paths: borrows of which queues still have something, in a list by this word
	 * (remains.c).
	 */
	struct smartio_nvme *gone;
	unsigned absences; /* how often a way was made anew when none was there: under the lock */
	unsigned homes;	   /* queues that were given one of the two ways, in turn */
	struct sio_nvme_aside aside;
};

/* The generation word of queues that have no pair. */
extern const volatile uint32_t sio_nvme_no_generation;

struct smartio_nvme_lease {
	struct smartio_nvme *n;
	struct smartio_nvme_lease_info info;
	uint64_t key;	     /* who joins it or gives it back must know it */
	uint32_t generation; /* when it was given: a reset ends it */
	bool over;	     /* a manager has said that nobody has it */
	/*
	 * The borrows over @n and its second leg that have it, as a manager has said; 0: none. It
	 * ends when all have ended.
	 */
	uint64_t borrower[2];
	struct smartio_nvme_lease *next;
};

struct smartio_nvme_buffer {
	uint64_t ioaddr;
	size_t size;
	struct smartio_nvme *n;
	struct sio_nvme_mem mem;
	struct sio_nvme_reach second; /* for n->second */
	bool foreign;		      /* the program's own pages */
	unsigned helpers;	      /* blocking helpers whose data is in it now */
	struct smartio_nvme_buffer *next;
};

/*
 * A slot of a command. @buffer NULL: not in flight. A FLUSH has sio_nvme_no_buffer. The lower bits
 * of the command id are the slot's number, the others count its uses, so that a completion that
 * arrives twice is not taken for the next command's.
 */
struct sio_nvme_slot {
	struct smartio_nvme_buffer *buffer;
	void *cookie;
	struct sio_nvme_slot *next; /* free one */
	union {
		uint64_t first; /* word of its command but for the opcode, as the drive reads it */
		struct {
			uint16_t opcode; /* 0 */
			uint16_t cid;	 /* little-endian */
			uint32_t nsid;
		};
	};
};
extern struct smartio_nvme_buffer sio_nvme_no_buffer;
/* The @buffer of a command whose data lies in several buffers: those are in the queue's @held. */
extern struct smartio_nvme_buffer sio_nvme_many_buffers;

/* A command in flight, recorded so that it can be sent again: its dwords 10 to 13, and its data. */
struct sio_nvme_note {
	uint64_t lba, nlb;
	uint64_t number; /* of this submit of the queue */
	uint32_t op;
	uint16_t n_pieces, late;	 /* late: how often it was overdue */
	struct smartio_nvme_piece piece; /* the first; all of more than one are in @pieces */
};

/* The state of a queue that outlives its queue pair: survive.c. */
struct sio_nvme_survivor {
	enum sio_nvme_life state;
	struct smartio_nvme *home;
	unsigned absences;	     /* of the client, when it was opened */
	uint64_t limit_ns, deadline; /* for another pair */
	uint64_t look_at;	     /* when the next pair is tried, or the paths are checked */
	uint64_t pause_ns;
	/* away: it does not return before; how long it stayed the last time that it could not */
	uint64_t home_at, stay_ns;
	enum sio_nvme_home ready; /* written by another thread */
	unsigned looks;
	/* submits so far; the latest ones, whose doorbell was not rung */
	uint64_t noted, unrung;
	struct sio_nvme_note *note;	   /* of each slot */
	struct smartio_nvme_piece *pieces; /* SMARTIO_NVME_PIECES for each slot, or NULL */
	struct sio_nvme_slot *told;	   /* commands whose outcome is unknown; not polled yet */
	/*
	 * Resources of the last pair, which must be deleted before anything is sent again; NULL:
	 * none.
	 */
	struct smartio_nvme *old_leg;
	struct sio_nvme_mem *old_sq, *old_cq;
	struct sio_nvme_doorbells *old_doorbells;
	struct sio_nvme_share *old_share;
	sci_local_interrupt_t old_interrupt;
	unsigned old_vector;
	uint32_t old_generation;
};

/*
 * The head of the segment of a shared pair, which every program that shares the pair has mapped.
 * Behind it are the submission queue, the completion queue, and for each program a completion queue
 * of its own. Whichever program takes completions from the common queue moves each to the queue of
 * the program whose command it ends: share_lock.c.
 */
struct sio_nvme_share_head {
	uint32_t magic, version;
	uint32_t depth, most, entries;
	/*
	 * The number of the shared interrupt that the vector of the common completion queue
	 * triggers, + 1: every program that sleeps for completions owns it. 0: none, for who has
	 * made the pair polls.
	 */
	uint32_t interrupt;
	uint32_t lock; /* 0: free; the holder's place + 1; SIO_NVME_SHUT: for ever */
	/* Under the lock: the next entries, and the phase of the next new completion. */
	uint32_t sq_tail, cq_head, cq_phase;
	struct {
		uint32_t next, phase;
	} own[SIO_NVME_SHARERS];
};
#define SIO_NVME_SHUT UINT32_MAX
#define SIO_NVME_SHARE_MAGIC 0x48534e53u

/* One program's part of a shared pair. */
struct sio_nvme_share {
	struct smartio_nvme *leg;
	unsigned id;  /* of the segment */
	uint64_t key; /* of the pair */
	sci_local_segment_t segment;
	sci_map_t map;
	struct sio_nvme_share_head *head;
	volatile uint8_t *sq, *cq, *own; /* own: this program's completion queue */
	size_t own_bytes;		 /* of each program's */
	/* If this program made the segment: its state, and its address for the drive. */
	bool maker, available, reachable;
	unsigned adapter;
	uint64_t ioaddr;
	uint32_t place, depth, most, entries, shift; /* shift: of the place in a command id */
	sci_local_data_interrupt_t notice;
	unsigned number;
	bool rang;	  /* this program's entries may be in the queues */
	bool ended;	  /* the manager has notified the pair's end */
	uint32_t dead;	  /* bits: places of programs that have ended */
	uint64_t look_at; /* the next check for a notification */
	unsigned looks;
	/* entries that were put, and are copied into the queue when the doorbell is rung */
	uint8_t *staged;
	uint32_t nobell; /* stands in for the doorbell of this program's own completion queue */
	volatile uint32_t *sq_doorbell, *cq_doorbell;
};

#define SIO_NVME_PATIENT 1000u /* empty polls before a yield, at first */
#define SIO_NVME_IMPATIENT 4u
#define SIO_NVME_WAITS_PER_PROBE 128u

struct smartio_nvme_queue {
	/* Used for each command. */
	struct sio_nvme_slot *free; /* last in first out; NULL: none, or the queue is dead */
	struct smartio_nvme *n;
	uint64_t blocks, block_size; /* blocks: the end of the namespace, or of the lease */
	/*
	 * What transfers of one page are checked by: how many blocks they have at most, 0 if each
	 * needs more than that, and where they begin: any such transfer from before there ends in
	 * the namespace.
	 */
	uint64_t plain_end;
	uint32_t plain_blocks;
	uint32_t depth;
	volatile uint8_t *sq, *sq_end, *sqe; /* begin, end, next entry to fill */
	/* entries before this one were announced to the drive */
	volatile uint8_t *rung;
	volatile uint8_t *cq, *cq_end, *cqe; /* begin, end, next entry to arrive */
	uint64_t expected; /* SQ id and phase of the next completion, where they stand in it */
	struct sio_nvme_slot *slot;
	uint32_t slot_mask; /* the lower bits of command ids, times the size of a slot */
	uint16_t use;	    /* what a command id grows by with each use of its slot */
	int error;	    /* -errno: the queue is dead */
	volatile uint32_t *sq_doorbell, *cq_doorbell;
	const volatile uint32_t *generation_word;
	uint32_t generation; /* when the queues were made */
	/* the same; no valid generation if a ring must do more than write the doorbell */
	uint32_t plain;
	uint32_t empty, patience; /* empty polls in a row; so many before each that yields */
	uint32_t probes;	  /* waits that were longer than the patience */
	bool flushes;		  /* completions may come before their data: far.c */
	bool looks;		  /* sio_nvme_look() now and then */
	bool pushes;	  /* entries go another way than doorbells, which may overtake them */
	bool handed_over; /* commands in flight are not known to this process */
	struct smartio_nvme_counters counters;
	uint32_t list_shift;	/* log2 of the bytes of PRP list per command */
	volatile uint8_t *list; /* of command id 0 */
	uint64_t list_ioaddr;
	/* ---- end of the data path ---- */
	/*
	 * The borrow to which the pair belongs: @n, its second one, or one that was lost. Written
	 * under the lock; read by sio_nvme_leg() where that is not held.
	 */
	struct smartio_nvme *leg;
	bool over_second; /* the leg is the second one, or was; of the queue's own thread */
	struct sio_nvme_survivor *life; /* NULL: the queue ends with its pair */
	struct sio_nvme_limit *limit;	/* NULL: commands have no time-out */
	struct sio_nvme_share *share;	/* NULL: the pair is this queue's alone */
	struct sio_nvme_multi *multi;	/* NULL: no other queue completes where this one does */
	/* For that: the next queue of the same; completions that wait for a poll, oldest first. */
	struct smartio_nvme_queue *peer;
	struct sio_nvme_slot *done, **done_end;
	/* The program has closed it; with commands in flight; the drive has deleted it since. */
	bool closed, busy, gone;
	struct smartio_nvme_queue_options options; /* what it was opened with */
	uint64_t key, old_key;			   /* old: of the previous pair, while it matters */
	/* of the request that the pair was created for */
	uint64_t sequence, old_sequence;
	/* of a request for a pair that was not answered, and is to be taken back; 0: none */
	uint64_t unanswered;
	uint32_t old_id;
	uint32_t max_blocks;
	/* the first block that it may use: 0, or that of its lease */
	uint64_t first;
	const struct smartio_nvme_lease *lease; /* NULL: none */
	uint32_t id, nsid, entries, block_shift, max_transfer;
	struct sio_nvme_mem *sq_mem, *cq_mem;
	/*
	 * The mapping of a submission queue in the drive's own memory; then @sq_mem has the lists
	 * alone.
	 */
	sci_remote_segment_t cmb;
	sci_map_t cmb_map;
	uint64_t *near; /* of a queue that @flushes: where polls look for completions; or NULL */
	struct sio_nvme_doorbells *doorbells; /* NULL: none yet */
	sci_sequence_t carried;		    /* of those, since the pair was made: far.c; or NULL */
	sci_local_interrupt_t interrupt;    /* NULL: none */
	unsigned vector;		    /* of the drive, that triggers it; 0: none */
	struct sio_nvme_hybrid *hybrid;	    /* NULL: a wait does not poll */
	struct smartio_nvme_buffer *bounce; /* of the blocking helpers; NULL until used */
	struct smartio_nvme_buffer **held;  /* SMARTIO_NVME_PIECES for each command, or NULL */
	struct smartio_nvme_queue *next;
};

/*
 * A wait of some empty polls is over. Where the drive's model or many clients share this processor,
 * nothing can come before the yield: looking on longer than needed is their time. Where it runs
 * elsewhere a yield is late. So a wait that ended while looking makes the next ones patient, one
 * that took a yield makes them impatient; now and then one is patient all the same, to find out.
 */
static inline void sio_nvme_waited(struct smartio_nvme_queue *q)
{
	if (q->empty <= q->patience || ++q->probes % SIO_NVME_WAITS_PER_PROBE == 0)
		q->patience = SIO_NVME_PATIENT;
	else
		q->patience = SIO_NVME_IMPATIENT;
	q->empty = 0;
}

/*
 * Is this a child of the process that opened it? What a child has are copies of memory, made while
 * the parent's other threads may have been in the middle of something, and mappings of what is the
 * parent's still: it may close things, which does nothing there.
 */
static inline bool sio_nvme_is_childs(const struct smartio_nvme *n)
{
	return n->process != smartio_process();
}

/*
 * The client's lock, for control calls, never for the data path. The library has no mutex of its
 * own.
 */
void sio_nvme_lock(struct smartio_nvme *n);
/* Return: false: another thread has the lock. */
bool sio_nvme_trylock(struct smartio_nvme *n);
void sio_nvme_unlock(struct smartio_nvme *n);

/* client.c: copies the namespaces that @meta reports into the client. Under the lock. */
int sio_nvme_copy_namespaces(struct smartio_nvme *n, const struct sio_nvme_meta *meta);

/* lease.c, under the lock */
/*
 * Is the lease that of the borrow over @leg, so that the manager deletes the queues there before
 * the blocks can be another program's?
 */
bool sio_nvme_lease_has(const struct smartio_nvme_lease *l, const struct smartio_nvme *leg);
/* Makes sure of that. -ESTALE: the lease has ended; -errno: the manager does not say. */
int sio_nvme_lease_join(const struct smartio_nvme_lease *l, struct smartio_nvme *leg);
/* Is there a lease that is not that of each of two open legs? */
bool sio_nvme_leases_lack(const struct smartio_nvme *n);
/* Joins them, as far as the manager answers within a moment. */
void sio_nvme_leases_join_all(struct smartio_nvme *n);

/* doorbell.c */
/* Connects BAR 0 and maps the doorbells of as many queue pairs as there are. */
int sio_nvme_doorbells_open(struct smartio_nvme *n);
/* Unmaps them when no queue is left. A half-built state is fine. */
void sio_nvme_doorbells_close(struct smartio_nvme *n);
/*
 * Takes the doorbells for @q, which has its number and generation. Under the lock. The queue is
 * dead if it is from before a reset.
 */
int sio_nvme_doorbells_take(struct smartio_nvme_queue *q);
/* Releases a use of the doorbells. @b may be NULL. */
void sio_nvme_doorbells_put(struct sio_nvme_doorbells *b);

/* turn.c: waiting for a queue pair that another program gives back. */
struct sio_nvme_turn {
	sci_local_data_interrupt_t notice; /* told by the manager; NULL: no wait */
	unsigned number;
	uint64_t deadline;
};
/*
 * @timeout_ms: 0: no wait; UINT32_MAX: forever. The only error is that of an interrupt that cannot
 * be created.
 */
int sio_nvme_turn_open(struct smartio_nvme *n, uint32_t timeout_ms, struct sio_nvme_turn *t);
void sio_nvme_turn_close(struct sio_nvme_turn *t);
/*
 * Waits after the manager has refused a queue pair, when the manager knows t->number. Called under
 * the lock, which is released while it sleeps. Return: 1: ask again; 0: the deadline has passed;
 * -ENOTCONN: no manager; -ENODEV.
 */
int sio_nvme_turn_wait(struct smartio_nvme_queue *q, const struct sio_nvme_turn *t);

/* manager_link.c */
#define SIO_NVME_MOMENT_MS 100u /* for a manager that answers, where I/O waits for that */
/* Reads into n->meta what the manager publishes. -ENOTCONN: no manager serves; nothing changed. */
int sio_nvme_find_manager(struct smartio_nvme *n);
/*
 * Sends a request to the manager and waits for the reply; the head of @req is filled in here. Under
 * the lock.
 * @ret_sent: whether the manager may have received it; may be NULL.
 * -ENOTCONN: no manager; -ETIMEDOUT: the manager does not answer; otherwise the error of its reply,
 * with its text.
 */
int sio_nvme_ask(struct smartio_nvme *n, struct sio_nvme_req *req, struct sio_nvme_rep *rep,
		 bool *ret_sent);
/*
 * None serves: waits a moment for a standby manager to take over, or for one that has lost its path
 * to the drive to come back over another. Return: whether one serves.
 */
bool sio_nvme_await_successor(struct smartio_nvme *n);
/*
 * Without the lock, aside: waits for the lender, and asks it whether a manager is there, so that it
 * is not waited for under the lock.
 */
bool sio_nvme_lender_answers(struct smartio_nvme *leg);
/* Does a manager answer within a moment? Under the lock. */
bool sio_nvme_manager_answers(struct smartio_nvme *n);
/*
 * Takes back request @sequence, which was not answered. What is said has not been done by now: who
 * must know asks.
 */
void sio_nvme_say_cancel(struct smartio_nvme *n, uint64_t sequence);
/* Connects to the manager ahead of a request that is in a hurry (n->trusts). */
int sio_nvme_link_manager(struct smartio_nvme *n);
/*
 * The two halves of that. The first: 1: the manager that serves is to be connected to; 0: it is.
 * The second waits for the manager's host; @owner: whose lock is released meanwhile; NULL: none.
 */
int sio_nvme_seek_manager(struct smartio_nvme *n);
int sio_nvme_connect_manager(struct smartio_nvme *owner, struct smartio_nvme *n,
			     sci_remote_data_interrupt_t *ret);
/* Finds the manager that serves, or a successor that takes over within a moment. -ENOTCONN. */
int sio_nvme_find_serving(struct smartio_nvme *n);
void sio_nvme_unlink_manager(struct smartio_nvme *n);

/* owed.c, under the lock */
/* From now on @req is sent ahead of the next request. @o: of malloc(), which is taken. */
void sio_nvme_owe(struct smartio_nvme *leg, struct sio_nvme_owed *o,
		  const struct sio_nvme_req *req);
/* Asks for all that. -errno: the manager does not answer. */
int sio_nvme_pay(struct smartio_nvme *leg);
/* Has a manager done what was asked for with this result, or said that it does not? */
bool sio_nvme_was_answered(int rc, const struct sio_nvme_rep *rep);
/* The borrow ends. */
void sio_nvme_owed_forget(struct smartio_nvme *leg);

/* second.c */
/* Borrows the drive over two adapters. -ENODEV: this host has only one path to it. */
int sio_nvme_second_open(struct smartio_nvme *n);
void sio_nvme_second_close(struct smartio_nvme *n);
/* Is the drive borrowed over this leg? */
static inline bool sio_nvme_leg_open(const struct smartio_nvme *leg)
{
	return leg->stage == SIO_NVME_LEG_OPEN && !smartio_device_lost(leg->d.handle);
}

/* The leg by which the manager is asked for what concerns no queue. Under the lock. */
static inline struct smartio_nvme *sio_nvme_way(struct smartio_nvme *n)
{
	return n->second && !sio_nvme_leg_open(n) && sio_nvme_leg_open(n->second) ? n->second : n;
}

/* The leg that the options of @q ask for. Under the lock. */
struct smartio_nvme *sio_nvme_leg_for(struct smartio_nvme *n, const struct smartio_nvme_queue *q);
/*
 * One step by which a leg that was lost is opened again, under the lock. 1: more steps follow; 0:
 * the leg is open; -errno: the path is not back.
 */
int sio_nvme_leg_step(struct smartio_nvme *n, struct smartio_nvme *leg);

/* remains.c, under the lock */
/* Frees what queues need of @leg; the borrow and its buffers stay. */
void sio_nvme_leg_end(struct smartio_nvme *leg);
/* Ends the lost borrow of @leg, or leaves it to the queues that have something of it. -ENOMEM. */
int sio_nvme_remains_leave(struct smartio_nvme *n, struct smartio_nvme *leg);
/* Is there one that no queue has anything of any more? The second function ends these. */
bool sio_nvme_remains_idle(const struct smartio_nvme *n);
void sio_nvme_remains_end(struct smartio_nvme *n);

/* aside.c */
/*
 * Under the lock: @task is to be done, each step under the lock. Return: true: the caller starts
 * it, without the lock; false: something is under way.
 */
bool sio_nvme_aside_claim(struct smartio_nvme *n, sio_nvme_task *task, void *of);
void sio_nvme_aside_start(struct smartio_nvme *n);
/* Under the lock: @q is closed. */
void sio_nvme_aside_forget(const struct smartio_nvme_queue *q);
/* Waits for the thread, which no queue is left to start again. */
void sio_nvme_aside_end(struct smartio_nvme *n);

/*
 * The leg of @q, without the lock: another thread may be moving the queue to a leg of its own
 * (remains.c), which is the same borrow, and lost.
 */
static inline struct smartio_nvme *sio_nvme_leg(const struct smartio_nvme_queue *q)
{
	return __atomic_load_n(&q->leg, __ATOMIC_RELAXED);
}

/* The address of @b for the drive, for commands of @q. */
static inline uint64_t sio_nvme_reach(const struct smartio_nvme_queue *q,
				      const struct smartio_nvme_buffer *b)
{
	return q->over_second ? b->second.ioaddr : b->ioaddr;
}

/* survive.c: queues that outlive their pair. */
int sio_nvme_survivor_make(struct smartio_nvme_queue *q);
void sio_nvme_survivor_free(struct smartio_nvme_queue *q);
/* The queue has got its first pair. */
void sio_nvme_survivor_begin(struct smartio_nvme_queue *q);
/* Called before the queue is closed: from now on it ends with its pair. */
void sio_nvme_survivor_end(struct smartio_nvme_queue *q);
/* Does the queue go on, though its pair may be dead? */
bool sio_nvme_survives(const struct smartio_nvme_queue *q);
/*
 * Has it failed for good, and its last pair gone with a borrow or by a reset? Then the drive uses
 * nothing of it. Under the lock.
 */
bool sio_nvme_is_over(const struct smartio_nvme_queue *q);
/* Between two pairs: the number of commands that were never announced to the last pair's drive. */
uint32_t sio_nvme_unrung(const struct smartio_nvme_queue *q);
/* Replaces a poll for a queue that cannot be polled now. */
int sio_nvme_survive(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max);
/* Records a command before it is put. -ENOMEM. */
int sio_nvme_note(struct smartio_nvme_queue *q, uint32_t op, uint64_t lba, uint64_t nlb,
		  const struct smartio_nvme_piece *piece, uint32_t n_pieces);
/* A check from time to time: are the paths of the queue open, and its commands in time? */
void sio_nvme_look(struct smartio_nvme_queue *q);

/* limit.c: queues with a time-out. */
int sio_nvme_limit_make(struct smartio_nvme_queue *q);
/* @now: the caller checks seldom, so the check is due at once. */
void sio_nvme_limit_look(struct smartio_nvme_queue *q, bool now);
/* Nanoseconds between two checks that matter; UINT64_MAX: none does. */
uint64_t sio_nvme_limit_tick(const struct smartio_nvme_queue *q);
/* Was this command, which was in flight when its queue pair was given up, the reason for that? */
bool sio_nvme_was_overdue(const struct sio_nvme_slot *slot);
/* Return: why a submit finds no free command. */
int sio_nvme_no_command(struct smartio_nvme_queue *q);
/*
 * Waits, while no command of the queue is in flight, until it accepts commands again. 0, or the
 * reason why it never will.
 */
int sio_nvme_await_life(struct smartio_nvme_queue *q);

/* pair.c, under the lock: the resources of the drive that a queue has. */
/*
 * Creates a pair over q->leg. @ret_unsure: the drive may have the pair although the call failed. A
 * half-made pair is released by the close.
 */
int sio_nvme_pair_open(struct smartio_nvme_queue *q, bool *ret_unsure);
/* Releases the pair, which the drive has deleted. */
void sio_nvme_pair_close(struct smartio_nvme_queue *q);
/*
 * Allocates memory for one more pair over @leg, so that this costs no time later. @aside: without
 * the lock, which the thread that works aside can do, to wait for the lender; the queue may be
 * closed meanwhile.
 */
int sio_nvme_pair_prepare(struct smartio_nvme_queue *q, struct smartio_nvme *leg, bool aside);
int sio_nvme_ask_delete(struct smartio_nvme_queue *q);
void sio_nvme_put_spare(struct smartio_nvme *n, struct sio_nvme_mem *mem);

/*
 * share.c: prepares a pair that programs of this host may join, before the manager is asked for it.
 * A half-made one is released by the close.
 */
int sio_nvme_share_new(struct smartio_nvme_queue *q);
/*
 * The manager has given @pair: the prepared one, or a place in another program's, which replaces
 * the prepared one. -EAGAIN: that pair has ended.
 */
int sio_nvme_share_take_place(struct smartio_nvme_queue *q, const struct sio_nvme_rep_pair *pair);
/*
 * Releases the share: the drive has deleted the pair, or other programs have it. NULL is fine, and
 * half-made.
 */
void sio_nvme_share_close(struct sio_nvme_share *s);
/* The phase bit of the next new completion in this program's own queue. */
static inline bool sio_nvme_share_phase(const struct sio_nvme_share *s)
{
	return sio_read32(&s->head->own[s->place].phase) & 1;
}
/*
 * Forgets the share, whose memory the drive may use: that is left to SCITerminate(). NULL is fine.
 */
void sio_nvme_share_forget(struct sio_nvme_share *s);
/*
 * share_lock.c: closes the lock: nobody rings the doorbells any more. -EAGAIN: a living program is
 * about to.
 */
int sio_nvme_share_shut(struct sio_nvme_share *s);
/* share.c: the same, and waits for that program. */
int sio_nvme_share_shut_wait(struct sio_nvme_share *s);
/*
 * share_lock.c: copies the entries that were put into the queue and rings the doorbell, unless the
 * pair has ended.
 */
void sio_nvme_share_ring(struct smartio_nvme_queue *q);
/*
 * share_lock.c: moves completions to the programs whose commands they end. Return: whether this
 * queue has some. If the pair has ended, the queue is dead.
 */
bool sio_nvme_share_take(struct smartio_nvme_queue *q);
/*
 * share_lock.c: the same for a program that is about to sleep, which looks seldom: it waits a
 * moment for another program that is handing completions on.
 */
bool sio_nvme_share_await(struct smartio_nvme_queue *q);
/*
 * share_lock.c: can something come of which no interrupt notifies: another program's release of the
 * lock, or completions of a pair without a vector?
 */
bool sio_nvme_share_is_silent(const struct smartio_nvme_queue *q);
/* share_lock.c: are there completions in the common queue that nobody has taken? A check only. */
bool sio_nvme_share_waits(const struct smartio_nvme_queue *q);
/*
 * queue.c: keeps the queue's memory, which the drive may use, until a reset, or until the process
 * ends.
 */
void sio_nvme_keep(struct smartio_nvme_queue *q);

/* client.c: borrows the drive for @leg, whose device was found, with all that queues need. */
int sio_nvme_leg_borrow(struct smartio_nvme *leg, struct sio_nvme_wait *w);
int sio_nvme_leg_find(struct smartio_nvme *leg, struct sio_nvme_wait *w);

/* io.c: was the device reset since the queues were made? Then the queue is dead. */
bool sio_nvme_queue_stale(struct smartio_nvme_queue *q);
/* Commands that were submitted and not completed; of a dead queue: at its death. */
uint32_t sio_nvme_in_flight(const struct smartio_nvme_queue *q);
uint64_t sio_nvme_expected(uint32_t id, bool phase);
#define SIO_NVME_CQE_PHASE (1ull << 48) /* in the second half of a completion */
/* Has the next completion arrived? A check only; it is not taken. */
static inline bool sio_nvme_completion_waits(const struct smartio_nvme_queue *q)
{
	return !((le64toh(sio_read64(q->cqe + 8)) ^ q->expected) & SIO_NVME_CQE_PHASE) ||
	       (q->flushes && sio_nvme_far_waits(q));
}
/* Return: why the queue is dead, as an error with its text. */
int sio_nvme_queue_dead(struct smartio_nvme_queue *q);
/*
 * interrupt.c, under the lock. The end accepts a half-made one. -EBUSY: the drive has no vector
 * left.
 * @ret_shared: the number of an interrupt that several programs may own; NULL: it is not shared.
 */
int sio_nvme_interrupt_open(struct smartio_nvme_queue *q, unsigned *ret_shared);
/*
 * Takes a part in the shared interrupt @shared - 1, which the vector of another program triggers.
 * -EAGAIN: it has another use by now, so its maker has ended. @shared 0: nothing triggers it.
 */
int sio_nvme_interrupt_join(struct smartio_nvme_queue *q, uint32_t shared);
void sio_nvme_interrupt_close(struct smartio_nvme_queue *q);
/* The error for blocks that the queue may not use. */
int sio_nvme_out_of_range(const struct smartio_nvme_queue *q, uint64_t lba, uint64_t blocks);
/* The same as smartio_nvme_submit(), without its checks; there is a free command. */
void sio_nvme_put(struct smartio_nvme_queue *q, uint32_t op, uint64_t lba, uint64_t nlb,
		  uint64_t prp1, uint64_t prp2, struct smartio_nvme_buffer *b, void *cookie);
/* blocking.c: may the helpers use the queue for this many bytes? */
int sio_nvme_check_bytes(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes);
/* Waits until something completes, or the drive has been silent for too long. */
int sio_nvme_wait_some(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
		       unsigned max);
/* The error that the helpers return for a status that is not success. */
int sio_nvme_status_error(uint32_t status);
/* Allocates memory for the helpers' data. */
int sio_nvme_get_bounce(struct smartio_nvme_queue *q);

/* prp.c: can PRP entries name piece @i of @n? */
bool sio_nvme_prp_fits(const struct smartio_nvme_piece *piece, uint32_t i, uint32_t n);
/*
 * prp.c: fills both pointers of a command that name a transfer in @n pieces, which are as
 * smartio_nvme_submit_commands() asks for them. Return: the bits to add to the command's opcode
 * word: 0, or those of a scatter gather list.
 */
uint32_t sio_nvme_name_pieces(struct smartio_nvme_queue *q, uint32_t cid,
			      const struct smartio_nvme_piece *piece, uint32_t n,
			      uint64_t *ret_prp1, uint64_t *ret_prp2);
/* Most pieces that the scatter gather list of a command may have; 0: the drive supports none. */
static inline uint32_t sio_nvme_sgl_most(const struct smartio_nvme_queue *q)
{
	return q->n->sgls ? (1u << q->list_shift) / 16 : 0;
}
/* The second pointer of a transfer of @bytes from @addr on that does not fit into one page. */
uint64_t sio_nvme_prp2(struct smartio_nvme_queue *q, uint32_t cid, uint64_t addr, uint64_t bytes);
/*
 * Bytes of PRP list that a transfer of @max_transfer bytes may need, rounded up to a power of two,
 * as its log2.
 */
uint32_t sio_nvme_prp_shift(uint32_t max_transfer);

/* lease.c: gives all leases back, as far as a manager can be reached. */
void sio_nvme_leases_close(struct smartio_nvme *n);

/*
 * buffer.c: finds the registered buffer that has these bytes; NULL: none. It is not freed before
 * sio_nvme_registered_done(), even while no command of the helper is in flight.
 */
struct smartio_nvme_buffer *sio_nvme_registered(struct smartio_nvme *n, const void *data,
						size_t bytes);
/* Ends that use. @b may be NULL. */
void sio_nvme_registered_done(struct smartio_nvme_buffer *b);
/*
 * buffer.c, under the lock: frees the buffer; what the drive may still use is left to
 * SCITerminate().
 */
void sio_nvme_buffer_end(struct smartio_nvme_buffer *b);
/*
 * queue.c, under the lock: has the drive's manager delete kept queues, and frees those. 0; -EBUSY:
 * one has commands in flight, and others complete in its completion queue.
 */
int sio_nvme_queues_delete(struct smartio_nvme *n);
/*
 * queue.c, under the lock: the same for kept queues; those that the drive has forgotten are freed.
 */
void sio_nvme_queues_forget(struct smartio_nvme *n, bool all);

#endif
