/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "error.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define CLASS_NVME 0x010802u /* mass storage, non-volatile memory, NVM Express */
#define FIRST_SEGMENT 0x4e000000u
#define TRIES_TO_FREE 200 /* milliseconds that others may still be using what we free */

uint64_t sio_nvme_deadline(uint64_t ms)
{
	return smartio_now_ns() + ms * 1000000u;
}

void sio_nvme_pause(unsigned *n)
{
	sci_error_t err;

	if ((*n)++ < 1000)
		smartio_yield();
	else
		smartio_wait_events(NULL, NULL, 1, &err);
}

void sio_nvme_wake(sci_map_t map, const volatile uint32_t *sleeps)
{
	if (!sleeps)
		return;
	/*
	 * Either the drive finds the store in its last look, or we find the word set: pairs with
	 * the barrier in emu_watches_doze().
	 */
	sio_full_barrier();
	if (sio_read32(sleeps))
		smartio_map_wake(map);
}

static sci_error_t query(unsigned fdid, sci_smartio_device_info_t *ret)
{
	sci_smartio_query_device_t q = {.fdid = fdid, .subcommand = SCI_Q_DEVICE_INFO, .data = ret};
	sci_error_t err;

	SCIQuery(SCI_Q_DEVICE, &q, 0, &err);
	return err;
}

bool sio_nvme_is_drive(const char *name)
{
	sci_smartio_device_info_t info = {0};
	unsigned fdid = 0;
	sci_error_t err;

	smartio_find_device(name, &fdid, &err);
	return err == SCI_ERR_OK && query(fdid, &info) == SCI_ERR_OK &&
	       info.pci_class == CLASS_NVME;
}

int sio_nvme_device_query(struct sio_nvme_device *d)
{
	sci_smartio_device_info_t info = {0};
	sci_error_t err = query(d->fdid, &info);

	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot ask what it is", d->name);
	if (info.pci_class != CLASS_NVME)
		return sio_nvme_fail(-ENOTSUP,
				     "%s is not an NVMe drive: its class is %#06x, not %#06x",
				     d->name, info.pci_class, CLASS_NVME);
	if (info.user_name[0])
		snprintf(d->name, sizeof(d->name), "%.63s", info.user_name);
	d->adapter = d->over ? d->over - 1 : info.adapter;
	d->lender = info.nodeid;
	SCIGetLocalNodeId(d->adapter, &d->node, 0, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "adapter %u", d->adapter);
	return 0;
}

int sio_nvme_device_find(struct sio_nvme_device *d, const char *name)
{
	sci_error_t err;
	int rc;

	memset(d, 0, sizeof(*d));
	d->next_segment = FIRST_SEGMENT;
	if (!name || !*name)
		return sio_nvme_fail(-EINVAL, "no device name given");
	snprintf(d->name, sizeof(d->name), "%s", name);
	smartio_find_device(name, &d->fdid, &err);
	if (err == SCI_ERR_NO_SUCH_FDID)
		return sio_nvme_fail(-ENODEV, "%s", smartio_last_error());
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s", d->name);
	rc = sio_nvme_device_query(d);
	if (rc)
		return rc;
	SCIOpen(&d->sd, 0, &err);
	if (err != SCI_ERR_OK) {
		d->sd = NULL;
		return sio_nvme_fail_sci(err, "%s", d->name);
	}
	return 0;
}

static bool leads_nowhere(sci_error_t err)
{
	return err == SCI_ERR_NO_SUCH_NODEID || err == SCI_ERR_NO_LINK_ACCESS ||
	       err == SCI_ERR_NO_REMOTE_LINK_ACCESS;
}

static sci_error_t borrow(struct sio_nvme_device *d, unsigned flags)
{
	sci_error_t err;

	if (d->over)
		smartio_borrow_device_over(d->sd, &d->handle, d->fdid, d->over - 1, flags, &err);
	else
		SCIBorrowDevice(d->sd, &d->handle, d->fdid, flags, &err);
	return err;
}

/* That way is closed since we asked for it; perhaps another one is open. */
static bool choose_another(struct sio_nvme_device *d)
{
	d->over = 0;
	if (sio_nvme_device_query(d))
		return false;
	d->over = d->adapter + 1;
	return true;
}

int sio_nvme_device_borrow(struct sio_nvme_device *d, unsigned flags)
{
	sci_error_t err = borrow(d, flags);

	if (d->over && !d->mends && leads_nowhere(err) && choose_another(d))
		err = borrow(d, flags);
	if (err == SCI_ERR_OK)
		return 0;
	d->handle = NULL;
	if (err == SCI_ERR_NO_SUCH_FDID)
		return sio_nvme_fail(-ENODEV, "no device is called %s", d->name);
	return sio_nvme_fail_sci(err, "%s: cannot borrow it%s", d->name,
				 flags & SCI_FLAG_EXCLUSIVE ? " exclusively" : "");
}

void sio_nvme_device_return(struct sio_nvme_device *d)
{
	sci_error_t err;

	if (d->handle)
		SIO_NVME_UNTIL_FREE(err, SCIReturnDevice(d->handle, 0, &err));
	d->handle = NULL;
}

bool sio_nvme_device_done(struct sio_nvme_device *d)
{
	bool all = true;
	sci_error_t err;

	if (d->handle) {
		SIO_NVME_UNTIL_FREE(err, SCIReturnDevice(d->handle, 0, &err));
		all = err != SCI_ERR_BUSY;
	}
	d->handle = NULL;
	if (d->sd)
		SCIClose(d->sd, 0, &err);
	d->sd = NULL;
	return all;
}

sci_error_t sio_nvme_connect(struct sio_nvme_device *d, unsigned node, unsigned number,
			     sci_remote_data_interrupt_t *ret)
{
	sci_error_t first, err;

	SCIConnectDataInterrupt(d->sd, ret, node, d->adapter, number, SCI_INFINITE_TIMEOUT, 0,
				&first);
	for (unsigned i = 0; i < DIS_MAX_NSCIS && leads_nowhere(first); i++) {
		if (i == d->adapter)
			continue;
		SCIConnectDataInterrupt(d->sd, ret, node, i, number, SCI_INFINITE_TIMEOUT, 0, &err);
		if (err == SCI_ERR_NO_SUCH_ADAPTERNO)
			break;
		if (!leads_nowhere(err))
			return err;
	}
	return first;
}

bool sio_nvme_not_yet_free(sci_error_t err, unsigned tries)
{
	sci_error_t ignored;

	if ((err != SCI_ERR_BUSY && err != SCI_ERR_NOSPC) || tries == TRIES_TO_FREE)
		return false;
	smartio_wait_events(NULL, NULL, 1, &ignored);
	return true;
}

void sio_nvme_mem_done(struct sio_nvme_mem *mem)
{
	struct sio_nvme_device *d = mem->d;
	sci_error_t err;

	if (mem->reachable && mem->remote)
		SIO_NVME_UNTIL_FREE(
			err, SCIUnmapRemoteSegmentForDevice(mem->remote, d->handle, 0, &err));
	if (mem->reachable && mem->local)
		SIO_NVME_UNTIL_FREE(err, SCIUnmapLocalSegmentForDevice(mem->local, mem->adapter,
								       d->handle, 0, &err));
	if (mem->map)
		SCIUnmapSegment(mem->map, 0, &err);
	if (mem->remote)
		SIO_NVME_UNTIL_FREE(err, SCIDisconnectSegment(mem->remote, 0, &err));
	if (mem->other)
		SIO_NVME_UNTIL_FREE(err, SCIReturnDevice(mem->other, 0, &err));
	if (mem->local && mem->available)
		SIO_NVME_UNTIL_FREE(err,
				    SCISetSegmentUnavailable(mem->local, mem->adapter, 0, &err));
	if (mem->local)
		SIO_NVME_UNTIL_FREE(err, SCIRemoveSegment(mem->local, 0, &err));
	memset(mem, 0, sizeof(*mem));
}

static int check_ioaddr(struct sio_nvme_mem *mem, sci_ioaddr_t ioaddr)
{
	mem->reachable = true;
	mem->ioaddr = ioaddr;
	if (ioaddr % SIO_NVME_PAGE)
		return sio_nvme_fail(-EIO,
				     "%s: memory was mapped at %#" PRIx64
				     " for it, which is not the start of a page",
				     mem->d->name, mem->ioaddr);
	return 0;
}

static int connect_memory(struct sio_nvme_device *d, unsigned id, unsigned memtype,
			  struct sio_nvme_mem *mem)
{
	sci_error_t err;

	SCIConnectDeviceSegment(d->handle, &mem->remote, id, memtype, NULL, NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		mem->remote = NULL;
		return sio_nvme_fail_sci(err, "%s: cannot connect queue memory", d->name);
	}
	if (SCIGetRemoteSegmentSize(mem->remote) < mem->size)
		return sio_nvme_fail(-EPROTO, "%s: queue memory has %zu bytes, not %zu", d->name,
				     SCIGetRemoteSegmentSize(mem->remote), mem->size);
	mem->at = SCIMapRemoteSegment(mem->remote, &mem->map, 0, mem->size, NULL, 0, &err);
	if (err == SCI_ERR_OK)
		return 0;
	mem->map = NULL;
	return sio_nvme_fail_sci(err, "%s: cannot map queue memory", d->name);
}

static int mem_device(struct sio_nvme_device *d, unsigned id, unsigned memtype,
		      struct sio_nvme_mem *mem)
{
	sci_ioaddr_t ioaddr;
	sci_error_t err;
	int rc;

	SCICreateDeviceSegment(d->handle, id, mem->size, memtype, mem->hints, mem->flags, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: no queue memory of %zu bytes", d->name,
					 mem->size);
	rc = connect_memory(d, id, memtype, mem);
	if (rc)
		return rc;
	SCIMapRemoteSegmentForDevice(mem->remote, d->handle, &ioaddr, 0, mem->size, 0, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot reach queue memory of %zu bytes", d->name,
					 mem->size);
	return check_ioaddr(mem, ioaddr);
}

static int mem_bar(struct sio_nvme_device *d, const char *name, unsigned bar, unsigned flags,
		   size_t offset, struct sio_nvme_mem *mem)
{
	unsigned fdid = 0;
	sci_ioaddr_t ioaddr;
	sci_error_t err;

	smartio_find_device(name, &fdid, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "no device '%s'", name);
	SCIBorrowDevice(d->sd, &mem->other, fdid, flags, &err);
	if (err != SCI_ERR_OK) {
		mem->other = NULL;
		return sio_nvme_fail_sci(err, "%s cannot be borrowed", name);
	}
	SCIConnectDeviceSegment(mem->other, &mem->remote, bar, SCI_MEMTYPE_BAR, NULL, NULL, 0,
				&err);
	if (err != SCI_ERR_OK) {
		mem->remote = NULL;
		return sio_nvme_fail_sci(err, "cannot connect BAR %u of %s", bar, name);
	}
	mem->at = SCIMapRemoteSegment(mem->remote, &mem->map, offset, mem->size, NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		mem->map = NULL;
		return sio_nvme_fail_sci(err, "cannot map %zu bytes at %#zx of BAR %u of %s",
					 mem->size, offset, bar, name);
	}
	SCIMapRemoteSegmentForDevice(mem->remote, d->handle, &ioaddr, offset, mem->size, 0, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s cannot reach %zu bytes at %#zx of BAR %u of %s",
					 d->name, mem->size, offset, bar, name);
	return check_ioaddr(mem, ioaddr);
}

/* Whole pages; false: none, or more than can be addressed. */
static bool round_up(size_t size, size_t *ret)
{
	if (size == 0 || __builtin_add_overflow(size, SIO_NVME_PAGE - 1, ret))
		return false;
	*ret &= ~(size_t)(SIO_NVME_PAGE - 1);
	return true;
}

static int make_device(struct sio_nvme_device *d, unsigned id, unsigned memtype, size_t size,
		       unsigned hints, unsigned flags, struct sio_nvme_mem *mem)
{
	int rc;

	memset(mem, 0, sizeof(*mem));
	mem->d = d;
	mem->hints = hints;
	mem->flags = flags;
	if (!round_up(size, &mem->size))
		return sio_nvme_fail(
			-EINVAL,
			"%s: memory of %zu bytes; at least 1 byte, in the address space, "
			"is right",
			d->name, size);
	rc = mem_device(d, id, memtype, mem);
	if (rc)
		sio_nvme_mem_done(mem);
	return rc;
}

int sio_nvme_mem_device(struct sio_nvme_device *d, size_t size, unsigned hints, unsigned flags,
			struct sio_nvme_mem *mem)
{
	unsigned id = __atomic_fetch_add(&d->next_segment, 1, __ATOMIC_RELAXED);

	return make_device(d, id, SCI_MEMTYPE_PRIVATE, size, hints, flags, mem);
}

int sio_nvme_mem_lasting(struct sio_nvme_device *d, unsigned id, size_t size, unsigned hints,
			 struct sio_nvme_mem *mem)
{
	return make_device(d, id, SCI_MEMTYPE_SHARED, size, hints, SMARTIO_FLAG_LASTING, mem);
}

int sio_nvme_mem_again(struct sio_nvme_device *d, unsigned id, size_t size, uint64_t ioaddr,
		       struct sio_nvme_mem *mem)
{
	int rc;

	memset(mem, 0, sizeof(*mem));
	mem->d = d;
	mem->size = size;
	mem->ioaddr = ioaddr;
	rc = connect_memory(d, id, SCI_MEMTYPE_SHARED, mem);
	if (rc)
		sio_nvme_mem_done(mem);
	return rc;
}

int sio_nvme_mem_bar(struct sio_nvme_device *d, const char *name, unsigned bar, unsigned flags,
		     size_t offset, size_t size, struct sio_nvme_mem *mem)
{
	int rc;

	memset(mem, 0, sizeof(*mem));
	mem->d = d;
	if (offset % SIO_NVME_PAGE || !round_up(size, &mem->size))
		return sio_nvme_fail(-EINVAL,
				     "%zu bytes at %#zx of a BAR; whole pages, one at least, are "
				     "right",
				     size, offset);
	rc = mem_bar(d, name, bar, flags, offset, mem);
	if (rc)
		sio_nvme_mem_done(mem);
	return rc;
}

static sci_error_t map_over(struct sio_nvme_device *d, struct sio_nvme_mem *mem, unsigned adapter,
			    sci_ioaddr_t *ret)
{
	sci_error_t err, ignored;

	SCIPrepareSegment(mem->local, adapter, 0, &err);
	if (err == SCI_ERR_OK)
		SCISetSegmentAvailable(mem->local, adapter, 0, &err);
	if (err != SCI_ERR_OK)
		return err;
	SCIMapLocalSegmentForDevice(mem->local, adapter, d->handle, ret, 0, mem->size, 0, &err);
	if (err != SCI_ERR_OK)
		SCISetSegmentUnavailable(mem->local, adapter, 0, &ignored);
	return err;
}

/* By the adapter that leads to the drive. */
static sci_error_t map_local(struct sio_nvme_device *d, struct sio_nvme_mem *mem, sci_ioaddr_t *ret)
{
	sci_error_t err;

	mem->adapter = d->adapter;
	err = map_over(d, mem, mem->adapter, ret);
	mem->available = err == SCI_ERR_OK;
	return err;
}

int sio_nvme_reach_open(struct sio_nvme_device *d, struct sio_nvme_mem *mem,
			struct sio_nvme_reach *reach)
{
	sci_ioaddr_t ioaddr;
	sci_error_t err;

	reach->adapter = d->adapter;
	err = map_over(d, mem, reach->adapter, &ioaddr);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot reach memory of %zu bytes by adapter %u",
					 d->name, mem->size, reach->adapter);
	reach->reachable = true;
	reach->ioaddr = ioaddr;
	return 0;
}

void sio_nvme_reach_close(struct sio_nvme_device *d, struct sio_nvme_mem *mem,
			  struct sio_nvme_reach *reach)
{
	sci_error_t err;

	if (!reach->reachable)
		return;
	SIO_NVME_UNTIL_FREE(
		err, SCIUnmapLocalSegmentForDevice(mem->local, reach->adapter, d->handle, 0, &err));
	SIO_NVME_UNTIL_FREE(err, SCISetSegmentUnavailable(mem->local, reach->adapter, 0, &err));
	reach->reachable = false;
}

void sio_nvme_mem_part(struct sio_nvme_mem *mem)
{
	struct sio_nvme_reach reach = {.adapter = mem->adapter, .reachable = mem->reachable};

	sio_nvme_reach_close(mem->d, mem, &reach);
	mem->reachable = mem->available = false;
}

int sio_nvme_mem_join(struct sio_nvme_mem *mem)
{
	struct sio_nvme_reach reach = {.reachable = false};
	int rc = sio_nvme_reach_open(mem->d, mem, &reach);

	mem->reachable = mem->available = reach.reachable;
	mem->adapter = reach.adapter;
	mem->ioaddr = reach.ioaddr;
	return rc;
}

static bool is_lost_way(const struct sio_nvme_device *d)
{
	return d->mends && (!d->handle || smartio_device_lost(d->handle));
}

/* A segment of this host's memory that the CPU has at mem->at. */
static int make_local(struct sio_nvme_device *d, struct sio_nvme_mem *mem)
{
	sci_error_t err;

	SCICreateSegment(d->sd, &mem->local, FIRST_SEGMENT | (smartio_random() & 0xffff00),
			 mem->size, NULL, NULL, SCI_FLAG_AUTO_ID, &err);
	if (err != SCI_ERR_OK) {
		mem->local = NULL;
		return sio_nvme_fail_sci(err, "no memory of %zu bytes on this host", mem->size);
	}
	mem->at = SCIMapLocalSegment(mem->local, &mem->map, 0, mem->size, NULL, 0, &err);
	if (err == SCI_ERR_OK)
		return 0;
	mem->map = NULL;
	return sio_nvme_fail_sci(err, "cannot map memory of %zu bytes", mem->size);
}

/* The same for the program's pages at mem->at, which become the segment's. */
static int adopt(struct sio_nvme_device *d, struct sio_nvme_mem *mem)
{
	void *at = (void *)(uintptr_t)mem->at;
	sci_error_t err;

	SCICreateSegment(d->sd, &mem->local, FIRST_SEGMENT | (smartio_random() & 0xffff00),
			 mem->size, NULL, NULL, SCI_FLAG_AUTO_ID | SCI_FLAG_EMPTY, &err);
	if (err != SCI_ERR_OK) {
		mem->local = NULL;
		return sio_nvme_fail_sci(err, "no segment for %zu bytes at %p", mem->size, at);
	}
	SCIRegisterSegmentMemory(at, mem->size, mem->local, 0, &err);
	if (err == SCI_ERR_OK)
		return 0;
	return sio_nvme_fail_sci(err, "%zu bytes at %p cannot be registered", mem->size, at);
}

/* Where the drive has it. */
static int reach_local(struct sio_nvme_device *d, struct sio_nvme_mem *mem)
{
	sci_ioaddr_t ioaddr;
	sci_error_t err;

	/* One of two ways, which is lost: it is mapped when that is back. */
	if (is_lost_way(d))
		return 0;
	err = map_local(d, mem, &ioaddr);
	if (err != SCI_ERR_OK && is_lost_way(d))
		return 0;
	/* That way is closed since we asked for it; perhaps another one is open. */
	if (!d->over && leads_nowhere(err) && sio_nvme_device_query(d) == 0 &&
	    d->adapter != mem->adapter)
		err = map_local(d, mem, &ioaddr);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot reach memory of %zu bytes by adapter %u",
					 d->name, mem->size, mem->adapter);
	return check_ioaddr(mem, ioaddr);
}

int sio_nvme_mem_local(struct sio_nvme_device *d, size_t size, struct sio_nvme_mem *mem)
{
	int rc;

	memset(mem, 0, sizeof(*mem));
	mem->d = d;
	if (!round_up(size, &mem->size))
		return sio_nvme_fail(
			-EINVAL,
			"memory of %zu bytes; at least 1 byte, in the address space, is "
			"right",
			size);
	rc = make_local(d, mem);
	if (rc == 0)
		rc = reach_local(d, mem);
	if (rc)
		sio_nvme_mem_done(mem);
	return rc;
}

int sio_nvme_mem_foreign(struct sio_nvme_device *d, void *address, size_t size,
			 struct sio_nvme_mem *mem)
{
	const size_t before = (uintptr_t)address % SIO_NVME_PAGE;
	int rc;

	memset(mem, 0, sizeof(*mem));
	mem->d = d;
	mem->at = (volatile uint8_t *)address - before;
	if (size == 0 || __builtin_add_overflow(size, before, &size) ||
	    !round_up(size, &mem->size) || (uintptr_t)mem->at > UINTPTR_MAX - mem->size)
		return sio_nvme_fail(-EINVAL, "no bytes at %p, or more than can be addressed",
				     address);
	rc = adopt(d, mem);
	if (rc == 0)
		rc = reach_local(d, mem);
	if (rc)
		sio_nvme_mem_done(mem);
	return rc;
}

void sio_nvme_mem_clear(struct sio_nvme_mem *mem, size_t bytes)
{
	for (size_t i = 0; i + 8 <= bytes; i += 8)
		sio_write64(mem->at + i, 0);
}
