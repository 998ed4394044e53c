/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait, in orders that hardly ever come by themselves. The objects of the library are
 * linked in, with a world that tells when a thread waits, and stops one where it is told to.
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
#include "dma.h"

#define PAGE 4096u

/* world_live.c is compiled with these names changed. */
struct sio_world *sio_world_live(void);

static sem_t at_write, go_on;
static __thread bool stops; /* at its next write to an event descriptor */
static sem_t at_poll;
static __thread bool tells; /* when it is about to wait at descriptors */

static int event_write_or_stop(struct sio_world *w, int fd)
{
	if (stops) {
		stops = false;
		sem_post(&at_write);
		sem_wait(&go_on);
	}
	return sio_world_live()->event_write(w, fd);
}

static int poll_and_tell(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline)
{
	if (tells && deadline == SIO_FOREVER) {
		tells = false;
		sem_post(&at_poll);
	}
	return sio_world_live()->poll(w, p, n, deadline);
}

static __thread bool stands_still;     /* this thread's time */
static __thread unsigned sleeps, naps; /* naps: those with an end */

static uint64_t now_or_before(struct sio_world *w)
{
	static __thread uint64_t before;

	if (!stands_still)
		before = sio_world_live()->now(w);
	return before;
}

static int poll_and_count(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline)
{
	sleeps++;
	naps += deadline != SIO_FOREVER;
	return poll_and_tell(w, p, n, deadline);
}

static int wait_and_count(struct sio_world *w, struct sio_world_lock *l, uint64_t deadline)
{
	sleeps++;
	naps += deadline != SIO_FOREVER;
	return sio_world_live()->wait(w, l, deadline);
}

struct sio_world *sio_world_current(void)
{
	static struct sio_world world;

	if (!world.connect) {
		world = *sio_world_live();
		world.event_write = event_write_or_stop;
		world.poll = poll_and_count;
		world.wait = wait_and_count;
		world.now = now_or_before;
	}
	return &world;
}

static void give_back(sci_smartio_device_t device)
{
	sci_error_t error;

	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

/*
 * smartio_wake() sets a word, then writes to a descriptor. Whoever waits may take the word between
 * the two: the descriptor must not stay readable for nothing, or all who poll it spin.
 */
static void *wake_slowly(void *arg)
{
	stops = true;
	smartio_wake(arg);
	return NULL;
}

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

static int is_woken_late(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	struct pollfd p = {.fd = smartio_device_event_fd(device), .events = POLLIN};
	struct smartio_device_event event;
	sci_error_t error;

	(void)arg;
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
	give_back(device);
	api_end(sd);
	return 0;
}

static void a_late_write_wakes_nobody_for_ever(void **state)
{
	assert_int_equal(sem_init(&at_write, 0, 0), 0);
	assert_int_equal(sem_init(&go_on, 0, 0), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, is_woken_late, NULL)), 0);
}

/*
 * The event thread is busy in a callback; one thread waits at the socket for all, another at its
 * own descriptors. When the first leaves, the other must find what comes by the socket.
 */
static sem_t in_callback, leave;

static sci_callback_action_t stay(void *arg, sci_local_segment_t segment,
				  sci_segment_cb_reason_t reason, unsigned int node,
				  unsigned int adapter, sci_error_t error)
{
	(void)arg;
	(void)segment;
	(void)reason;
	(void)node;
	(void)adapter;
	(void)error;
	sem_post(&in_callback);
	sem_wait(&leave);
	return SCI_CALLBACK_CANCEL;
}

static sci_local_segment_t export_segment(sci_desc_t sd, unsigned id, sci_cb_local_segment_t cb)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, PAGE, cb, NULL, cb ? SCI_FLAG_USE_CALLBACK : 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	return seg;
}

static void *wait_for_segment(void *arg)
{
	sci_error_t error;

	tells = true;
	CHECK(SCIWaitForLocalSegmentEvent(arg, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_CANCELLED);
	return NULL;
}

static void *wait_for_device(void *arg)
{
	struct smartio_device_event event;
	sci_error_t error;

	tells = true;
	CHECK(smartio_wait_events(arg, NULL, SCI_INFINITE_TIMEOUT, &error) == SMARTIO_READY_DEVICE);
	CHECK_OK(error);
	smartio_wait_device_event(arg, &event, 0, &error);
	CHECK_OK(error);
	CHECK(event.kind == SMARTIO_DEVICE_RESET);
	return NULL;
}

static int three_threads_wait(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_local_segment_t called = export_segment(sd, 1, stay);
	sci_local_segment_t seg = export_segment(sd, 2, NULL);
	pthread_t first, second;
	sci_error_t error;

	(void)arg;
	step_done(0);
	sem_wait(&in_callback);
	CHECK(!pthread_create(&first, NULL, wait_for_segment, seg));
	sem_wait(&at_poll);
	CHECK(!pthread_create(&second, NULL, wait_for_device, device));
	sem_wait(&at_poll);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	pthread_join(first, NULL);
	step_done(1);
	pthread_join(second, NULL);
	sem_post(&leave);
	step_done(2);
	step_await(3);
	SCIRemoveSegment(called, 0, &error);
	CHECK_OK(error);
	give_back(device);
	api_end(sd);
	return 0;
}

static int calls_and_resets(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_remote_segment_t seg = NULL, bar = NULL;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	step_await(0);
	SCIConnectSegment(sd, &seg, cluster_node(8), 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	step_await(1);
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	smartio_device_settled(device, SMARTIO_ALL_BORROWERS, &error);
	CHECK_OK(error);
	step_await(2);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(3);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	give_back(device);
	api_end(sd);
	return 0;
}

static void the_last_to_wait_reads_the_socket(void **state)
{
	pid_t a, b;

	steps_reset();
	assert_int_equal(sem_init(&at_poll, 0, 0), 0);
	assert_int_equal(sem_init(&in_callback, 0, 0), 0);
	assert_int_equal(sem_init(&leave, 0, 0), 0);
	a = cluster_fork(*state, 8, three_threads_wait, NULL);
	b = cluster_fork(*state, 12, calls_and_resets, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/*
 * Whoever waits for a transfer looks for a while, and then sleeps. A second one as long is slept
 * through until shortly before its end.
 */
static int looks_then_sleeps(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_error_t error;
	struct dma d;

	(void)arg;
	dma_make(&d, sd, 8, DMA_READY);
	for (unsigned i = 0; i < 10; i++) {
		CHECK_OK(dma_start(&d, 0, DMA_BYTES, 0, 0));
		stands_still = true; /* so the while does not end */
		sleeps = 0;
		CHECK(dma_wait(&d, SCI_INFINITE_TIMEOUT, &error) == SCI_DMAQUEUE_DONE);
		CHECK_OK(error);
		CHECK(sleeps == 0);
		stands_still = false;
	}
	for (unsigned i = 0; i < 2; i++) {
		dma_start_long(&d, NULL, NULL);
		sleeps = naps = 0;
		CHECK(dma_wait(&d, SCI_INFINITE_TIMEOUT, &error) == SCI_DMAQUEUE_DONE);
		CHECK_OK(error);
		CHECK(sleeps > 0);
		CHECK(i == 0 ? naps == 0 : naps > 0);
	}
	dma_end(&d);
	api_end(sd);
	return 0;
}

static void who_waits_for_a_transfer_looks_first(void **state)
{
	dma_pair(state, looks_then_sleeps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_late_write_wakes_nobody_for_ever),
		API_TEST(the_last_to_wait_reads_the_socket),
		API_TEST(who_waits_for_a_transfer_looks_first),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
