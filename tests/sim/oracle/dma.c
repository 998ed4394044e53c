/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What devices do to memory, against what programs asked for; no daemon and no table of the room is
 * believed. Whatever a drive reads and writes lies where a call of a program said that something is
 * mapped for it, and none said since that it is not any more. Nothing that a device sent arrives in
 * memory that was freed meanwhile, hosts that lose each other or not. And as long as nobody lies
 * about addresses, and no host loses another, nothing is refused.
 *
 * The calls are seen where they leave programs and driver for the library (--wrap).
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "fabric/fabric.h"
#include "run/run.h"
#include "sisci/dma/queue.h"
#include "sisci/segment/segment.h"
#include "smartio/ext.h"
#include "smartio/uapi.h"
#include "run/listener.h"
#include "oracle/device.h"

#define NOBODY 0u /* no process */

/* A program was notified that the device has @size bytes of @segment at @from. */
struct told {
	uint32_t pid, fdid;
	const void *segment, *device; /* the program's handles */
	uint64_t from, size;
	uint64_t mem;	   /* which memory the device found there first; 0: it made no access */
	bool bar;	   /* pages of another device, which are taken away when that device is */
	uint64_t given_up; /* sessions that the program had ended by then */
	struct told *prev, *next;
};

/* A program's handle of a device. */
struct handle {
	uint32_t pid, fdid;
	const void *device;
	struct handle *prev, *next;
};

static struct told *all;
static struct handle *handles;

/* ---- what programs are notified of ---- */
static void borrowed(const sci_smartio_device_t *device, unsigned fdid, sci_error_t error)
{
	struct handle *h;

	if (error != SCI_ERR_OK)
		return;
	h = calloc(1, sizeof(*h));
	assert(h);
	*h = (struct handle){.pid = sim_self()->pid, .fdid = fdid, .device = *device};
	DL_PREPEND(handles, h);
}

void __real_SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
			    unsigned int flags, sci_error_t *error);
void __wrap_SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
			    unsigned int flags, sci_error_t *error);

void __wrap_SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
			    unsigned int flags, sci_error_t *error)
{
	__real_SCIBorrowDevice(sd, device, fdid, flags, error);
	borrowed(device, fdid, *error);
}

void __real_smartio_borrow_device_over(sci_desc_t sd, sci_smartio_device_t *device,
				       unsigned int fdid, unsigned int adapter, unsigned int flags,
				       sci_error_t *error);
void __wrap_smartio_borrow_device_over(sci_desc_t sd, sci_smartio_device_t *device,
				       unsigned int fdid, unsigned int adapter, unsigned int flags,
				       sci_error_t *error);

void __wrap_smartio_borrow_device_over(sci_desc_t sd, sci_smartio_device_t *device,
				       unsigned int fdid, unsigned int adapter, unsigned int flags,
				       sci_error_t *error)
{
	__real_smartio_borrow_device_over(sd, device, fdid, adapter, flags, error);
	borrowed(device, fdid, *error);
}

uint32_t sim_device_fdid(const void *device)
{
	const struct handle *h;

	DL_FOREACH (handles, h)
		if (h->pid == sim_self()->pid && h->device == device)
			return h->fdid;
	return 0;
}

static void note(const void *segment, const void *device, uint64_t from, uint64_t size, bool bar)
{
	struct told *t = calloc(1, sizeof(*t));

	assert(t);
	*t = (struct told){.pid = sim_self()->pid,
			   .fdid = sim_device_fdid(device),
			   .segment = segment,
			   .device = device,
			   .from = from,
			   .size = size,
			   .bar = bar,
			   .given_up = sim_self()->given_up};
	DL_PREPEND(all, t);
}

/*
 * @device NULL: of all devices. Of one that is lost the program alone says so: until its lender
 * ends the quarantine, the device has it, as that of a dead one.
 */
static void forget(const void *segment, sci_smartio_device_t device)
{
	struct told *t, *next;
	bool lost = device && smartio_device_lost(device);

	DL_FOREACH_SAFE (all, t, next) {
		if (t->pid != sim_self()->pid || t->segment != segment ||
		    (device && t->device != device))
			continue;
		if (lost) {
			t->pid = NOBODY;
			continue;
		}
		DL_DELETE(all, t);
		free(t);
	}
}

/* The drive was reset: it has none of the addresses any more that it was given before. */
static void forget_dead(uint32_t fdid)
{
	struct told *t, *next;

	DL_FOREACH_SAFE (all, t, next) {
		if (t->fdid != fdid || sim_living(t->pid))
			continue;
		DL_DELETE(all, t);
		free(t);
	}
}

#define WRAP(name, params)                                                                         \
	void __real_##name params;                                                                 \
	void __wrap_##name params;                                                                 \
	void __wrap_##name params

WRAP(SCIMapLocalSegmentForDevice,
     (sci_local_segment_t segment, unsigned int adapter, sci_smartio_device_t device,
      sci_ioaddr_t *ioaddr, size_t offset, size_t size, unsigned int flags, sci_error_t *error))
{
	__real_SCIMapLocalSegmentForDevice(segment, adapter, device, ioaddr, offset, size, flags,
					   error);
	if (*error == SCI_ERR_OK)
		note(segment, device, *ioaddr, size, false);
}

static bool is_bar(const void *segment)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_remote_segment *seg =
		lib ? sio_object_get(lib, segment, SIO_REMOTE_SEGMENT, &err) : NULL;
	bool bar = seg && seg->is_bar;

	if (seg)
		sio_object_put(&seg->o);
	return bar;
}

WRAP(SCIMapRemoteSegmentForDevice,
     (sci_remote_segment_t segment, sci_smartio_device_t device, sci_ioaddr_t *ioaddr,
      size_t offset, size_t size, unsigned int flags, sci_error_t *error))
{
	__real_SCIMapRemoteSegmentForDevice(segment, device, ioaddr, offset, size, flags, error);
	if (*error == SCI_ERR_OK)
		note(segment, device, *ioaddr, size, is_bar(segment));
}

WRAP(SCIUnmapLocalSegmentForDevice,
     (sci_local_segment_t segment, unsigned int adapter, sci_smartio_device_t device,
      unsigned int flags, sci_error_t *error))
{
	__real_SCIUnmapLocalSegmentForDevice(segment, adapter, device, flags, error);
	if (*error == SCI_ERR_OK)
		forget(segment, device);
}

WRAP(SCIUnmapRemoteSegmentForDevice, (sci_remote_segment_t segment, sci_smartio_device_t device,
				      unsigned int flags, sci_error_t *error))
{
	__real_SCIUnmapRemoteSegmentForDevice(segment, device, flags, error);
	if (*error == SCI_ERR_OK)
		forget(segment, device);
}

/* A word that ends quarantines: who may not say it changed nothing; with other errors who knows. */
static void answered(uint32_t fdid, sci_error_t e)
{
	sim_note_settled(fdid, e);
}

WRAP(smartio_device_reset, (sci_smartio_device_t device, sci_error_t *error))
{
	uint32_t fdid = sim_device_fdid(device);

	sim_note_settles(fdid, SMARTIO_ALL_BORROWERS, true);
	__real_smartio_device_reset(device, error);
	answered(fdid, *error);
	if (*error == SCI_ERR_OK)
		forget_dead(fdid);
}

WRAP(smartio_device_settled, (sci_smartio_device_t device, uint64_t borrower, sci_error_t *error))
{
	uint32_t fdid = sim_device_fdid(device);

	sim_note_settles(fdid, borrower, false);
	__real_smartio_device_settled(device, borrower, error);
	answered(fdid, *error);
}

/* ---- what programs have engines do ---- */
/*
 * The library rings for a transfer that it has just handed to the engine, or gives up. All that
 * were handed to it before on that queue are over, as the ring's memory says.
 */
WRAP(sio_dma_ring, (struct sio_dma_queue * q))
{
	struct fabric_view v = fabric_look(&q->ring->done, sizeof(q->ring->done), false);
	uint32_t done;

	if (v.mem) {
		memcpy(&done, v.mem->bytes + v.offset, sizeof(done));
		if ((int32_t)(q->number - done) > 1)
			sim_fail("dma", "%s: a DMA queue that is posted took another transfer",
				 sim_self()->name);
	}
	__real_sio_dma_ring(q);
}

/* ---- accesses of devices ---- */
/* On purpose: the workload that lies sees to the rest. */
static bool somebody_lies(void)
{
	return sim_wild.commands + sim_wild.queues + sim_wild.lies > 0;
}

bool sim_liars_device(uint32_t fdid)
{
	return sim_liar() < sim_hosts() && sio_topology_fdid_node(fdid) == sim_node(sim_liar());
}

/* The last report about these addresses. */
static struct told *find(const struct sio_topo_device *device, uint64_t at, size_t len)
{
	struct told *t;

	DL_FOREACH (all, t)
		if (t->fdid == device->fdid && at >= t->from && len <= t->size &&
		    at - t->from <= t->size - len)
			return t;
	return NULL;
}

static void accessed(const struct sio_topo_device *device, uint64_t at, size_t len, bool write)
{
	sim_result.dma++;
	/* Its lender says, and lies, where it reaches what; the room judges whose that is. */
	if (!find(device, at, len) && !somebody_lies() && !sim_liars_device(device->fdid))
		sim_fail("dma", "%s %s %zu bytes at %#llx: no program asked for that to be mapped",
			 device->name, write ? "writes" : "reads", len, (unsigned long long)at);
}

/*
 * Without an IOMMU at either end nothing takes the pages of a device away from another one: where
 * they were cut, it reaches what comes there next.
 */
static bool cannot_be_cut(const struct told *t, const struct fabric_mem *mem)
{
	const uint32_t node = sio_topology_fdid_node(t->fdid);
	const struct sio_topo_host *h = sim_cluster->topology->host;

	if (!t->bar || h[mem->host].iommu)
		return false;
	while (h->node != node)
		h++;
	return !h->iommu;
}

/* Mapped memory does not become another program's while the device has its address. */
static void reached(const struct sio_topo_device *device, uint64_t at, size_t len,
		    const struct fabric_mem *mem)
{
	struct told *t = find(device, at, len);
	struct fabric_view v = {(struct fabric_mem *)mem, 0};

	if (!t || somebody_lies() || sim_liars_device(device->fdid))
		return;
	/* NOBODY's may have been settled since, and be somebody's who does not know it yet. */
	if (t->mem && t->mem != mem->number && t->pid != NOBODY && !cannot_be_cut(t, mem))
		sim_fail("dma", "%s: at %#llx was memory %llu, and is %s", device->name,
			 (unsigned long long)at, (unsigned long long)t->mem, fabric_where(&v));
	t->mem = mem->number;
}

/*
 * A borrower's host that lost the lender takes its memory back at once if it has an IOMMU, and what
 * the device still does is refused, for the address is nobody else's. Without one it keeps the
 * memory until the device cannot reach it.
 */
bool sim_may_lose_borrowers(void)
{
	return sim_has_pullers() || sim_has_fault("link") || sim_has_fault("between") ||
	       sim_has_fault("anew") || sim_has_fault("crash") || sim_has_fault("cut") ||
	       sim_has_fault("delay") || sim_has_fault("liar");
}

/* Seen where it arrives; the room translates it when the drive's model writes, which is earlier. */
static bool refused_at_the_end(const struct fabric_post *post)
{
	return sim_may_lose_borrowers() && sim_cluster->topology->host[post->host].iommu;
}

/* With a host that crashed, or a device that was pulled out, goes what is in flight to it. */
static void freed(const struct fabric_post *post)
{
	struct fabric_view v = {post->mem, post->offset};

	/* A manager that lies has drives use queues again that their clients have closed. */
	if (!post->mem->gone && !refused_at_the_end(post) && sim_wild.lies == sim_wild.guarded)
		sim_fail("dma", "what a device sent arrives at %s, which was freed",
			 fabric_where(&v));
}

/* The path is gone, or the IOMMU at its other end has forgotten the device. */
static bool refused_for_a_loss(const struct sio_evt_fault *f)
{
	static const char *const reason[] = {"in the IOMMU domain of adapter", "the path ",
					     "the look-up entry is of start ", " is off"};

	for (unsigned i = 0; i < sizeof(reason) / sizeof(reason[0]); i++)
		if (strstr(f->reason, reason[i]))
			return sim_may_lose_borrowers();
	return false;
}

/* An address on a host that lies may lead elsewhere than it said. */
static bool ends_at_the_liar(const struct sio_evt_fault *f)
{
	return sim_liar() < sim_hosts() && f->node == sim_node(sim_liar());
}

/*
 * Is the program that was told this still the one that has it? One that ended its session, because
 * smartiod did not answer in time or did not take it back, has lost both devices as if it had died.
 */
static bool has_ended(const struct told *t)
{
	const struct sim_proc *p = sim_living(t->pid);

	return !p || p->given_up != t->given_up;
}

/*
 * The pages of another device were taken away under the mapping: with that device, or with the
 * program that had it, whose own device goes on for a while.
 */
static bool refused_for_a_cut(const struct sio_evt_fault *f)
{
	const bool any = sim_has_fault("removal") || sim_may_lose_borrowers();
	const struct told *t;

	DL_FOREACH (all, t)
		if (t->bar && (any || has_ended(t)) && t->fdid == f->device &&
		    f->address >= t->from && f->address - t->from < t->size)
			return true;
	return false;
}

static void refused(unsigned host, const struct sio_evt_fault *f)
{
	if (!somebody_lies() && !ends_at_the_liar(f) && host != sim_liar() &&
	    !refused_for_a_loss(f) && !refused_for_a_cut(f) && !sim_fault_acts())
		sim_fail("dma", "node %u: an access of %llu bytes at %#llx is refused: %s",
			 sim_node(host), (unsigned long long)f->length,
			 (unsigned long long)f->address, f->reason);
}

static void start(void)
{
	all = NULL;
	handles = NULL;
	sim_on_refusal = refused;
	fabric_on_freed = freed;
	fabric_on_dma = accessed;
	fabric_on_reached = reached;
}

const struct sim_oracle sim_oracle_dma = {.name = "dma", .start = start};
