/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "fake.h"
#include "smartio/io.h"

static int model_create(struct emu_dev *dev, const struct sio_topo_device *topo,
			struct emu_dev_config *config, void **ret, struct sio_err *reterr)
{
	struct fake_model *m = calloc(1, sizeof(*m));

	(void)topo;
	if (!m)
		return sio_fail(reterr, -ENOMEM, "out of memory");
	m->dev = dev;
	*config = (struct emu_dev_config){
		.vendor = 0x1234,
		.device = 0x11,
		.class_code = 0x010802,
		.bar_size = {0x8000},
		.n_pages = 4,
		.pages =
			{
				{0, EMU_PAGE_REGISTERS, REGISTERS, 0x1000},
				{0, EMU_PAGE_DOORBELLS, DOORBELLS, 0x1000},
				{0, EMU_PAGE_MSIX, MSIX, 0x1000},
				{0, EMU_PAGE_MEMORY, MEMORY, 0x2000},
			},
		.msix_count = 4,
	};
	*ret = m;
	return 0;
}

static unsigned model_step(void *model, unsigned budget)
{
	(void)budget;
	((struct fake_model *)model)->steps++;
	return 1;
}

/* As a real model does, look at every page: they must be there. */
static void model_reset(void *model, bool power)
{
	struct fake_model *m = model;

	m->resets++;
	m->power_resets += power;
	assert_non_null(m->dev->view(m->dev, DOORBELLS_RUN));
	assert_non_null(m->dev->mirror(m->dev, REGISTERS_RUN));
	*(volatile uint32_t *)m->dev->view(m->dev, DOORBELLS_RUN) = 0;
	*(volatile uint32_t *)m->dev->mirror(m->dev, REGISTERS_RUN) = 0x1234;
}

static void model_view_changed(void *model, unsigned index)
{
	struct fake_model *m = model;
	volatile uint32_t *view = m->dev->view(m->dev, index);

	m->view_changes++;
	if (view)
		*view = 0x1234;
}

static bool model_idle(void *model)
{
	(void)model;
	return true;
}

static unsigned model_counters(void *model, char (*name)[32], uint64_t *value, unsigned max)
{
	assert_true(max >= 1);
	snprintf(name[0], sizeof(name[0]), "steps");
	value[0] = ((struct fake_model *)model)->steps;
	return 1;
}

static const struct emu_dev_model fake_emu_model = {
	.type = "fake",
	.create = model_create,
	.destroy = free,
	.step = model_step,
	.reset = model_reset,
	.view_changed = model_view_changed,
	.idle = model_idle,
	.counters = model_counters,
};
const struct emu_dev_model *const emu_models[] = {&fake_emu_model, NULL};

static bool fails(struct fake *f)
{
	return ++f->calls == f->fail_at;
}

static int new_fd(struct fake *f)
{
	f->open_fds++;
	return f->next_fd++;
}

static int mem_new(void *ctx, const char *name, uint64_t size, struct emu_mem *ret)
{
	struct fake *f = ctx;

	(void)name;
	if (fails(f))
		return -ENOMEM;
	ret->data = aligned_alloc(EMU_PAGE, size);
	assert_non_null(ret->data);
	memset(ret->data, 0, size);
	ret->size = size;
	ret->fd = f->next_fd++;
	f->open_mems++;
	return 0;
}

static int mem_part(void *ctx, uint32_t node, uint64_t offset, uint64_t size, struct emu_mem *ret)
{
	struct fake *f = ctx;

	(void)node;
	if (fails(f))
		return -EMFILE;
	if (!f->pool)
		f->pool = calloc(1, FAKE_POOL);
	assert_non_null(f->pool);
	assert_true(offset >= EMU_PAGE && offset + size <= FAKE_POOL);
	*ret = (struct emu_mem){.fd = f->next_fd++, .data = f->pool + offset, .size = size};
	f->open_mems++;
	return 0;
}

static int mem_seal(void *ctx, struct emu_mem *m)
{
	struct fake *f = ctx;

	(void)m;
	f->seals++;
	return fails(f) ? -EPERM : 0;
}

static void mem_free(void *ctx, struct emu_mem *m)
{
	struct fake *f = ctx;
	const uint64_t *word = m->data;
	uint64_t ones = UINT64_MAX;
	bool pooled = f->pool && (uint8_t *)m->data >= f->pool &&
		      (uint8_t *)m->data < f->pool + FAKE_POOL;

	for (uint64_t i = 0; i < m->size / sizeof(*word); i++)
		ones &= word[i];
	f->ones_freed += ones == UINT64_MAX;
	f->open_mems--;
	if (!pooled)
		free(m->data);
}

static int owner_new(void *ctx, unsigned host, uint64_t owner, int *ret_fd)
{
	struct fake *f = ctx;

	(void)host;
	(void)owner;
	if (fails(f))
		return -EMFILE;
	*ret_fd = new_fd(f);
	f->open_owners++;
	return 0;
}

static void owner_free(void *ctx, unsigned host, uint64_t owner)
{
	(void)host;
	(void)owner;
	((struct fake *)ctx)->open_owners--;
}

static int event_new(void *ctx, int *ret_fd)
{
	struct fake *f = ctx;

	if (fails(f))
		return -EMFILE;
	*ret_fd = new_fd(f);
	return 0;
}

static int event_signal(void *ctx, int fd)
{
	struct fake *f = ctx;

	f->signalled = fd;
	f->signals++;
	return 0;
}

static int fake_dup(void *ctx, int fd)
{
	(void)fd;
	return fails(ctx) ? -EMFILE : new_fd(ctx);
}

static void fake_close(void *ctx, int fd)
{
	assert_true(fd > 0);
	((struct fake *)ctx)->open_fds--;
}

static int watch_new(void *ctx, unsigned host, uint64_t watch, uint32_t kind, int fd,
		     uint64_t address, uint64_t length)
{
	struct fake *f = ctx;

	(void)host;
	assert_true(watch != 0 && fd > 0 && length % EMU_PAGE == 0);
	assert_int_equal(address != 0, kind == SIO_WATCH_FAULT);
	if (fails(f))
		return -EMFILE;
	f->open_fds--; /* the edge's now */
	f->open_watches++;
	return 0;
}

static void watch_free(void *ctx, unsigned host, uint64_t watch)
{
	(void)host;
	(void)watch;
	((struct fake *)ctx)->open_watches--;
}

static int fake_send(void *ctx, unsigned host, const void *evt, size_t len, const int *fds,
		     unsigned n_fds)
{
	struct fake *f = ctx;
	struct fake_event *e;

	assert_true(len >= sizeof(struct sio_evt) && len <= SIO_PORT_MAX_PACKET);
	assert_int_equal(((const struct sio_evt *)evt)->size, len);
	assert_true(f->room == NULL || f->room->host[host].up);
	for (unsigned i = 0; i < n_fds; i++)
		assert_true(fds[i] > 0);
	if (f->n_events == sizeof(f->event) / sizeof(f->event[0])) {
		f->events_lost++;
		return 0;
	}
	if (f->deaf == 1u << host && ((const struct sio_evt *)evt)->op >= SIO_EV_LINK)
		return -ENOBUFS;
	e = &f->event[f->n_events++];
	e->host = host;
	e->len = len;
	e->n_fds = n_fds;
	memcpy(&e->u, evt, len);
	return 0;
}

static uint64_t fake_now(void *ctx)
{
	return ((struct fake *)ctx)->clock += 1000;
}

static uint64_t fake_random(void *ctx)
{
	struct fake *f = ctx;

	f->seed = f->seed * 6364136223846793005ull + 1442695040888963407ull;
	return f->seed;
}

static void fake_log(void *ctx, const char *text)
{
	struct fake *f = ctx;

	assert_true(*text);
	snprintf(f->log, sizeof(f->log), "%s", text);
	f->log_lines++;
}

static int machine_memory(void *ctx, const struct emu_reach *x, struct emu_reached *ret)
{
	struct fake *f = ctx;

	f->reach = *x;
	if (f->machine_has_bar && x->node == NODE(LENDER) && x->address == MACHINE_BAR)
		return -EFAULT;
	if (x->node != NODE(LENDER) || x->machine != NODE(MACHINE) || !f->machine_access ||
	    x->address < MACHINE_RAM ||
	    x->address + x->length > MACHINE_RAM + sizeof(f->machine_ram))
		return -EACCES;
	*ret = (struct emu_reached){.data = f->machine_ram + (x->address - MACHINE_RAM),
				    .fd = x->file ? 77 : -1,
				    .fd_offset = 0x7000 + (x->address - MACHINE_RAM),
				    .access = f->machine_access};
	return 0;
}

static int machine_message(void *ctx, const struct emu_reach *x, uint32_t data, bool send)
{
	struct fake *f = ctx;

	if (x->node != NODE(LENDER) || x->machine != NODE(MACHINE) || x->address != MACHINE_IRQ ||
	    data != MACHINE_MESSAGE)
		return -EACCES;
	if (send && f->machine_is_full)
		return -EBUSY;
	f->machine_messages += send;
	return 0;
}

static int machine_store(void *ctx, const struct emu_reach *x, const uint32_t *data)
{
	struct fake *f = ctx;

	if (x->node != NODE(LENDER) || x->machine != NODE(MACHINE) || !f->machine_has_bar ||
	    x->address < MACHINE_BAR || x->address + x->length > MACHINE_BAR + 0x1000)
		return -EACCES;
	if (!data)
		return 0;
	assert_int_equal(x->length, 4);
	assert_int_equal(x->address % 4, 0);
	if (f->machine_is_full)
		return -EBUSY;
	f->machine_store = *data;
	f->machine_stored_at = x->address - MACHINE_BAR;
	f->machine_stores++;
	if (f->stored_again)
		sio_write32(f->stored_again, *data);
	f->stored_again = NULL;
	return 0;
}

static const struct emu_ops ops = {
	.grows = true,
	.machine_memory = machine_memory,
	.machine_message = machine_message,
	.machine_store = machine_store,
	.mem_new = mem_new,
	.mem_part = mem_part,
	.mem_seal = mem_seal,
	.mem_free = mem_free,
	.owner_new = owner_new,
	.owner_free = owner_free,
	.event_new = event_new,
	.event_signal = event_signal,
	.dup = fake_dup,
	.close = fake_close,
	.watch_new = watch_new,
	.watch_free = watch_free,
	.send = fake_send,
	.now = fake_now,
	.random = fake_random,
	.log = fake_log,
};

static void make_host(struct fake *f, unsigned index, bool iommu, unsigned requesters)
{
	struct sio_topo_host *h = &f->host[index];

	snprintf(h->name, sizeof(h->name), "host%u", index);
	h->node = NODE(index);
	h->iommu = iommu;
	h->ram_base = 0x100000000ull * (index + 1);
	h->ram_size = 1 << 20;
	h->n_adapters = 1;
	h->adapter[0] = (struct sio_topo_adapter){
		.window_base = 0x2000000000ull + 0x100000000ull * index,
		.window_size = 16 << 16, /* 16 entries of 64 KiB */
		.lut_entries = 16,
		.requesters = requesters,
		.link_width = 8,
		.link_generation = 3,
		.bdf = 0x800,
		.attach = SIO_ATTACH_SWITCH,
	};
}

static void make_device(struct fake *f, unsigned index, unsigned host, unsigned slot, unsigned bits)
{
	struct sio_topo_device *d = &f->device[index];

	snprintf(d->name, sizeof(d->name), "dev%u", index);
	snprintf(d->type, sizeof(d->type), "fake");
	d->bdf = 0x100 + (slot << 3);
	d->slot = slot;
	d->fdid = DEV(host, slot);
	d->bar_base = 0x80000000ull + index * 0x100000ull;
	d->dma_bits = bits;
	d->reset = SIO_TOPO_RESET_FUNCTION;
}

static struct fake *make(unsigned iommu, unsigned requesters)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->next_fd = 100;
	f->seed = 1;
	for (unsigned i = 0; i < 3; i++)
		make_host(f, i, iommu >> i & 1, requesters);
	make_device(f, 0, LENDER, 0, 64);
	make_device(f, 1, LENDER, 1, 64);
	make_device(f, 2, LENDER, 2, 32);
	make_device(f, 3, CLIENT, 0, 64);
	f->host[LENDER].device = f->device;
	f->host[LENDER].n_devices = 3;
	f->host[CLIENT].device = f->device + 3;
	f->host[CLIENT].n_devices = 1;
	f->topo = (struct sio_topology){
		.name = "test",
		.max_payload = 256,
		.max_read_request = 512,
		.read_completion_boundary = 64,
		.n_hosts = 3,
		.n_switches = 1,
		.host = f->host,
		.sw = f->sw,
	};
	for (unsigned i = 0; i < 2; i++)
		snprintf(f->sw[i].name, sizeof(f->sw[i].name), "sw%u", i);
	return f;
}

static struct fake *start(struct fake *f)
{
	struct sio_err err = {0};

	assert_int_equal(emu_room_new(&f->topo, &ops, f, &f->room, &err), 0);
	return f;
}

struct fake *fake_new(unsigned iommu)
{
	return fake_new_of(iommu, 4); /* two for devices */
}

struct fake *fake_new_of(unsigned iommu, unsigned requesters)
{
	return start(make(iommu, requesters));
}

struct fake *fake_new_functions(unsigned iommu)
{
	struct fake *f = make(iommu, 4);

	f->device[0].virtual_functions = 2;
	f->device[2].dma_bits = 64;
	for (unsigned i = 1; i < 3; i++) {
		f->device[i].physical = 1;
		f->device[i].bdf = f->device[0].bdf | i;
		f->device[i].slot = f->device[0].slot;
	}
	return start(f);
}

struct fake *fake_new_mixed(unsigned iommu)
{
	struct fake *f = make(iommu, 4);

	make_host(f, MACHINE, false, 4);
	f->host[MACHINE].machine = true;
	f->topo.n_machines = 1;
	f->topo.machine = &f->host[MACHINE];
	return start(f);
}

struct fake *fake_new_cascade(bool joined)
{
	struct fake *f = make(0, 4);

	f->host[CLIENT].adapter[0].attach_index = f->host[OTHER].adapter[0].attach_index = 1;
	f->topo.n_switches = 2;
	f->topo.n_trunks = joined;
	f->topo.trunk = &f->trunk;
	f->trunk = (struct sio_topo_trunk){.sw = {0, 1}, .link_width = 8, .link_generation = 3};
	assert_int_equal(sio_topology_measure(&f->topo), 0);
	f->measured = f->topo.distance;
	return start(f);
}

struct fake *fake_new_tree(unsigned iommu, unsigned n,
			   void (*change)(struct sio_topology *t, void *arg), void *arg)
{
	struct fake *f = make(iommu, 4);

	f->host[CLIENT].adapter[0].attach_index = f->host[OTHER].adapter[0].attach_index = 1;
	f->topo.n_switches = 2;
	f->topo.n_trunks = 1;
	f->topo.trunk = &f->trunk;
	f->trunk = (struct sio_topo_trunk){.sw = {0, 1}, .link_width = 8, .link_generation = 3};
	assert_int_equal(sio_topology_measure(&f->topo), 0);
	f->measured = f->topo.distance;
	for (unsigned i = 0; i < 3; i++) {
		f->host[i].chassis = f->chassis[i];
		f->host[i].n_chassis = n;
	}
	change(&f->topo, arg);
	return start(f);
}

void fake_free(struct fake *f)
{
	emu_room_free(f->room);
	assert_int_equal(f->open_fds, 0);
	assert_int_equal(f->open_mems, 0);
	assert_int_equal(f->open_owners, 0);
	assert_int_equal(f->open_watches, 0);
	free(f->measured);
	free(f->pool);
	free(f);
}

void fake_up(struct fake *f, unsigned host)
{
	assert_int_equal(emu_room_host_up(f->room, host), 0);
}

struct fake_model *fake_model(struct fake *f, unsigned host, unsigned device)
{
	return f->room->host[host].device[device]->state;
}

struct emu_dev *fake_dev(struct fake *f, unsigned host, unsigned device)
{
	return fake_model(f, host, device)->dev;
}

void fake_forget(struct fake *f)
{
	f->n_events = 0;
}

static void take(struct fake *f, unsigned index, struct fake_event *ret)
{
	*ret = f->event[index];
	f->n_events--;
	memmove(&f->event[index], &f->event[index + 1],
		(f->n_events - index) * sizeof(f->event[0]));
}

struct fake_event *fake_take(struct fake *f, unsigned host, uint32_t op)
{
	for (unsigned i = 0; i < f->n_events; i++)
		if (f->event[i].host == host && f->event[i].u.h.op == op) {
			take(f, i, &f->taken);
			return &f->taken;
		}
	return NULL;
}

int fake_ask(struct fake *f, unsigned host, void *req, size_t size, uint32_t op, void *ret,
	     size_t evt_size)
{
	struct sio_req *h = req;
	unsigned answers = 0;

	h->size = (uint32_t)size;
	h->op = op;
	h->cookie = ++f->cookie;
	emu_room_request(f->room, host, req, size, f->with, f->n_with);
	f->n_with = 0;
	for (unsigned i = 0; i < f->n_events;) {
		if (f->event[i].host == host && f->event[i].u.h.cookie == h->cookie) {
			take(f, i, &f->answer);
			answers++;
		} else {
			i++;
		}
	}
	assert_int_equal(answers, 1);
	assert_int_equal(f->answer.u.h.op, op);
	if (f->answer.u.h.error) {
		assert_int_equal(f->answer.len, sizeof(struct sio_evt_error));
		assert_true(fake_text(f)[0] != '\0');
		assert_int_equal(fake_reason(f) != 0, f->answer.u.h.error == -ENOSPC ||
							      f->answer.u.h.error == -ENOMEM ||
							      f->answer.u.h.error == -EMFILE);
	} else if (ret) {
		assert_int_equal(f->answer.len, evt_size);
		memcpy(ret, &f->answer.u, evt_size);
	}
	return f->answer.u.h.error;
}

void fake_with(struct fake *f)
{
	f->with[f->n_with++] = new_fd(f);
}

uint32_t fake_reason(struct fake *f)
{
	return f->answer.u.h.reason;
}

const char *fake_text(struct fake *f)
{
	return f->answer.u.refusal.text;
}

uint64_t fake_owner(struct fake *f, unsigned host)
{
	struct sio_req_owner_new req = {.user_cookie = 7};
	struct sio_evt_owner_new evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_OWNER_NEW, &evt), 0);
	assert_int_equal(f->answer.n_fds, 1);
	return evt.id;
}

uint64_t fake_alloc(struct fake *f, unsigned host, uint64_t owner, uint64_t size)
{
	struct sio_req_alloc req = {.h.owner = owner, .size = size, .highest = SIO_PORT_ANY};
	struct sio_evt_alloc evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_ALLOC, &evt), 0);
	assert_int_equal(f->answer.n_fds, 1);
	return evt.id;
}

uint8_t *fake_data(struct fake *f, unsigned host, uint64_t mem)
{
	struct emu_object *o;

	HASH_FIND(hh, f->room->host[host].objects, &mem, sizeof(mem), o);
	assert_non_null(o);
	return ((struct emu_ram *)o)->mem.data;
}

struct sio_evt_grant fake_grant(struct fake *f, unsigned host, uint64_t owner, uint64_t mem,
				uint64_t length, unsigned peer)
{
	struct sio_req_grant req = {.h.owner = owner,
				    .source_kind = SIO_KIND_MEM,
				    .access = 3,
				    .source = mem,
				    .length = length,
				    .peer_node = NODE(peer)};
	struct sio_evt_grant evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_GRANT, &evt), 0);
	return evt;
}

struct sio_req_map fake_map_request(unsigned peer, const struct sio_evt_grant *g)
{
	struct sio_req_map req = {.peer_node = NODE(peer),
				  .bus_addr = g->bus_addr,
				  .length = g->length,
				  .generation = g->generation,
				  .grant = g->id};

	memcpy(req.token, g->token, sizeof(req.token));
	return req;
}

struct sio_evt_map fake_map(struct fake *f, unsigned host, uint64_t owner, unsigned peer,
			    const struct sio_evt_grant *g)
{
	struct sio_req_map req = fake_map_request(peer, g);
	struct sio_evt_map evt;

	req.h.owner = owner;
	assert_int_equal(ask(f, host, &req, SIO_OP_MAP, &evt), 0);
	assert_int_equal(f->answer.n_fds, 1);
	return evt;
}

uint64_t fake_requester(struct fake *f, unsigned host, uint64_t owner, unsigned device)
{
	struct sio_req_requester_add req = {
		.h.owner = owner, .direction = SIO_REQUESTER_OUT, .device = DEV(host, device)};
	struct sio_evt_requester_add evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_REQUESTER_ADD, &evt), 0);
	return evt.id;
}

void fake_open(struct fake *f, unsigned host, unsigned device)
{
	struct sio_req_device_open req = {.device = DEV(host, device)};

	assert_int_equal(ask_only(f, host, &req, SIO_OP_DEVICE_OPEN), 0);
}

struct sio_evt_dmamap fake_dmamap(struct fake *f, unsigned host, uint64_t owner, unsigned device,
				  uint32_t kind, uint64_t target, uint64_t length, uint32_t access)
{
	struct sio_req_dmamap req = {.h.owner = owner,
				     .device = DEV(host, device),
				     .target_kind = kind,
				     .access = access,
				     .target = target,
				     .length = length,
				     .iova = SIO_PORT_ANY,
				     .highest = SIO_PORT_ANY};
	struct sio_evt_dmamap evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_DMAMAP, &evt), 0);
	return evt;
}

int fake_end(struct fake *f, unsigned host, uint32_t op, uint64_t id, uint64_t owner)
{
	struct sio_req_free req = {.h.owner = owner, .id = id};

	return ask_only(f, host, &req, op);
}

int fake_settle(struct fake *f, unsigned host, unsigned device, uint64_t owner,
		struct sio_evt_settle *ret)
{
	struct sio_req_settle req = {.h.owner = owner, .device = DEV(host, device)};

	return ask(f, host, &req, SIO_OP_SETTLE, ret);
}

unsigned fake_count(struct fake *f, unsigned host, uint32_t kind)
{
	struct sio_req_list req = {.kind = kind};
	struct sio_evt_list evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_LIST, &evt), 0);
	assert_int_equal(evt.more, 0);
	return evt.count;
}

uint64_t fake_counter(struct fake *f, unsigned host, uint32_t kind, uint64_t id, const char *name)
{
	struct sio_req_stats req = {.kind = kind, .id = id};
	struct sio_evt_stats evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_STATS, &evt), 0);
	for (unsigned i = 0; i < evt.count; i++)
		if (strcmp(evt.counter[i].name, name) == 0)
			return evt.counter[i].value;
	fail_msg("no counter %s", name);
	return 0;
}
