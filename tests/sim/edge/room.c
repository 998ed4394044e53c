/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment of the machine room, and its port: packets to and from the daemons. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "edge/edge.h"
#include "fabric/fabric.h"
#include "smartio/uapi.h"

#define STEP_BUSY 200u	 /* ns between two looks of the devices while they find work */
#define STEP_IDLE 20000u /* at most, while they find none */
#define STEP_LONG_IDLE 1000000u
#define LOOKS_IDLE                                                                                 \
	48 /* so many empty looks, and they look more seldom; a store makes them look at once */
#define LOOKS_ASKED 12 /* empty looks after a store where they look */

static struct {
	uint64_t delay;
	unsigned empty;
	uint64_t step_at; /* 0: no step is scheduled */
	uintptr_t steps;
	bool engines; /* a DMA channel exists, as of the last look */
} room;

static struct {
	uint32_t kind;
	unsigned count;
	uint64_t ram_free;
} probe;

uint64_t sim_port_fail_in;

/* ---- the port ---- */
void (*sim_on_refusal)(unsigned host, const struct sio_evt_fault *fault);
void (*sim_on_reset)(unsigned host, const struct sio_req_reset *req);
bool (*sim_port_hears)(unsigned host, const void *evt, size_t len, const int *fds, unsigned n_fds);

static int room_send(void *ctx, unsigned host, const void *evt, size_t len, const int *fds,
		     unsigned n_fds);

/* Requests that release something never fail. */
static bool can_fail(uint32_t op)
{
	return op == SIO_OP_OWNER_NEW || op == SIO_OP_ALLOC || op == SIO_OP_GRANT ||
	       op == SIO_OP_MAP || op == SIO_OP_REQUESTER_ADD || op == SIO_OP_BAR ||
	       op == SIO_OP_DMAMAP || op == SIO_OP_IRQ_NEW || op == SIO_OP_DMA ||
	       op == SIO_OP_DMA_ATTACH || op == SIO_OP_RESET;
}

/* The fault "port": the request is answered by an error. */
static bool refused(const struct sim_packet *k)
{
	struct sio_req req;
	struct sio_evt_error evt = {.text = "the simulator lets it fail"};
	int error;

	if (!sim_port_fail_in || !can_fail(sim_word(k->data, k->len, 4)) || --sim_port_fail_in > 0)
		return false;
	memcpy(&req, k->data, sizeof(req));
	sim_trace("port %u: fault port: op %u fails", k->host->node, req.op);
	sim_did.port++;
	error = sim_chance(1, 2) || req.op == SIO_OP_RESET ? -ENOMEM : -ENOSPC;
	evt.h = (struct sio_evt){.size = sizeof(evt),
				 .op = req.op,
				 .error = error,
				 .cookie = req.cookie,
				 .owner = req.owner};
	room_send(NULL, k->host->index, &evt, sizeof(evt), NULL, 0);
	return true;
}

/* A packet has been received, or the end of an owner processed. */
static void arrived(struct sim_host *h)
{
	h->port_busy--;
	h->port_count++;
}

/* A port answers when what its devices had sent has arrived (include/smartio/uapi.h). */
static void push_devices(const struct sim_packet *k)
{
	uint32_t op = sim_word(k->data, k->len, 4);

	if (op != SIO_OP_DMAUNMAP && op != SIO_OP_SETTLE && op != SIO_OP_RESET)
		return;
	for (unsigned to = 0; to < sim_hosts(); to++)
		fabric_path_answer(k->host->index, to, sim_now());
}

static void port_deliver(void *arg)
{
	struct sim_packet *k = arg;

	arrived(k->host);
	if (sim_stopping || !k->host->powered || k->life != k->host->life || refused(k)) {
		sim_packet_free(k);
		return;
	}
	sim_room_host = k->host->index;
	push_devices(k);
	if (sim_on_reset && sim_word(k->data, k->len, 4) == SIO_OP_RESET &&
	    k->len == sizeof(struct sio_req_reset))
		sim_on_reset(k->host->index, (const void *)k->data);
	emu_room_request(sim_cluster->room, k->host->index, k->data, k->len, k->fds, k->n_fds);
	free(k);
	sim_room_kick();
}

void sim_port_request(void *ctx, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	struct sim_host *h = ctx;
	struct sim_packet *k;

	if (!h->daemon) /* the daemon is being freed */
		return;
	k = sim_packet_new(req, len, fds, n_fds);
	k->host = h;
	k->life = h->life;
	sim_trace("port %u <- op %u", h->node, sim_word(req, len, 4));
	h->port_busy++;
	sim_after_ordered(&h->to_port, sim_latency(), port_deliver, k);
}

uint64_t sim_unheard_in;
void (*sim_on_unheard)(void);

static void port_answer(void *arg)
{
	struct sim_packet *k = arg;

	arrived(k->host);
	if (sim_unheard_in && k->host->ready && --sim_unheard_in == 0)
		sim_on_unheard();
	if (sim_stopping || !k->host->daemon || k->host->life != k->life) {
		sim_packet_free(k);
		return;
	}
	sim_trace("port %u -> op %u error %d", k->host->node, sim_word(k->data, k->len, 4),
		  (int)sim_word(k->data, k->len, 12));
	smartiod_port_event(k->host->daemon, k->data, k->len, k->fds, k->n_fds);
	free(k);
}

bool (*sim_on_event)(unsigned host, uint32_t op);

static int room_send(void *ctx, unsigned host, const void *evt, size_t len, const int *fds,
		     unsigned n_fds)
{
	struct sim_packet *k;

	(void)ctx;
	if (sim_on_event && sim_word(evt, len, 4) >= SIO_EV_LINK &&
	    sim_on_event(host, sim_word(evt, len, 4)))
		return -ENOBUFS;
	if (sim_port_hears && sim_port_hears(host, evt, len, fds, n_fds))
		return 0;
	if (probe.kind && sim_word(evt, len, 4) == SIO_OP_LIST) {
		const struct sio_evt_list *l = evt;

		assert(l->h.size == sizeof(*l) && !l->more);
		probe.count = l->count;
		return 0;
	}
	if (probe.kind && sim_word(evt, len, 4) == SIO_OP_INFO) {
		probe.ram_free = ((const struct sio_evt_info *)evt)->ram_free;
		return 0;
	}
	if (sim_word(evt, len, 4) == SIO_EV_FAULT) {
		sim_cluster->faults++;
		if (sim_on_refusal)
			sim_on_refusal(host, evt);
	}
	k = sim_packet_new(evt, len, fds, n_fds);
	k->host = &sim_host[host];
	k->life = sim_host[host].life;
	k->host->port_busy++;
	sim_after_ordered(&sim_host[host].from_port, sim_latency(), port_answer, k);
	return 0;
}

unsigned sim_port_count(unsigned host, uint32_t kind)
{
	struct sio_req_list req = {.h = {.size = sizeof(req), .op = SIO_OP_LIST}, .kind = kind};

	if (!sim_host[host].powered)
		return 0;
	probe.kind = kind;
	probe.count = ~0u;
	emu_room_request(sim_cluster->room, host, &req, sizeof(req), NULL, 0);
	probe.kind = 0;
	return probe.count;
}

uint64_t sim_port_ram_free(unsigned host)
{
	struct sio_req_info req = {.h = {.size = sizeof(req), .op = SIO_OP_INFO},
				   .version_min = SIO_PORT_VERSION,
				   .version_max = SIO_PORT_VERSION};

	if (!sim_host[host].powered)
		return 0;
	probe.kind = SIO_KIND_MEM;
	emu_room_request(sim_cluster->room, host, &req, sizeof(req), NULL, 0);
	probe.kind = 0;
	return probe.ram_free;
}

void sim_port_each(unsigned host, void (*fn)(void *arg, const struct sio_list_entry *e), void *arg)
{
	emu_room_each(sim_cluster->room, host, fn, arg);
}

uint64_t sim_port_quiet(unsigned host)
{
	const struct sim_host *h = &sim_host[host];

	return h->powered && h->port_busy == 0 ? h->port_count : 0;
}

/* ---- whose descriptors are open ---- */
struct held {
	struct held_key {
		uint64_t host, owner;
	} key;
	UT_hash_handle hh;
};

static struct held *held;

static struct held *held_find(unsigned host, uint64_t owner)
{
	struct held_key key = {host, owner};
	struct held *w;

	HASH_FIND(hh, held, &key, sizeof(key), w);
	return w;
}

bool sim_owner_held(unsigned host, uint64_t owner)
{
	return held_find(host, owner);
}

static void held_add(unsigned host, uint64_t owner)
{
	struct held *w = calloc(1, sizeof(*w));

	assert(w);
	w->key = (struct held_key){host, owner};
	HASH_ADD(hh, held, key, sizeof(w->key), w);
}

static void held_end(unsigned host, uint64_t owner)
{
	struct held *w = held_find(host, owner);

	assert(w);
	HASH_DEL(held, w);
	free(w);
}

/* ---- its table ---- */
static int owner_new(void *ctx, unsigned host, uint64_t owner, int *ret_fd)
{
	(void)ctx;
	held_add(host, owner);
	*ret_fd = sim_fd_new(SIM_OWNER);
	sim_fd(*ret_fd)->host = host;
	sim_fd(*ret_fd)->id = owner;
	return 0;
}

static void owner_free(void *ctx, unsigned host, uint64_t owner)
{
	(void)ctx;
	(void)host;
	(void)owner;
}

struct hup {
	unsigned host;
	uint64_t owner;
};

static void owner_hup(void *arg)
{
	struct hup *h = arg;

	arrived(&sim_host[h->host]);
	if (!sim_stopping) {
		sim_trace("port %u: an owner's descriptor is closed", sim_node(h->host));
		emu_room_owner_hup(sim_cluster->room, h->host, h->owner);
	}
	free(h);
}

void sim_owner_closed(unsigned host, uint64_t owner)
{
	struct hup *h = malloc(sizeof(*h));

	assert(h);
	h->host = host;
	h->owner = owner;
	held_end(host, owner);
	sim_host[host].port_busy++;
	sim_after(sim_latency(), owner_hup, h);
}

static void mem_free(void *ctx, struct emu_mem *m)
{
	struct fabric_mem *mem = sim_fd(m->fd)->mem;

	/* A device's own memory goes with it alone, when it leaves its slot. */
	mem->gone = !sim_host_alive(mem->host) || mem->kind == FABRIC_BAR;
	sim_mem_free(ctx, m);
}

static int event_new(void *ctx, int *ret_fd)
{
	(void)ctx;
	*ret_fd = sim_fd_new(SIM_EVENT);
	sim_fd(*ret_fd)->hardware = true;
	sim_fd(*ret_fd)->host = sim_room_host;
	return 0;
}

static int event_signal(void *ctx, int fd)
{
	(void)ctx;
	fabric_act_signal(sim_fd(fd)->host, fd);
	return 0;
}

static int room_dup(void *ctx, int fd)
{
	(void)ctx;
	return sim_fd_dup(fd);
}

static void room_close(void *ctx, int fd)
{
	(void)ctx;
	sim_fd_close(fd);
}

/* Devices of the simulator are stepped by its clock, and never sleep. */
static int watch_new(void *ctx, unsigned host, uint64_t watch, uint32_t kind, int fd,
		     uint64_t address, uint64_t length)
{
	(void)ctx;
	(void)host;
	(void)watch;
	(void)kind;
	(void)fd;
	(void)address;
	(void)length;
	return -EOPNOTSUPP;
}

static void watch_free(void *ctx, unsigned host, uint64_t watch)
{
	(void)ctx;
	(void)host;
	(void)watch;
	assert(!"there are none");
}

static uint64_t room_now(void *ctx)
{
	(void)ctx;
	return sim_now();
}

static uint64_t room_random(void *ctx)
{
	(void)ctx;
	return sim_random();
}

static void room_log(void *ctx, const char *text)
{
	(void)ctx;
	sim_trace("room: %s", text);
	if (strstr(text, "fatal"))
		sim_cluster->fatal++;
}

const struct emu_ops sim_room_ops = {
	.mem_new = sim_mem_new,
	.mem_seal = sim_mem_seal,
	.mem_zero = sim_mem_zero,
	.mem_ones = sim_mem_ones,
	.mem_free = mem_free,
	.owner_new = owner_new,
	.owner_free = owner_free,
	.event_new = event_new,
	.event_signal = event_signal,
	.dup = room_dup,
	.close = room_close,
	.watch_new = watch_new,
	.watch_free = watch_free,
	.send = room_send,
	.engine_start = sim_engine_start,
	.engine_watch = sim_engine_watch,
	.engine_unwatch = sim_engine_unwatch,
	.now = room_now,
	.random = room_random,
	.log = room_log,
};

/* ---- hosts that outlive their daemon: smartio.ko's ---- */
static int identify(void *ctx, int fd, unsigned host, uint64_t *ret_owner)
{
	const struct sim_object *o = sim_fd(fd);

	(void)ctx;
	if (o->kind != SIM_OWNER || o->host != host)
		return -EBADF;
	*ret_owner = o->id;
	return 0;
}

const struct emu_ops *sim_room_outliving(void)
{
	static struct emu_ops ops;

	ops = sim_room_ops;
	ops.identify = identify;
	return &ops;
}

/* ---- its devices ---- */
static void room_step(void *arg);

/* The step scheduled last counts, unless it would come after the one scheduled before. */
static void step_after(uint64_t delay)
{
	if (room.step_at && room.step_at <= sim_now() + delay)
		return;
	room.step_at = sim_now() + delay;
	sim_after(delay, room_step, (void *)(uintptr_t)++room.steps);
}

/*
 * Devices poll their doorbells: often while they find work, seldom otherwise, and never while no
 * program uses them.
 */
static void room_step(void *arg)
{
	unsigned work;

	if (sim_stopping || (uintptr_t)arg != room.steps)
		return;
	room.step_at = 0;
	work = emu_room_step(sim_cluster->room, 4) + sim_engines_step();
	if (work) {
		sim_trace("room: devices did %u", work);
		room.empty = 0;
		room.delay = STEP_BUSY;
	} else if (++room.empty == LOOKS_IDLE) {
		room.engines = sim_has_engines();
	} else if (room.delay < STEP_IDLE) {
		room.delay *= 2;
	}
	if (room.empty < LOOKS_IDLE)
		step_after(room.delay);
	else if (room.engines || emu_room_watched(sim_cluster->room))
		step_after(STEP_LONG_IDLE);
}

void sim_room_kick(void)
{
	room.empty = 0;
	if (room.delay > STEP_BUSY)
		room.delay = STEP_BUSY;
	step_after(room.delay);
}

void sim_room_look(void)
{
	if (room.empty > LOOKS_IDLE - LOOKS_ASKED)
		room.empty = LOOKS_IDLE - LOOKS_ASKED;
	if (room.delay > STEP_BUSY)
		room.delay = STEP_BUSY;
	step_after(0);
}

void sim_room_start(void)
{
	while (held)
		held_end((unsigned)held->key.host, held->key.owner);
	memset(&room, 0, sizeof(room));
	sim_engines_forget();
	room.delay = STEP_BUSY;
	step_after(room.delay);
}
