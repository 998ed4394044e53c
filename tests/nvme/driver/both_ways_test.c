/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finite resources, on live clusters: two hosts lend each other as many devices as an adapter's
 * requester table has entries for, all at work; and what runs out is all there again, whatever the
 * order in which it is given back.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "program.h"
#include "smartio/io.h"
#include "smartio/memdev.h"
#include "smartio/uapi.h"

#define PAGE 4096u

/* ---- thirty devices each way ---- */
enum { HAVE_ALL, USE, REFUSED, LEAVE };
#define DEVICES 31u
#define ROUNDS 20u
#define ENTRIES 30u /* of 32 in an adapter's requester table; two are the processors' */

/* What each has of its borrower: a ring, a completion, what is copied, and where to. */
enum { AT_RING, AT_DONE = PAGE, AT_FROM = 2 * PAGE, AT_TO = 3 * PAGE, EACH = 4 * PAGE };

struct engine {
	sci_smartio_device_t device;
	sci_remote_segment_t bar;
	sci_map_t registers_map, doorbell_map;
	volatile uint8_t *registers, *doorbell, *at; /* at: its part of our memory */
	sci_ioaddr_t address;
};

static volatile uint8_t *map_page(struct engine *e, size_t offset, sci_map_t *ret)
{
	sci_error_t error;
	volatile uint8_t *at = SCIMapRemoteSegment(e->bar, ret, offset, PAGE, NULL, 0, &error);

	CHECK_OK(error);
	return at;
}

static void take(struct engine *e, sci_desc_t sd, unsigned lender, unsigned number)
{
	sci_error_t error;
	char name[16];

	snprintf(name, sizeof(name), "m%u-%u", lender, number);
	e->device = borrow(sd, name, SCI_FLAG_EXCLUSIVE);
	SCIConnectDeviceSegment(e->device, &e->bar, SIO_MEMDEV_BAR_REGISTERS, SCI_MEMTYPE_BAR, NULL,
				NULL, 0, &error);
	CHECK_OK(error);
	e->registers = map_page(e, 0, &e->registers_map);
	e->doorbell = map_page(e, SIO_MEMDEV_DOORBELL, &e->doorbell_map);
}

static sci_error_t reach(struct engine *e, sci_local_segment_t memory, unsigned number)
{
	sci_error_t error;

	SCIMapLocalSegmentForDevice(memory, 0, e->device, &e->address, (size_t)number * EACH, EACH,
				    0, &error);
	return error;
}

static void start(const struct engine *e)
{
	const uint64_t ring = e->address + AT_RING;

	sio_write32(e->registers + SIO_MEMDEV_RING_BASE, (uint32_t)ring);
	sio_write32(e->registers + SIO_MEMDEV_RING_BASE + 4, (uint32_t)(ring >> 32));
	sio_write32(e->registers + SIO_MEMDEV_RING_ENTRIES, 2);
	sio_to_fabric_barrier();
	sio_write32(e->registers + SIO_MEMDEV_CONTROL, SIO_MEMDEV_ENABLE);
	while (sio_read32(e->registers + SIO_MEMDEV_STATUS) != SIO_MEMDEV_RUNNING)
		smartio_yield();
}

static void begin_copy(const struct engine *e, uint32_t number, uint32_t what)
{
	const struct sio_memdev_entry entry = {.source = e->address + AT_FROM,
					       .target = e->address + AT_TO,
					       .length = PAGE,
					       .completion = e->address + AT_DONE};

	for (unsigned i = 0; i < PAGE; i += 4)
		sio_write32(e->at + AT_FROM + i, what + i);
	sio_copy_to(e->at + AT_RING + (number - 1) % 2 * sizeof(entry), &entry, sizeof(entry));
	sio_to_fabric_barrier();
	sio_write32(e->doorbell, number);
	smartio_map_wake(e->doorbell_map);
}

static void end_copy(const struct engine *e, uint32_t number, uint32_t what)
{
	while (sio_read32(e->at + AT_DONE) != number)
		smartio_yield();
	sio_from_fabric_barrier();
	CHECK(sio_read32(e->at + AT_DONE + 4) == SIO_MEMDEV_OK);
	for (unsigned i = 0; i < PAGE; i += 4)
		CHECK(sio_read32(e->at + AT_TO + i) == what + i);
}

static sci_local_segment_t make_memory(sci_desc_t sd, volatile uint8_t **ret_at)
{
	sci_local_segment_t segment;
	sci_error_t error;
	sci_map_t map;

	SCICreateSegment(sd, &segment, 1, DEVICES * EACH, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(segment, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(segment, 0, 0, &error);
	CHECK_OK(error);
	*ret_at = SCIMapLocalSegment(segment, &map, 0, DEVICES * EACH, NULL, 0, &error);
	CHECK_OK(error);
	return segment;
}

/* @arg: the number of the host that lends. */
static int borrower(void *arg)
{
	static struct engine e[DEVICES];
	sci_local_segment_t memory;
	volatile uint8_t *at;
	sci_error_t error;
	sci_desc_t sd;

	begin();
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	memory = make_memory(sd, &at);
	for (unsigned i = 0; i < DEVICES; i++) {
		take(&e[i], sd, *(const unsigned *)arg, i);
		e[i].at = at + (size_t)i * EACH;
	}
	for (unsigned i = 0; i < ENTRIES; i++) {
		CHECK_OK(reach(&e[i], memory, i));
		start(&e[i]);
	}
	step_done(HAVE_ALL);
	step_await(USE);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		for (unsigned i = 0; i < ENTRIES; i++)
			begin_copy(&e[i], round, round * 1000003 + i * 4099);
		for (unsigned i = 0; i < ENTRIES; i++)
			end_copy(&e[i], round, round * 1000003 + i * 4099);
	}
	/* The last one is lent as the others are; it has no entry to pass the adapter by. */
	CHECK_IS(reach(&e[ENTRIES], memory, ENTRIES), SCI_ERR_HW_NOSPC);
	CHECK(smartio_last_exhausted() == SIO_OUT_OF_REQUESTERS);
	CHECK(strstr(smartio_last_error(), "out of requester entries"));
	step_done(REFUSED);
	step_await(LEAVE);
	/* One is given back: there is. */
	sio_write32(e[0].registers + SIO_MEMDEV_CONTROL, 0);
	SCIUnmapLocalSegmentForDevice(memory, 0, e[0].device, 0, &error);
	CHECK_OK(error);
	CHECK_OK(reach(&e[ENTRIES], memory, ENTRIES));
	start(&e[ENTRIES]);
	begin_copy(&e[ENTRIES], 1, 77);
	end_copy(&e[ENTRIES], 1, 77);
	SCITerminate();
	return 0;
}

static char *two_hosts(void)
{
	size_t size = 16384, at = 0;
	char *text = malloc(size);

	assert_non_null(text);
	at += (size_t)snprintf(text, size, "cluster: thirty\nhosts:\n");
	for (unsigned host = 0; host < 2; host++) {
		at += (size_t)snprintf(
			text + at, size - at,
			"  h%u:\n    ram: 64M\n    iommu: %s\n    adapters: [{to: h%u}]\n"
			"    devices:\n",
			host, host ? "on" : "off", 1 - host);
		for (unsigned i = 0; i < DEVICES; i++)
			at += (size_t)snprintf(text + at, size - at,
					       "      m%u-%u: {type: memory, size: 8K}\n", host, i);
	}
	assert_in_range(at, 1, size - 1);
	return text;
}

static void two_hosts_lend_each_other_thirty_devices(void **state)
{
	static unsigned lender[2] = {1, 0};
	char *topology = two_hosts();
	struct cluster *c = cluster_up(topology);
	pid_t pid[2];

	(void)state;
	assert_non_null(c);
	steps_reset();
	for (unsigned i = 0; i < 2; i++)
		pid[i] = cluster_fork(c, 4 + 4 * i, borrower, &lender[i]);
	for (unsigned step = HAVE_ALL; step < LEAVE; step += 2) {
		for (unsigned i = 0; i < 2; i++)
			step_await(step);
		for (unsigned i = 0; i < 2; i++)
			step_done(step + 1);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cluster_wait(pid[i]), 0);
	assert_int_equal(cluster_down(c), 0);
	free(topology);
}

/* ---- to exhaustion, and back ---- */
#define TURNS 1000u /* of all */
#define MOST 64u
#define PIECE (64u << 10) /* an entry of the window */
#define SEGMENTS 17u	  /* each in an entry of its own: more than there are */

static const char little[] =
	"cluster: little\n"
	"hosts:\n"
	"  lender: {ram: 4M, iommu: off, adapters: [{requesters: 4}],\n"
	"    devices: {m0: {type: memory, size: 8K}, m1: {type: memory, size: 8K},\n"
	"              m2: {type: memory, size: 8K}}}\n"
	"  client: {ram: 4M, iommu: off, adapters: [{window: 1M, entries: 16}]}\n";

static uint64_t seed = 24;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % n);
}

/* Things of a kind: how one is had, and how given back. */
struct kind {
	unsigned reason;
	sci_error_t error;
	sci_error_t (*get)(unsigned i);
	void (*put)(unsigned i);
	unsigned n; /* that there are: as many each time */
};

static sci_desc_t sd;
static sci_local_segment_t segment[MOST], held;
static sci_map_t map[MOST];
static sci_remote_segment_t remote[SEGMENTS];
static struct engine device[3];

static sci_error_t get_memory(unsigned i)
{
	sci_error_t error;

	SCICreateSegment(sd, &segment[i], 100 + i, 4 * PIECE, NULL, NULL, 0, &error);
	return error;
}

static void put_memory(unsigned i)
{
	sci_error_t error;

	SCIRemoveSegment(segment[i], 0, &error);
	CHECK_OK(error);
}

static sci_error_t get_entry(unsigned i)
{
	sci_error_t error;

	SCIMapRemoteSegment(remote[i % SEGMENTS], &map[i], 0, PAGE, NULL, 0, &error);
	return error;
}

static void put_entry(unsigned i)
{
	sci_error_t error;

	SCIUnmapSegment(map[i], 0, &error);
	CHECK_OK(error);
}

static sci_error_t get_requester(unsigned i)
{
	sci_error_t error;

	SCIMapLocalSegmentForDevice(held, 0, device[i].device, &device[i].address, 0, PAGE, 0,
				    &error);
	return error;
}

static void put_requester(unsigned i)
{
	sci_error_t error;

	SCIUnmapLocalSegmentForDevice(held, 0, device[i].device, 0, &error);
	CHECK_OK(error);
}

static void one_turn(struct kind *k)
{
	unsigned order[MOST], n = 0;
	sci_error_t error;

	while (n < MOST && (error = k->get(n)) == SCI_ERR_OK) {
		order[n] = n;
		n++;
	}
	CHECK(n < MOST);
	CHECK_IS(error, k->error);
	CHECK(smartio_last_exhausted() == k->reason);
	if (!k->n)
		k->n = n;
	CHECK(n == k->n && n > 1);
	while (n > 0) {
		unsigned which = below(n);

		k->put(order[which]);
		order[which] = order[--n];
	}
}

static int exporter(void *arg)
{
	sci_local_segment_t s;
	sci_error_t error;

	(void)arg;
	begin();
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		SCICreateSegment(sd, &s, 1 + i, PIECE, NULL, NULL, 0, &error);
		CHECK_OK(error);
		SCIPrepareSegment(s, 0, 0, &error);
		CHECK_OK(error);
		SCISetSegmentAvailable(s, 0, 0, &error);
		CHECK_OK(error);
	}
	step_done(HAVE_ALL);
	step_await(LEAVE);
	SCITerminate();
	return 0;
}

static int exhauster(void *arg)
{
	static struct kind kind[] = {
		{SIO_OUT_OF_RAM, SCI_ERR_NOSPC, get_memory, put_memory, 0},
		{SIO_OUT_OF_LUT_ENTRIES, SCI_ERR_HW_NOSPC, get_entry, put_entry, 0},
		{SIO_OUT_OF_REQUESTERS, SCI_ERR_HW_NOSPC, get_requester, put_requester, 0},
	};
	sci_error_t error;
	volatile uint8_t *at;

	(void)arg;
	begin();
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	held = make_memory(sd, &at);
	for (unsigned i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof(name), "m%u", i);
		device[i].device = borrow(sd, name, 0);
	}
	for (unsigned i = 0; i < SEGMENTS; i++) {
		SCIConnectSegment(sd, &remote[i], 4, 1 + i, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0,
				  &error);
		CHECK_OK(error);
	}
	for (unsigned turn = 0; turn < TURNS; turn++)
		one_turn(&kind[turn % 3]);
	SCITerminate();
	return 0;
}

static void what_runs_out_comes_back(void **state)
{
	struct cluster *c = cluster_up(little);
	pid_t pid;

	(void)state;
	assert_non_null(c);
	steps_reset();
	pid = cluster_fork(c, 4, exporter, NULL);
	step_await(HAVE_ALL);
	assert_int_equal(cluster_wait(cluster_fork(c, 8, exhauster, NULL)), 0);
	step_done(LEAVE);
	assert_int_equal(cluster_wait(pid), 0);
	assert_int_equal(cluster_down(c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_hosts_lend_each_other_thirty_devices),
		cmocka_unit_test(what_runs_out_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
