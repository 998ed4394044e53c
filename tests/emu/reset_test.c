/* SPDX-License-Identifier: BSD-2-Clause */
/* A reset takes the doorbells from all who have them; registers stay with whoever has them. */
#include "fake.h"

struct had {
	struct fake *f;
	uint64_t owner, bell, registers, window;
	struct sio_evt_grant grant;
};

static int ask_bar(struct had *h, uint64_t offset, struct sio_evt_bar *ret)
{
	struct sio_req_bar req = {.h.owner = h->owner,
				  .device = DEV(LENDER, 0),
				  .offset = offset,
				  .length = 0x1000,
				  .access = 3};

	return ask(h->f, LENDER, &req, SIO_OP_BAR, ret);
}

static int ask_grant(struct had *h, uint64_t bell, struct sio_evt_grant *ret)
{
	struct sio_req_grant req = {.source_kind = SIO_KIND_BAR,
				    .access = 3,
				    .source = bell,
				    .length = 0x1000,
				    .peer_node = NODE(CLIENT)};

	return ask(h->f, LENDER, &req, SIO_OP_GRANT, ret);
}

static int ask_watch(struct had *h, unsigned host, uint32_t kind, uint64_t target)
{
	struct sio_req_watch req = {
		.target_kind = kind, .target = target, .kind = SIO_WATCH_TIMER, .length = 0x1000};

	return ask_only(h->f, host, &req, SIO_OP_WATCH);
}

static int reset(struct had *h, uint32_t kind, struct sio_evt_reset *ret)
{
	struct sio_req_reset req = {.device = DEV(LENDER, 0), .kind = kind};

	return ask(h->f, LENDER, &req, SIO_OP_RESET, ret);
}

/* The pages as the device sees them. */
static volatile uint32_t *bells(struct had *h)
{
	return emu_bar_view(fake_dev(h->f, LENDER, 0), DOORBELLS_RUN);
}

static void have(struct had *h, unsigned iommu)
{
	struct sio_evt_bar bar;
	struct fake *f = fake_new(iommu);

	memset(h, 0, sizeof(*h));
	h->f = f;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	fake_open(f, LENDER, 0);
	h->owner = fake_owner(f, LENDER);
	assert_int_equal(ask_bar(h, REGISTERS, &bar), 0);
	h->registers = bar.id;
	assert_int_equal(ask_bar(h, DOORBELLS, &bar), 0);
	h->bell = bar.id;
	assert_int_equal(ask_grant(h, h->bell, &h->grant), 0);
	h->window = fake_map(f, CLIENT, 0, LENDER, &h->grant).id;
	fake_forget(f);
}

static void all_lose_their_doorbells(void **state)
{
	static const uint32_t kinds[] = {SIO_RESET_FUNCTION, SIO_RESET_DONE};
	struct sio_evt_reset evt;
	struct sio_evt_bar bar;
	struct sio_req_map map;
	struct had h;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		have(&h, i / 2 << LENDER);
		assert_int_equal(ask_watch(&h, LENDER, SIO_KIND_BAR, h.bell), 0);
		assert_int_equal(ask_watch(&h, CLIENT, SIO_KIND_MAP, h.window), 0);
		assert_true(emu_room_naps(h.f->room));
		assert_int_equal(reset(&h, kinds[i % 2], &evt), 0);
		assert_int_equal(h.f->ones_freed, 1);
		assert_int_equal(ask_watch(&h, LENDER, SIO_KIND_BAR, h.bell), -ENODEV);
		assert_int_equal(ask_watch(&h, CLIENT, SIO_KIND_MAP, h.window), -ENODEV);
		assert_int_equal(ask_grant(&h, h.bell, &(struct sio_evt_grant){.id = 0}), -ENODEV);
		assert_non_null(strstr(fake_text(h.f), "gone"));
		map = fake_map_request(LENDER, &h.grant);
		assert_int_equal(ask_only(h.f, CLIENT, &map, SIO_OP_MAP), -ENODEV);
		/* The registers' owner writes to them still, which nobody waits for by a watch. */
		assert_int_equal(ask_bar(&h, REGISTERS, &bar), -EBUSY);
		assert_true(emu_room_naps(h.f->room));
		assert_int_equal(ask_watch(&h, LENDER, SIO_KIND_BAR, h.registers), 0);
		assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, h.registers, h.owner), 0);
		assert_false(emu_room_naps(h.f->room));
		/* Whoever comes now has the new ones. */
		assert_int_equal(ask_bar(&h, DOORBELLS, &bar), 0);
		assert_true(emu_room_naps(h.f->room));
		assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, h.bell, h.owner), -EBUSY);
		assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, 0), 0);
		assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, h.bell, h.owner), 0);
		assert_int_equal(fake_end(h.f, CLIENT, SIO_OP_UNMAP, h.window, 0), 0);
		assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_BAR), 1);
		assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_WATCH) +
					 fake_count(h.f, CLIENT, SIO_KIND_WATCH),
				 0);
		fake_free(h.f);
	}
}

/* What was rung before counts; what is rung by whoever had them does not. */
static void what_was_rung_stays(void **state)
{
	volatile uint32_t *fresh;
	struct sio_evt_reset evt;
	unsigned changes;
	struct had h;

	(void)state;
	have(&h, 0);
	bells(&h)[5] = 7;
	changes = fake_model(h.f, LENDER, 0)->view_changes;
	assert_int_equal(reset(&h, SIO_RESET_DONE, &evt), 0);
	assert_int_equal(fake_model(h.f, LENDER, 0)->view_changes, changes + 1);
	fresh = bells(&h);
	assert_int_equal(fresh[5], 7);
	assert_int_equal(fake_model(h.f, LENDER, 0)->resets, 1); /* of its power */
	assert_int_equal(reset(&h, SIO_RESET_FUNCTION, &evt), 0);
	assert_int_equal(fake_model(h.f, LENDER, 0)->resets, 2);
	fake_free(h.f);
}

static void without_memory_nothing_is_done(void **state)
{
	struct sio_evt_reset first, evt;
	volatile uint32_t *before;
	struct had h;

	(void)state;
	have(&h, 1 << LENDER);
	assert_int_equal(reset(&h, SIO_RESET_DONE, &first), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, 0), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, h.bell, h.owner), 0);
	assert_int_equal(ask_bar(&h, DOORBELLS, &(struct sio_evt_bar){.id = 0}), 0);
	before = bells(&h);
	h.f->fail_at = h.f->calls + 1;
	assert_int_equal(reset(&h, SIO_RESET_FUNCTION, &evt), -ENOMEM);
	assert_ptr_equal(bells(&h), before);
	assert_int_equal(fake_model(h.f, LENDER, 0)->resets, 1);
	assert_int_equal(reset(&h, SIO_RESET_FUNCTION, &evt), 0);
	assert_int_equal(evt.generation, first.generation + 1);
	fake_free(h.f);
}

/* Mappings of the view for other devices lead nowhere; where they are is where they were. */
static void devices_lose_them_too(void **state)
{
	struct sio_evt_dmamap inside, outside;
	struct emu_dev *near, *far;
	struct sio_evt_reset evt;
	uint32_t word;
	struct had h;

	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		word = 7;
		have(&h, iommu << LENDER);
		fake_open(h.f, LENDER, 1);
		fake_open(h.f, CLIENT, 0);
		fake_requester(h.f, CLIENT, 0, 0);
		near = fake_dev(h.f, LENDER, 1);
		far = fake_dev(h.f, CLIENT, 0);
		inside = fake_dmamap(h.f, LENDER, 0, 1, SIO_KIND_BAR, h.bell, 0x1000, 3);
		outside = fake_dmamap(h.f, CLIENT, 0, 0, SIO_KIND_MAP, h.window, 0x1000, 3);
		assert_int_equal(near->write(near, inside.iova + 8, &word, sizeof(word)), 0);
		assert_int_equal(far->write(far, outside.iova + 4, &word, sizeof(word)), 0);
		assert_int_equal(bells(&h)[1], 7);
		assert_int_equal(reset(&h, SIO_RESET_DONE, &evt), 0);
		word = 8;
		/* Without an IOMMU nobody holds them back: they find the new pages. */
		assert_int_equal(near->write(near, inside.iova + 8, &word, sizeof(word)),
				 iommu ? -EFAULT : 0);
		assert_int_equal(far->write(far, outside.iova + 4, &word, sizeof(word)),
				 iommu ? -EFAULT : 0);
		assert_int_equal(bells(&h)[2], iommu ? 7 : 8);
		assert_int_equal(bells(&h)[1], iommu ? 7 : 8);
		fake_free(h.f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_lose_their_doorbells),
		cmocka_unit_test(what_was_rung_stays),
		cmocka_unit_test(without_memory_nothing_is_done),
		cmocka_unit_test(devices_lose_them_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
