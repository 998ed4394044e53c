/* SPDX-License-Identifier: BSD-2-Clause */
/* Adding to eventfds: what is added arrives, and nothing that others do to a descriptor blocks. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "eventfd/eventfd.h"

#define FULL 0xfffffffffffffffeull /* the most that a program can write; the next write() waits */
#define TIMES 20000
#define THREADS 4

static int setup(void **state)
{
	struct sio_eventfd *e = malloc(sizeof(*e));
	int rc;

	if (!e || sio_eventfd_open(e) < 0)
		return -1;
	rc = sio_eventfd_start(e);
	if (rc == 0)
		rc = sio_eventfd_start(e);
	if (rc < 0)
		print_message("no AIO here: %d\n", rc);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	sio_eventfd_close(*state);
	free(*state);
	return 0;
}

static uint64_t take(int fd)
{
	uint64_t count = 0;
	int rc = sio_eventfd_take(fd, &count);

	assert_true(rc == 0 || rc == -EAGAIN);
	return rc == 0 ? count : 0;
}

static void sums_arrive(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint64_t sum = 0;

	assert_int_equal(take(fd), 0);
	for (uint64_t n = 0; n < 300; n++) {
		assert_int_equal(sio_eventfd_add(*state, fd, n), 0);
		sum += n;
	}
	assert_int_equal(take(fd), sum);
	assert_int_equal(sio_eventfd_add(*state, fd, UINT64_MAX), 0);
	assert_int_equal(take(fd), SIO_EVENTFD_MOST);
	assert_int_equal(take(fd), 0);
	close(fd);
	assert_int_equal(sio_eventfd_add(*state, fd, 1), -EBADF);
}

/* One that blocks, and is full. */
static void a_full_one_stops_nobody(void **state)
{
	struct sio_eventfd *e = *state;
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t full = FULL;

	if (!e->context)
		skip();
	assert_int_equal(take(fd), 0);
	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	assert_int_equal(sio_eventfd_add(e, fd, 1), 0);
	assert_int_equal(sio_eventfd_add(e, fd, 1000), 0);
	assert_true(take(fd) >= FULL);
	assert_int_equal(sio_eventfd_add(e, fd, 1), 0);
	assert_int_equal(take(fd), 1);
	close(fd);
}

static void other_files_are_written_to(void **state)
{
	uint64_t count = 0;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(sio_eventfd_add(*state, fds[1], 7), 0);
	assert_int_equal(sio_eventfd_take(fds[0], &count), 0);
	assert_int_equal(count, 7);
	assert_int_equal(sio_eventfd_take(fds[0], &count), -EAGAIN);
	close(fds[0]);
	close(fds[1]);
}

static void without_aio_it_is_a_write(void **state)
{
	struct sio_eventfd none = {.nothing = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint64_t full = FULL;

	(void)state;
	assert_int_equal(sio_eventfd_add(&none, fd, 5), 0);
	assert_int_equal(take(fd), 5);
	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	assert_int_equal(sio_eventfd_add(&none, fd, 1), 0);
	assert_int_equal(take(fd), FULL);
	close(fd);
	sio_eventfd_close(&none);
}

struct adder {
	struct sio_eventfd *e;
	int fd, rc;
};

static void *add_often(void *arg)
{
	struct adder *a = arg;

	for (unsigned i = 0; i < TIMES && a->rc == 0; i++)
		a->rc = sio_eventfd_add(a->e, a->fd, 1 + i % 3);
	return NULL;
}

static void threads_lose_nothing(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_t thread[THREADS];
	struct adder a[THREADS];
	uint64_t sum = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		a[i] = (struct adder){.e = *state, .fd = fd};
		assert_int_equal(pthread_create(&thread[i], NULL, add_often, &a[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(a[i].rc, 0);
	}
	for (unsigned i = 0; i < TIMES; i++)
		sum += 1 + i % 3;
	assert_int_equal(take(fd), sum * THREADS);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_arrive),
		cmocka_unit_test(a_full_one_stops_nobody),
		cmocka_unit_test(other_files_are_written_to),
		cmocka_unit_test(without_aio_it_is_a_write),
		cmocka_unit_test(threads_lose_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
