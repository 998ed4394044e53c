/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The least of an NVMe driver, over the port alone: the drive reads a command from mapped memory,
 * writes to it, and interrupts.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

#define CAP 0
#define CC 0x14
#define CSTS 0x1c
#define AQA 0x24
#define ASQ 0x28
#define ACQ 0x30
#define PATIENCE_MS 60000

static uint32_t get(const struct shim_drive *d, unsigned reg)
{
	return *(volatile uint32_t *)(d->regs + reg);
}

static void put(const struct shim_drive *d, unsigned reg, uint32_t value)
{
	*(volatile uint32_t *)(d->regs + reg) = value;
}

/* Until the ready bit is @ready; false: it does not come. */
static bool await_ready(const struct shim_drive *d, uint32_t ready)
{
	struct timespec nap = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < PATIENCE_MS && (get(d, CSTS) & 1) != ready; i++)
		nanosleep(&nap, NULL);
	return (get(d, CSTS) & 1) == ready;
}

/* *ret: a page of the drive's BAR, mapped. Return: its descriptor. */
static int view(struct port_world *w, uint64_t owner, uint64_t offset, volatile uint8_t **ret)
{
	struct shim_ask a;
	void *at;

	shim_good(w, &a, SIO_OP_BAR, owner);
	((struct sio_req_bar *)(void *)&a.req)->offset = offset;
	if (!shim_expect(w, &a, -1, 0, "BAR"))
		return -1;
	offset = ((const struct sio_evt_bar *)(const void *)&a.answer)->offset;
	at = mmap(NULL, SHIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd[0], (off_t)offset);
	*ret = at == MAP_FAILED ? NULL : at;
	return a.fd[0];
}

bool shim_drive_open(struct port_world *w, struct shim_drive *d, uint64_t owner, uint64_t *ret_irq)
{
	struct sio_req_dmamap *map;
	struct shim_ask a;
	uint64_t mem;

	d->regs_fd = view(w, owner, 0, &d->regs);
	d->bells_fd = view(w, owner, SHIM_PAGE, &d->bells);
	shim_good(w, &a, SIO_OP_ALLOC, owner);
	((struct sio_req_alloc *)(void *)&a.req)->size = 3 * SHIM_PAGE;
	if (!shim_expect(w, &a, -1, 0, "ALLOC"))
		return false;
	d->mem_fd = a.fd[0];
	mem = shim_id(&a);
	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	map = (void *)&a.req;
	map->target = mem;
	map->length = 3 * SHIM_PAGE;
	if (!shim_expect(w, &a, -1, 0, "DMAMAP"))
		return false;
	d->iova = ((const struct sio_evt_dmamap *)(const void *)&a.answer)->iova;
	shim_good(w, &a, SIO_OP_IRQ_NEW, owner);
	if (!shim_expect(w, &a, -1, 0, "IRQ_NEW"))
		return false;
	d->irq_fd = a.fd[0];
	d->trigger_fd = a.fd[1];
	*ret_irq = shim_id(&a);
	d->mem = shim_map(w, d->mem_fd, 3 * SHIM_PAGE, PROT_READ | PROT_WRITE);
	return d->regs && d->bells && d->mem;
}

bool shim_drive_start(struct port_world *w, struct shim_drive *d)
{
	put(d, CC, 0);
	if (!shim_check(w, await_ready(d, 0), "the drive stops"))
		return false;
	put(d, AQA, 15u << 16 | 15);
	put(d, ASQ, (uint32_t)d->iova);
	put(d, ASQ + 4, (uint32_t)(d->iova >> 32));
	put(d, ACQ, (uint32_t)(d->iova + SHIM_PAGE));
	put(d, ACQ + 4, (uint32_t)((d->iova + SHIM_PAGE) >> 32));
	memset(d->mem, 0, 3 * SHIM_PAGE);
	d->tail = 0;
	put(d, CC, 6u << 16 | 4u << 20 | 1);
	return shim_check(w, await_ready(d, 1), "the drive starts");
}

void shim_drive_identify(struct shim_drive *d, uint64_t data)
{
	uint32_t command[16] = {[0] = 6 | d->tail << 16, [10] = 1};

	memcpy(&command[6], &data, sizeof(data));
	memcpy(d->mem + 64 * d->tail, command, sizeof(command));
	__sync_synchronize();
	d->tail++;
	*(volatile uint32_t *)d->bells = d->tail;
}

static void identify(struct shim_drive *d)
{
	shim_drive_identify(d, d->iova + 2 * SHIM_PAGE);
}

static int64_t count(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t n;

	if (poll(&p, 1, timeout_ms) != 1)
		return 0;
	return read(fd, &n, sizeof(n)) == sizeof(n) ? (int64_t)n : -1;
}

static bool has_serial(const struct shim_drive *d)
{
	return memcmp(d->mem + 2 * SHIM_PAGE + 4, "SIO0", 4) == 0;
}

bool shim_drive_completed(const struct shim_drive *d, unsigned n)
{
	const volatile uint16_t *phase = (const volatile void *)(d->mem + SHIM_PAGE + 16 * n + 14);
	struct timespec nap = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < PATIENCE_MS && !(*phase & 1); i++)
		nanosleep(&nap, NULL);
	return *phase == 1;
}

static void set_vector(struct port_world *w, uint64_t owner, uint64_t irq, uint32_t mask)
{
	struct sio_req_vector *v;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_VECTOR, owner);
	v = (void *)&a.req;
	v->irq = irq;
	v->mask = mask;
	shim_expect(w, &a, -1, 0, "VECTOR");
}

/*
 * What was unmapped is out of reach at once, although the IOMMU may flush lazily: the drive has
 * just been there, so that its translation is at hand.
 */
static void unmapped_is_cut(struct port_world *w, struct shim_drive *d, uint64_t owner)
{
	static const char zero[SHIM_PAGE];
	const struct sio_evt_dmamap *evt;
	struct shim_ask a;
	uint64_t mem, map, iova;
	char *at = NULL;
	int fd = -1;

	mem = shim_make(w, SIO_OP_ALLOC, owner, &fd);
	at = shim_map(w, fd, SHIM_PAGE, PROT_READ | PROT_WRITE);
	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	((struct sio_req_dmamap *)(void *)&a.req)->target = mem;
	if (!at || !shim_expect(w, &a, -1, 0, "DMAMAP"))
		return;
	evt = (const void *)&a.answer;
	iova = evt->iova;
	map = evt->id;
	shim_drive_identify(d, iova);
	shim_check(w, shim_drive_completed(d, d->tail - 1) && memcmp(at + 4, "SIO0", 4) == 0,
		   "the drive reaches what is mapped");
	memset(at, 0, SHIM_PAGE);
	shim_good(w, &a, SIO_OP_DMAUNMAP, owner);
	((struct sio_req_dmaunmap *)(void *)&a.req)->id = map;
	shim_expect(w, &a, -1, 0, "DMAUNMAP");
	shim_good(w, &a, SIO_OP_DEVICE_LIST, 0);
	shim_expect(w, &a, -1, 0, "DEVICE_LIST");
	if (((const struct sio_evt_device *)(const void *)&a.answer)->iommu_mode != SIO_IOMMU_OFF) {
		shim_drive_identify(d, iova);
		shim_check(w, shim_drive_completed(d, d->tail - 1), "a command that is wrong ends");
		shim_check(w, memcmp(at, zero, SHIM_PAGE) == 0,
			   "the drive does not reach what was unmapped");
	}
	munmap(at, SHIM_PAGE);
	close(fd);
}

/* Commands whose end is told by vector 0, masked and not, and after a reset. */
static void drive_it(struct port_world *w, struct shim_drive *d, uint64_t owner, uint64_t irq)
{
	struct shim_ask a;

	if (!shim_drive_start(w, d))
		return;
	set_vector(w, owner, irq, 0);
	identify(d);
	shim_check(w, count(d->irq_fd, PATIENCE_MS) == 1, "an interrupt comes");
	shim_check(w, shim_drive_completed(d, 0) && has_serial(d),
		   "and the completion was there before");
	identify(d);
	shim_check(w, count(d->irq_fd, PATIENCE_MS) == 1 && shim_drive_completed(d, 1),
		   "another one comes");
	set_vector(w, owner, irq, 1);
	identify(d);
	shim_check(w, shim_drive_completed(d, 2) && count(d->irq_fd, 100) == 0,
		   "masked: none comes");
	set_vector(w, owner, irq, 0);
	shim_check(w, count(d->irq_fd, PATIENCE_MS) == 1, "it was kept");
	shim_good(w, &a, SIO_OP_RESET, 0);
	shim_expect(w, &a, -1, 0, "RESET");
	shim_check(w, !(get(d, CC) & 1), "a reset stops the drive");
	if (!shim_drive_start(w, d))
		return;
	memset(d->mem + 2 * SHIM_PAGE, 0, SHIM_PAGE);
	identify(d);
	shim_check(w, count(d->irq_fd, PATIENCE_MS) == 1 && has_serial(d),
		   "mapping and vector outlive a reset");
	unmapped_is_cut(w, d, owner);
	shim_drive_stop(d);
}

static void triggers(struct port_world *w, struct shim_drive *d)
{
	uint64_t n = 3;

	shim_check(w,
		   write(d->trigger_fd, &n, 8) == 8 && write(d->trigger_fd, &n, 8) == 8 &&
			   count(d->irq_fd, 0) == 6,
		   "a trigger adds");
	shim_check(w, read(d->trigger_fd, &n, 8) < 0 && errno == EBADF, "it cannot be read");
	n = 3;
	shim_check(w, write(d->irq_fd, &n, 8) == 8, "what was read can be put back");
	n = 0;
	shim_check(w, read(d->irq_fd, &n, 8) == 8 && n == 3, "and be read again");
	n = UINT64_MAX;
	shim_check(w, write(d->trigger_fd, &n, 8) < 0 && errno == EINVAL, "too much is refused");
	shim_check(w, write(d->trigger_fd, &n, 4) < 0 && errno == EINVAL, "half is refused");
}

void shim_drive_stop(struct shim_drive *d)
{
	put(d, CC, 0);
	await_ready(d, 0);
}

void shim_drive_close(struct shim_drive *d)
{
	munmap((void *)(uintptr_t)d->regs, SHIM_PAGE);
	munmap((void *)(uintptr_t)d->bells, SHIM_PAGE);
	munmap(d->mem, 3 * SHIM_PAGE);
	close(d->regs_fd);
	close(d->bells_fd);
	close(d->mem_fd);
	close(d->irq_fd);
	close(d->trigger_fd);
}

void shim_nvme(struct port_world *w)
{
	struct shim_drive d = {.regs_fd = -1, .bells_fd = -1};
	union port_packet evt;
	uint64_t owner, irq;
	int owner_fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	if (shim_drive_open(w, &d, owner, &irq)) {
		if (w->t == &port_device) /* VFIO's are eventfds */
			triggers(w, &d);
		drive_it(w, &d, owner, irq);
		shim_drive_close(&d);
	}
	close(owner_fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	port_things_end(w);
	port_report(w, "a drive works by the port alone");
}
