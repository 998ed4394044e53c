/* SPDX-License-Identifier: BSD-2-Clause */
/* Of tests on a live cluster: a program that serves clients of drive nvme0. */
#ifndef TESTS_NVME_DRIVER_SERVING_H
#define TESTS_NVME_DRIVER_SERVING_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>

#include "program.h"

enum { SERVING }; /* the first step of these tests: clients may come */

static struct smartio_nvme_manager *serving;

static volatile sig_atomic_t serving_ends;

#define COUNT_MS 20u /* between two looks at the manager's state, where somebody counts */

/* In memory that the test shares: how often it came back over another path. NULL: nobody counts. */
static struct returns {
	unsigned all, kept; /* kept: of those without a reset */
	unsigned second;    /* 1: it has borrowed the drive over a second path, too */
} * returns;

static inline void on_term(int sig)
{
	(void)sig;
	serving_ends = 1;
	smartio_nvme_manager_stop(serving);
}

static inline void count_returns(void)
{
	struct smartio_nvme_manager_status s;

	if (!returns)
		return;
	smartio_nvme_manager_get_status(serving, &s);
	__atomic_store_n(&returns->kept, s.returns_kept, __ATOMIC_RELAXED);
	__atomic_store_n(&returns->second, s.second_path, __ATOMIC_RELAXED);
	/* pairs with await_return() */
	__atomic_store_n(&returns->all, s.returns, __ATOMIC_RELEASE);
}

static inline void await_return(unsigned n)
{
	sci_error_t ignored;

	/* pairs with count_returns() */
	while (__atomic_load_n(&returns->all, __ATOMIC_ACQUIRE) < n)
		smartio_wait_events(NULL, NULL, 1, &ignored);
}

static inline void await_second_path(void)
{
	sci_error_t ignored;

	while (!__atomic_load_n(&returns->second, __ATOMIC_RELAXED))
		smartio_wait_events(NULL, NULL, 1, &ignored);
}

/* Until SIGTERM, whatever happens to one of its ways. Return: 0; an error: the drive is lost. */
static inline int serve(void)
{
	int rc;

	begin();
	OK(smartio_nvme_manager_open("nvme0", NULL, &serving));
	signal(SIGTERM, on_term);
	step_done(SERVING);
	do {
		rc = smartio_nvme_manager_serve(serving, returns ? COUNT_MS : UINT32_MAX);
		count_returns();
	} while (rc > 0 || (rc == 0 && !serving_ends));
	if (rc < 0)
		fprintf(stderr, "manager: %d: %s\n", rc, smartio_nvme_error());
	return rc;
}

/* Ends with 2 when the drive is lost. */
static inline int manager(void *arg)
{
	int rc = serve();

	(void)arg;
	smartio_nvme_manager_close(serving);
	SCITerminate();
	return rc ? 2 : 0;
}

/* The manager @m of @c ends as it should, and nothing of the cluster is left. */
static inline void end_serving(struct cluster *c, pid_t m)
{
	kill(m, SIGTERM);
	assert_int_equal(cluster_wait(m), 0);
	assert_int_equal(cluster_down(c), 0);
}

/* A read of a queue that survives, which may be between two pairs; it never fails. */
static inline void read_surviving(struct smartio_nvme_queue *q, uint64_t lba, uint32_t blocks,
				  struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_completion c;
	int n;

	while ((n = smartio_nvme_submit(q, SMARTIO_NVME_READ, lba, blocks, b, 0, NULL)) == -EAGAIN)
		OK(smartio_nvme_poll(q, &c, 1));
	OK(n);
	while ((n = smartio_nvme_poll(q, &c, 1)) == 0)
		;
	OK(n);
	CHECK(n == 1 && c.status == 0);
}

#endif
