/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resets at the port of a real host, with and without a thread for them: the device did not come or
 * go. And what is answered when the fabric has settled it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "smartiod/port_shim/shim_port.h"
#include "../lib/tempdir.h"

#define DEVICE 3

/* Links with -Wl,--wrap=ioctl,--wrap=pthread_create. */
int __wrap_ioctl(int fd, unsigned long request, struct sio_ioc_packet *packet);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *data);

static bool no_threads;
static unsigned threads;
static uint64_t generation;
static sem_t settled;	 /* how often SIO_IOC_SETTLE may return */
static unsigned settles; /* that it was called */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *data)
{
	if (no_threads)
		return EAGAIN;
	threads++;
	return __real_pthread_create(thread, attr, fn, data);
}

/* A module with one device, and nobody who has anything of it. */
int __wrap_ioctl(int fd, unsigned long request, struct sio_ioc_packet *packet)
{
	const struct sio_req *req;
	struct sio_evt_error *refusal;
	union {
		struct sio_evt h;
		struct sio_evt_list list;
		struct sio_evt_device device;
		struct sio_evt_reset reset;
	} evt = {0};

	(void)fd;
	if (request == SIO_IOC_SETTLE) {
		settles++;
		return sem_wait(&settled);
	}
	assert_int_equal(request, SIO_IOC_REQUEST);
	req = (const void *)(uintptr_t)packet->data;
	refusal = (void *)(uintptr_t)packet->answer;
	evt.h = (struct sio_evt){.op = req->op, .cookie = req->cookie};
	packet->unsettled = req->op == SIO_OP_DMAUNMAP;
	if (packet->unsettled) {
		evt.h.size = sizeof(evt.h);
	} else if (req->op == SIO_OP_LIST) {
		evt.h.size = sizeof(evt.list);
	} else if (req->op == SIO_OP_RESET) {
		evt.h.size = sizeof(evt.reset);
		evt.reset.generation = ++generation;
	} else if (((const struct sio_req_device_list *)req)->after < DEVICE) {
		assert_int_equal(req->op, SIO_OP_DEVICE_LIST);
		evt.h.size = sizeof(evt.device);
		evt.device.id = DEVICE;
		evt.device.generation = generation;
	} else {
		memset(refusal, 0, sizeof(*refusal));
		evt.h.size = sizeof(*refusal);
		evt.h.error = -ENOENT;
		refusal->h = evt.h;
		return 0;
	}
	memcpy(refusal, &evt, evt.h.size);
	packet->n_fds = 0;
	return 0;
}

struct fixture {
	char dir[256], path[300];
	int node; /* the other end: what is written there is an event */
	struct shim_port *port;
};

static struct fixture *start(void)
{
	static struct fixture f;

	no_threads = false;
	threads = 0;
	settles = 0;
	generation = 1;
	assert_int_equal(sem_init(&settled, 0, 0), 0);
	assert_int_equal(test_tempdir("shim-reset", f.dir, sizeof(f.dir)), 0);
	snprintf(f.path, sizeof(f.path), "%s/node", f.dir);
	assert_int_equal(mkfifo(f.path, 0600), 0);
	f.node = open(f.path, O_RDWR | O_CLOEXEC);
	assert_true(f.node >= 0);
	assert_int_equal(shim_port_open(f.path, &f.port), 0);
	return &f;
}

static void stop(struct fixture *f)
{
	shim_port_close(f->port);
	close(f->node);
	sem_destroy(&settled);
	unlink(f->path);
	rmdir(f->dir);
}

/* Reset it; the answer comes, then an event of the module's, and nothing else. */
static void reset(struct fixture *f, uint32_t kind)
{
	struct sio_req_reset req = {.h = {.size = sizeof(req), .op = SIO_OP_RESET, .cookie = 7},
				    .device = DEVICE,
				    .kind = kind};
	struct pollfd poll_fd = {.fd = shim_port_fd(f->port), .events = POLLIN};
	union {
		struct sio_evt h;
		struct sio_evt_reset reset;
		char room[SIO_PORT_MAX_PACKET];
	} evt;
	const struct sio_evt_owner_end end = {
		.h = {.size = sizeof(end), .op = SIO_EV_OWNER_END, .owner = 5}};
	uint64_t before = generation;
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;

	assert_int_equal(shim_port_send(f->port, &req, sizeof(req), NULL, 0), 0);
	while (shim_port_event(f->port, &evt, fds, &n_fds) < 0)
		assert_int_equal(poll(&poll_fd, 1, -1), 1);
	assert_int_equal(evt.reset.h.op, SIO_OP_RESET);
	assert_int_equal(evt.reset.h.error, 0);
	assert_int_equal(evt.reset.generation, before + 1);
	assert_int_equal(write(f->node, &end, sizeof(end)), sizeof(end));
	assert_int_equal(poll(&poll_fd, 1, -1), 1);
	assert_int_equal(shim_port_event(f->port, &evt, fds, &n_fds), sizeof(end));
	assert_memory_equal(&evt, &end, sizeof(end));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(shim_port_event(f->port, &evt, fds, &n_fds), -EAGAIN);
}

static void a_reset_in_a_thread(void **state)
{
	struct fixture *f = start();

	(void)state;
	reset(f, SIO_RESET_FUNCTION);
	assert_int_equal(threads, 1);
	stop(f);
}

static void a_reset_for_which_there_is_no_thread(void **state)
{
	struct fixture *f = start();

	(void)state;
	no_threads = true;
	reset(f, SIO_RESET_FUNCTION);
	reset(f, SIO_RESET_DONE);
	stop(f);
}

static void the_word_of_a_reset_takes_no_thread(void **state)
{
	struct fixture *f = start();

	(void)state;
	reset(f, SIO_RESET_DONE);
	assert_int_equal(threads, 0);
	stop(f);
}

/* Send DMAUNMAP with this cookie. */
static void unmap(struct fixture *f, uint64_t cookie)
{
	struct sio_req_dmaunmap req = {
		.h = {.size = sizeof(req), .op = SIO_OP_DMAUNMAP, .cookie = cookie}, .id = 1};

	assert_int_equal(shim_port_send(f->port, &req, sizeof(req), NULL, 0), 0);
}

static void answered(struct fixture *f, uint64_t cookie)
{
	struct pollfd poll_fd = {.fd = shim_port_fd(f->port), .events = POLLIN};
	union {
		struct sio_evt h;
		char room[SIO_PORT_MAX_PACKET];
	} evt;
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;

	while (shim_port_event(f->port, &evt, fds, &n_fds) < 0)
		assert_int_equal(poll(&poll_fd, 1, -1), 1);
	assert_int_equal(evt.h.op, SIO_OP_DMAUNMAP);
	assert_int_equal(evt.h.cookie, cookie);
	assert_int_equal(evt.h.error, 0);
}

/* It holds up its own answer, and nothing else. */
static void what_a_peer_holds_up(void **state)
{
	struct fixture *f = start();

	(void)state;
	unmap(f, 1);
	reset(f, SIO_RESET_DONE);
	assert_int_equal(threads, 1);
	sem_post(&settled);
	answered(f, 1);
	assert_int_equal(settles, 1);
	/* Without a thread it is waited for. */
	no_threads = true;
	sem_post(&settled);
	unmap(f, 2);
	assert_int_equal(settles, 2);
	answered(f, 2);
	stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_in_a_thread),
		cmocka_unit_test(a_reset_for_which_there_is_no_thread),
		cmocka_unit_test(the_word_of_a_reset_takes_no_thread),
		cmocka_unit_test(what_a_peer_holds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
