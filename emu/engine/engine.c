/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA engines at work. A transfer is done in pieces; between two of them other channels have their
 * turn and the room may change anything, so each piece is translated again. Whatever is read from a
 * ring is read once and checked.
 */
#include "emu/engine/engine.h"
#include "smartio/io.h"

#define HERE(addr) ((addr) & (EMU_PAGE - 1))

static struct sio_dma_ring *ring_of(const struct emu_channel *c)
{
	return c->mem.data;
}

/* Faults are the room's to record: keep it. */
static void keep_fault(struct emu_engine *e, uint64_t addr, uint64_t len, uint32_t access,
		       const struct emu_target *t)
{
	struct emu_engine_fault *f = &e->fault[e->n_faults++];

	f->addr = addr;
	f->len = len;
	f->access = access;
	f->t = *t;
}

static const struct emu_xlat *page_at(struct emu_engine *e, uint64_t addr, uint32_t access,
				      struct emu_target *t)
{
	struct emu_device *d = &e->d;
	struct emu_xlat *x = &d->xlat[(addr / EMU_PAGE) % EMU_XLATS];

	if (x->gen == d->room->gen && x->page == addr / EMU_PAGE && x->access & access)
		return x;
	d->xlat_misses++;
	d->unchecked = UINT32_MAX; /* so that this access is compared with the list */
	if (emu_translate(d, (struct sio_dev_addr){addr & ~(EMU_PAGE - 1)}, access, t) < 0)
		return NULL;
	*x = (struct emu_xlat){.page = addr / EMU_PAGE,
			       .gen = t->fleeting ? 0 : d->room->gen, /* the room's is never 0 */
			       .data = t->data,
			       .access = t->access,
			       .n_hops = t->n_hops,
			       .far = t->far,
			       .way = t->way};
	memcpy(x->hop, t->hop, sizeof(x->hop));
	return x;
}

static void check(struct emu_engine *e, uint64_t addr, size_t len, uint32_t access,
		  const uint8_t *data)
{
	if (EMU_CHECK && (!data || (++e->d.unchecked & e->d.room->check_mask) == 0))
		emu_check_access(&e->d, (struct sio_dev_addr){addr}, len, access, data);
}

/* What lies behind it in addresses, and in bytes, and on the same way: one longer stretch. */
static bool follows(const struct emu_stretch *s, uint64_t addr, const uint8_t *data,
		    const struct emu_xlat *x)
{
	return addr == s->addr + s->len && data == s->data + s->len && x->n_hops == s->n_hops &&
	       memcmp(x->hop, s->hop, sizeof(s->hop)) == 0 &&
	       memcmp(&x->way, &s->way, sizeof(s->way)) == 0;
}

/* Look page by page for at most @len bytes from @addr on. 0; -EFAULT, kept. */
static int look(struct emu_engine *e, uint64_t addr, size_t len, uint32_t access,
		struct emu_stretch *ret)
{
	const struct emu_xlat *x;
	struct emu_target t;

	*ret = (struct emu_stretch){.addr = addr};
	while (ret->len < len) {
		uint64_t at = addr + ret->len;
		size_t n = EMU_PAGE - HERE(at);

		if (n > len - ret->len)
			n = len - ret->len;
		x = page_at(e, at, access, &t);
		if (!x && ret->len)
			break; /* the next call's */
		if (!x) {
			check(e, at, n, access, NULL);
			keep_fault(e, at, n, access, &t);
			return -EFAULT;
		}
		if (ret->data && !follows(ret, at, x->data + HERE(at), x))
			break;
		if (x->gen)
			check(e, at, n, access, x->data + HERE(at));
		if (!ret->data) {
			ret->data = x->data + HERE(at);
			ret->n_hops = x->n_hops;
			memcpy(ret->hop, x->hop, sizeof(ret->hop));
			ret->far = x->far;
			ret->fleeting = !x->gen;
			ret->way = x->way;
		}
		ret->len += n;
	}
	return 0;
}

/* Is @s, which was just found, more of @k? */
static bool continues(const struct emu_stretch *k, const struct emu_stretch *s)
{
	return k->data && s->addr >= k->addr && s->addr - k->addr <= k->len &&
	       s->data == k->data + (s->addr - k->addr) && s->n_hops == k->n_hops &&
	       memcmp(s->hop, k->hop, sizeof(s->hop)) == 0 &&
	       memcmp(&s->way, &k->way, sizeof(s->way)) == 0;
}

/*
 * The same, from the cached translations of range @g: a large range is translated once, not for
 * each piece. Builds that compare every access with the list translate each time; so a partly known
 * range does not count, or pieces would be cut there only in other builds.
 */
static int find(struct emu_engine *e, struct emu_dma_range *g, uint64_t addr, size_t len,
		uint32_t access, struct emu_stretch *ret)
{
	struct emu_stretch *k = &g->known[access - 1].stretch;
	uint64_t *gen = &g->known[access - 1].gen;
	int rc;

	if (*gen != e->d.room->gen)
		*k = (struct emu_stretch){.addr = addr};
	*gen = e->d.room->gen;
	if (k->data && addr >= k->addr && addr - k->addr < k->len &&
	    len <= k->len - (addr - k->addr) && !(EMU_CHECK && e->d.room->check_mask == 0)) {
		*ret = *k;
		ret->addr = addr;
		ret->data += addr - k->addr;
		ret->len = len;
		return 0;
	}
	rc = look(e, addr, len, access, ret);
	if (rc < 0 || ret->fleeting)
		return rc;
	if (!continues(k, ret))
		*k = *ret;
	else if (addr - k->addr + ret->len > k->len)
		k->len = addr - k->addr + ret->len;
	return 0;
}

/* An adapter's own count is the room's thread's; what engines send through it is beside that. */
static struct emu_adapter *adapter_of(struct emu_count *hop)
{
	return (struct emu_adapter *)((char *)hop - offsetof(struct emu_adapter, count));
}

static struct sio_pcie_count *passed(struct emu_count *hop)
{
	return &adapter_of(hop)->dma;
}

static void count(struct emu_engine *e, const struct emu_stretch *s, size_t len, uint32_t access)
{
	struct sio_pcie_count c = {0}, *own = &e->d.count.pcie;

	if (access == SIO_ACCESS_READ)
		sio_pcie_read(&e->d.room->pcie, s->addr, len, &c);
	else
		sio_pcie_write(&e->d.room->pcie, s->addr, len, &c);
	own->read_requests += c.read_requests;
	own->completions += c.completions;
	own->read_bytes += c.read_bytes;
	own->write_tlps += c.write_tlps;
	own->write_bytes += c.write_bytes;
	for (unsigned i = 0; i < s->n_hops; i++)
		emu_count_add(passed(s->hop[i]), &c);
	if (s->far)
		emu_way_count(&s->way, e->d.room, &c);
}

/* The range and address of the entry's next byte; NULL: the slot does not allow it. */
static struct emu_dma_range *range_of(const struct emu_channel *c, uint32_t slot, uint64_t offset,
				      uint32_t access, uint64_t *ret)
{
	struct emu_dma_range *g = slot < SIO_DMA_SLOTS ? c->slot[slot] : NULL;
	uint64_t end;

	if (!g || !(g->m.access & access) ||
	    __builtin_add_overflow(offset, c->entry.length, &end) || end > g->m.length)
		return NULL;
	*ret = g->m.iova + offset + c->copied;
	return g;
}

static uint64_t delay_of(const struct emu_stretch *s)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < s->n_hops; i++)
		ns += adapter_of(s->hop[i])->delay_ns;
	return ns;
}

/* What is read goes there and comes back. @out_ns: of the way to where it is written. */
static void note_delay(struct emu_channel *c, const struct emu_stretch *in, uint64_t out_ns)
{
	uint64_t ns = 2 * delay_of(in) + out_ns;

	if (ns > c->delay_ns)
		c->delay_ns = ns;
}

static void passed_by_engine(struct emu_adapter *a, const struct sio_pcie_count *c)
{
	emu_count_add(&a->dma, c);
}

/* To the members of a group. @in: what is copied. */
static int copy_to_group(struct emu_channel *c, const struct emu_dma_range *g, uint64_t addr,
			 const struct emu_stretch *in)
{
	const struct emu_ram *sender = (const struct emu_ram *)g->m.target;
	struct emu_engine *e = c->engine;
	struct sio_pcie_count sent = {0};
	struct emu_target t;
	int rc;

	if (e->d.room->delays)
		note_delay(c, in, emu_group_delay(sender));
	sio_pcie_write(&e->d.room->pcie, addr, in->len, &sent);
	emu_count_add(&e->d.count.pcie, &sent);
	rc = emu_group_write(&e->d, sender, g->m.offset + (addr - g->m.iova), in->data, in->len,
			     &sent, passed_by_engine, &t);
	count(e, in, in->len, SIO_ACCESS_READ);
	if (rc < 0)
		keep_fault(e, addr, in->len, SIO_ACCESS_WRITE, &t);
	c->copied += in->len;
	e->pieces++;
	return rc;
}

static bool to_group(const struct emu_dma_range *g)
{
	return g->m.target->kind == SIO_KIND_MEM && ((const struct emu_ram *)g->m.target)->sender;
}

/* A piece of the entry under way. 0; -EINVAL; -EFAULT. */
static int copy_piece(struct emu_channel *c)
{
	const struct sio_dma_entry *entry = &c->entry;
	uint64_t from = 0, to = 0, left = entry->length - c->copied;
	struct emu_engine *e = c->engine;
	uint64_t most = e->n_channels > 1 ? EMU_DMA_PIECE : EMU_DMA_PIECE_ALONE;
	struct emu_dma_range *source, *target;
	struct emu_stretch in, out;
	int rc;

	source = range_of(c, entry->source, entry->source_offset, SIO_ACCESS_READ, &from);
	target = range_of(c, entry->target, entry->target_offset, SIO_ACCESS_WRITE, &to);
	if (!source || !target)
		return -EINVAL;
	if (left == 0)
		return 0;
	if (left > most)
		left = most;
	rc = find(e, source, from, left, SIO_ACCESS_READ, &in);
	if (rc == 0 && to_group(target))
		return copy_to_group(c, target, to, &in);
	if (rc == 0)
		rc = find(e, target, to, in.len, SIO_ACCESS_WRITE, &out);
	if (rc < 0)
		return rc;
	if (e->d.room->delays)
		note_delay(c, &in, delay_of(&out));
	sio_copy_across(out.data, in.data, out.len);
	count(e, &in, out.len, SIO_ACCESS_READ);
	count(e, &out, out.len, SIO_ACCESS_WRITE);
	c->copied += out.len;
	e->pieces++;
	return 0;
}

/* An event that cannot come is an error of ours: it ends the machine room. */
static void enter(struct emu_channel *c, enum emu_channel_event event)
{
	if (!emu_channel_next(c->state, event, &c->state))
		abort();
}

/* Writes the result first, then that the transfer has completed, then wakes the waiters. */
static void finish(struct emu_channel *c)
{
	struct sio_dma_ring *ring = ring_of(c);
	struct emu_room *r = c->o.host->room;

	c->engine->transfers++;
	c->engine->failed += c->error != 0;
	sio_write32(&ring->result[c->done % SIO_DMA_RESULTS], (uint32_t)c->error);
	sio_to_fabric_barrier(); /* pairs with sio_dma_settle() */
	sio_write32(&ring->done, ++c->done);
	c->error = 0;
	c->delay_ns = 0;
	/* Done, then the look who waits: pairs with sleep_until() in libsmartio. */
	sio_full_barrier();
	if (sio_read32(&ring->waiting))
		r->ops->event_signal(r->ctx, c->finished);
}

static void entry_done(struct emu_channel *c)
{
	enter(c, EMU_CHANNEL_DONE);
	sio_write32(&ring_of(c)->head, ++c->head);
	if (c->entry.flags & SIO_DMA_LAST)
		finish(c);
}

/* The next entry, if there is one. */
static bool take_entry(struct emu_channel *c)
{
	struct sio_dma_ring *ring = ring_of(c);
	uint32_t ready = sio_read32(&ring->tail) - c->head;

	if (ready == 0 || c->state == EMU_CHANNEL_BROKEN)
		return false;
	if (ready > SIO_DMA_ENTRIES) {
		enter(c, EMU_CHANNEL_NONSENSE);
		return false;
	}
	sio_from_fabric_barrier(); /* pairs with submit() in libsmartio */
	sio_copy_from(&c->entry, &ring->entry[c->head % SIO_DMA_ENTRIES], sizeof(c->entry));
	/* It comes from the program's processor, while this one copies. */
	if (ready > 1)
		__builtin_prefetch(&ring->entry[(c->head + 1) % SIO_DMA_ENTRIES]);
	enter(c, EMU_CHANNEL_TAKE);
	c->copied = 0;
	return true;
}

static bool aborted(const struct emu_channel *c)
{
	return (int32_t)(sio_read32(&ring_of(c)->abort) - c->done) > 0;
}

static uint64_t now(const struct emu_channel *c)
{
	struct emu_room *r = c->o.host->room;

	return r->ops->now(r->ctx);
}

static void entry_copied(struct emu_channel *c)
{
	if (c->error || !c->delay_ns || !(c->entry.flags & SIO_DMA_LAST)) {
		entry_done(c);
		return;
	}
	enter(c, EMU_CHANNEL_DELAY);
	c->due = now(c) + c->delay_ns;
}

/* Return: it has ended now. */
static bool end_late(struct emu_channel *c)
{
	if (aborted(c))
		c->error = -ECANCELED;
	else if (now(c) < c->due)
		return false;
	entry_done(c);
	return true;
}

/* Return: was there anything to do? */
static bool channel_step(struct emu_channel *c)
{
	/* There was no room to record its faults. */
	if (c->engine->n_faults == EMU_ENGINE_FAULTS)
		return false;
	if (c->state == EMU_CHANNEL_LATE)
		return end_late(c);
	if (c->state != EMU_CHANNEL_BUSY && !take_entry(c))
		return false;
	if (c->error == 0 && aborted(c))
		c->error = -ECANCELED;
	if (c->error == 0)
		c->error = copy_piece(c);
	if (c->error || c->copied == c->entry.length)
		entry_copied(c);
	return true;
}

/* One piece of the channel whose turn it is, and which has something to do. */
static bool engine_step(struct emu_engine *e)
{
	struct emu_channel *c = e->turn ? e->turn : e->channels;
	unsigned before = e->n_faults;

	for (unsigned i = 0; i < e->n_channels; i++) {
		struct emu_channel *next = c->next ? c->next : e->channels;

		if (channel_step(c)) {
			e->turn = next;
			if (e->n_faults != before && e->d.room->ops->engine_report)
				e->d.room->ops->engine_report(e->d.room->ctx);
			return true;
		}
		c = next;
	}
	return false;
}

unsigned emu_engines_step(struct emu_host *h)
{
	unsigned work = 0;

	for (unsigned i = 0; i < h->n_adapters; i++)
		if (h->adapter[i].engine)
			work += engine_step(h->adapter[i].engine);
	return work;
}

uint64_t emu_engines_due(const struct emu_host *h)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < h->n_adapters; i++) {
		const struct emu_channel *c;

		if (!h->adapter[i].engine)
			continue;
		DL_FOREACH (h->adapter[i].engine->channels, c)
			if (c->state == EMU_CHANNEL_LATE && c->due < due)
				due = c->due;
	}
	return due;
}

void emu_engines_doze(struct emu_host *h, bool asleep)
{
	for (unsigned i = 0; i < h->n_adapters; i++) {
		struct emu_channel *c;

		if (!h->adapter[i].engine)
			continue;
		DL_FOREACH (h->adapter[i].engine->channels, c)
			sio_write32(&ring_of(c)->asleep, asleep);
	}
	/* The word, then the last look at the tails: pairs with sio_dma_ring(). */
	if (asleep)
		sio_full_barrier();
}

/* As count_fault() does for devices: what was sent, as far as it came. */
static void record(struct emu_engine *e, const struct emu_engine_fault *f)
{
	struct emu_stretch s = {.addr = f->addr, .n_hops = f->t.n_hops};
	struct sio_pcie_count sent = {0}, c = {0};

	if (f->t.counted) {
		emu_fault_record(&e->d, (struct sio_dev_addr){f->addr}, f->len, f->access, &f->t);
		return;
	}
	memcpy(s.hop, f->t.hop, sizeof(s.hop));
	if (f->access == SIO_ACCESS_READ) {
		sio_pcie_read(&e->d.room->pcie, f->addr, f->len, &sent);
		c.read_requests = c.completions = sent.read_requests;
	} else {
		sio_pcie_write(&e->d.room->pcie, f->addr, f->len, &c);
	}
	emu_count_add(&e->d.count.pcie, &c);
	for (unsigned i = 0; i < s.n_hops; i++)
		emu_count_add(passed(s.hop[i]), &c);
	if (f->t.far)
		emu_way_count(&f->t.way, e->d.room, &c);
	emu_fault_record(&e->d, (struct sio_dev_addr){f->addr}, f->len, f->access, &f->t);
}

static void collect(struct emu_engine *e)
{
	for (unsigned i = 0; i < e->n_faults; i++)
		record(e, &e->fault[i]);
	e->n_faults = 0;
}

void emu_engines_collect(struct emu_room *r)
{
	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = 0; k < r->host[i].n_adapters; k++)
			if (r->host[i].adapter[k].engine)
				collect(r->host[i].adapter[k].engine);
}
