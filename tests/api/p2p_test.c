/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From device to device: BARs of a borrowed device mapped for another one, which lies beside it, in
 * the borrower's host, or in a third. What crosses is counted and held against the computed route;
 * what may not be mapped is refused. With IOMMUs, and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/route.h"
#include "topofile/topofile.h"
#include "p2p.h"

#define COMMANDS 4u
#define CQE 16u

/* ---- what crosses ---- */

static int drive_writes(void *arg)
{
	static struct admin a;
	struct target t;
	sci_ioaddr_t at;
	sci_error_t error;

	admin_start(&a);
	t = target_take(a.sd, arg, 0, PAGE);
	at = map_for(t.bar, a.device, 2 * PAGE, 2 * PAGE);
	step_done(0);
	step_await(1);
	for (unsigned i = 0; i < COMMANDS; i++) {
		CHECK(!is_identity(t.ram + PAGE));
		identify(&a, at);
		CHECK(is_identity(t.ram + PAGE));
		CHECK(get32(t.ram) == 0 && get32(t.ram + 2 * PAGE) == 0);
		put_all(t.ram + PAGE, 0, PAGE);
		SCIFlush(NULL, 0);
	}
	step_done(2);
	step_await(3);
	identify(&a, at + PAGE);
	CHECK(is_identity(t.ram + 2 * PAGE));
	/* What is mapped for a device is in use. */
	SCIUnmapSegment(t.map, 0, &error);
	CHECK_OK(error);
	t.map = NULL;
	SCIDisconnectSegment(t.bar, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIReturnDevice(t.device, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	unmap_for(t.bar, a.device);
	SCIUnmapRemoteSegmentForDevice(t.bar, a.device, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	if (with_iommu) {
		uint64_t before = faults();

		identify_anyhow(&a, at);
		CHECK(faults() > before);
	}
	target_return(&t);
	admin_stop(&a);
	return 0;
}

struct passed {
	unsigned long long tlps, bytes;
};

static struct passed passed(const struct cluster *c, unsigned node)
{
	struct passed p;

	assert_int_equal(cluster_adapter_counter(c, node, 0, "wr_tlp", &p.tlps), 0);
	assert_int_equal(cluster_adapter_counter(c, node, 0, "wr_bytes", &p.bytes), 0);
	return p;
}

/* The cluster's routes, as they are computed from its file. */
struct computed {
	struct sio_topology *topo;
	struct sio_graph *graph;
	struct sio_routes *routes;
};

static void compute(struct computed *f)
{
	const char *text = with_iommu ? HOSTS("on") : HOSTS("off");
	struct sio_err err;

	assert_int_equal(sio_topofile_parse("p2p.yaml", text, strlen(text), &f->topo, &err), 0);
	assert_int_equal(sio_graph_new(f->topo, &f->graph), 0);
	assert_int_equal(sio_routes_new(f->graph, &f->routes), 0);
}

static void computed_free(struct computed *f)
{
	sio_routes_free(f->routes);
	sio_graph_free(f->graph);
	sio_topology_free(f->topo);
}

static unsigned host_of(const struct computed *f, const char *device, unsigned *ret_index)
{
	for (unsigned i = 0; i < f->topo->n_hosts; i++)
		for (unsigned k = 0; k < f->topo->host[i].n_devices; k++)
			if (!strcmp(f->topo->host[i].device[k].name, device)) {
				*ret_index = k;
				return i;
			}
	fail();
	return 0;
}

/* Does what the drive sends to @device pass an adapter of host @host? */
static bool route_passes(const struct computed *f, const char *device, unsigned host)
{
	unsigned from, to, drive, target;
	struct sio_route route;

	from = host_of(f, "nvme0", &drive);
	to = host_of(f, device, &target);
	assert_int_equal(sio_routes_find(f->routes, sio_graph_device(f->graph, from, drive),
					 sio_graph_device(f->graph, to, target), &route),
			 0);
	return route.adapter != SIO_GRAPH_NONE && (host == from || host == to);
}

static void crossings_are_those_of_the_route(void **state)
{
	struct cluster *c = *state;
	struct computed routes;
	unsigned tlps;

	cluster_needs(NEEDS_MEMORY);
	compute(&routes);
	tlps = PAGE / routes.topo->max_payload;
	for (unsigned k = 0; k < PLACES; k++) {
		struct passed before[3], after[3];
		pid_t pid;

		steps_reset();
		pid = cluster_fork(c, BORROWER, drive_writes, places[k]);
		step_await(0);
		for (unsigned h = 0; h < 3; h++)
			before[h] = passed(c, 4 * (h + 1));
		step_done(1);
		step_await(2);
		for (unsigned h = 0; h < 3; h++)
			after[h] = passed(c, 4 * (h + 1));
		step_done(3);
		assert_int_equal(cluster_wait(pid), 0);
		for (unsigned h = 0; h < 3; h++) {
			bool data = route_passes(&routes, places[k], h), completions = h < 2;

			assert_int_equal(after[h].tlps - before[h].tlps,
					 COMMANDS * (data * tlps + completions));
			assert_int_equal(after[h].bytes - before[h].bytes,
					 COMMANDS * (data * PAGE + completions * CQE));
		}
	}
	computed_free(&routes);
}

/* ---- a device that reads ---- */

/* A memory device's engine at work. */
struct engine {
	struct target t;
	sci_remote_segment_t bar;
	sci_local_segment_t memory;
	sci_map_t map, ring_map;
	volatile uint8_t *regs;
	volatile struct sio_memdev_entry *ring;
	volatile struct sio_memdev_completion *done;
	sci_ioaddr_t ring_at;
	uint32_t n;
};

static void engine_start(struct engine *e, sci_desc_t sd, const char *name)
{
	sci_error_t error;

	*e = (struct engine){.t = target_take(sd, name, SCI_FLAG_EXCLUSIVE, PAGE)};
	e->bar = connect_bar(e->t.device, SIO_MEMDEV_BAR_REGISTERS);
	e->regs = SCIMapRemoteSegment(e->bar, &e->map, 0, 2 * PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE,
				      &error);
	CHECK_OK(error);
	CHECK(sio_read32(e->regs + SIO_MEMDEV_MAGIC) == SIO_MEMDEV_MAGIC_VALUE);
	CHECK(sio_read32(e->regs + SIO_MEMDEV_RAM_BYTES) == 16 * PAGE);
	e->ring = (volatile void *)memory_for(sd, e->t.device, PAGE, &e->memory, &e->ring_map,
					      &e->ring_at);
	e->done = (volatile void *)((volatile uint8_t *)e->ring + PAGE - sizeof(*e->done));
	sio_write32(e->regs + SIO_MEMDEV_RING_BASE, (uint32_t)e->ring_at);
	sio_write32(e->regs + SIO_MEMDEV_RING_BASE + 4, (uint32_t)(e->ring_at >> 32));
	sio_write32(e->regs + SIO_MEMDEV_RING_ENTRIES, 8);
	sio_to_fabric_barrier();
	sio_write32(e->regs + SIO_MEMDEV_CONTROL, SIO_MEMDEV_ENABLE);
	while (sio_read32(e->regs + SIO_MEMDEV_STATUS) != SIO_MEMDEV_RUNNING)
		smartio_yield();
}

static void engine_copy(struct engine *e, sci_ioaddr_t from, sci_ioaddr_t to, uint32_t bytes)
{
	volatile struct sio_memdev_entry *entry = &e->ring[e->n++ % 8];

	entry->source = from;
	entry->target = to;
	entry->length = bytes;
	entry->flags = 0;
	entry->completion = e->ring_at + PAGE - sizeof(*e->done);
	sio_to_fabric_barrier();
	sio_write32(e->regs + SIO_MEMDEV_DOORBELL, e->n);
	while (sio_read32(&e->done->number) != e->n)
		smartio_yield();
	sio_from_fabric_barrier();
	CHECK(e->done->status == SIO_MEMDEV_OK);
}

static void engine_stop(struct engine *e)
{
	memory_end(e->memory, e->ring_map, e->t.device);
	drop_bar(e->bar, e->map);
	target_return(&e->t);
}

/* From the RAM of one device to that of another, by the engine of a third. */
static int engine_copies(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target source, sink;
	struct engine engine;
	sci_ioaddr_t from, to;

	(void)arg;
	engine_start(&engine, sd, "beside");
	source = target_take(sd, "far", 0, PAGE);
	sink = target_take(sd, "here", 0, PAGE);
	from = map_for(source.bar, engine.t.device, PAGE, 4 * PAGE);
	to = map_for(sink.bar, engine.t.device, PAGE, 4 * PAGE);
	for (unsigned i = 0; i < 4 * PAGE; i += 4)
		put32(source.ram + i, i * 2654435761u);
	SCIFlush(NULL, 0);
	engine_copy(&engine, from + 4, to + 8, 3 * PAGE);
	for (unsigned i = 0; i < 3 * PAGE; i += 4)
		CHECK(get32(sink.ram + 8 + i) == (i + 4) * 2654435761u);
	CHECK(get32(sink.ram + 4) == 0 && get32(sink.ram + 3 * PAGE + 8) == 0);
	unmap_for(source.bar, engine.t.device);
	unmap_for(sink.bar, engine.t.device);
	target_return(&sink);
	target_return(&source);
	engine_stop(&engine);
	api_end(sd);
	return 0;
}

static void a_device_reads_another_ones_memory(void **state)
{
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned node = 4; node <= 12; node += 4)
		assert_int_equal(cluster_wait(cluster_fork(c, node, engine_copies, NULL)), 0);
}

/* ---- the memory that a drive has ---- */

#define CMB 0x7f0000000000u /* where the drive is told that it lies: where nothing is */

static int uses_drive_memory(void *arg)
{
	static struct admin a;
	struct engine engine;
	struct target source;
	sci_remote_segment_t bar;
	volatile uint8_t *p;
	sci_ioaddr_t from, to;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	admin_start(&a);
	SCIReleaseExclusiveBorrow(a.device, 0, &error);
	CHECK_OK(error);
	bar = connect_bar(a.device, 2);
	CHECK(SCIGetRemoteSegmentSize(bar) == 16 * PAGE);
	p = SCIMapRemoteSegment(bar, &map, 0, 16 * PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(sio_read32(a.regs + 0x3c) == 0);
	sio_write32(a.regs + 0x54, (uint32_t)(CMB >> 32));
	sio_to_fabric_barrier();
	sio_write32(a.regs + 0x50, 3); /* its registers, and its memory at that address */
	while (sio_read32(a.regs + 0x3c) >> 12 != 16)
		smartio_yield();
	/* Its own, without a transaction; and another device's word to it. */
	identify(&a, CMB + PAGE);
	CHECK(is_identity(p + PAGE) && get32(p) == 0 && get32(p + 2 * PAGE) == 0);
	engine_start(&engine, a.sd, "beside");
	source = target_take(a.sd, "far", 0, PAGE);
	from = map_for(source.bar, engine.t.device, PAGE, PAGE);
	to = map_for(bar, engine.t.device, 3 * PAGE, PAGE);
	put32(source.ram + 12, 0xcafe);
	SCIFlush(NULL, 0);
	engine_copy(&engine, from, to, PAGE);
	CHECK(get32(p + 3 * PAGE + 12) == 0xcafe);
	step_done(0);
	step_await(1);
	unmap_for(bar, engine.t.device);
	unmap_for(source.bar, engine.t.device);
	target_return(&source);
	engine_stop(&engine);
	drop_bar(bar, map);
	admin_stop(&a);
	return 0;
}

/* Queues of all may lie there: it is for the registers' owner to give. */
static int is_not_given_any(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t drive;
	struct target t;
	sci_remote_segment_t bar;
	volatile uint8_t *p;
	sci_ioaddr_t at = 77;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	step_await(0);
	drive = api_borrow(sd, 0);
	t = target_take(sd, "here", 0, PAGE);
	bar = connect_bar(drive, 2);
	p = SCIMapRemoteSegment(bar, &map, 0, 16 * PAGE, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 4; i++)
		CHECK(get32(p + i * PAGE) == 0xffffffff);
	SCIMapRemoteSegmentForDevice(bar, t.device, &at, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	CHECK(at == 77);
	step_done(1);
	drop_bar(bar, map);
	target_return(&t);
	SCIReturnDevice(drive, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_drive_has_memory_for_its_manager(void **state)
{
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned node = 4; node <= 12; node += 4) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(c, BORROWER, uses_drive_memory, NULL);
		b = cluster_fork(c, node, is_not_given_any, NULL);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 0);
	}
}

/* ---- what is refused ---- */

static void refused(sci_remote_segment_t bar, sci_smartio_device_t device, size_t offset,
		    size_t bytes, sci_error_t expected, const char *text)
{
	sci_ioaddr_t at = 77;
	sci_error_t error;

	SCIMapRemoteSegmentForDevice(bar, device, &at, offset, bytes, 0, &error);
	CHECK_IS(error, expected);
	CHECK(at == 77);
	CHECK(strstr(smartio_last_error(), text) != NULL);
}

static int holds_registers(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, PAGE);
	sci_remote_segment_t bar = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	sci_error_t error;
	sci_map_t map;

	SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(1);
	drop_bar(bar, map);
	step_done(2);
	/* A device of the other one's has them now. */
	step_await(3);
	bar = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	step_done(4);
	step_await(5);
	/* The device's host tells the lender of the end, and nobody waits for that. */
	do {
		SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, 0, &error);
	} while (error == SCI_ERR_ACCESS);
	CHECK_OK(error);
	drop_bar(bar, map);
	target_return(&t);
	api_end(sd);
	return 0;
}

static int asks_for_too_much(void *arg)
{
	static struct admin a;
	sci_remote_segment_t bar;
	struct target t;

	admin_start(&a);
	t = target_take(a.sd, arg, 0, PAGE);
	bar = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	step_await(0);
	refused(bar, a.device, 0, PAGE, SCI_ERR_ACCESS, "are held by pid ");
	refused(bar, a.device, 0, 2 * PAGE, SCI_ERR_ACCESS, "may write");
	/* The interrupt table, alone and with what lies before it. */
	refused(bar, a.device, 2 * PAGE, PAGE, SCI_ERR_ACCESS, "may write");
	refused(bar, a.device, PAGE, 2 * PAGE, SCI_ERR_ACCESS, "may write");
	refused(bar, a.device, 0, 4 * PAGE, SCI_ERR_ACCESS, "may write");
	refused(bar, a.device, 4 * PAGE, PAGE, SCI_ERR_OUT_OF_RANGE, "");
	refused(bar, a.device, 8, PAGE, SCI_ERR_ILLEGAL_PARAMETER, "not a multiple");
	refused(bar, t.device, PAGE, PAGE, SCI_ERR_NOT_SUPPORTED, "its own BARs");
	refused(a.bar, a.device, PAGE, PAGE, SCI_ERR_NOT_SUPPORTED, "its own BARs");
	map_for(bar, a.device, PAGE, PAGE);
	unmap_for(bar, a.device);
	step_done(1);
	step_await(2);
	CHECK(!smartio_holds_registers(t.device));
	map_for(bar, a.device, 0, PAGE);
	step_done(3);
	step_await(4);
	unmap_for(bar, a.device);
	step_done(5);
	drop_bar(bar, NULL);
	target_return(&t);
	admin_stop(&a);
	return 0;
}

static void what_the_borrower_may_not_write_is_refused(void **state)
{
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(c, 12, holds_registers, places[k]);
		b = cluster_fork(c, BORROWER, asks_for_too_much, places[k]);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(crossings_are_those_of_the_route, audit),
		cmocka_unit_test_teardown(a_device_reads_another_ones_memory, audit),
		cmocka_unit_test_teardown(a_drive_has_memory_for_its_manager, audit),
		cmocka_unit_test_teardown(what_the_borrower_may_not_write_is_refused, audit),
	};
	int failed = cmocka_run_group_tests_name("with IOMMUs", tests, up_with, down);

	return failed + cmocka_run_group_tests_name("without", tests, up_without, down);
}
