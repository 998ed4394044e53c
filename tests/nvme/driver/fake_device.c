/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake's device half: drive model, address space, borrowers, time. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emu/devices/model.h"
#include "emu/devices/nvme/model.h"
#include "fake_internal.h"

struct fake fake;
struct fake_world W;

static int dev_read(struct emu_dev *d, uint64_t addr, void *buf, size_t len)
{
	void *p = fake_dma(addr, len);

	(void)d;
	fake.sq_reads += len == 64;
	if (!p) {
		fake.faults++;
		return -EFAULT;
	}
	memcpy(buf, p, len);
	return 0;
}

static int dev_write(struct emu_dev *d, uint64_t addr, const void *buf, size_t len)
{
	void *p = fake_dma(addr, len);

	(void)d;
	fake.cq_writes += len == 16;
	if (!p) {
		fake.faults++;
		return -EFAULT;
	}
	memcpy(p, buf, len);
	return 0;
}

static uint64_t dev_now(struct emu_dev *d)
{
	(void)d;
	return fake.now;
}

static void dev_log(struct emu_dev *d, const char *text)
{
	(void)d;
	(void)text;
}

static volatile void *dev_view(struct emu_dev *d, unsigned index)
{
	(void)d;
	if (index == EMU_NVME_RUN_DOORBELLS)
		return W.doorbells;
	return W.holder ? W.registers : NULL;
}

static volatile void *dev_mirror(struct emu_dev *d, unsigned index)
{
	(void)d;
	return index == EMU_NVME_RUN_REGISTERS ? W.mirror : NULL;
}

void *fake_dma(uint64_t addr, size_t len)
{
	for (struct fake_region *r = W.regions; r; r = r->next)
		if (addr >= r->ioaddr && addr - r->ioaddr <= r->size &&
		    len <= r->size - (addr - r->ioaddr))
			return r->at + (addr - r->ioaddr);
	return NULL;
}

uint64_t fake_region_add(struct fake_borrower *b, void *owner, void *at, size_t size)
{
	struct fake_region *r = calloc(1, sizeof(*r));

	assert(r);
	r->borrower = b->id;
	r->number = ++W.last_region;
	r->owner = owner;
	r->at = at;
	r->size = size;
	/* A page between any two: who runs over the end is seen. */
	r->ioaddr = W.next_ioaddr;
	W.next_ioaddr += ((size + 4095) & ~4095ull) + 4096;
	r->next = W.regions;
	W.regions = r;
	return r->ioaddr;
}

/* One of the drive's queues lies there; the admin queue counts, too. */
static bool has_queue(const struct fake_region *r)
{
	const struct emu_nvme *m = W.model;

	for (uint32_t i = 0; i <= m->queue_pairs; i++)
		if ((m->sq[i].size && m->sq[i].addr - r->ioaddr < r->size) ||
		    (m->cq[i].size && m->cq[i].addr - r->ioaddr < r->size))
			return true;
	return false;
}

void fake_region_drop(uint64_t borrower, void *owner, bool all)
{
	struct fake_region **at = &W.regions, *r;

	while ((r = *at)) {
		if (r->borrower != borrower || (!all && r->owner != owner)) {
			at = &r->next;
			continue;
		}
		/* What a lost borrower says is heard by nobody. */
		fake.faults += !all && borrower != fake.lost && has_queue(r);
		*at = r->next;
		free(r);
	}
}

bool fake_region_held(uint64_t borrower, void *owner)
{
	for (struct fake_region *r = W.regions; r; r = r->next)
		if (r->borrower == borrower && r->owner == owner && r->holds)
			return true;
	return false;
}

struct fake_region *fake_region_find(uint64_t borrower, uint64_t ioaddr, size_t size)
{
	for (struct fake_region *r = W.regions; r; r = r->next)
		if (r->borrower == borrower && ioaddr >= r->ioaddr &&
		    ioaddr - r->ioaddr <= r->size && size <= r->size - (ioaddr - r->ioaddr))
			return r;
	return NULL;
}

unsigned fake_holds(void)
{
	unsigned n = 0;

	for (struct fake_region *r = W.regions; r; r = r->next)
		n += r->holds;
	return n;
}

unsigned fake_quarantined(void)
{
	unsigned n = 0;

	for (struct fake_region *r = W.regions; r; r = r->next)
		n += !fake_borrower(r->borrower);
	return n;
}

/* Stays until the end of the test: what may touch it when is checked by the regions. */
void *fake_memory(size_t size)
{
	struct fake_memory *m = calloc(1, sizeof(*m));

	assert(m);
	m->size = size;
	m->at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(m->at != MAP_FAILED);
	m->next = W.memory;
	W.memory = m;
	return m->at;
}

struct fake_borrower *fake_borrower(uint64_t id)
{
	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		if (b->id == id && !b->ended)
			return b;
	return NULL;
}

void fake_event(struct fake_borrower *b, uint32_t kind, uint64_t borrower)
{
	assert(b->n_events < FAKE_EVENTS);
	b->events[b->n_events++] = (struct smartio_device_event){
		.kind = kind, .generation = W.generation, .borrower = borrower};
}

/* Whoever has them mapped reads ones, and what he stores there nobody sees. */
static void take_doorbells(void)
{
	void *old = W.doorbells;

	W.doorbells = fake_memory(W.doorbells_size);
	memcpy(W.doorbells, old, W.doorbells_size);
	memset(old, 0xff, W.doorbells_size);
	emu_nvme_model.view_changed(W.model, EMU_NVME_RUN_DOORBELLS);
}

void fake_generation_up(void)
{
	take_doorbells();
	W.generation++;
	W.generation_told = false;
	/* The device has no queue any more. */
	for (struct fake_region *r = W.regions; r; r = r->next)
		r->holds = 0;
	if (!fake.late_generation)
		fake_tell_generation();
}

void fake_tell_generation(void)
{
	if (W.generation_told)
		return;
	W.generation_told = true;
	for (struct fake_borrower *b = W.borrowers; b; b = b->next) {
		if (b->ended)
			continue;
		if (!b->lost)
			b->generation = W.generation;
		fake_event(b, SMARTIO_DEVICE_RESET, 0);
	}
}

void fake_set_holder(struct fake_borrower *b)
{
	if (W.holder == b)
		return;
	W.holder = b;
	emu_nvme_model.view_changed(W.model, EMU_NVME_RUN_REGISTERS);
	if (!b)
		return;
	/* A new holder is told of everybody who is in quarantine. */
	for (struct fake_region *r = W.regions; r; r = r->next)
		if (!fake_borrower(r->borrower))
			fake_event(b, SMARTIO_DEVICE_BORROWER_GONE, r->borrower);
}

void fake_borrower_end(struct fake_borrower *b)
{
	b->ended = true;
	if (W.exclusive == b)
		W.exclusive = NULL;
	if (W.holder == b)
		fake_set_holder(NULL);
	if (W.holder && !fake.unheard)
		fake_event(W.holder, SMARTIO_DEVICE_BORROWER_GONE, b->id);
}

void fake_kill(uint64_t id)
{
	struct fake_borrower *b = fake_borrower(id);

	assert(b);
	fake_borrower_end(b);
	fake_session_gone(b);
}

void fake_lose(uint64_t id)
{
	struct fake_borrower *b = fake_borrower(id);

	assert(b);
	b->lost = true;
	b->generation += 1000;
	fake_borrower_end(b);
}

uint64_t fake_last_borrower(void)
{
	return W.last_borrower;
}

void fake_reset_device(void)
{
	emu_nvme_model.reset(W.model, false);
	fake_generation_up();
}

uint8_t *fake_media(void)
{
	return ((struct emu_nvme *)W.model)->media;
}

static void set_fault(const struct emu_dev_fault *f)
{
	struct sio_err err;
	int rc = emu_nvme_model.fault(W.model, f, &err);

	assert(rc == 0);
}

void fake_fault(unsigned kind, uint32_t opcode, uint32_t count, uint64_t value)
{
	const struct emu_dev_fault f = {.kind = (enum emu_dev_fault_kind)kind,
					.opcode = opcode,
					.queue = EMU_FAULT_ANY,
					.count = count,
					.value = value};

	set_fault(kind ? &f : NULL);
}

void fake_admin_fault(unsigned kind, uint32_t opcode, uint64_t value)
{
	const struct emu_dev_fault f = {.kind = (enum emu_dev_fault_kind)kind,
					.opcode = opcode,
					.queue = 0,
					.count = 1,
					.value = value};

	set_fault(&f);
}

uint32_t fake_csts(void)
{
	return W.mirror[0x1c / 4];
}

uint64_t fake_counter(const char *name)
{
	uint64_t value[32];
	char names[32][32];
	unsigned n = emu_nvme_model.counters(W.model, names, value, 32);

	while (n > 0 && strcmp(names[n - 1], name) != 0)
		n--;
	assert(n > 0);
	return value[n - 1];
}

void fake_wake(void)
{
	fake.wakes++;
	while (!fake.stopped && emu_nvme_model.step(W.model, 64))
		;
}

static void call_event(void)
{
	void (*event)(void) = fake.event;

	if (!event || fake.now < fake.event_at)
		return;
	fake.event = NULL;
	event();
}

static jmp_buf killed;
static void serve(void);

void fake_step(void)
{
	fake.now += 1000;
	call_event();
	fake.stopped |= fake.hangs && fake_csts() & 1;
	fake_tell_generation();
	if (!fake.stopped && !(fake.sleeps && *fake.sleeps))
		emu_nvme_model.step(W.model, 64);
	fake_manager_step();
	if (fake.manager && !W.in_manager)
		serve();
}

/* It may be killed in there: then all that it was about to do is not done. */
static void serve(void)
{
	int rc;

	W.in_manager = true;
	if (setjmp(killed)) {
		struct smartio_nvme_manager *m = fake.manager;
		uint64_t id = fake.killed_id;

		W.in_manager = false;
		fake.manager = fake.standby;
		fake.standby = NULL;
		fake.killed_id = 0;
		fake_kill(id);
		smartio_nvme_manager_close(m); /* its memory; nobody hears of it */
		fake_bury(id);
		fake_manager_buried();
		return;
	}
	rc = smartio_nvme_manager_serve(fake.manager, 0);
	if (rc < 0)
		fake.served = rc;
	W.in_manager = false;
}

bool fake_is_cut(void)
{
	return W.in_manager && W.last_borrower == W.last_before;
}

/* The first one, or that by which it has come back: as soon as it has. */
static void lose_path(void)
{
	const bool again = fake.killed_id == 0;

	if (again && (fake_is_cut() || !fake_borrower(W.last_borrower))) {
		fake.killed_at = 1;
		return;
	}
	fake_lose(again ? W.last_borrower : fake.killed_id);
	fake.killed_at = again ? 0 : fake.then_at;
	if (again)
		fake.then_at = 0;
	fake.killed_id = 0;
	W.last_before = W.last_borrower;
}

void fake_manager_step(void)
{
	if (!W.in_manager || !fake.killed_at || --fake.killed_at)
		return;
	if (fake.spared) {
		lose_path();
		return;
	}
	emu_nvme_model.step(W.model, 64); /* the drive goes on, with what it was told */
	longjmp(killed, 1);
}

void fake_start(const struct fake_options *o)
{
	struct sio_topo_device topo = {.name = "nvme0",
				       .type = "nvme",
				       .size = (uint64_t)FAKE_BLOCKS * 512,
				       .block_size = 512,
				       .queue_pairs = o && o->queue_pairs ? o->queue_pairs : 4,
				       .queue_entries =
					       o && o->queue_entries ? o->queue_entries : 256,
				       .vectors = FAKE_VECTORS,
				       .dma_bits = 64,
				       .serial = "FAKE1"};
	struct sio_err err;
	int rc;

	if (o && o->second) {
		topo.n_namespaces = 2;
		topo.namespaces[0].size = topo.size;
		topo.namespaces[0].block_size = 512;
		topo.namespaces[1].size = topo.size / 2;
		topo.namespaces[1].block_size = 4096;
	}
	memset(&fake, 0, sizeof(fake));
	memset(&W, 0, sizeof(W));
	fake.now = 1000000000;
	W.next_ioaddr = 0x7000000000;
	W.generation = 1;
	W.generation_told = true;
	W.random = 88172645463325252ull;
	W.registers = fake_memory(4096);
	W.mirror = fake_memory(4096);
	W.dev = (struct emu_dev){.read = dev_read,
				 .write = dev_write,
				 .interrupt = fake_raise,
				 .now = dev_now,
				 .log = dev_log,
				 .view = dev_view,
				 .mirror = dev_mirror};
	W.doorbells = NULL;
	rc = emu_nvme_model.create(&W.dev, &topo, &W.config, &W.model, &err);
	if (rc)
		fprintf(stderr, "model: %s\n", err.text);
	assert(rc == 0);
	for (unsigned i = 0; i < W.config.n_pages; i++)
		if (W.config.pages[i].kind == EMU_PAGE_DOORBELLS)
			W.doorbells_size = W.config.pages[i].length;
	W.doorbells = fake_memory(W.doorbells_size);
	emu_nvme_model.reset(W.model, true);
}

void fake_stop(void)
{
	struct fake_borrower *b;
	struct fake_memory *m;

	while ((b = W.borrowers)) {
		W.borrowers = b->next;
		fake_region_drop(b->id, NULL, true);
		free(b);
	}
	fake_sci_stop();
	fake_interrupt_stop();
	emu_nvme_model.destroy(W.model);
	while ((m = W.memory)) {
		W.memory = m->next;
		munmap(m->at, m->size);
		free(m);
	}
}
