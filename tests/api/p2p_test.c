/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From device to device: BARs of a borrowed device mapped for another one, which lies beside it, in
 * the borrower's host, or in a third. What crosses is counted and held against the computed route;
 * what may not be mapped is refused; and what was mapped is cut when the pages are not the
 * borrower's any more. With IOMMUs, and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/route.h"
#include "smartio/memdev.h"
#include "topofile/topofile.h"
#include "admin.h"

#define PAGE 4096u
#define COMMANDS 4u
#define BORROWER 8u
#define CQE 16u

#define HOSTS(iommu)                                                                               \
	"cluster: p2p\n"                                                                           \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  one:\n"                                                                                 \
	"    ram: 64M\n"                                                                           \
	"    iommu: " iommu "\n"                                                                   \
	"    devices:\n"                                                                           \
	"      nvme0: {type: nvme, size: 16M, cmb: 64K}\n"                                         \
	"      beside: {type: memory, size: 64K}\n"                                                \
	"  two: {ram: 64M, iommu: " iommu ", devices: {here: {type: memory, size: 64K}}}\n"        \
	"  three: {ram: 64M, iommu: " iommu ", devices: {far: {type: memory, size: 64K}}}\n"

struct fixture {
	struct cluster *cluster;
	struct sio_topology *topo;
	struct sio_graph *graph;
	struct sio_routes *routes;
	bool iommu;
};

/* What children tell one another. */
static struct {
	uint64_t at;
} * told;

static bool with_iommu; /* the cluster that is up has them */

static const char *const places[] = {"beside", "here", "far"};
#define PLACES 3u

static int up(void **state, bool iommu)
{
	const char *text = iommu ? HOSTS("on") : HOSTS("off");
	struct fixture *f = calloc(1, sizeof(*f));
	struct sio_err err;

	told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!f || told == MAP_FAILED)
		return -1;
	with_iommu = f->iommu = iommu;
	if (sio_topofile_parse("p2p.yaml", text, strlen(text), &f->topo, &err) < 0 ||
	    sio_graph_new(f->topo, &f->graph) < 0 || sio_routes_new(f->graph, &f->routes) < 0)
		return -1;
	f->cluster = cluster_up(text);
	*state = f;
	return f->cluster ? 0 : -1;
}

static int up_with(void **state)
{
	return up(state, true);
}

static int up_without(void **state)
{
	return up(state, false);
}

static int down(void **state)
{
	struct fixture *f = *state;
	int rc;

	if (!f)
		return 0;
	rc = f->cluster ? cluster_down(f->cluster) : -1;
	sio_routes_free(f->routes);
	sio_graph_free(f->graph);
	sio_topology_free(f->topo);
	munmap(told, PAGE);
	free(f);
	return rc;
}

static int audit(void **state)
{
	return cluster_audit(((struct fixture *)*state)->cluster);
}

/* ---- programs ---- */

/* A borrowed memory device, its RAM mapped for the processor. */
struct target {
	sci_smartio_device_t device;
	sci_remote_segment_t bar;
	sci_map_t map;
	volatile uint8_t *ram;
};

/* A device that was put back is known as soon as the daemons have told one another. */
static unsigned find(const char *name)
{
	unsigned fdid = 0;
	sci_error_t error;

	do
		smartio_find_device(name, &fdid, &error);
	while (error == SCI_ERR_NO_SUCH_FDID && sched_yield() == 0);
	CHECK_OK(error);
	return fdid;
}

static sci_remote_segment_t connect_bar(sci_smartio_device_t device, unsigned bar)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;

	SCIConnectDeviceSegment(device, &seg, bar, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	return seg;
}

static struct target take(sci_desc_t sd, const char *name, unsigned flags)
{
	struct target t = {.device = NULL};
	sci_error_t error;

	do { /* the one before may be on his way out */
		SCIBorrowDevice(sd, &t.device, find(name), flags, &error);
	} while (error == SCI_ERR_NOT_AVAILABLE);
	CHECK_OK(error);
	t.bar = connect_bar(t.device, SIO_MEMDEV_BAR_RAM);
	CHECK(SCIGetRemoteSegmentSize(t.bar) == 16 * PAGE);
	t.ram = SCIMapRemoteSegment(t.bar, &t.map, PAGE, 4 * PAGE, NULL, 0, &error);
	CHECK_OK(error);
	return t;
}

static void drop(sci_remote_segment_t seg, sci_map_t map)
{
	sci_error_t error;

	if (map) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	}
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
}

static void leave(struct target *t)
{
	sci_error_t error;

	drop(t->bar, t->map);
	SCIReturnDevice(t->device, 0, &error);
	CHECK_OK(error);
}

static sci_ioaddr_t map_for(sci_remote_segment_t bar, sci_smartio_device_t device, size_t offset,
			    size_t bytes)
{
	sci_ioaddr_t at = 0;
	sci_error_t error;

	SCIMapRemoteSegmentForDevice(bar, device, &at, offset, bytes, 0, &error);
	CHECK_OK(error);
	CHECK(at != 0 && at % PAGE == 0);
	return at;
}

static void unmap_for(sci_remote_segment_t bar, sci_smartio_device_t device)
{
	sci_error_t error;

	SCIUnmapRemoteSegmentForDevice(bar, device, 0, &error);
	CHECK_OK(error);
}

/* Identify of the controller, to @at. Its answer begins with the vendor, as PCI knows it. */
static void identify(struct admin *a, sci_ioaddr_t at)
{
	admin_command(a, 0x06, 0, at, 1);
	admin_await(a);
}

/* The same, where it may fail. */
static void identify_anyhow(struct admin *a, sci_ioaddr_t at)
{
	volatile uint32_t *e = a->cq + a->head * 4;

	admin_command(a, 0x06, 0, at, 1);
	while ((sio_read32(e + 3) >> 16 & 1) != a->phase)
		smartio_yield();
	a->head = (a->head + 1) % ADMIN_ENTRIES;
	a->phase ^= a->head == 0;
	sio_write32(a->bells + 4, a->head);
}

static bool is_identity(const volatile uint8_t *p)
{
	return get32(p) == 0x1b361b36;
}

static uint64_t faults(void)
{
	struct smartio_counter all[64];
	sci_error_t error;
	unsigned n = smartio_device_counters(find("nvme0"), all, 64, &error);

	CHECK_OK(error);
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(all[i].name, "faults"))
			return all[i].value;
	CHECK(false);
	return 0;
}

/* ---- what crosses ---- */

static int drive_writes(void *arg)
{
	static struct admin a;
	struct target t;
	sci_ioaddr_t at;
	sci_error_t error;

	admin_start(&a);
	t = take(a.sd, arg, 0);
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
	leave(&t);
	admin_stop(&a);
	return 0;
}

struct passed {
	unsigned long long tlps, bytes;
};

static struct passed passed(struct fixture *f, unsigned node)
{
	struct passed p;

	assert_int_equal(cluster_adapter_counter(f->cluster, node, 0, "wr_tlp", &p.tlps), 0);
	assert_int_equal(cluster_adapter_counter(f->cluster, node, 0, "wr_bytes", &p.bytes), 0);
	return p;
}

static unsigned host_of(const struct fixture *f, const char *device, unsigned *ret_index)
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
static bool route_passes(const struct fixture *f, const char *device, unsigned host)
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
	struct fixture *f = *state;
	const unsigned tlps = PAGE / f->topo->max_payload;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++) {
		struct passed before[3], after[3];
		char name[16];
		pid_t pid;

		snprintf(name, sizeof(name), "%s", places[k]);
		steps_reset();
		pid = cluster_fork(f->cluster, BORROWER, drive_writes, name);
		step_await(0);
		for (unsigned h = 0; h < 3; h++)
			before[h] = passed(f, 4 * (h + 1));
		step_done(1);
		step_await(2);
		for (unsigned h = 0; h < 3; h++)
			after[h] = passed(f, 4 * (h + 1));
		step_done(3);
		assert_int_equal(cluster_wait(pid), 0);
		for (unsigned h = 0; h < 3; h++) {
			bool data = route_passes(f, name, h), completions = h < 2;

			assert_int_equal(after[h].tlps - before[h].tlps,
					 COMMANDS * (data * tlps + completions));
			assert_int_equal(after[h].bytes - before[h].bytes,
					 COMMANDS * (data * PAGE + completions * CQE));
		}
	}
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

	*e = (struct engine){.t = take(sd, name, SCI_FLAG_EXCLUSIVE)};
	e->bar = connect_bar(e->t.device, SIO_MEMDEV_BAR_REGISTERS);
	e->regs = SCIMapRemoteSegment(e->bar, &e->map, 0, 2 * PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE,
				      &error);
	CHECK_OK(error);
	CHECK(sio_read32(e->regs + SIO_MEMDEV_MAGIC) == SIO_MEMDEV_MAGIC_VALUE);
	CHECK(sio_read32(e->regs + SIO_MEMDEV_RAM_BYTES) == 16 * PAGE);
	SCICreateSegment(sd, &e->memory, 0, PAGE, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	SCIPrepareSegment(e->memory, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(e->memory, 0, 0, &error);
	CHECK_OK(error);
	e->ring = SCIMapLocalSegment(e->memory, &e->ring_map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapLocalSegmentForDevice(e->memory, 0, e->t.device, &e->ring_at, 0, PAGE, 0, &error);
	CHECK_OK(error);
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
	sci_error_t error;

	SCIUnmapLocalSegmentForDevice(e->memory, 0, e->t.device, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(e->ring_map, 0, &error);
	CHECK_OK(error);
	api_remove_segment(e->memory);
	drop(e->bar, e->map);
	leave(&e->t);
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
	source = take(sd, "far", 0);
	sink = take(sd, "here", 0);
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
	leave(&sink);
	leave(&source);
	engine_stop(&engine);
	api_end(sd);
	return 0;
}

static void a_device_reads_another_ones_memory(void **state)
{
	struct fixture *f = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned node = 4; node <= 12; node += 4)
		assert_int_equal(cluster_wait(cluster_fork(f->cluster, node, engine_copies, NULL)),
				 0);
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
	source = take(a.sd, "far", 0);
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
	leave(&source);
	engine_stop(&engine);
	drop(bar, map);
	admin_stop(&a);
	return 0;
}

/* Queues of all may lie there: it is for the registers' holder to give. */
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
	t = take(sd, "here", 0);
	bar = connect_bar(drive, 2);
	p = SCIMapRemoteSegment(bar, &map, 0, 16 * PAGE, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 4; i++)
		CHECK(get32(p + i * PAGE) == 0xffffffff);
	SCIMapRemoteSegmentForDevice(bar, t.device, &at, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	CHECK(at == 77);
	step_done(1);
	drop(bar, map);
	leave(&t);
	SCIReturnDevice(drive, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_drive_has_memory_for_its_manager(void **state)
{
	struct fixture *f = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned node = 4; node <= 12; node += 4) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(f->cluster, BORROWER, uses_drive_memory, NULL);
		b = cluster_fork(f->cluster, node, is_not_given_any, NULL);
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
	struct target t = take(sd, arg, 0);
	sci_remote_segment_t bar = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	sci_error_t error;
	sci_map_t map;

	SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(1);
	drop(bar, map);
	step_done(2);
	/* A device of the other one's has them now. */
	step_await(3);
	bar = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	step_done(4);
	step_await(5);
	SCIMapRemoteSegment(bar, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	drop(bar, map);
	leave(&t);
	api_end(sd);
	return 0;
}

static int asks_for_too_much(void *arg)
{
	static struct admin a;
	sci_remote_segment_t bar;
	struct target t;

	admin_start(&a);
	t = take(a.sd, arg, 0);
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
	drop(bar, NULL);
	leave(&t);
	admin_stop(&a);
	return 0;
}

static void what_the_borrower_may_not_write_is_refused(void **state)
{
	struct fixture *f = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++) {
		char name[16];
		pid_t a, b;

		snprintf(name, sizeof(name), "%s", places[k]);
		steps_reset();
		a = cluster_fork(f->cluster, 12, holds_registers, name);
		b = cluster_fork(f->cluster, BORROWER, asks_for_too_much, name);
		assert_int_equal(cluster_wait(b), 0);
		assert_int_equal(cluster_wait(a), 0);
	}
}

/* ---- what is cut ---- */

/* Without an IOMMU nothing stops a device inside of its host. */
static bool can_cut(const char *name)
{
	return with_iommu || strcmp(name, "beside") != 0;
}

/*
 * What was at @at is cut: with an IOMMU when we hear of why, else as soon as the drive's lender has
 * given its window back.
 */
static void is_cut(struct admin *a, sci_ioaddr_t at)
{
	uint64_t before = faults();

	do {
		identify_anyhow(a, at);
	} while (!with_iommu && faults() == before);
	CHECK(faults() > before);
}

/*
 * The doorbell is a fresh page after a reset; the RAM is zeroed, and stays where it is. Without an
 * IOMMU they are not mapped together: both lie in what one look-up entry shows.
 */
static int resets_the_target(void *arg)
{
	static struct admin a;
	sci_remote_segment_t bar;
	sci_ioaddr_t bell, ram;
	volatile uint8_t *p;
	struct target t;
	uint64_t before;
	sci_error_t error;
	sci_map_t map, regs;

	admin_start(&a);
	t = take(a.sd, arg, SCI_FLAG_EXCLUSIVE);
	bar = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	SCIMapRemoteSegment(bar, &regs, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	ram = map_for(t.bar, a.device, PAGE, PAGE);
	identify(&a, ram);
	CHECK(is_identity(t.ram));
	if (!with_iommu)
		unmap_for(t.bar, a.device);
	bell = map_for(bar, a.device, PAGE, PAGE);
	before = faults();
	identify(&a, bell);
	CHECK(faults() == before);
	smartio_device_reset(t.device, &error);
	CHECK_OK(error);
	CHECK(get32(t.ram) == 0);
	p = SCIMapRemoteSegment(bar, &map, PAGE, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(p) == 0);
	if (can_cut(arg)) {
		is_cut(&a, bell);
		put32(p + 8, 0x600d);
		SCIFlush(NULL, 0);
		is_cut(&a, bell);
		CHECK(get32(p + 8) == 0x600d);
	}
	if (!with_iommu)
		ram = map_for(t.bar, a.device, PAGE, PAGE);
	identify(&a, ram);
	CHECK(is_identity(t.ram));
	/* It can be mapped again, beside what is cut. */
	CHECK(map_for(bar, a.device, PAGE, PAGE) != bell || !with_iommu);
	unmap_for(bar, a.device);
	unmap_for(t.bar, a.device);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	drop(bar, regs);
	leave(&t);
	admin_stop(&a);
	return 0;
}

static void a_reset_of_the_target_cuts_its_doorbells(void **state)
{
	struct fixture *f = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++) {
		char name[16];

		snprintf(name, sizeof(name), "%s", places[k]);
		assert_int_equal(
			cluster_wait(cluster_fork(f->cluster, BORROWER, resets_the_target, name)),
			0);
	}
}

/* The drive's manager stays; who has mapped pages for the drive dies. */
static int dies_with_pages_mapped(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t drive = api_borrow(sd, 0);
	struct target t = take(sd, arg, 0);

	told->at = map_for(t.bar, drive, PAGE, PAGE);
	step_done(1);
	step_await(2);
	CHECK(is_identity(t.ram));
	kill(getpid(), SIGKILL);
	return 1;
}

static int drives_on(void *arg)
{
	struct smartio_device_event event;
	static struct admin a;
	uint64_t before;
	struct target t;
	sci_error_t error;

	admin_start(&a);
	SCIReleaseExclusiveBorrow(a.device, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(1);
	before = faults();
	identify(&a, told->at);
	CHECK(faults() == before);
	step_done(2);
	do { /* our own resets are told, too */
		smartio_wait_device_event(a.device, &event, SCI_INFINITE_TIMEOUT, &error);
		CHECK_OK(error);
	} while (event.kind == SMARTIO_DEVICE_RESET);
	CHECK(event.kind == SMARTIO_DEVICE_BORROWER_GONE);
	/* Its pages are another one's now, though nobody has settled anything. */
	t = take(a.sd, arg, SCI_FLAG_EXCLUSIVE);
	CHECK(get32(t.ram) == 0);
	if (can_cut(arg)) {
		is_cut(&a, told->at);
		put_all(t.ram, 0, PAGE);
		SCIFlush(NULL, 0);
		is_cut(&a, told->at);
		CHECK(get32(t.ram) == 0);
	}
	smartio_device_settled(a.device, event.borrower, &error);
	CHECK_OK(error);
	leave(&t);
	admin_stop(&a);
	return 0;
}

static void the_end_of_the_borrow_cuts(void **state)
{
	struct fixture *f = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++) {
		char name[16];
		pid_t a, b;

		snprintf(name, sizeof(name), "%s", places[k]);
		steps_reset();
		a = cluster_fork(f->cluster, BORROWER, drives_on, name);
		step_await(0);
		b = cluster_fork(f->cluster, BORROWER, dies_with_pages_mapped, name);
		assert_int_equal(cluster_wait(b), 128 + SIGKILL);
		assert_int_equal(cluster_wait(a), 0);
	}
}

static int loses_the_target(void *arg)
{
	struct smartio_device_event event;
	static struct admin a;
	sci_ioaddr_t at;
	struct target t;
	sci_error_t error;

	admin_start(&a);
	t = take(a.sd, arg, 0);
	at = map_for(t.bar, a.device, PAGE, PAGE);
	identify(&a, at);
	CHECK(is_identity(t.ram));
	step_done(0);
	smartio_wait_device_event(t.device, &event, SCI_INFINITE_TIMEOUT, &error);
	CHECK_OK(error);
	CHECK(event.kind == SMARTIO_DEVICE_LOST);
	step_await(1); /* it is back, as another one */
	if (can_cut(arg))
		is_cut(&a, at);
	CHECK(get32(t.ram) == 0xffffffff);
	SCIMapRemoteSegmentForDevice(t.bar, a.device, &at, PAGE, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	unmap_for(t.bar, a.device);
	leave(&t);
	t = take(a.sd, arg, 0);
	CHECK(get32(t.ram) == 0);
	leave(&t);
	admin_stop(&a);
	return 0;
}

static void a_target_that_goes_is_cut(void **state)
{
	struct fixture *f = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++) {
		char name[16];
		pid_t a;

		snprintf(name, sizeof(name), "%s", places[k]);
		steps_reset();
		a = cluster_fork(f->cluster, BORROWER, loses_the_target, name);
		step_await(0);
		assert_int_equal(cluster_slot(f->cluster, name, false), 0);
		assert_int_equal(cluster_slot(f->cluster, name, true), 0);
		step_done(1);
		assert_int_equal(cluster_wait(a), 0);
	}
}

static int loses_the_host(void *arg)
{
	struct smartio_device_event event;
	static struct admin a;
	sci_ioaddr_t at;
	struct target t;
	sci_error_t error;

	admin_start(&a);
	t = take(a.sd, arg, 0);
	at = map_for(t.bar, a.device, PAGE, PAGE);
	identify(&a, at);
	step_done(0);
	smartio_wait_device_event(t.device, &event, SCI_INFINITE_TIMEOUT, &error);
	CHECK_OK(error);
	CHECK(event.kind == SMARTIO_DEVICE_LOST);
	step_await(1);
	is_cut(&a, at);
	unmap_for(t.bar, a.device);
	leave(&t);
	t = take(a.sd, arg, 0);
	CHECK(get32(t.ram) == 0);
	at = map_for(t.bar, a.device, PAGE, PAGE);
	identify(&a, at);
	CHECK(is_identity(t.ram));
	unmap_for(t.bar, a.device);
	leave(&t);
	admin_stop(&a);
	return 0;
}

static void a_host_or_link_that_goes_is_cut(void **state)
{
	struct fixture *f = *state;
	char name[] = "far";

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < 2; k++) {
		pid_t a;

		steps_reset();
		a = cluster_fork(f->cluster, BORROWER, loses_the_host, name);
		step_await(0);
		if (k == 0) {
			cluster_crash(f->cluster, 12);
			assert_int_equal(cluster_restart(f->cluster, 12, 4), 0);
			assert_int_equal(cluster_reaches(f->cluster, 8), 0);
		} else {
			assert_int_equal(cluster_link(f->cluster, 12, 0, false), 0);
			assert_int_equal(cluster_link(f->cluster, 12, 0, true), 0);
			assert_int_equal(cluster_reaches(f->cluster, 4), 0);
			assert_int_equal(cluster_reaches(f->cluster, 8), 0);
		}
		step_done(1);
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
		cmocka_unit_test_teardown(a_reset_of_the_target_cuts_its_doorbells, audit),
		cmocka_unit_test_teardown(the_end_of_the_borrow_cuts, audit),
		cmocka_unit_test_teardown(a_target_that_goes_is_cut, audit),
		cmocka_unit_test_teardown(a_host_or_link_that_goes_is_cut, audit),
	};
	int failed = cmocka_run_group_tests_name("with IOMMUs", tests, up_with, down);

	return failed + cmocka_run_group_tests_name("without", tests, up_without, down);
}
