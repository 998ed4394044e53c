/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stranger in exact multicast groups that nobody else uses: members of many sizes, published or
 * not. What is sent reaches the published members, as far as they are long, and is counted once at
 * the sender's adapter and once at each adapter at which it arrives.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "fault/stranger.h"

#define PAGE 4096u
#define FIRST_GROUP 6u /* workloads use those below */
#define LONGEST (4 * PAGE)
#define MOST 8u

static bool in_group(const struct thing *t, const void *arg)
{
	return (t->member || t->sender) && t->group == *(const unsigned *)arg;
}

static struct sio_req_mcast request(unsigned host, unsigned group, uint32_t what)
{
	const struct sio_topo_host *h = &sim_cluster->topology->host[host];

	return (struct sio_req_mcast){.h.owner = stranger_owner(host),
				      .adapter = (uint32_t)stranger_draw(h->n_adapters),
				      .group = group,
				      .what = what};
}

static struct thing *enter(unsigned host, const struct sio_req_mcast *req)
{
	struct thing *m = stranger_new(SIO_KIND_MEM, host, stranger.answer.group.id, req->h.owner);

	m->group = req->group;
	m->adapter = req->adapter;
	m->length = stranger.answer.group.size;
	m->bus = stranger.answer.group.address;
	m->member = req->what == SIO_MCAST_JOIN;
	m->sender = !m->member;
	if (!m->member)
		return m;
	m->fd = sim_fd_dup(stranger.fds[0]);
	m->bytes = calloc(1, m->length);
	assert(m->bytes);
	return m;
}

static unsigned users(unsigned group)
{
	const struct thing *t;
	unsigned n = 0;

	DL_FOREACH (stranger.things, t)
		n += in_group(t, &group);
	return n;
}

static void join(unsigned host, unsigned group)
{
	struct sio_req_mcast req = request(host, group, SIO_MCAST_JOIN);
	uint64_t size = sim_cluster->room->group[group].mem.size;
	struct errors want = {0};

	if (!req.h.owner || users(group) >= MOST)
		return;
	req.length = 1 + stranger_draw(LONGEST);
	errors_add(&want, users(group) && (req.length + PAGE - 1) / PAGE * PAGE > size, -ERANGE);
	if (stranger_ask(host, &req, sizeof(req), SIO_OP_MCAST, want.e) == 0)
		enter(host, &req);
}

static bool is_published(unsigned group)
{
	const struct thing *t;

	DL_FOREACH (stranger.things, t)
		if (in_group(t, &group) && t->published)
			return true;
	return false;
}

static void connect(unsigned host, unsigned group)
{
	struct sio_req_mcast req = request(host, group, SIO_MCAST_CONNECT);
	struct errors want = {0};

	if (!req.h.owner || users(group) >= MOST)
		return;
	errors_add(&want, !is_published(group), -ENOENT);
	if (stranger_ask(host, &req, sizeof(req), SIO_OP_MCAST, want.e) == 0)
		enter(host, &req);
}

static void publish(unsigned group)
{
	struct thing *t = stranger_any(SIO_KIND_MEM, in_group, &group);
	struct sio_req_mcast req;
	struct errors want = {0};
	bool on = stranger_draw(3);

	if (!t)
		return;
	req = request(t->host, group, on ? SIO_MCAST_PUBLISH : SIO_MCAST_UNPUBLISH);
	req.h.owner = t->ended ? 0 : t->owner;
	req.target = t->id;
	errors_add(&want, t->sender, -EINVAL);
	if (stranger_ask(t->host, &req, sizeof(req), SIO_OP_MCAST, want.e) == 0)
		t->published = on;
}

/* ---- sending ---- */
static bool can_send(const struct thing *t, const void *arg)
{
	const struct thing *c = arg;

	return t->sender && t->host == c->host && t->adapter == c->adapter && !t->ended;
}

static bool can_read(const struct thing *t, const void *arg)
{
	const struct thing *c = arg;

	return t->host == c->host && !t->ended && !t->sender && !t->member;
}

/* The whole target as a DMA range of the channel, which may exist already. */
static const struct thing *reach(struct thing *c, struct thing *target, uint32_t access)
{
	struct sio_req_dma_attach req = {.access = access};
	struct thing *t;

	if (!target)
		return NULL;
	DL_FOREACH (stranger.things, t)
		if (t->channel == c && t->source == target && t->access == access)
			return t;
	req.length = target->length;
	return stranger_attach(c, target, c->owner, &req);
}

static uint64_t written(unsigned host, unsigned adapter)
{
	const struct emu_adapter *a = &sim_cluster->room->host[host].adapter[adapter];

	return a->count.pcie.write_bytes + a->dma.write_bytes;
}

/* Changes the contents that a member must have. */
static void arrives(struct thing *m, uint64_t at, const uint8_t *bytes, uint64_t length)
{
	for (uint64_t i = 0; i < length && at + i < m->length; i++)
		m->bytes[at + i] = bytes[i];
}

/* The adapters' counters before a transfer, and where it is to be counted. */
struct count {
	uint64_t before[SIM_HOSTS][SIO_MAX_ADAPTERS];
	bool passed[SIM_HOSTS][SIO_MAX_ADAPTERS];
	bool missed;
};

static void look(struct count *c, const struct thing *sender, uint64_t at, const uint8_t *bytes,
		 uint64_t length)
{
	struct thing *m;

	DL_FOREACH (stranger.things, m) {
		struct emu_path *p;

		if (!m->member || m->group != sender->group || !m->published)
			continue;
		if (m->host == sender->host) {
			arrives(m, at, bytes, length);
			continue;
		}
		p = emu_path_find(&sim_cluster->room->host[sender->host], sender->adapter, m->host,
				  m->adapter);
		if (!p)
			continue;
		c->passed[sender->host][sender->adapter] = true;
		c->missed |= p->state != SIO_LINK_UP;
		if (p->state != SIO_LINK_UP)
			continue;
		c->passed[m->host][m->adapter] = true;
		arrives(m, at, bytes, length);
	}
}

/* Has the host no channels but the stranger's? Others would count, too. */
static bool is_alone(unsigned host)
{
	const struct thing *t;
	unsigned n = 0;

	DL_FOREACH (stranger.things, t)
		n += t->kind == SIO_KIND_DMA && t->host == host;
	return sim_port_count(host, SIO_KIND_DMA) == n;
}

static void compare(const struct count *c, unsigned host, uint64_t length)
{
	const struct sio_topology *topo = sim_cluster->topology;

	for (unsigned h = 0; is_alone(host) && h < sim_hosts(); h++)
		for (unsigned a = 0; a < topo->host[h].n_adapters; a++)
			if (written(h, a) - c->before[h][a] != (c->passed[h][a] ? length : 0))
				sim_fail("stranger",
					 "%llu bytes to a group are %llu at adapter %u of node %u",
					 (unsigned long long)length,
					 (unsigned long long)(written(h, a) - c->before[h][a]), a,
					 sim_node(h));
}

static void send(unsigned host)
{
	struct thing *c = stranger_any(SIO_KIND_DMA, stranger_is_on, &host);
	const struct thing *to = NULL, *from = NULL;
	struct sio_dma_entry e = {.flags = SIO_DMA_LAST};
	static struct count n;
	int result;

	if (c)
		to = reach(c, stranger_any(SIO_KIND_MEM, can_send, c), SIO_ACCESS_WRITE);
	if (to)
		from = reach(c, stranger_any(SIO_KIND_MEM, can_read, c), SIO_ACCESS_READ);
	if (!from)
		return;
	memset(&n, 0, sizeof(n));
	e.source = from->slot;
	e.target = to->slot;
	e.length = 1 + stranger_draw(from->length < to->length ? from->length : to->length);
	e.target_offset = stranger_draw(to->length - e.length + 1);
	for (unsigned h = 0; h < sim_hosts(); h++)
		for (unsigned a = 0; a < sim_cluster->topology->host[h].n_adapters; a++)
			n.before[h][a] = written(h, a);
	look(&n, to->source, to->offset + e.target_offset, from->source->bytes + from->offset,
	     e.length);
	result = stranger_transfer(c, &e);
	if (result != (n.missed ? -EFAULT : 0))
		sim_fail("stranger", "what node %u sends to group %u gives %d", sim_node(host),
			 to->source->group, result);
	compare(&n, host, e.length);
	stranger_compare_memory();
}

void stranger_act_group(unsigned host)
{
	unsigned group = FIRST_GROUP + (unsigned)stranger_draw(EMU_GROUPS - FIRST_GROUP);

	if (!sim_cluster->topology->exact_multicast)
		return;
	switch (stranger_draw(8)) {
	case 0:
	case 1:
		join(host, group);
		break;
	case 2:
		connect(host, group);
		break;
	case 3:
	case 4:
		publish(group);
		break;
	default:
		send(host);
	}
}
