/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * libsmartio-nvme: one single-function NVMe drive shared by many processes on many hosts.
 *
 * A manager resets the drive, owns its admin queue and serves clients; each client owns I/O queue
 * pairs of the drive and moves data without manager, daemon or system call. Sources: Markussen et
 * al., "SmartIO", ACM TOCS 38 (2021), section 6; NVM Express Base Specification 1.4.
 *
 * SCIInitialize() comes first. Functions return 0 or -errno unless told otherwise;
 * smartio_nvme_error() explains the calling thread's last failure. A queue pair belongs to one
 * thread at a time; everything else may be called from any thread.
 */
#ifndef SMARTIO_NVME_H
#define SMARTIO_NVME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** The calling thread's last failure, with names and numbers. Never NULL. */
const char *smartio_nvme_error(void);
/**
 * What ran out, if the calling thread's last failure was for that: SIO_OUT_OF_* of smartio/uapi.h
 * (SIO_OUT_OF_QUEUE_PAIRS, say), else 0. smartio_nvme_error() names it, too.
 */
unsigned int smartio_nvme_exhausted(void);

/* ---- manager ---- */
struct smartio_nvme_manager;

struct smartio_nvme_manager_options {
	size_t size;		    /* sizeof(struct smartio_nvme_manager_options) */
	uint32_t admin_entries;	    /* 0: 32 */
	uint32_t enable_timeout_ms; /* 0: what CAP.TO says */
	uint32_t flags;		    /* SMARTIO_NVME_ALLOW_VENDOR, SMARTIO_NVME_STANDBY */
	uint32_t reserved;	    /* 0 */
};
/*
 * Clients may have vendors' commands and features given to the drive, while nobody has a queue
 * pair: what those do to other clients the manager does not know.
 */
#define SMARTIO_NVME_ALLOW_VENDOR 1u
/*
 * Where another manager serves the drive, wait for its end, and serve then; where none does, serve
 * at once. The end is told by the library, nothing is polled. After a manager that was killed the
 * drive is not reset: clients keep their queues and leases, and what they ask for meanwhile waits.
 * Where that cannot be (the manager ended in order, or its host or path was lost) it is reset.
 */
#define SMARTIO_NVME_STANDBY 2u

/**
 * Take the drive, reset it, enable it, and make it findable by clients.
 * -EBUSY: another manager holds it (or it is borrowed exclusively); -ENODEV: no such device;
 * -ENOTSUP: not an NVMe drive; -ETIMEDOUT; -EIO: the drive went to fatal status.
 * With SMARTIO_NVME_STANDBY it returns also when another manager serves: then this one stands by
 * (smartio_nvme_manager_get_status()), has the drive borrowed shared, and takes over in
 * smartio_nvme_manager_serve(). -EBUSY: there are four standbys already.
 */
int smartio_nvme_manager_open(const char *device, const struct smartio_nvme_manager_options *o,
			      struct smartio_nvme_manager **ret);
/**
 * Serve requests and deaths for up to @timeout_ms (0: what waits now; UINT32_MAX: for ever).
 * When the path to the drive is lost and another one is up, it comes back over that in here: the
 * drive is reset, clients hear -ECONNRESET, and this returns 1.
 * A standby waits for the end of the manager that serves, and returns 1 when it has taken over.
 * Return: how many were served, 0 at the time-out or after smartio_nvme_manager_stop(); -EIO: the
 * drive failed; -ENODEV: it is gone, or no path leads to it. After an error the manager can only be
 * closed.
 */
int smartio_nvme_manager_serve(struct smartio_nvme_manager *m, uint32_t timeout_ms);
/**
 * Make a serve that waits return soon, or the next one if none does. From any thread, and from a
 * signal handler.
 */
void smartio_nvme_manager_stop(struct smartio_nvme_manager *m);
/**
 * Shut the drive down and give it back; clients that still have queues get -ECONNRESET. One that
 * does not answer is reset by its host; where that fails, too, the memory of its admin queues
 * stays, and the drive is given back when this program ends. The text of an earlier failure stays.
 * NULL is fine. In a child of fork() this does nothing.
 */
void smartio_nvme_manager_close(struct smartio_nvme_manager *m);
/**
 * Instead of smartio_nvme_manager_close(), by a program that ends: leave the drive as it is to
 * whoever stands by. @m is freed; its borrow, registers and requests stay until SCITerminate() or
 * the end of the program, which is to follow at once: until then nobody serves. Then a standby
 * takes over as after a death, without a reset: clients' queues and leases go on, and what they ask
 * for meanwhile waits for it (but for admin commands that change something, which fail with
 * -ENOTCONN). If that standby
 * ends before, the next one that is started goes on. On real hosts it resets the drive, as it does
 * after a death there.
 * 0; -ENOENT: @m does not serve, or nobody stands by; -EIO: the drive was lost to it. Then nothing
 * was done, and @m is to be closed.
 */
int smartio_nvme_manager_hand_over(struct smartio_nvme_manager *m);
/** Queue pairs that clients have now, and that the drive has in all. */
uint32_t smartio_nvme_manager_queue_pairs(const struct smartio_nvme_manager *m, uint32_t *ret_all);
/**
 * Queue pairs that clients were given so far. A client that is quick comes and goes between two
 * looks at smartio_nvme_manager_queue_pairs(), in one smartio_nvme_manager_serve().
 */
uint64_t smartio_nvme_manager_given(const struct smartio_nvme_manager *m);

struct smartio_nvme_manager_status {
	uint32_t serves;     /* 1: clients can come; 0: it stands by */
	uint32_t other_node; /* of the manager that a standby waits for, or was; 0: not known */
	uint32_t takeovers;  /* so far */
	uint32_t kept;	     /* of those: without a reset, so that clients noticed nothing */
	/* Microseconds of the last takeover, from when the library reported the other's end. */
	uint64_t took_us;
	/* How often it lost its path to the drive and came back over another. */
	uint32_t returns;
	uint32_t returns_kept; /* of those: without a reset */
	/*
	 * 1: it has borrowed the drive over a second path, too, by which it comes back without a
	 * reset even if all other borrows are lost with the first.
	 */
	uint32_t second_path;
};
/** From the thread that serves. Source: our own. */
void smartio_nvme_manager_get_status(const struct smartio_nvme_manager *m,
				     struct smartio_nvme_manager_status *status);

/* ---- client ---- */
struct smartio_nvme;

struct smartio_nvme_info {
	char serial[21], model[41], firmware[9];
	uint16_t vendor;
	uint16_t queue_pairs;	    /* of the drive */
	uint32_t max_queue_entries; /* of one queue */
	uint32_t max_transfer;	    /* bytes of one command */
	uint32_t namespaces;
	uint32_t lender_node, manager_node;
	uint32_t version; /* of the specification, as the VS register */
	/* Scatter gather lists (NVMe 1.4, section 4.4): 0: it has none; 1, 2: it takes them. */
	uint32_t sgls;
	uint32_t features; /* SMARTIO_NVME_HAS_* */
};
/** Of a drive (NVMe 1.4, Identify Controller): a volatile write cache; commands it knows. */
#define SMARTIO_NVME_HAS_CACHE 1u
#define SMARTIO_NVME_HAS_DEALLOCATE 2u
#define SMARTIO_NVME_HAS_WRITE_ZEROES 4u

struct smartio_nvme_namespace {
	uint32_t id, block_size;
	uint64_t blocks;
};

/**
 * Open a drive that has a manager, by the device's name or number. Does not wait for one.
 * -ENODEV: no such device; -ENOTCONN: it has no manager; -EBUSY: exclusively borrowed, as by a
 * manager that is just starting.
 */
int smartio_nvme_open(const char *device, struct smartio_nvme **ret);
/**
 * The same, but wait for a manager that is on its way: where smartio_nvme_open() fails with
 * -ENOTCONN or -EBUSY, sleep and try again, until that fails with another error, or for @timeout_ms
 * (0: not at all; UINT32_MAX: for ever). While the drive is borrowed exclusively it sleeps until
 * that has ended (smartio_await_device()), also if the drive's host goes away and comes back
 * meanwhile. Then a manager's notice that it serves ends the sleep (smartio_device_notify()). While
 * it waits for a manager it has borrowed the drive, so that nobody can borrow it exclusively (a
 * manager needs not to). Errors: the last one of smartio_nvme_open(). Source: our own.
 */
int smartio_nvme_open_wait(const char *device, uint32_t timeout_ms, struct smartio_nvme **ret);

/**
 * Flag of smartio_nvme_open_with(): use two adapters of this host. The drive is borrowed over each;
 * buffers are mapped for it twice, which takes twice the windows and requester entries. Queues with
 * SMARTIO_NVME_SURVIVE are given the two ways in turn; when the link of one goes, those that go
 * over it are moved to the other, and back when it is up again. Queues without that flag use the
 * first way alone, or with a lease the one that is open. The manager is asked over the first way,
 * or if that is lost over the other. A lease is that of both ways and outlives the loss of one, as
 * long as it is not lost with the other before the manager has heard of it over the first again. A
 * queue that finds it lost ends with -ESTALE. With a drive of this host the flag means nothing.
 */
#define SMARTIO_NVME_MULTIPATH 1u

struct smartio_nvme_open_options {
	size_t size;	  /* sizeof(struct smartio_nvme_open_options) */
	uint32_t wait_ms; /* for a manager, as smartio_nvme_open_wait() */
	uint32_t flags;	  /* SMARTIO_NVME_MULTIPATH, or 0 */
};
/**
 * As smartio_nvme_open_wait(), with @o (NULL: all 0). Also: -EINVAL: flags that are not known;
 * -ENODEV with SMARTIO_NVME_MULTIPATH: one adapter alone leads to the drive (the link of the second
 * may be down). Source: section 6.3 of the paper.
 */
int smartio_nvme_open_with(const char *device, const struct smartio_nvme_open_options *o,
			   struct smartio_nvme **ret);
/**
 * Closes what is open under it, too. NULL is fine. In a child of fork() this does nothing, nor do
 * the other calls that close and free: what the child has are copies, and the parent goes on with
 * what they stand for. It must do nothing else with them. Queues that could not be deleted because
 * no manager lives stay with the drive until SCITerminate() or the end of the process; then they
 * are kept in quarantine until the next manager has reset the drive.
 */
void smartio_nvme_close(struct smartio_nvme *n);
void smartio_nvme_get_info(const struct smartio_nvme *n, struct smartio_nvme_info *info);
/** @index from 0. -ENOENT: no such namespace. */
int smartio_nvme_get_namespace(const struct smartio_nvme *n, uint32_t index,
			       struct smartio_nvme_namespace *ns);
/** The 4,096 bytes of an Identify command (NVMe 1.4, section 5.15), asked through the manager. */
int smartio_nvme_identify(struct smartio_nvme *n, uint8_t cns, uint32_t nsid, void *data);

/* ---- the admin queue, which the manager has ---- */
/** A command for the manager to give. What its data pointer says is the manager's. */
struct smartio_nvme_admin {
	size_t size;	 /* sizeof(struct smartio_nvme_admin) */
	uint32_t opcode; /* 0 to 0xff */
	uint32_t flags;	 /* SMARTIO_NVME_CONFIRMED, SMARTIO_NVME_TO_DRIVE */
	uint32_t nsid, cdw2, cdw3, cdw10, cdw11, cdw12, cdw13, cdw14, cdw15;
	uint32_t bytes;	     /* of @data, up to 4,096 */
	void *data;	     /* written by the call, or with SMARTIO_NVME_TO_DRIVE read */
	uint32_t timeout_ms; /* that the drive may take, up to 600,000; 0: 10,000 */
	uint32_t reserved;   /* 0 */
};
/** The caller knows that this changes the drive, or its data, for all clients. */
#define SMARTIO_NVME_CONFIRMED 1u
#define SMARTIO_NVME_TO_DRIVE 2u

/**
 * Have the manager give an admin command. It serves nobody else for the 10 s that the drive may
 * take; but one with a longer timeout_ms, and each for which no client may have a queue pair, is
 * given beside all others, one at a time, and goes on in the drive when its time is over
 * (-ETIMEDOUT), the client ends, or the manager does. What a client may ask for is the manager's
 * rule: to look at anything (Identify, Get Log Page, Get Features); with SMARTIO_NVME_CONFIRMED
 * what concerns all clients (Set Features, Directive Send); and while no client has a queue pair
 * what would take the ground from under it (Format, Sanitize).
 * Queues, Abort, event requests, firmware, namespace management and doorbell buffers are refused.
 * @ret_result: dword 0 of the completion; @ret_status: SCT << 8 | SC, without it a status that is
 * not success is an error. Both may be NULL.
 * -EPERM: refused, whoever asks; -EACCES: not confirmed; -EBUSY: clients have queue pairs, or the
 * drive carries out another such command, the text says whose; -EOPNOTSUPP: the manager's admin
 * queue has fewer than the 4 entries that one beside others takes; -EINVAL; -EIO: its status;
 * -ENOTCONN, -ETIMEDOUT, -ENODEV as smartio_nvme_queue_open().
 * Source: NVM Express Base Specification 1.4, section 5; the rule is our own.
 */
int smartio_nvme_admin(struct smartio_nvme *n, const struct smartio_nvme_admin *command,
		       uint32_t *ret_result, uint32_t *ret_status);
/** Get Log Page (section 5.14), of any length: multiples of 4. @nsid: 0xffffffff: the drive's. */
int smartio_nvme_get_log(struct smartio_nvme *n, uint8_t page, uint32_t nsid, uint64_t offset,
			 void *data, size_t bytes);
/** Get Features (section 5.15). @select: 0 current, 1 default, 2 saved, 3 what is supported. */
int smartio_nvme_get_feature(struct smartio_nvme *n, uint8_t feature, uint32_t select,
			     uint32_t nsid, uint32_t *ret_value);
/** Set Features (section 5.21), not saved. @flags: SMARTIO_NVME_CONFIRMED. */
int smartio_nvme_set_feature(struct smartio_nvme *n, uint8_t feature, uint32_t nsid, uint32_t value,
			     uint32_t flags);
/**
 * Format NVM (section 5.23) without metadata or erasure settings: destroys all data of @nsid.
 * @lba_format: index into what Identify reports about it; @flags: SMARTIO_NVME_CONFIRMED.
 * Afterwards this client's namespaces are as they are now; other clients that had opened the drive
 * are refused queue pairs with -ESTALE, and open it again. No other thread may use @n meanwhile.
 */
int smartio_nvme_format(struct smartio_nvme *n, uint32_t nsid, uint8_t lba_format, uint32_t flags);

/** Who has which queue pair, as the client has told the manager. */
struct smartio_nvme_pair {
	uint32_t id, node;
	uint64_t borrower; /* smartio_borrower_id() there */
	char program[16];
	uint32_t cq_of; /* the pair in whose completion queue it completes; 0: its own */
	uint32_t reserved;
};
/**
 * Up to @max of them, by id; one that programs share, once for each of these. Return: how many;
 * errors as smartio_nvme_identify().
 */
int smartio_nvme_get_pairs(struct smartio_nvme *n, struct smartio_nvme_pair *pair, unsigned max);

/** A manager that waits for the end of the one that serves. */
struct smartio_nvme_standby {
	uint32_t node, reserved;
	char program[16]; /* as it says itself */
};
/** Up to @max of them. Return: how many; -ENODEV: the drive is gone. Source: our own. */
int smartio_nvme_get_standbys(struct smartio_nvme *n, struct smartio_nvme_standby *standby,
			      unsigned max);

/* ---- leases: ranges of blocks for oneself ---- */
/*
 * The manager gives each block to one lease at most, so that hosts that ask for leases do not
 * overwrite each other by mistake. A queue that was opened with a lease refuses other blocks; what
 * clients without leases write nobody can prevent, for drives know no owners. A lease ends when it
 * is given back, when its client ends, dies or has lost each of its paths to the drive (after its
 * submission queues are deleted, so that nothing of it is written any more), and with a reset of
 * the drive.
 */
struct smartio_nvme_lease;
struct smartio_nvme_lease_info {
	uint64_t id, lba, blocks;
	uint32_t nsid, node;
	char name[16], program[16]; /* program: whose it is */
};
#define SMARTIO_NVME_ANYWHERE UINT64_MAX

/**
 * Take @blocks of namespace @nsid from @lba on, or anywhere. @name: 1 to 15 characters.
 * -EBUSY: another lease has some of them, -EEXIST: one has the name: the text says whose it is;
 * -ENOSPC: so many in a row are not free; -ERANGE; -EINVAL; -ESTALE: the drive was formatted;
 * -ENOTCONN, -ETIMEDOUT, -ENODEV as smartio_nvme_queue_open(). Source: our own.
 */
int smartio_nvme_lease_take(struct smartio_nvme *n, const char *name, uint32_t nsid, uint64_t lba,
			    uint64_t blocks, struct smartio_nvme_lease **ret);
/**
 * Give it back. -EBUSY: a queue pair uses it, or one of it could not be deleted; -ENOMEM. NULL is
 * fine. A manager that does not answer is asked once more ahead of the client's next request; of
 * what was used over a path that is lost the blocks are free when its queues are deleted.
 */
int smartio_nvme_lease_give(struct smartio_nvme_lease *l);
void smartio_nvme_lease_get(const struct smartio_nvme_lease *l,
			    struct smartio_nvme_lease_info *info);
/** All clients' leases, up to @max. Return: how many; errors as smartio_nvme_identify(). */
int smartio_nvme_get_leases(struct smartio_nvme *n, struct smartio_nvme_lease_info *list,
			    unsigned max);

/*
 * Memory for data: of this host, mapped for the drive, page-aligned, zeroed, rounded up to pages.
 * All queues of the same smartio_nvme_open() may use it. -ENOMEM, -ENOSPC: no window or requester
 * entry.
 */
struct smartio_nvme_buffer;
int smartio_nvme_buffer_alloc(struct smartio_nvme *n, size_t bytes,
			      struct smartio_nvme_buffer **ret);
/**
 * The same, but @bytes from @offset on (whole pages) of BAR @bar of another device, by its name or
 * number, which is borrowed as long as the buffer lives: data goes from device to device, and
 * passes no host's RAM (docs/memory-device.md). What lies there stays as it is. When that device is
 * reset or lost, the drive's commands with the buffer may fail. Data and doorbell, data and
 * completion go by different ways: who stores there reads a word back before it rings
 * (sio_push_stores()), and the last data of a read may arrive after its completion.
 * -ENODEV: no such device; -EBUSY: it is borrowed exclusively; -EACCES: not pages that a borrower
 * may write; -ENOTSUP: on a real host without an IOMMU; -EINVAL, -ERANGE, and as
 * smartio_nvme_buffer_alloc().
 * Source: our own.
 */
int smartio_nvme_buffer_on_device(struct smartio_nvme *n, const char *device, uint32_t bar,
				  size_t offset, size_t bytes, struct smartio_nvme_buffer **ret);
/**
 * A buffer of memory that the program has already: the whole pages that hold @bytes at @address,
 * of the heap or of anonymous private mappings. They keep their contents, and the program goes on
 * using them where they are; offsets of commands count from smartio_nvme_buffer_data(), the start
 * of the first page. Commands, and the blocking helpers where all their data lie in it at a
 * multiple of 4, move data there without a copy, and with no message to anybody. No page may be
 * registered twice. smartio_nvme_buffer_free() makes the memory the program's own again, with what
 * is in it; until then it must not be given back to the system (munmap(), realloc()), and a child
 * of fork() has a copy of it. smartio_nvme_close() does the same, unless no manager could delete a
 * queue with a command in flight there: then the drive may write to it until SCITerminate(). What
 * others store there while it is registered or freed waits, and is not lost
 * (SCIRegisterSegmentMemory()).
 * -EINVAL: no bytes; -EFAULT: nothing that can be written is there; -ENOTSUP: pages of a file,
 * shared ones, a stack, or registered already; or the program has threads, and may not make them
 * wait (userfaultfd); and as smartio_nvme_buffer_alloc(). Source: our own.
 */
int smartio_nvme_buffer_register(struct smartio_nvme *n, void *address, size_t bytes,
				 struct smartio_nvme_buffer **ret);
/** -EBUSY: a command that uses it is in flight, or a blocking helper is at work. NULL is fine. */
int smartio_nvme_buffer_free(struct smartio_nvme_buffer *b);
void *smartio_nvme_buffer_data(const struct smartio_nvme_buffer *b);
size_t smartio_nvme_buffer_size(const struct smartio_nvme_buffer *b);

struct smartio_nvme_queue;

enum smartio_nvme_placement {
	SMARTIO_NVME_PLACE_AUTO = 0, /* by access hints: SQ with the lender, CQ here */
	/*
	 * With the lender. Of a completion queue that costs a client elsewhere a read across the
	 * fabric for each poll that finds something, and one from the drive, behind which its data
	 * has come.
	 */
	SMARTIO_NVME_PLACE_DEVICE = 1,
	SMARTIO_NVME_PLACE_LOCAL = 2, /* here */
	/*
	 * Of a submission queue: in the drive's own memory (its controller memory buffer), so that
	 * the drive fetches commands without a transaction. The manager gives out its pages, and
	 * the lender lets nobody else map them; lists of data pages lie with the lender. Not with
	 * SMARTIO_NVME_SURVIVE or _SHARED. -ENOTSUP: the drive has no such memory, or it is a real
	 * host's; -ENOSPC: no room is left there. Source: section 7.4.1 of the paper; NVMe 1.4,
	 * section 4.8.
	 */
	SMARTIO_NVME_PLACE_CMB = 3
};

struct smartio_nvme_queue_options {
	size_t size;			     /* sizeof(struct smartio_nvme_queue_options) */
	uint32_t depth;			     /* commands in flight at once; 0: 32 */
	uint32_t max_transfer;		     /* bytes of the largest command; 0: the drive's */
	uint32_t sq_placement, cq_placement; /* enum smartio_nvme_placement */
	uint32_t namespace_id;		     /* 0: 1 */
	uint32_t flags; /* SMARTIO_NVME_INTERRUPT, _HYBRID, _SURVIVE, _ALONE, _SHARED, or 0 */
	/*
	 * How long to wait for a queue pair while all are taken, in milliseconds; 0: not at all,
	 * UINT32_MAX: for ever.
	 */
	uint32_t wait_ms;
	/* With SMARTIO_NVME_SURVIVE: how long another queue pair is tried for; 0: 30,000. */
	uint32_t survive_ms;
	/*
	 * How long a command may take, in milliseconds, an eighth more or less; 0: as long as it
	 * likes. Who looks after it is smartio_nvme_poll() and smartio_nvme_wait(): time in which
	 * nobody calls these does not count. One that takes longer is aborted, by the manager: if
	 * the drive finds it, it completes with Command Abort Requested (status 0x007; a write may
	 * have been done in part). If it does not come back from that, either, the queue pair is
	 * given up. A queue with SMARTIO_NVME_SURVIVE gets another one, and goes on as told there;
	 * but a command that was overdue three times is completed with SMARTIO_NVME_UNSURE,
	 * whatever it is. Any other queue ends with -ETIMEDOUT: what is in flight may be done or
	 * not, until the queue is closed. Clients with other queue pairs go on. Costs nothing for
	 * each command, but a longer way for each ring. Source: NVMe 1.4, sections 5.1 and 5.6.
	 */
	uint32_t timeout_ms;
	/*
	 * 0; or how many commands may be in flight of all queues whose commands complete in this
	 * queue's completion queue, its own among them: then others may be opened with
	 * @completes_in. Not for queues that survive (-EINVAL).
	 */
	uint32_t cq_depth;
	/*
	 * NULL; or a memory device (docs/memory-device.md) or accelerator, by name or number: the
	 * submission queue, and the lists of data pages, lie in its memory, and the drive fetches
	 * commands from device to device; sq_placement is 0. The queue borrows it exclusively until
	 * it is closed, and takes it from the start of its memory. On a real host, which must have
	 * an IOMMU and smartio.ko, any device with memory in BAR 2. It is a device of the drive's
	 * host, or else -ENOTSUP: when this process dies that host's daemon keeps the memory until
	 * the manager has deleted the queue, and lends the device to nobody meanwhile. Nor is it
	 * another drive (-ENOTSUP), whose owner may switch its memory off. A ring also reads once
	 * from there, as doorbells go another way than commands. Not for queues that survive or are
	 * shared (-EINVAL). Source: paper, section 7.4.1.
	 */
	const char *sq_device;
	/* The queue does I/O within this lease alone; NULL: within the namespace. */
	const struct smartio_nvme_lease *lease;
	/*
	 * NULL; or a queue of the same smartio_nvme_open() that was opened with @cq_depth: this one
	 * is a further submission queue, whose commands complete in that one's completion queue.
	 * There is one poll for all of them, one doorbell store for what it takes, and one
	 * interrupt. Each has its own depth, namespace, lease, placement and time-out, and takes
	 * one of the drive's queue pairs.
	 *
	 * All of them belong to the same thread. Whichever is polled or waited for, it is for all:
	 * it rings for all, and struct smartio_nvme_completion says whose command it was. The
	 * blocking helpers wait for their own commands; what comes of others meanwhile is left to
	 * the next poll. What ends one of them ends all. They are closed in any order: the
	 * completion queue, and with it the queue pair of the one that was opened first, lives
	 * until the last of them is closed. Not for queues that survive or are shared (-EINVAL).
	 * -ENOSPC: no room for so many commands is left in the completion queue. Source: NVMe 1.4,
	 * sections 4.1 and 5.4.
	 */
	struct smartio_nvme_queue *completes_in;
	/*
	 * With SMARTIO_NVME_HYBRID: microseconds that each wait polls before it sleeps; 0: as long
	 * as a sleep costs, as measured.
	 */
	uint32_t poll_us;
	uint32_t reserved; /* 0 */
};

/**
 * Have the drive interrupt this host when it completes commands of the queue, for
 * smartio_nvme_wait(). Takes one of the drive's interrupt vectors, and an interrupt of this host.
 */
#define SMARTIO_NVME_INTERRUPT 1u
/**
 * With SMARTIO_NVME_INTERRUPT: smartio_nvme_wait(), and with it the blocking helpers, polls first
 * and sleeps then. What comes soon is found as fast as by polling, and what takes long costs no
 * processor. How long it polls is poll_us of the queue's options, in each wait; or if that is 0 as
 * long as a sleep costs, which is twice what it adds to a wait: latency, and about as much of the
 * processor's time. So a wait takes no more of that in vain than the sleep would have cost, but for
 * those that measure. It is measured with the queue's own waits: of each 1,024 four sleep at once,
 * and as many (16 if none of them finds anything) poll for as long as those took. After a wait that
 * polled in vain some of the next ones sleep at once, up to 64 if it was so each time. While it
 * polls it yields the processor as smartio_nvme_poll() does.
 * Of several queues with one completion queue it is that of the first. Source: our own; to poll for
 * as long as a sleep costs: A. Karlin et al., "Competitive randomized algorithms for nonuniform
 * problems", Algorithmica 11 (1994).
 */
#define SMARTIO_NVME_HYBRID 16u
/**
 * The queue outlives its queue pair: when the drive is reset (by another manager, or its lender),
 * or one of two ways to it is lost (SMARTIO_NVME_MULTIPATH), smartio_nvme_poll() has the manager
 * delete the old pair and make another, and goes on. Until then it returns 0, and submits -EAGAIN.
 * Then of what was in flight
 *
 *   - reads, compares, verifies and flushes, and what the drive has not seen yet, are sent
 *     again: doing them twice changes nothing;
 *   - writes, write zeroes and deallocates are completed with SMARTIO_NVME_UNSURE: they may have
 *     been done, in whole or in part, and never will be from now on. They are not sent again, since
 *     another client may have written there after the first time, and read; what would undo that.
 *
 * It ends with -ECONNRESET as other queues do when every way to the drive is lost at once (then it
 * may have been off, and have lost what was not flushed); after survive_ms, with the last error
 * of smartio_nvme_queue_open(); with -ESTALE when the drive was formatted, or its lease has ended.
 * While it looks for a manager a poll may take as long as other calls that ask one. Costs a note of
 * each command, more than half as many instructions again as an I/O takes without, which is why it
 * is asked for. Source: section 6.3 of the paper; NVMe 1.4, sections 5.6 and 7.3.
 */
#define SMARTIO_NVME_SURVIVE 2u
/**
 * With SMARTIO_NVME_SURVIVE: nobody but this queue writes to the blocks that it writes to, and it
 * has no two commands in flight that write to the same block. Then its writes are sent again, too:
 * never before the old submission queue is deleted.
 */
#define SMARTIO_NVME_ALONE 4u
/**
 * Let programs of this host share queue pairs where the drive has too few. With
 * SMARTIO_NVME_SURVIVE. While the drive has a free pair the queue gets one, which others with this
 * flag may join; when all are taken it joins the one of this host that fewest programs share, eight
 * at most, and whose first program has asked for as large a depth at least and uses the same
 * adapter. Each program has its own depth, buffers, lists and
 * completions; one lock in memory that they share is taken for each ring and for completions, and
 * no daemon or manager has a part in it. They trust each other: who shares a pair can stop the
 * others, put any command into their queue, and have what was not done pass for done.
 *
 * When one of them is killed, or the one that made the pair closes its queue, the pair ends: its
 * submission queue is deleted before memory of the dead is given back, and the others go on with
 * another one, as told at SMARTIO_NVME_SURVIVE. One that is stopped while it has the lock (at
 * each ring, for the copy of its entries and a store) keeps the others waiting until it goes on or
 * ends; if the pair ends meanwhile, for survive_ms at most.
 *
 * With SMARTIO_NVME_INTERRUPT each completion of the pair wakes all that sleep for it, through this
 * host's daemon; a pair of one's own needs a free vector of the drive (-EBUSY). In a pair whose
 * first program polls there is none, and who sleeps there looks each millisecond: it joins one only
 * if there is no other.
 *
 * The queues lie in this host's memory, which costs the drive a read across the fabric for each
 * batch of commands, where a pair of one's own has its submission queue with the lender; the lists
 * of data pages lie there in both cases. Source: our own.
 */
#define SMARTIO_NVME_SHARED 8u
/**
 * Status of a command whose fate nobody knows: Host Pathing Error (NVMe 1.4, section 4.6.1.2.4).
 */
#define SMARTIO_NVME_UNSURE 0x370u

/**
 * Ask the manager for a queue pair, with memory placed as @o says (NULL: all by default). Where all
 * are taken and @o->wait_ms allows it, sleep until the manager tells that one came free, and ask
 * again; of the hosts that wait those with the fewest pairs come first. Other threads may use @n
 * meanwhile. -ENOSPC: the drive has no queue pair left, or none for this host while programs of
 * others with fewer wait: smartio_nvme_error() says on which nodes which programs hold how many;
 * -ENOTCONN: the manager is gone; -ETIMEDOUT: it does not answer; -EINVAL: depth, transfer size,
 * namespace or placement that the drive does not have; -ENOTSUP: a namespace format with metadata,
 * or interrupts of a drive that has none; -EBUSY: all interrupt vectors are taken, or too many wait
 * for a queue pair, or one of several queues that complete in one completion queue was closed with
 * commands in flight; -ESTALE: the drive was formatted since @n was opened, or the lease has ended;
 * -ENODEV: the drive, its host or @o->sq_device is gone; -EFAULT: the lender has lost this host,
 * which does not know yet; -EIO: the lender or the drive refuses, with a text; -ENOMEM.
 */
int smartio_nvme_queue_open(struct smartio_nvme *n, const struct smartio_nvme_queue_options *o,
			    struct smartio_nvme_queue **ret);
/**
 * Waits for what is in flight (30 s at most), then deletes the queues through the manager. From the
 * queue's own thread. NULL is fine.
 */
void smartio_nvme_queue_close(struct smartio_nvme_queue *q);
uint32_t smartio_nvme_queue_depth(const struct smartio_nvme_queue *q);
uint32_t smartio_nvme_queue_id(const struct smartio_nvme_queue *q);

/* NVMe 1.4, section 6. The last four: smartio_nvme_submit_commands(), or the blocking helpers. */
enum smartio_nvme_op {
	SMARTIO_NVME_READ = 0x02,
	SMARTIO_NVME_WRITE = 0x01,
	SMARTIO_NVME_FLUSH = 0x00,
	SMARTIO_NVME_COMPARE = 0x05,	  /* the blocks with the data */
	SMARTIO_NVME_WRITE_ZEROES = 0x08, /* no data */
	SMARTIO_NVME_DEALLOCATE = 0x09,	  /* Dataset Management; data: the ranges */
	SMARTIO_NVME_VERIFY = 0x0c	  /* read and check them; no data */
};

struct smartio_nvme_completion {
	void *cookie;	 /* of the submit */
	uint32_t status; /* 0: success; else SCT << 8 | SC (NVMe 1.4, section 4.6.1) */
	/* smartio_nvme_queue_id(), if several queues have one completion queue; else 0 */
	uint32_t queue;
};

/**
 * Put a command into the submission queue; the drive sees it at the next ring or poll. No
 * allocation, lock or system call.
 * @offset: into @b, a multiple of 4; @blocks of @ns from @lba on. @b is NULL for FLUSH.
 * -EAGAIN: depth commands are in flight; -ERANGE: past the namespace, the buffer or the largest
 * transfer; -EINVAL; -ECONNRESET: the drive was reset or lost, the queue is dead.
 */
int smartio_nvme_submit(struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint64_t lba,
			uint32_t blocks, struct smartio_nvme_buffer *b, size_t offset,
			void *cookie);
/* Of struct smartio_nvme_command. */
#define SMARTIO_NVME_FUA 1u	      /* read, write, write zeroes, compare, verify: on the media */
#define SMARTIO_NVME_LIMITED_RETRY 2u /* the same: the drive gives up early */
#define SMARTIO_NVME_MAY_DEALLOCATE 4u /* write zeroes */

/** A part of a command's data; most of them to a command. */
#define SMARTIO_NVME_PIECES 64u
struct smartio_nvme_piece {
	struct smartio_nvme_buffer *buffer;
	size_t offset, bytes;
};

/**
 * A range of DEALLOCATE, as the drive reads it from the data: little-endian. Up to 256 of them to a
 * command. Source: NVMe 1.4, section 6.7.
 */
struct smartio_nvme_range {
	uint32_t attributes, blocks;
	uint64_t lba;
};
#define SMARTIO_NVME_RANGES 256u

struct smartio_nvme_command {
	uint32_t op;	 /* enum smartio_nvme_op */
	uint32_t flags;	 /* SMARTIO_NVME_FUA and so on, or 0 */
	uint64_t lba;	 /* first block; DEALLOCATE, FLUSH: 0 */
	uint32_t blocks; /* how many; DEALLOCATE: of ranges; FLUSH: 0 */
	uint32_t n_pieces;
	const struct smartio_nvme_piece *piece; /* of the data, in order; not kept */
	void *cookie;
	uint64_t reserved[2]; /* 0 */
};

/**
 * Put several commands into the submission queue, as smartio_nvme_submit() does with one: the drive
 * sees all of them by one store to the doorbell, at the next ring or poll. A command's data may be
 * scattered, as PRP lists allow it: each piece but the first begins with a page of its buffer, each
 * but the last ends with one. Where the drive takes scatter gather lists (smartio_nvme_info.sgls),
 * offsets and lengths are any multiples of 4; then a command of a queue whose max_transfer is less
 * than 512 KiB has fewer such pieces, one for each 8 KiB of that. The first command of a queue with
 * data in several pieces allocates memory for their tables; else nothing is allocated. WRITE_ZEROES
 * and VERIFY take up to 65,536 blocks, whatever the largest transfer is; whether a drive knows an
 * opcode, the completion tells.
 *
 * Return: how many were submitted, from the first on, 1 at least; or of the first one: -EAGAIN:
 * depth commands are in flight; -EINVAL: flags, operation or pieces that cannot be; -ERANGE as
 * smartio_nvme_submit(); -ENOMEM; -ECONNRESET. That a later one was not submitted has no error: it
 * is the first one of the next call.
 */
int smartio_nvme_submit_commands(struct smartio_nvme_queue *q, const struct smartio_nvme_command *c,
				 unsigned n);
/** Ring the doorbell for what was submitted since the last ring: at most one store. */
void smartio_nvme_ring(struct smartio_nvme_queue *q);
/**
 * Take up to @max completions; rings first. No lock; an empty poll yields now and then.
 * Return: how many; -ECONNRESET: the drive was reset or lost: every command in flight is void;
 * -EPROTO: the drive completed what was not in flight: the queue is dead; -ETIMEDOUT: a command
 * took longer than the queue's timeout_ms allows, and could not be aborted: so is the queue;
 * -ENETDOWN: the path, or the drive itself, was lost before the data of completions in the lender's
 * memory were known to be here: so is the queue, and what was in flight may yet be done until it is
 * closed.
 */
int smartio_nvme_poll(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c,
		      unsigned max);

/**
 * The other way to hear of completions: a command whose cookie points to one of these is ended by a
 * call, from smartio_nvme_poll_calls(). A structure of the caller's, usually within a larger one.
 */
struct smartio_nvme_call {
	/* @status: as of struct smartio_nvme_completion, or SMARTIO_NVME_LOST. */
	void (*done)(struct smartio_nvme_call *call, uint32_t status);
};
/** The queue died with the command: what became of it nobody knows. */
#define SMARTIO_NVME_LOST 0xffffffffu
/**
 * As smartio_nvme_poll(), of a queue whose commands' cookies are all struct smartio_nvme_call:
 * calls each one's done() in the order of completion; that may submit. When the queue has died,
 * every command in flight is ended once with SMARTIO_NVME_LOST.
 * Return: how many were completed; errors of smartio_nvme_poll().
 */
int smartio_nvme_poll_calls(struct smartio_nvme_queue *q, unsigned max);
/**
 * Sleep until the queue has a completion for smartio_nvme_poll(), for @timeout_ms at most (0 looks,
 * UINT32_MAX: for ever); rings first. For queues opened with SMARTIO_NVME_INTERRUPT; polling them
 * as well is fine. One system call, or a few, if it sleeps; none if a completion is there. With
 * SMARTIO_NVME_HYBRID it polls before it sleeps.
 * Return: 1: there is one; 0: none came in time; -EINVAL: the queue has no interrupt; -ECONNRESET,
 * -EPROTO as smartio_nvme_poll(); -EIO: the interrupt is lost.
 * Source: NVM Express Base Specification 1.4, section 7.5.
 */
int smartio_nvme_wait(struct smartio_nvme_queue *q, uint32_t timeout_ms);
/** Text of a completion status. Never NULL. */
const char *smartio_nvme_status_string(uint32_t status);

/*
 * Blocking helpers: any length and offset, in bytes, that are multiples of the block size. The data
 * passes through memory of the queue's own, which the first call allocates, unless it lies in
 * memory that was registered (smartio_nvme_buffer_register()).
 * -EINVAL: not a multiple; -ERANGE: past the namespace; -EIO: the drive's status, told by
 * smartio_nvme_error(); -EBUSY: commands of smartio_nvme_submit() are in flight; -ETIMEDOUT: the
 * drive was silent for 30 s, or for the queue's timeout_ms (it may write to registered memory yet,
 * until the queue is closed); -ECONNRESET as smartio_nvme_poll(); -ECONNABORTED: of a queue that
 * survived meanwhile, whether it was done nobody knows (SMARTIO_NVME_UNSURE); -ENOMEM.
 */
int smartio_nvme_read(struct smartio_nvme_queue *q, void *data, uint64_t offset, size_t bytes);
int smartio_nvme_write(struct smartio_nvme_queue *q, const void *data, uint64_t offset,
		       size_t bytes);
int smartio_nvme_flush(struct smartio_nvme_queue *q);
/** As smartio_nvme_write(), with SMARTIO_NVME_FUA and SMARTIO_NVME_LIMITED_RETRY as @flags. */
int smartio_nvme_write_flags(struct smartio_nvme_queue *q, const void *data, uint64_t offset,
			     size_t bytes, uint32_t flags);
/**
 * Compare what is there with @data. The same errors; -EILSEQ: it is not the same: the text says in
 * which part. A comparison in several commands is none at one instant.
 */
int smartio_nvme_compare(struct smartio_nvme_queue *q, const void *data, uint64_t offset,
			 size_t bytes);
/**
 * Without data: make them zeros (@flags: SMARTIO_NVME_FUA, SMARTIO_NVME_MAY_DEALLOCATE); tell the
 * drive that they are not needed any more (what they read as then is the drive's choice); have it
 * read and check them. The same errors, -EIO also where the drive does not know the command.
 */
int smartio_nvme_write_zeroes(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes,
			      uint32_t flags);
int smartio_nvme_deallocate(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes);
int smartio_nvme_verify(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes);

/* What the driver knows of its own work; "driver" figures, not counted by the fabric. */
struct smartio_nvme_counters {
	uint64_t submitted, completed, doorbells_sq, doorbells_cq, empty_polls, yields;
	uint64_t interrupts; /* that smartio_nvme_wait() took */
	/* Of a queue that survives: pairs after the first; commands sent again, told as UNSURE. */
	uint64_t renewals, resent, unsure;
	/* Of a queue with a time-out: Aborts asked for; commands that did not come back even so. */
	uint64_t aborts, overdue;
	/* Of a hybrid queue: waits that found a completion by polling; that slept for it. */
	uint64_t waits_polled, waits_slept;
};
void smartio_nvme_queue_counters(const struct smartio_nvme_queue *q,
				 struct smartio_nvme_counters *c);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
