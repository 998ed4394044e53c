/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a relay to a virtual machine asks of smartio.ko: addresses of its own choice for a drive
 * behind an IOMMU, and interrupts that trigger an eventfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim.h"

#define LOW 0x7000u	     /* below all that the kernel chooses */
#define HIGH (1ull << 37)    /* above it */
#define MESSAGES 0xfee00000u /* where a write is an interrupt */

struct page {
	uint64_t mem, map;
	char *at;
	int fd;
};

static bool page_new(struct port_world *w, uint64_t owner, struct page *p)
{
	p->map = 0;
	p->fd = -1;
	p->mem = shim_make(w, SIO_OP_ALLOC, owner, &p->fd);
	p->at = shim_map(w, p->fd, SHIM_PAGE, PROT_READ | PROT_WRITE);
	return p->at;
}

static void page_close(struct page *p)
{
	munmap(p->at, SHIM_PAGE);
	close(p->fd);
}

/* Return: the address that the drive has it at. */
static uint64_t map_at(struct port_world *w, uint64_t owner, struct page *p, uint64_t iova,
		       int error, const char *what)
{
	const struct sio_evt_dmamap *evt;
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DMAMAP, owner);
	((struct sio_req_dmamap *)(void *)&a.req)->target = p->mem;
	((struct sio_req_dmamap *)(void *)&a.req)->iova = iova;
	if (!shim_expect(w, &a, -1, error, what) || error)
		return 0;
	evt = (const void *)&a.answer;
	p->map = evt->id;
	return evt->iova;
}

static void unmap(struct port_world *w, uint64_t owner, const struct page *p)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_DMAUNMAP, owner);
	((struct sio_req_dmaunmap *)(void *)&a.req)->id = p->map;
	shim_expect(w, &a, -1, 0, "DMAUNMAP");
}

/* The drive writes to @iova; whether @p has what it wrote. */
static void reaches(struct port_world *w, struct shim_drive *d, uint64_t iova, const struct page *p,
		    bool wanted, const char *what)
{
	memset(p->at, 0, SHIM_PAGE);
	shim_drive_identify(d, iova);
	if (!shim_check(w, shim_drive_completed(d, d->tail - 1), "a command ends"))
		return;
	shim_check(w, (memcmp(p->at + 4, "SIO0", 4) == 0) == wanted, what);
}

/* What is to be anywhere would be at @at next. A machine may have its memory there. */
static void places_beside(struct port_world *w, struct shim_drive *d, uint64_t owner, uint64_t at)
{
	struct page machine, any;
	uint64_t next;

	if (!page_new(w, owner, &machine) || !page_new(w, owner, &any))
		return;
	map_at(w, owner, &machine, at - SHIM_PAGE, 0, "an address right below what was placed");
	next = map_at(w, owner, &any, SIO_PORT_ANY, 0, "any address, where that is in the way");
	shim_check(w, next < at - SHIM_PAGE || next > at, "it is another one");
	reaches(w, d, next, &any, true, "the drive reaches it");
	unmap(w, owner, &any);
	unmap(w, owner, &machine);
	page_close(&any);
	page_close(&machine);
}

/* Chosen addresses and others, beside each other. */
static void chooses(struct port_world *w, struct shim_drive *d, uint64_t owner)
{
	struct page low, high, any;
	uint64_t at;

	if (!page_new(w, owner, &low) || !page_new(w, owner, &high) || !page_new(w, owner, &any))
		return;
	map_at(w, owner, &low, LOW, 0, "a low address");
	reaches(w, d, LOW, &low, true,
		"the drive reaches a low address, and its queues where they were");
	map_at(w, owner, &high, HIGH, 0, "a high address");
	reaches(w, d, HIGH, &high, true, "the drive reaches a high address");
	at = map_at(w, owner, &any, SIO_PORT_ANY, 0, "any address beside them");
	reaches(w, d, at, &any, true, "the drive reaches what was placed beside them");
	places_beside(w, d, owner, at);
	map_at(w, owner, &high, LOW, -ENOSPC, "an address that is taken");
	map_at(w, owner, &high, d->iova + SHIM_PAGE, -ENOSPC,
	       "one in what the kernel placed before");
	map_at(w, owner, &high, at, -ENOSPC, "one in what it placed since");
	map_at(w, owner, &high, MESSAGES, -ENOSPC, "the address of interrupts");
	unmap(w, owner, &any);
	reaches(w, d, at, &any, false,
		"what the kernel placed is out of reach when it is unmapped");
	unmap(w, owner, &low);
	reaches(w, d, LOW, &low, false, "a low address is out of reach when it is unmapped");
	unmap(w, owner, &high);
	reaches(w, d, HIGH, &high, false, "so is the last");
	page_close(&any);
	page_close(&high);
	page_close(&low);
}

/* Its owner ends: the drive reaches it until a reset. */
static void outlives(struct port_world *w, struct shim_drive *d)
{
	struct page p;
	struct shim_ask a;
	union port_packet evt;
	int fd = -1;
	uint64_t owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &fd);

	if (!page_new(w, owner, &p))
		return;
	map_at(w, owner, &p, LOW, 0, "a low address, again");
	close(fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	reaches(w, d, LOW, &p, true, "what its owner left is in quarantine, where it was");
	shim_good(w, &a, SIO_OP_RESET, 0);
	a.req.req.flags = SIO_RESET_KEEP_DOORBELLS;
	shim_expect(w, &a, -1, 0, "RESET that keeps the doorbells");
	shim_check(w, ((const struct sio_evt_reset *)(const void *)&a.answer)->freed == 1,
		   "the reset ends that");
	if (shim_drive_start(w, d))
		reaches(w, d, LOW, &p, false, "nothing is there after the reset");
	page_close(&p);
}

#define PLACES 20u /* more than the ranges whose tables smartio.ko remembers */

/* Places that are not chosen, as interrupts have, each made anew as often as one likes. */
static void places_often(struct port_world *w, uint64_t owner)
{
	struct page kept, p[PLACES];
	unsigned n = 0;

	if (!page_new(w, owner, &kept) || !page_new(w, owner, &p[0]))
		return;
	map_at(w, owner, &kept, LOW, 0, "one address that stays");
	for (unsigned i = 0; i < PLACES; i++) {
		p[i] = p[0];
		map_at(w, owner, &p[i], SIO_PORT_ANY, 0, "any address beside it");
	}
	for (; n < 8192 && p[n % PLACES].map; n++) {
		struct page *again = &p[n % PLACES];

		unmap(w, owner, again);
		again->map = 0;
		map_at(w, owner, again, SIO_PORT_ANY, 0, "any address, again");
	}
	shim_check(w, n == 8192, "places are had again as often as one likes");
	for (unsigned i = 0; i < PLACES; i++)
		if (p[i].map)
			unmap(w, owner, &p[i]);
	unmap(w, owner, &kept);
	page_close(&p[0]);
	page_close(&kept);
}

/*
 * A page now here, now there: what the IOMMU keeps of where it was is bounded, and a reset ends it.
 */
static void spreads(struct port_world *w, uint64_t owner)
{
	struct page kept, p;
	struct shim_ask a;
	unsigned n = 0;
	int rc = 0;

	if (!page_new(w, owner, &kept) || !page_new(w, owner, &p))
		return;
	map_at(w, owner, &kept, LOW, 0, "one address that stays");
	for (; n < 8192 && rc == 0; n++) {
		shim_good(w, &a, SIO_OP_DMAMAP, owner);
		((struct sio_req_dmamap *)(void *)&a.req)->target = p.mem;
		((struct sio_req_dmamap *)(void *)&a.req)->iova = HIGH + ((uint64_t)n << 21);
		rc = shim_ask(w, &a, -1);
		if (rc)
			break;
		p.map = ((const struct sio_evt_dmamap *)(const void *)&a.answer)->id;
		shim_good(w, &a, SIO_OP_DMAUNMAP, owner);
		((struct sio_req_dmaunmap *)(void *)&a.req)->id = p.map;
		rc = shim_ask(w, &a, -1);
	}
	shim_check(w, rc == -ENOSPC && n > 1000, "too many addresses are refused, many are not");
	for (unsigned i = 0; i < 8192; i++) { /* a machine that is started again and again */
		shim_good(w, &a, SIO_OP_DMAMAP, owner);
		((struct sio_req_dmamap *)(void *)&a.req)->target = p.mem;
		((struct sio_req_dmamap *)(void *)&a.req)->iova = HIGH + ((uint64_t)(n - 1) << 21);
		rc = shim_ask(w, &a, -1);
		if (rc)
			break;
		p.map = ((const struct sio_evt_dmamap *)(const void *)&a.answer)->id;
		unmap(w, owner, &p);
	}
	shim_check(w, rc == 0, "the last one is taken as often as one likes");
	unmap(w, owner, &kept);
	shim_good(w, &a, SIO_OP_RESET, 0);
	shim_expect(w, &a, -1, 0, "RESET");
	map_at(w, owner, &p, HIGH, 0, "an address after the reset");
	unmap(w, owner, &p);
	page_close(&p);
	page_close(&kept);
}

static uint64_t event_irq(struct port_world *w, uint64_t owner, int fd, int error, int *ret_trigger)
{
	struct shim_ask a;

	shim_good(w, &a, SIO_OP_IRQ_NEW, owner);
	a.req.req.flags = SIO_IRQ_EVENTFD;
	if (!shim_expect(w, &a, fd, error, "IRQ_NEW of an eventfd") || error)
		return 0;
	close(a.fd[0]);
	*ret_trigger = a.fd[1];
	return shim_id(&a);
}

static bool counts(int event, uint64_t wanted)
{
	eventfd_t n = 0;

	return eventfd_read(event, &n) == 0 && n == wanted;
}

/* The drive triggers an eventfd, and so does who writes to the interrupt. */
static void triggers(struct port_world *w, struct shim_drive *d, uint64_t owner)
{
	int event = eventfd(0, EFD_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int trigger = -1;
	uint64_t irq, n = 3;
	struct shim_ask a;

	event_irq(w, owner, -1, -EINVAL, NULL);
	event_irq(w, owner, null, -EINVAL, NULL);
	irq = event_irq(w, owner, event, 0, &trigger);
	shim_check(w, write(trigger, &n, sizeof(n)) == sizeof(n) && counts(event, 1),
		   "a trigger adds 1 to the eventfd");
	shim_good(w, &a, SIO_OP_VECTOR, owner);
	((struct sio_req_vector *)(void *)&a.req)->irq = irq;
	shim_expect(w, &a, -1, 0, "VECTOR");
	shim_drive_identify(d, d->iova + 2 * SHIM_PAGE);
	shim_check(w, counts(event, 1), "an interrupt of the drive adds 1 to it"); /* which waits */
	shim_good(w, &a, SIO_OP_VECTOR, owner);
	((struct sio_req_vector *)(void *)&a.req)->irq = 0;
	shim_expect(w, &a, -1, 0, "VECTOR to nothing");
	close(trigger);
	shim_good(w, &a, SIO_OP_IRQ_FREE, owner);
	((struct sio_req_irq_free *)(void *)&a.req)->id = irq;
	shim_expect(w, &a, -1, 0, "IRQ_FREE");
	close(null);
	close(event);
}

void shim_domain(struct port_world *w)
{
	struct shim_drive d = {.regs_fd = -1, .bells_fd = -1};
	union port_packet evt;
	uint64_t owner, irq;
	int owner_fd = -1;

	owner = shim_make(w, SIO_OP_OWNER_NEW, 0, &owner_fd);
	if (shim_drive_open(w, &d, owner, &irq)) {
		if (shim_drive_start(w, &d)) {
			triggers(w, &d, owner);
			shim_drive_stop(&d);
		}
		if (shim_is_translated(w) && shim_drive_start(w, &d)) {
			chooses(w, &d, owner);
			shim_drive_stop(&d);
		}
		if (shim_is_translated(w) && shim_drive_start(w, &d)) {
			outlives(w, &d);
			shim_drive_stop(&d);
			places_often(w, owner);
			spreads(w, owner);
		}
		shim_drive_close(&d);
	}
	close(owner_fd);
	shim_event(w, SIO_EV_OWNER_GONE, &evt);
	port_things_end(w);
	port_report(w, "a relay's requests: chosen addresses, eventfds");
}
