/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio-nvme, the program: what its commands share. */
#ifndef NVME_USER_TOOL_TOOL_H
#define NVME_USER_TOOL_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "smartio/nvme.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Options that several commands know; a command names those that it takes. */
struct options {
	const char *device, *file;
	uint64_t offset, length;
	bool has_offset, has_length;
	uint64_t size, depth, count, warmup;
	double seconds;
	uint32_t nsid;
	uint32_t sq_placement; /* enum smartio_nvme_placement */
	uint32_t wait_ms;      /* for a manager that is on its way */
	uint32_t pair_wait_ms; /* for a queue pair that somebody gives back */
	uint8_t format;
	bool yes, allow_vendor, standby;
	bool write, random, json, counters, progress, once, interrupt, background;
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

/* One line to stderr, "smartio-nvme: ..."; returns EXIT_FAILED. */
int failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for a call of the driver that failed just now. */
int failed_nvme(void);

/* Bytes: a number, perhaps with K, M, G or T (powers of 1,024). False: it is none, or too large. */
bool parse_size(const char *text, uint64_t *ret);

/* Connect to this host's smartiod. EXIT_OK or EXIT_FAILED, told. */
int initialize(void);
/*
 * Initialised, with an open drive; a manager that is on its way is waited for, with a word about it
 * after a second. EXIT_OK or EXIT_FAILED, told.
 */
int open_drive(const struct options *o, struct smartio_nvme **ret);
void close_drive(struct smartio_nvme *n);
/*
 * A queue pair, with @qo and what @o says: if all are taken one is waited for, with a word about
 * it. EXIT_OK or EXIT_FAILED, told.
 */
int open_pair(const struct options *o, struct smartio_nvme *n,
	      struct smartio_nvme_queue_options *qo, struct smartio_nvme_queue **ret);
/* The namespace that the options mean. EXIT_OK or EXIT_FAILED, told. */
int find_namespace(const struct options *o, struct smartio_nvme *n,
		   struct smartio_nvme_namespace *ns);

/* From now on failed() writes to the system's log, too. */
void log_to_system(void);

/* Set by SIGINT and SIGTERM once catch_signals() was called; @also is called in the handler. */
extern volatile int interrupted;
void catch_signals(void (*also)(void));

/* What a manager says when it serves, or stands by (@queue_pairs is 0 then). */
struct ready {
	uint32_t queue_pairs, other_node;
	int process;
};

/*
 * Go on in a child that has left terminal and session; the parent waits until that is ready, and is
 * to end. It does so by itself, with the child's status, where the child has said why it fails.
 * Before SCIInitialize(): a child needs its own.
 * @ret_report: set in the child, for background_ready(). @ret: what the child told the parent.
 * Return: -1: this is the child; else in the parent EXIT_OK or EXIT_FAILED, told.
 */
int background_split(int *ret_report, struct ready *ret);
/*
 * In the child: have the parent say @r and end. Errors go to the log file that is named after
 * @device in the cluster's state directory from now on, or if there is none to the system's log.
 * False: the parent does not wait any more.
 */
bool background_ready(int report, struct ready r, const char *device);

/* Progress on stderr: at the first call and about each half second. */
struct progress {
	bool on, tty;
	uint64_t total, next_ns;
	const char *what;
};
/* @total: bytes, 0: unknown. On if @o says so or stderr is a terminal. */
void progress_start(struct progress *p, const struct options *o, const char *what, uint64_t total);
void progress_show(struct progress *p, uint64_t done);
void progress_end(struct progress *p);

#endif
