/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio_wake() sets a word, then writes to a descriptor. Whoever waits may run between the two:
 * the descriptor must not stay readable for nothing, or all who poll it spin. The objects of the
 * library are linked in, with a world that stops the write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#include <cmocka.h>

#include "session/world.h"
#include "topology.h"

/* world_live.c is compiled with these names changed. */
struct sio_world *sio_world_live(void);

static sem_t at_write, go_on;
static __thread bool stops; /* at its next write to an event descriptor */

static int event_write_or_stop(struct sio_world *w, int fd)
{
	if (stops) {
		stops = false;
		sem_post(&at_write);
		sem_wait(&go_on);
	}
	return sio_world_live()->event_write(w, fd);
}

struct sio_world *sio_world_current(void)
{
	static struct sio_world world;

	if (!world.connect) {
		world = *sio_world_live();
		world.event_write = event_write_or_stop;
	}
	return &world;
}

static void *wake_slowly(void *arg)
{
	stops = true;
	smartio_wake(arg);
	return NULL;
}

/* The word is taken before the descriptor is written to. */
static void wake_between(sci_smartio_device_t device)
{
	sci_error_t error;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, wake_slowly, device));
	sem_wait(&at_write);
	CHECK(smartio_wait_events(device, NULL, 0, &error) == SMARTIO_READY_WAKE);
	CHECK_OK(error);
	sem_post(&go_on);
	pthread_join(thread, NULL);
}

static int waits(void *arg)
{
	sci_smartio_device_t device = NULL;
	struct smartio_device_event event;
	sci_desc_t sd = api_begin();
	unsigned fdid = 0;
	sci_error_t error;
	struct pollfd p;

	(void)arg;
	smartio_find_device("nvme0", &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	p = (struct pollfd){.fd = smartio_device_event_fd(device), .events = POLLIN};
	CHECK(poll(&p, 1, 0) == 0);

	wake_between(device);
	CHECK(smartio_wait_events(device, NULL, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	CHECK(poll(&p, 1, 0) == 0);

	wake_between(device);
	smartio_wait_device_event(device, &event, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	CHECK(poll(&p, 1, 0) == 0);

	/* It is nothing lost: a wake that nobody has taken stays. */
	smartio_wake(device);
	smartio_wait_device_event(device, &event, 0, &error);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	CHECK(poll(&p, 1, 0) == 1);
	CHECK(smartio_wait_events(device, NULL, SCI_INFINITE_TIMEOUT, &error) ==
	      SMARTIO_READY_WAKE);
	CHECK_OK(error);
	CHECK(poll(&p, 1, 0) == 0);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_late_write_wakes_nobody_for_ever(void **state)
{
	assert_int_equal(sem_init(&at_write, 0, 0), 0);
	assert_int_equal(sem_init(&go_on, 0, 0), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, waits, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_late_write_wakes_nobody_for_ever),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
