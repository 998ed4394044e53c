/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that the port of a real host answers by asking the module several times. Each of these
 * may fail: then nothing is told that the module did not say.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "smartiod/port_shim/shim_port.h"
#include "../lib/tempdir.h"

#define DEVICE 3
#define OWNER 0x100001
#define MEM 0x100002
#define MAPPING 0x100003
#define MOST 20 /* more than any request asks */
#define WORDS "FREE: the test says so"

/* Links with -Wl,--wrap=ioctl and fstatfs64, as it is called where files may be large. */
int __wrap_ioctl(int fd, unsigned long request, struct sio_ioc_packet *packet);
int __wrap_fstatfs64(int fd, struct statfs *ret);

static unsigned calls, failing; /* the failing-th call fails; 0: none */
static bool settled, closed;	/* closed: the device is not open */
static uint64_t mem = MEM;	/* its id, which is its inode's number, too */
static uint32_t refused;	/* the operation that the module refuses */
static int refusal;
static bool wordless; /* it says no more than the error */

union answer {
	struct sio_evt h;
	struct sio_evt_error error;
	struct sio_evt_list list;
	struct sio_evt_device device;
	struct sio_evt_settle settle;
	struct sio_evt_stats stats;
	struct sio_evt_identify identify;
	char room[SIO_PORT_MAX_PACKET];
};

/* An owner that has ended, and a mapping of its memory, until that is settled. */
static void list(const struct sio_req_list *m, struct sio_evt_list *evt)
{
	const struct sio_list_entry all[] = {
		{.id = OWNER, .kind = SIO_KIND_OWNER},
		{.id = mem, .kind = SIO_KIND_MEM, .owner = OWNER, .length = 4096},
		{.id = MAPPING, .kind = SIO_KIND_DMAMAP, .owner = OWNER, .device = DEVICE},
	};

	evt->h.size = sizeof(*evt);
	for (unsigned i = 0; i < 3; i++)
		if (all[i].kind == m->kind && all[i].id > m->after && (i == 0 || !settled)) {
			evt->entry[evt->count] = all[i];
			evt->entry[evt->count++].state = SIO_STATE_QUARANTINED;
		}
}

int __wrap_ioctl(int fd, unsigned long request, struct sio_ioc_packet *packet)
{
	const struct sio_req *req = (const void *)(uintptr_t)packet->data;
	union answer evt = {.h = {.op = req->op, .cookie = req->cookie}};

	(void)fd;
	assert_int_equal(request, SIO_IOC_REQUEST);
	packet->n_fds = 0;
	if (++calls == failing) {
		errno = ENOMEM;
		return -1;
	}
	if (req->op == refused) {
		evt.h.size = wordless ? sizeof(evt.h) : sizeof(evt.error);
		evt.h.error = refusal;
		evt.h.reason = SIO_OUT_OF_VECTORS;
		strcpy(evt.error.text, WORDS);
	} else if (req->op == SIO_OP_LIST) {
		list((const void *)req, &evt.list);
	} else if (req->op == SIO_OP_DMAUNMAP) {
		assert_int_equal(((const struct sio_req_dmaunmap *)req)->id, MAPPING);
		settled = true;
		evt.h.size = sizeof(evt.h);
	} else if (req->op == SIO_OP_DEVICE_OPEN ||
		   ((const struct sio_req_device_list *)req)->after < DEVICE) {
		assert_true(req->op == SIO_OP_DEVICE_LIST || req->op == SIO_OP_DEVICE_OPEN);
		evt.h.size = sizeof(evt.device);
		evt.device.id = DEVICE;
		evt.device.present = closed ? 1 : 2;
	} else {
		evt.h.size = sizeof(evt.error);
		evt.h.error = -ENOENT;
	}
	memcpy((void *)(uintptr_t)packet->answer, &evt, evt.h.size);
	return 0;
}

int __wrap_fstatfs64(int fd, struct statfs *ret)
{
	(void)fd;
	*ret = (struct statfs){.f_type = SIO_FS_MAGIC};
	return 0;
}

/* The answer to @req, while call @nth of those it makes fails. */
static void ask(const void *req, unsigned nth, union answer *ret)
{
	char dir[256], path[300];
	struct shim_port *port;
	int fds[SIO_PORT_MAX_FDS], node;
	bool by_fd = ((const struct sio_req *)req)->op == SIO_OP_IDENTIFY;
	struct stat st;
	unsigned n_fds;

	assert_int_equal(test_tempdir("shim-fail", dir, sizeof(dir)), 0);
	snprintf(path, sizeof(path), "%s/node", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	node = open(path, O_RDWR | O_CLOEXEC);
	failing = 0;
	assert_int_equal(fstat(node, &st), 0);
	mem = by_fd ? st.st_ino : MEM;
	assert_int_equal(shim_port_open(path, &port), 0);
	calls = 0;
	failing = nth;
	settled = false;
	assert_int_equal(
		shim_port_send(port, req, ((const struct sio_req *)req)->size, &node, by_fd), 0);
	failing = 0;
	assert_true(shim_port_event(port, ret, fds, &n_fds) > 0);
	shim_port_close(port);
	close(node);
	unlink(path);
	rmdir(dir);
}

/* Answered as without a failure, or with that failure. Return: did it come to call @nth? */
static bool same_or_failed(const void *req, unsigned nth, union answer *ret)
{
	unsigned made;

	ask(req, nth, ret);
	made = calls;
	if (ret->h.error)
		assert_int_equal(ret->h.error, -ENOMEM);
	return made >= nth;
}

static void a_mapping_is_settled_or_not(void **state)
{
	struct sio_req_settle req = {
		.h = {.size = sizeof(req), .op = SIO_OP_SETTLE, .owner = OWNER}, .device = DEVICE};
	union answer a;
	unsigned nth = 1;

	(void)state;
	while (same_or_failed(&req, nth, &a)) {
		if (a.h.error == 0)
			assert_true(settled && a.settle.dmamaps == 1);
		else
			assert_false(settled);
		assert_true(++nth < MOST);
	}
	assert_true(nth > 4);
	assert_true(a.h.error == 0 && a.settle.dmamaps == 1 && a.settle.bytes == 4096);
}

static void open_devices_are_listed_or_not(void **state)
{
	struct sio_req_list req = {.h = {.size = sizeof(req), .op = SIO_OP_LIST},
				   .kind = SIO_KIND_DEVICE};
	union answer a;
	unsigned nth = 1;

	(void)state;
	while (same_or_failed(&req, nth, &a)) {
		if (a.h.error == 0)
			assert_int_equal(a.list.count, 1);
		assert_true(++nth < MOST);
	}
	assert_true(nth > 2 && a.h.error == 0);
}

static void things_are_counted_or_not(void **state)
{
	struct sio_req_stats req = {.h = {.size = sizeof(req), .op = SIO_OP_STATS}};
	union answer a, all;
	unsigned nth = 1;

	(void)state;
	ask(&req, 0, &all);
	assert_int_equal(all.h.error, 0);
	while (same_or_failed(&req, nth, &a)) {
		if (a.h.error == 0)
			assert_memory_equal(a.stats.counter + 2, all.stats.counter + 2,
					    7 * sizeof(a.stats.counter[0]));
		assert_true(++nth < MOST);
	}
	assert_int_equal(nth, 8); /* seven kinds */
}

static void a_descriptor_is_known_or_not(void **state)
{
	struct sio_req_identify req = {.h = {.size = sizeof(req), .op = SIO_OP_IDENTIFY}};
	union answer a;
	unsigned nth = 1;

	(void)state;
	while (same_or_failed(&req, nth, &a)) {
		if (a.h.error == 0)
			assert_int_equal(a.identify.kind, SIO_KIND_MEM);
		assert_true(++nth < MOST);
	}
	assert_true(nth > 2 && a.h.error == 0);
	assert_int_equal(a.identify.kind, SIO_KIND_MEM);
	assert_int_equal(a.identify.owner, OWNER);
}

static void things_of_a_device_are_counted_or_not(void **state)
{
	struct sio_req_stats req = {.h = {.size = sizeof(req), .op = SIO_OP_STATS},
				    .kind = SIO_KIND_DEVICE,
				    .id = DEVICE};
	union answer a;
	unsigned nth = 1;

	(void)state;
	while (same_or_failed(&req, nth, &a)) {
		assert_int_equal(a.h.error, -ENOMEM);
		assert_true(++nth < MOST);
	}
	assert_int_equal(nth, 3); /* the device, its mappings */
	assert_int_equal(a.stats.count, 4);
	assert_string_equal(a.stats.counter[1].name, "dmamaps");
	assert_int_equal(a.stats.counter[1].value, 1);
}

static void a_device_is_opened_or_not(void **state)
{
	struct sio_req_device_open req = {.h = {.size = sizeof(req), .op = SIO_OP_DEVICE_OPEN},
					  .device = DEVICE};
	union answer a;
	unsigned nth = 1;

	(void)state;
	ask(&req, 0, &a);
	assert_int_equal(a.h.error, -EBUSY); /* it is open */
	ask(&req, 1, &a);
	assert_int_equal(a.h.error, -ENOMEM); /* and who cannot see that does not say so */
	closed = true;
	while (same_or_failed(&req, nth, &a)) {
		assert_int_equal(a.h.error, -ENOMEM);
		assert_true(++nth < MOST);
	}
	closed = false;
	assert_int_equal(nth, 3); /* a look, the request itself */
	assert_int_equal(a.device.id, DEVICE);
}

static void config_space_is_of_a_device_that_is_there(void **state)
{
	struct sio_req_config req = {
		.h = {.size = sizeof(req), .op = SIO_OP_CONFIG}, .device = DEVICE, .width = 4};
	union answer a;

	(void)state;
	ask(&req, 0, &a);
	assert_int_equal(calls, 1);
	assert_int_equal(a.h.error, -ENODEV); /* not in this machine's sysfs */
	ask(&req, 1, &a);
	assert_int_equal(a.h.error, -ENOMEM);
	assert_non_null(strstr(a.error.text, "does not report device"));
}

/*
 * The module refuses a request: its words and its reason are handed on, and nothing else is asked.
 */
static void a_refusal_is_the_modules(void **state)
{
	struct sio_req_free end = {.h = {.size = sizeof(end), .op = SIO_OP_FREE}, .id = MEM};
	union answer a;

	(void)state;
	refused = SIO_OP_FREE;
	refusal = -EBUSY;
	ask(&end, 0, &a);
	assert_int_equal(calls, 1);
	assert_int_equal(a.h.error, -EBUSY);
	assert_int_equal(a.h.reason, SIO_OUT_OF_VECTORS);
	assert_string_equal(a.error.text, WORDS);
	refused = 0;
}

/* A module of another version, whose refusals have no words: said in ours. */
static void a_refusal_without_words(void **state)
{
	struct sio_req_info info = {.h = {.size = sizeof(info), .op = SIO_OP_INFO}};
	union answer a;

	(void)state;
	refused = SIO_OP_INFO;
	refusal = -EPROTO;
	wordless = true;
	ask(&info, 0, &a);
	assert_int_equal(a.h.error, -EPROTO);
	assert_int_equal(a.h.size, sizeof(a.error));
	assert_non_null(strstr(a.error.text, "another version"));
	refused = 0;
	wordless = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapping_is_settled_or_not),
		cmocka_unit_test(open_devices_are_listed_or_not),
		cmocka_unit_test(things_are_counted_or_not),
		cmocka_unit_test(a_descriptor_is_known_or_not),
		cmocka_unit_test(things_of_a_device_are_counted_or_not),
		cmocka_unit_test(a_device_is_opened_or_not),
		cmocka_unit_test(config_space_is_of_a_device_that_is_there),
		cmocka_unit_test(a_refusal_is_the_modules),
		cmocka_unit_test(a_refusal_without_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
