/* SPDX-License-Identifier: BSD-2-Clause */
/* DMA engines: transfers, what they count, how they fail, and what ends in the middle of one. */
#include "channel.h"

static int result(const struct dma *d, uint32_t transfer)
{
	assert_true((int32_t)(d->ring->done - transfer) > 0);
	return d->ring->result[transfer % SIO_DMA_RESULTS];
}

static void transfers_arrive_with_every_iommu(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 8; iommu++) {
		struct dma d;

		dma_init(&d, iommu);
		/* Neither whole pages nor words, over several pieces; then back into another place.
		 */
		put(&d, d.local, 3, d.remote, 5, SIZE - 9, true);
		assert_in_range(work(&d), 3, 8);
		assert_int_equal(d.ring->done, 1);
		assert_int_equal(d.ring->head, 1);
		assert_int_equal(result(&d, 0), 0);
		assert_memory_equal(d.there + 5, d.here + 3, SIZE - 9);
		assert_int_equal(d.there[4], 0);
		memset(d.here, 0, 0x4000);
		put(&d, d.remote, 0x1005, d.local, 1, 0x2000, false);
		put(&d, d.remote, 0x3005, d.local, 0x2001, 0x1000, true);
		work(&d);
		assert_int_equal(d.ring->done, 2);
		assert_memory_equal(d.here + 1, d.there + 0x1005, 0x3000);
		assert_int_equal(d.here[0], 0);
		assert_int_equal(d.here[0x3001], 0);
		/* Nothing at all is a transfer, too; and within one memory. */
		put(&d, d.local, 0, d.local, 0, 0, true);
		put(&d, d.local, 0x10000, d.local, 0x20000, 0x1000, true);
		work(&d);
		assert_int_equal(d.ring->done, 4);
		assert_memory_equal(d.here + 0x20000, d.here + 0x10000, 0x1000);
		assert_int_equal(d.f->n_events, 0);
		assert_int_equal(d.f->signals, 0);
		fake_free(d.f);
	}
}

/* 4 KiB each way through the window: as a device's, at the engine and at both links. */
static void transactions_are_counted(void **state)
{
	static const struct {
		const char *name;
		uint64_t value, at_links;
	} right[] = {
		{"rd_req", 8 + 8, 8},	 {"rd_cpl", 16 + 16, 16},  {"rd_bytes", 8192, 4096},
		{"wr_tlp", 16 + 16, 16}, {"wr_bytes", 8192, 4096}, {"faults", 0, 0},
	};
	struct dma d;

	(void)state;
	dma_init(&d, 1 << CLIENT);
	put(&d, d.local, 0, d.remote, 0, 4096, true);
	put(&d, d.remote, 0, d.local, 0, 4096, true);
	work(&d);
	for (unsigned i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		assert_int_equal(fake_counter(d.f, CLIENT, SIO_KIND_DMA, 0, right[i].name),
				 right[i].value);
		assert_int_equal(fake_counter(d.f, CLIENT, SIO_KIND_ADAPTER, 0, right[i].name),
				 right[i].at_links);
		assert_int_equal(fake_counter(d.f, LENDER, SIO_KIND_ADAPTER, 0, right[i].name),
				 right[i].at_links);
	}
	assert_int_equal(fake_counter(d.f, CLIENT, SIO_KIND_DMA, 0, "transfers"), 2);
	assert_int_equal(fake_counter(d.f, CLIENT, SIO_KIND_DMA, 0, "transfers_failed"), 0);
	fake_free(d.f);
}

static void bad_entries_fail_their_transfer_alone(void **state)
{
	static const struct {
		uint32_t from, to;
		uint64_t from_offset, to_offset, length;
	} bad[] = {
		{SIO_DMA_SLOTS, 0, 0, 0, 8}, {0, UINT32_MAX, 0, 0, 8}, {7, 0, 0, 0, 8},
		{0, 1, SIZE, 0, 1},	     {0, 1, 0, SIZE - 7, 8},   {0, 1, 0, 0, SIZE + 1},
		{0, 1, UINT64_MAX, 0, 8},    {0, 1, 8, 0, UINT64_MAX}, {0, 1, 0, UINT64_MAX - 3, 8},
	};
	struct sio_evt_dma_attach read_only;
	uint32_t n = 0;
	struct dma d;

	(void)state;
	dma_init(&d, 7);
	assert_int_equal(d.local, 0);
	assert_int_equal(d.remote, 1);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* What stands before in the transfer is done, what stands behind is not. */
		d.here[0x100] = (uint8_t)(i + 1);
		d.there[0x200] = 0;
		put(&d, 0, 0x100, 1, 0x100, 1, false);
		put(&d, bad[i].from, bad[i].from_offset, bad[i].to, bad[i].to_offset, bad[i].length,
		    false);
		put(&d, 0, 0x100, 1, 0x200, 1, true);
		put(&d, 0, 0x100, 1, 0x300, 1, true);
		work(&d);
		assert_int_equal(result(&d, n), -EINVAL);
		assert_int_equal(result(&d, n + 1), 0);
		assert_int_equal(d.there[0x100], i + 1);
		assert_int_equal(d.there[0x200], 0);
		assert_int_equal(d.there[0x300], i + 1);
		n += 2;
	}
	assert_int_equal(attach(&d, SIO_KIND_MEM, d.local_mem, 0x1000, 1, &read_only), 0);
	put(&d, 0, 0, read_only.slot, 0, 8, true);
	put(&d, read_only.slot, 0, 1, 0, 8, true);
	work(&d);
	assert_int_equal(result(&d, n), -EINVAL);
	assert_int_equal(result(&d, n + 1), 0);
	assert_int_equal(d.f->n_events, 0); /* nothing was sent that could fault */
	fake_free(d.f);
}

static void a_ring_without_sense_is_not_served(void **state)
{
	struct dma d;

	(void)state;
	dma_init(&d, 0);
	d.ring->tail = SIO_DMA_ENTRIES + 1;
	assert_int_equal(work(&d), 0);
	d.ring->tail = 1;
	assert_int_equal(work(&d), 0);
	assert_int_equal(d.ring->done, 0);
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_DMA_FREE, d.channel, d.owner), 0);
	fake_free(d.f);
}

static void a_full_ring_is_served(void **state)
{
	struct dma d;

	(void)state;
	dma_init(&d, 0);
	for (unsigned i = 0; i < SIO_DMA_ENTRIES; i++)
		put(&d, d.local, i * 8, d.remote, i * 8, 8, i + 1 == SIO_DMA_ENTRIES);
	work(&d);
	assert_int_equal(result(&d, 0), 0);
	assert_memory_equal(d.there, d.here, SIO_DMA_ENTRIES * 8);
	fake_free(d.f);
}

static void who_waits_is_told(void **state)
{
	struct dma d;

	(void)state;
	dma_init(&d, 0);
	put(&d, d.local, 0, d.remote, 0, 8, false);
	put(&d, d.local, 8, d.remote, 8, 8, true);
	put(&d, d.local, 0, d.remote, 0, 8, true);
	d.ring->waiting = 1;
	work(&d);
	assert_int_equal(d.f->signals, 2);
	d.ring->waiting = 0;
	put(&d, d.local, 0, d.remote, 0, 8, true);
	work(&d);
	assert_int_equal(d.f->signals, 2);
	/* A sleeping engine says so; a new channel of it is told of by its doorbell at once. */
	emu_room_engine_doze(d.f->room, CLIENT, true);
	assert_int_equal(d.ring->asleep, 1);
	emu_room_engine_doze(d.f->room, CLIENT, false);
	assert_int_equal(d.ring->asleep, 0);
	fake_free(d.f);
}

static void aborts_end_what_is_named(void **state)
{
	struct dma d;

	(void)state;
	dma_init(&d, 0);
	for (unsigned i = 0; i < 3; i++)
		put(&d, d.local, 0, d.remote, 0, SIZE, true);
	assert_int_equal(emu_room_engine_step(d.f->room, CLIENT), 1);
	assert_memory_equal(d.there, d.here, EMU_DMA_PIECE_ALONE);
	d.ring->abort = 2; /* the first, under way, and the second */
	assert_int_equal(emu_room_engine_step(d.f->room, CLIENT), 1);
	assert_int_equal(d.ring->done, 1);
	assert_int_equal(result(&d, 0), -ECANCELED);
	assert_int_equal(d.there[EMU_DMA_PIECE_ALONE], 0);
	work(&d);
	assert_int_equal(d.ring->done, 3);
	assert_int_equal(result(&d, 1), -ECANCELED);
	assert_int_equal(result(&d, 2), 0);
	assert_memory_equal(d.there, d.here, SIZE);
	fake_free(d.f);
}

/* Two channels of one engine, and the engines of two hosts, make progress together. */
static uint64_t due(struct dma *d)
{
	return emu_room_engine_due(d->f->room, CLIENT);
}

/* Each link adds its time, twice for what is read; the transfer's last entry waits for all. */
static void slow_links_delay_the_end(void **state)
{
	const uint64_t ms = 1000000;
	struct dma d;

	(void)state;
	dma_init(&d, 0);
	assert_int_equal(emu_room_link_delay(d.f->room, CLIENT, 9, ms), -ENODEV);
	assert_int_equal(emu_room_link_delay(d.f->room, CLIENT, 0, 2 * ms), 0);
	assert_int_equal(emu_room_link_delay(d.f->room, LENDER, 0, 3 * ms), 0);
	put(&d, d.local, 0, d.local, 4096, 4096, true); /* over no link */
	work(&d);
	assert_int_equal(d.ring->done, 1);
	assert_true(due(&d) == UINT64_MAX);
	put(&d, d.remote, 0, d.local, 0, 4096, false);
	put(&d, d.local, 0, d.remote, 0, 4096, true);
	work(&d);
	assert_int_equal(d.ring->head, 2);
	assert_int_equal(d.ring->done, 1);
	assert_in_range(due(&d), d.f->clock + 9 * ms, d.f->clock + 10 * ms);
	d.f->clock += 9 * ms;
	work(&d);
	assert_int_equal(d.ring->done, 1);
	d.f->clock += 1 * ms;
	work(&d);
	assert_int_equal(d.ring->done, 2);
	assert_int_equal(result(&d, 1), 0);
	assert_true(due(&d) == UINT64_MAX);
	/* One that waits for its end can be aborted; and without a delay nothing waits. */
	put(&d, d.local, 0, d.remote, 0, 4096, true);
	work(&d);
	assert_int_equal(d.ring->done, 2);
	d.ring->abort = 3;
	work(&d);
	assert_int_equal(d.ring->done, 3);
	assert_int_equal(result(&d, 2), -ECANCELED);
	emu_room_link_delay(d.f->room, CLIENT, 0, 0);
	emu_room_link_delay(d.f->room, LENDER, 0, 0);
	put(&d, d.local, 0, d.remote, 0, 4096, true);
	work(&d);
	assert_int_equal(d.ring->done, 4);
	fake_free(d.f);
}

static uint64_t group(struct dma *d, unsigned host, uint32_t what, uint64_t target)
{
	struct sio_req_mcast req = {.group = 1,
				    .what = what,
				    .target = target,
				    .length = what == SIO_MCAST_JOIN ? 4096 : 0};
	struct sio_evt_mcast evt;

	assert_int_equal(ask(d->f, host, &req, SIO_OP_MCAST, &evt), 0);
	return evt.id;
}

/* A transfer between @from and @to ends when @ms have passed, and not before. */
static void expect_delay(struct dma *d, uint32_t from, uint32_t to, uint64_t ms)
{
	uint32_t done = d->ring->done;

	put(d, from, 0, to, 0, 4096, true);
	work(d);
	assert_int_equal(d->ring->done, done);
	/* Each look at the clock moves it a little. */
	assert_in_range(due(d), d->f->clock + ms * 1000000 - 500000, d->f->clock + ms * 1000000);
	d->f->clock = due(d);
	work(d);
	assert_int_equal(d->ring->done, done + 1);
	assert_int_equal(result(d, done), 0);
}

/* A write to a group has arrived when its slowest member has it. */
static void slow_members_delay_the_end(void **state)
{
	const unsigned order[] = {CLIENT, LENDER, OTHER};
	struct sio_evt_dma_attach evt;
	uint64_t member[3];
	struct dma d;

	(void)state;
	d.f = fake_new(0);
	d.f->topo.exact_multicast = true;
	dma_init_in(&d, d.f);
	for (unsigned i = 0; i < 3; i++)
		member[i] = group(&d, order[i], SIO_MCAST_JOIN, 0);
	group(&d, CLIENT, SIO_MCAST_PUBLISH, member[0]);
	assert_int_equal(attach(&d, SIO_KIND_MEM, group(&d, CLIENT, SIO_MCAST_CONNECT, 0), 4096,
				SIO_ACCESS_WRITE, &evt),
			 0);
	emu_room_link_delay(d.f->room, CLIENT, 0, 2000000);
	emu_room_link_delay(d.f->room, LENDER, 0, 7000000);
	emu_room_link_delay(d.f->room, OTHER, 0, 3000000);
	put(&d, d.local, 0, evt.slot, 0, 4096, true); /* over no link */
	work(&d);
	assert_int_equal(d.ring->done, 1);
	group(&d, OTHER, SIO_MCAST_PUBLISH, member[2]);
	expect_delay(&d, d.local, evt.slot, 2 + 3);
	group(&d, LENDER, SIO_MCAST_PUBLISH, member[1]);
	expect_delay(&d, d.local, evt.slot, 2 + 7);
	expect_delay(&d, d.remote, evt.slot, 2 * (2 + 7) + 2 + 7);
	fake_free(d.f);
}

static void channels_take_turns(void **state)
{
	struct sio_req_dma req = {.h.reserved = 0};
	struct dma d, other;
	struct sio_evt_dma made;
	struct sio_evt_dma_attach evt;

	(void)state;
	dma_init(&d, 0);
	other = d;
	req.h.owner = d.owner;
	assert_int_equal(ask(d.f, CLIENT, &req, SIO_OP_DMA, &made), 0);
	other.channel = made.id;
	other.ring = channel_of(&other)->mem.data;
	assert_int_equal(attach(&other, SIO_KIND_MEM, d.local_mem, SIZE, 3, &evt), 0);
	put(&d, d.local, 0, d.remote, 0, SIZE, true);
	put(&other, evt.slot, 0, evt.slot, SIZE / 2, 8, true);
	assert_int_equal(emu_room_engine_step(d.f->room, CLIENT), 1);
	assert_int_equal(emu_room_engine_step(d.f->room, CLIENT), 1);
	assert_int_equal(other.ring->done, 1);
	assert_int_equal(d.ring->done, 0);
	assert_memory_equal(d.there, d.here, EMU_DMA_PIECE);
	assert_int_equal(d.there[EMU_DMA_PIECE], 0);
	/* The channel whose turn is next may go. */
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_DMA_FREE, other.channel, d.owner), 0);
	work(&d);
	assert_int_equal(d.ring->done, 1);
	fake_free(d.f);
}

static void assert_transfer_fails(struct dma *d, int error, const char *reason)
{
	const struct fake_event *e;

	fake_forget(d->f);
	work(d);
	assert_int_equal(d->ring->done, 1);
	assert_int_equal(result(d, 0), error);
	e = fake_take(d->f, CLIENT, SIO_EV_FAULT);
	if (!reason) {
		assert_null(e);
		return;
	}
	assert_non_null(e);
	if (!strstr(e->u.fault.reason, reason))
		fail_msg("'%s' does not contain '%s'", e->u.fault.reason, reason);
	assert_int_equal(e->u.fault.access, SIO_FAULT_WRITE);
}

/* A piece is done, then something happens, then the rest. */
static void begin(struct dma *d, unsigned iommu)
{
	dma_init(d, iommu);
	put(d, d->local, 0, d->remote, 0, SIZE, true);
	assert_int_equal(emu_room_engine_step(d->f->room, CLIENT), 1);
	assert_int_equal(d->ring->done, 0);
}

static void what_goes_in_mid_transfer_fails_it(void **state)
{
	uint64_t lost;
	struct dma d;

	(void)state;
	begin(&d, 7);
	lost = fake_counter(d.f, CLIENT, 0, 0, "faults");
	emu_room_link(d.f->room, LENDER, 0, false);
	assert_transfer_fails(&d, -EFAULT, "is down");
	assert_int_equal(fake_counter(d.f, CLIENT, 0, 0, "faults"), lost + 1);
	assert_int_equal(fake_counter(d.f, CLIENT, SIO_KIND_DMA, 0, "faults"), 1);
	fake_free(d.f);

	begin(&d, 0);
	emu_room_host_down(d.f->room, LENDER);
	assert_transfer_fails(&d, -EFAULT, "is down");
	fake_up(d.f, LENDER); /* another start: the entry is of the one before */
	put(&d, d.local, 0, d.remote, 0, 8, true);
	work(&d);
	assert_int_equal(result(&d, 1), -EFAULT);
	fake_free(d.f);

	begin(&d, 1 << LENDER); /* the exporter's word alone is enough for its IOMMU */
	assert_int_equal(fake_end(d.f, LENDER, SIO_OP_UNGRANT, d.grant.id, 0), 0);
	assert_transfer_fails(&d, -EFAULT, "nothing is mapped");
	fake_free(d.f);

	begin(&d, 0); /* windows and memory do not wait for the engine */
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_UNMAP, d.map.id, d.owner), 0);
	assert_transfer_fails(&d, -EINVAL, NULL);
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_DMA_DETACH, d.remote_range, d.owner),
			 -ENOENT);
	fake_free(d.f);

	begin(&d, 7);
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_FREE, d.local_mem, d.owner), 0);
	assert_transfer_fails(&d, -EINVAL, NULL);
	fake_free(d.f);

	begin(&d, 7);
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_DMA_DETACH, d.local_range, d.owner), 0);
	assert_transfer_fails(&d, -EINVAL, NULL);
	fake_free(d.f);
}

/* Its program is killed: nothing of it is left at once, and nothing is copied any more. */
static void owners_take_their_channels_along(void **state)
{
	const struct fake_event *e;
	struct dma d;

	(void)state;
	for (unsigned iommu = 0; iommu < 8; iommu += 7) {
		begin(&d, iommu);
		fake_forget(d.f);
		d.there[EMU_DMA_PIECE_ALONE] = 1;
		emu_room_owner_hup(d.f->room, CLIENT, d.owner);
		e = fake_take(d.f, CLIENT, SIO_EV_OWNER_GONE);
		assert_non_null(e);
		assert_int_equal(e->u.gone.mems + e->u.gone.maps, 0);
		assert_non_null(fake_take(d.f, CLIENT, SIO_EV_OWNER_END));
		assert_int_equal(work(&d), 0);
		assert_int_equal(d.there[EMU_DMA_PIECE_ALONE], 1);
		for (uint32_t kind = SIO_KIND_MEM; kind <= SIO_KIND_DMA_RANGE; kind++)
			if (kind <= SIO_KIND_IRQ || kind >= SIO_KIND_WATCH)
				assert_int_equal(fake_count(d.f, CLIENT, kind), 0);
		fake_free(d.f);
	}
	begin(&d, 7);
	emu_room_host_down(d.f->room, CLIENT);
	assert_int_equal(work(&d), 0);
	fake_free(d.f);
	begin(&d, 7);
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_DMA_FREE, d.channel, d.owner), 0);
	assert_int_equal(work(&d), 0);
	assert_int_equal(fake_count(d.f, CLIENT, SIO_KIND_DMA_RANGE), 0);
	fake_free(d.f);
}

/* More faults than the engine can keep: it waits until they are recorded, and none is lost. */
static void faults_are_never_lost(void **state)
{
	struct dma d;

	(void)state;
	dma_init(&d, 0);
	emu_room_link(d.f->room, CLIENT, 0, false);
	for (unsigned i = 0; i < 3 * EMU_ENGINE_FAULTS; i++)
		put(&d, d.local, 0, d.remote, 0, 8, true);
	while (d.ring->done < 3 * EMU_ENGINE_FAULTS) {
		uint32_t before = d.ring->done;

		work(&d);
		assert_int_equal(d.ring->done, before + EMU_ENGINE_FAULTS);
	}
	assert_int_equal(fake_counter(d.f, CLIENT, 0, 0, "faults"), 3 * EMU_ENGINE_FAULTS);
	fake_free(d.f);
}

/* What is known of a range for reading says nothing of writing, and nothing after a change. */
#define SMALL 0x40000 /* the rest of the window */

static void rights_are_looked_at_each_way(void **state)
{
	struct sio_req_grant req = {.source_kind = SIO_KIND_MEM,
				    .access = SIO_ACCESS_READ,
				    .length = SMALL,
				    .peer_node = NODE(CLIENT)};
	struct sio_evt_dma_attach range;
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	struct dma d;

	(void)state;
	dma_init(&d, 1 << LENDER);
	emu_room_check_every(d.f->room, 1u << 20); /* as in production */
	req.source = d.remote_mem;
	assert_int_equal(ask(d.f, LENDER, &req, SIO_OP_GRANT, &grant), 0);
	map = fake_map(d.f, CLIENT, d.owner, LENDER, &grant);
	assert_int_equal(attach(&d, SIO_KIND_MAP, map.id, SMALL, 3, &range), 0);
	for (unsigned round = 0; round < 3; round++) {
		put(&d, range.slot, 0, d.local, 0, SMALL, true);
		put(&d, d.local, 0, range.slot, 0, SMALL, true);
		put(&d, range.slot, 4097, d.local, 3, SMALL / 2, true);
		work(&d);
		assert_int_equal(result(&d, 3 * round), 0);
		assert_int_equal(result(&d, 3 * round + 1), -EFAULT);
		assert_int_equal(result(&d, 3 * round + 2), 0);
	}
	assert_int_equal(fake_end(d.f, LENDER, SIO_OP_UNGRANT, grant.id, 0), 0);
	put(&d, range.slot, 0, d.local, 0, 8, true);
	work(&d);
	assert_int_equal(result(&d, 9), -EFAULT);
	fake_free(d.f);
}

/* What a build that compares less knows already does not cut a transfer in other places. */
static void pieces_are_the_same_in_every_build(void **state)
{
	unsigned steps[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct dma d;

		dma_init(&d, 0);
		emu_room_check_every(d.f->room, i ? 1u << 20 : 1);
		put(&d, d.local, 0, d.remote, 0, 0x2000, true);
		put(&d, d.local, 0x1000, d.remote, 0x1000, 0x4000, true);
		put(&d, d.local, 0x1000, d.remote, 0x800, 0x8000, true);
		put(&d, d.local, 0, d.remote, 0, 0x9000, true);
		steps[i] = work(&d);
		assert_int_equal(d.ring->done, 4);
		fake_free(d.f);
	}
	assert_int_equal(steps[1], steps[0]);
}

static void tables_are_finite(void **state)
{
	struct sio_req_dma req = {.h.reserved = 0};
	struct sio_evt_dma_attach evt;
	struct sio_evt_dma made;
	struct dma d;

	(void)state;
	dma_init(&d, 0);
	for (unsigned i = 2; i < SIO_DMA_SLOTS; i++) {
		assert_int_equal(attach(&d, SIO_KIND_MEM, d.local_mem, 0x1000, 3, &evt), 0);
		assert_int_equal(evt.slot, i);
	}
	assert_int_equal(attach(&d, SIO_KIND_MEM, d.local_mem, 0x1000, 3, &evt), -ENOSPC);
	assert_int_equal(fake_reason(d.f), SIO_OUT_OF_DMA_SLOTS);
	for (unsigned i = 1; i < EMU_CHANNELS; i++)
		assert_int_equal(ask(d.f, CLIENT, &req, SIO_OP_DMA, &made), 0);
	assert_int_equal(ask(d.f, CLIENT, &req, SIO_OP_DMA, &made), -ENOSPC);
	assert_non_null(strstr(fake_text(d.f), "all in use"));
	assert_int_equal(fake_reason(d.f), SIO_OUT_OF_DMA_CHANNELS);
	assert_int_equal(ask(d.f, OTHER, &req, SIO_OP_DMA, &made), 0);
	fake_free(d.f);
}

/* Whatever cannot be had: nothing is left of a channel that was not made. */
static void every_failure_is_undone(void **state)
{
	struct sio_req_dma req = {.h.reserved = 0};
	struct sio_evt_dma made;

	(void)state;
	for (unsigned n = 1;; n++) {
		struct fake *f = fake_new(0);
		int rc;

		fake_up(f, CLIENT);
		f->fail_at = f->calls + n;
		rc = ask(f, CLIENT, &req, SIO_OP_DMA, &made);
		f->fail_at = 0;
		assert_int_equal(fake_count(f, CLIENT, SIO_KIND_DMA), rc == 0);
		fake_free(f);
		if (rc == 0) {
			assert_int_equal(n, 4); /* a ring and two events */
			break;
		}
		assert_true(rc == -ENOMEM || rc == -EMFILE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transfers_arrive_with_every_iommu),
		cmocka_unit_test(transactions_are_counted),
		cmocka_unit_test(bad_entries_fail_their_transfer_alone),
		cmocka_unit_test(a_ring_without_sense_is_not_served),
		cmocka_unit_test(a_full_ring_is_served),
		cmocka_unit_test(who_waits_is_told),
		cmocka_unit_test(aborts_end_what_is_named),
		cmocka_unit_test(slow_links_delay_the_end),
		cmocka_unit_test(slow_members_delay_the_end),
		cmocka_unit_test(channels_take_turns),
		cmocka_unit_test(what_goes_in_mid_transfer_fails_it),
		cmocka_unit_test(owners_take_their_channels_along),
		cmocka_unit_test(faults_are_never_lost),
		cmocka_unit_test(rights_are_looked_at_each_way),
		cmocka_unit_test(pieces_are_the_same_in_every_build),
		cmocka_unit_test(tables_are_finite),
		cmocka_unit_test(every_failure_is_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
