/* SPDX-License-Identifier: BSD-2-Clause */
/* What every test of the driver includes, and its fixture: drive and manager. */
#ifndef TESTS_NVME_DRIVER_COMMON_H
#define TESTS_NVME_DRIVER_COMMON_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake.h"

#define assert_ok(call)                                                                            \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ < 0)                                                                       \
			fail_msg("%s: %d %s", #call, rc_, smartio_nvme_error());                   \
	} while (0)

#define assert_text(want)                                                                          \
	do {                                                                                       \
		if (!strstr(smartio_nvme_error(), want))                                           \
			fail_msg("\"%s\" has no \"%s\"", smartio_nvme_error(), want);              \
	} while (0)

static inline void start_manager(void)
{
	struct smartio_nvme_manager *m;

	assert_ok(smartio_nvme_manager_open("nvme0", NULL, &m));
	fake.manager = m;
}

static inline void stop_manager(void)
{
	struct smartio_nvme_manager *m = fake.manager;

	fake.manager = NULL;
	smartio_nvme_manager_close(m);
}

static inline int setup_drive(void **state)
{
	(void)state;
	fake_start(NULL);
	return 0;
}

static inline int setup(void **state)
{
	setup_drive(state);
	start_manager();
	return 0;
}

/* Whatever a test did: nothing may be left, and the drive must not have touched what was not its.
 */
static inline int teardown(void **state)
{
	(void)state;
	stop_manager();
	assert_int_equal(fake.faults, 0);
	assert_int_equal(fake.objects, 0);
	assert_int_equal(fake_quarantined(), 0);
	fake_stop();
	return 0;
}

static inline struct smartio_nvme *client(void)
{
	struct smartio_nvme *n = NULL;

	assert_ok(smartio_nvme_open("nvme0", &n));
	return n;
}

static inline struct smartio_nvme_queue *queue(struct smartio_nvme *n, uint32_t depth)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = depth};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static inline struct smartio_nvme_buffer *buffer(struct smartio_nvme *n, size_t bytes)
{
	struct smartio_nvme_buffer *b = NULL;

	assert_ok(smartio_nvme_buffer_alloc(n, bytes, &b));
	return b;
}

/* Poll until one completion comes. */
static inline struct smartio_nvme_completion one(struct smartio_nvme_queue *q)
{
	struct smartio_nvme_completion c;
	int rc = 0;

	for (unsigned i = 0; i < 100000 && rc == 0; i++) {
		rc = smartio_nvme_poll(q, &c, 1);
		fake_step();
	}
	if (rc != 1)
		fail_msg("poll: %d %s", rc, smartio_nvme_error());
	return c;
}

#endif
