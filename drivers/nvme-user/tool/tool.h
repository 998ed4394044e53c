/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the commands of the program smartio-nvme. */
#ifndef NVME_USER_TOOL_TOOL_H
#define NVME_USER_TOOL_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "../../base/memory.h"
#include "smartio/nvme.h"

#define BENCH_QUEUES 64u

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Options that several commands share; each command names those that it takes. */
struct options {
	const char *device, *file;
	uint64_t offset, length;
	bool has_offset, has_length;
	uint64_t size, depth, count, warmup;
	double seconds;
	uint32_t nsid;
	uint32_t sq_placement; /* enum smartio_nvme_placement */
	uint32_t queues;       /* submission queues of one completion queue; pairs of a disk */
	const char *sq_device; /* the queue lies in its memory; NULL: as @sq_placement says */
	uint32_t wait_ms;      /* for a manager that is on its way */
	uint32_t pair_wait_ms; /* for a queue pair that somebody gives back */
	bool bare_wait;	       /* --wait stood alone */
	uint32_t format;
	bool yes, allow_vendor, standby;
	bool multipath, share;
	uint32_t poll_us;		    /* of a hybrid queue; 0: as measured */
	uint32_t timeout_ms;		    /* of a command; 0: none, of a disk: 30 s */
	bool read_only, force, alone, poll; /* of a disk */
	const char *lease;		    /* name of its range */
	int survive;			    /* 1: on, 0: off, -1: as the command has it */
	bool write, random, json, counters, progress, once, interrupt, hybrid, background;
};

int cmd_manager(const struct options *o);
int cmd_identify(const struct options *o);
int cmd_copy_in(const struct options *o);
int cmd_copy_out(const struct options *o);
int cmd_bench(const struct options *o);
int cmd_smart(const struct options *o);
int cmd_errors(const struct options *o);
int cmd_queues(const struct options *o);
int cmd_leases(const struct options *o);
int cmd_zero(const struct options *o);
int cmd_trim(const struct options *o);
int cmd_verify(const struct options *o);
int cmd_format(const struct options *o);
int cmd_attach(const struct options *o);
int cmd_detach(const struct options *o);
int cmd_disks(const struct options *o);

/* Prints one line to stderr, "smartio-nvme: ...". Return: EXIT_FAILED. */
int failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for a call of the driver that has just failed. */
int failed_nvme(void);

/*
 * Parses a number of bytes, perhaps with K, M, G or T (powers of 1,024). False: it is not a number,
 * or too large.
 */
bool parse_size(const char *text, uint64_t *ret);

/* Connects to this host's smartiod. EXIT_OK or EXIT_FAILED, reported. */
int initialize(void);
/*
 * Initialises and opens the drive. A manager that is expected is waited for, with a message about
 * it after a second. EXIT_OK or EXIT_FAILED, reported.
 */
int open_drive(const struct options *o, struct smartio_nvme **ret);
void close_drive(struct smartio_nvme *n);
/*
 * Opens a queue pair with @qo and the options @o: if all are in use it waits for one, with a
 * message about it. The queue survives its pair, unless @o says no, or the command @measures and @o
 * does not say so. EXIT_OK or EXIT_FAILED, reported.
 */
int open_pair(const struct options *o, struct smartio_nvme *n, bool measures,
	      struct smartio_nvme_queue_options *qo, struct smartio_nvme_queue **ret);
/* Finds the namespace that the options name. EXIT_OK or EXIT_FAILED, reported. */
int find_namespace(const struct options *o, struct smartio_nvme *n,
		   struct smartio_nvme_namespace *ns);

/* From now on failed() writes to the system log, too. */
void log_to_system(void);

/* Set by SIGINT and SIGTERM after catch_signals(); @also is called in the handler. */
extern volatile int interrupted;
void catch_signals(void (*also)(void));

/*
 * What a manager reports when it serves, or is a standby (@queue_pairs is 0 then); or the process
 * that holds a disk, when the disk is there.
 */
struct ready {
	uint32_t queue_pairs, other_node; /* of a disk: those that it has */
	uint32_t disk;			  /* its number */
	uint64_t lba, blocks;		  /* of the namespace, that are the disk */
	int process;
};

/* cmd_disks.c: opens SIO_DISK_NODE. Return: the descriptor; or -1, reported. */
int disk_open_node(void);

/*
 * Continues in a child that has left terminal and session; the parent waits until the child is
 * ready, and then ends. If the child fails, the parent ends with the child's status, and the child
 * has reported the reason. To be called before SCIInitialize(): a child needs its own.
 * @ret_report: set in the child, for background_ready(). @ret: what the child reported to the
 * parent.
 * Return: -1: this is the child; in the parent EXIT_OK or EXIT_FAILED, reported.
 */
int background_split(int *ret_report, struct ready *ret);
/*
 * In the child: has the parent print @r and end. From now on errors go to the log file that is
 * named after @device in the cluster's state directory, or if there is none to the system log.
 * False: the parent does not wait any more.
 */
bool background_ready(int report, struct ready r, const char *device);

/* Progress on stderr: at the first call and about every half second. */
struct progress {
	bool on, tty;
	uint64_t total, next_ns;
	const char *what;
};
/* @total: bytes, 0: unknown. Shown if @o says so or stderr is a terminal. */
void progress_start(struct progress *p, const struct options *o, const char *what, uint64_t total);
void progress_show(struct progress *p, uint64_t done);
void progress_end(struct progress *p);

#endif
