/* SPDX-License-Identifier: BSD-2-Clause */
/* What is finite runs out with the right error; BAR pages; operations that fail, each in turn. */
#include "fake.h"

static void requester_table_is_finite(void **state)
{
	struct sio_req_requester_add req = {.direction = SIO_REQUESTER_OUT};
	struct sio_evt_requester_add a, b;
	struct fake *f = fake_new(0);
	uint64_t other;

	(void)state;
	fake_up(f, LENDER);
	for (unsigned i = 0; i < 3; i++)
		fake_open(f, LENDER, i);
	req.device = DEV(LENDER, 0);
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_REQUESTER_ADD, &a), 0);
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_REQUESTER_ADD, &b), 0);
	assert_int_equal(a.entry, b.entry); /* one device, one entry */
	other = fake_requester(f, LENDER, 0, 1);
	req.device = DEV(LENDER, 2);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_REQUESTER_ADD), -ENOSPC);
	assert_non_null(
		strstr(fake_text(f), "adapter 0, node 4: 4 of 4 entries in use (CPUs: 2, "));
	assert_int_equal(fake_reason(f), SIO_OUT_OF_REQUESTERS);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_REQUESTER_DEL, a.id, 0), 0);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_REQUESTER_ADD), -ENOSPC);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_REQUESTER_DEL, b.id, 0), 0);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_REQUESTER_ADD), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_REQUESTER_DEL, other, 0), 0);
	req = (struct sio_req_requester_add){.direction = SIO_REQUESTER_OUT, .bdf = 0x4200};
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_REQUESTER_ADD), 0);
	fake_free(f);
}

/* What one host takes is not the others'. */
static void descriptors_are_shared_out(void **state)
{
	struct sio_req_alloc alloc = {.size = 4096, .highest = SIO_PORT_ANY, .access = 3};
	struct sio_req_irq_new irq = {.h.flags = 0};
	struct sio_req_owner_new owner = {.pid = 1};
	struct sio_evt_irq_new q;
	struct fake *f = fake_new(0);
	uint64_t mem = 0;

	(void)state;
	emu_room_descriptors(f->room, 32); /* 10 for each of three hosts */
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	for (unsigned i = 0; i < 8; i++)
		mem = fake_alloc(f, LENDER, 0, 4096);
	fake_owner(f, LENDER);
	assert_int_equal(ask(f, LENDER, &irq, SIO_OP_IRQ_NEW, &q), 0);
	assert_int_equal(ask_only(f, LENDER, &alloc, SIO_OP_ALLOC), -EMFILE);
	assert_non_null(strstr(fake_text(f), "holds 10 of its share of 10 descriptors"));
	assert_int_equal(fake_reason(f), SIO_OUT_OF_DESCRIPTORS);
	assert_int_equal(ask_only(f, LENDER, &irq, SIO_OP_IRQ_NEW), -EMFILE);
	assert_int_equal(ask_only(f, LENDER, &owner, SIO_OP_OWNER_NEW), -EMFILE);
	assert_non_null(strstr(fake_text(f), "no owner"));
	for (unsigned i = 0; i < 10; i++)
		fake_alloc(f, CLIENT, 0, 4096);
	assert_int_equal(ask_only(f, CLIENT, &alloc, SIO_OP_ALLOC), -EMFILE);
	/* What holds no descriptor is still made; what goes makes room. */
	fake_grant(f, LENDER, 0, mem, 4096, CLIENT);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_IRQ_FREE, q.id, 0), 0);
	fake_alloc(f, LENDER, 0, 4096);
	emu_room_host_down(f->room, CLIENT);
	fake_up(f, CLIENT);
	fake_alloc(f, CLIENT, 0, 4096);
	fake_free(f);
}

static void window_is_finite(void **state)
{
	struct fake *f = fake_new(0); /* bus addresses are physical: 64 KiB apart, an entry each */
	struct sio_evt_grant g[9];
	struct sio_evt_map map[16];
	struct sio_req_map req;
	unsigned n = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	for (unsigned host = CLIENT; host <= OTHER; host++)
		for (unsigned i = 0; i < 8; i++) {
			uint64_t mem = fake_alloc(f, host, 0, 0x10000);

			g[i] = fake_grant(f, host, 0, mem, 0x10000, LENDER);
			map[n++] = fake_map(f, LENDER, 0, host, &g[i]);
		}
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "lut_used"), 16);
	g[8] = fake_grant(f, OTHER, 0, fake_alloc(f, OTHER, 0, 0x1000), 0x1000, LENDER);
	req = fake_map_request(OTHER, &g[8]);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), -ENOSPC);
	assert_non_null(strstr(fake_text(f), "16 of 16"));
	assert_int_equal(fake_reason(f), SIO_OUT_OF_LUT_ENTRIES);
	/* What is mapped already shares its entries. */
	fake_map(f, LENDER, 0, OTHER, &g[7]);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNMAP, map[0].id, 0), 0);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), 0);
	fake_free(f);
}

static void memory_is_finite(void **state)
{
	struct sio_req_alloc req = {.size = (1 << 20) + 1, .highest = SIO_PORT_ANY};
	struct fake *f = fake_new(0);
	struct sio_evt_alloc evt;
	uint64_t mem;

	(void)state;
	fake_up(f, LENDER);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_ALLOC), -ENOSPC);
	mem = fake_alloc(f, LENDER, 0, 0x80000);
	req.size = 0x80001;
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_ALLOC), -ENOSPC);
	assert_non_null(strstr(fake_text(f), "528384 bytes wanted, 524288 of 1048576 are free"));
	assert_int_equal(fake_reason(f), SIO_OUT_OF_RAM);
	req.size = 1;
	req.highest = 0x1000fffffull;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_ALLOC, &evt), 0);
	assert_int_equal(evt.size, 0x1000);
	req.highest = 0xffffffff;
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_ALLOC), -ENOSPC);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, mem, 0), 0);
	fake_free(f);
}

static void list_goes_on_after_its_limit(void **state)
{
	struct sio_req_list req = {.kind = SIO_KIND_MEM};
	struct fake *f = fake_new(0);
	struct sio_evt_list evt;
	unsigned seen = 0;

	(void)state;
	fake_up(f, LENDER);
	for (unsigned i = 0; i < 2 * SIO_LIST_MAX + 1; i++)
		fake_alloc(f, LENDER, 0, 0x1000);
	do {
		assert_int_equal(ask(f, LENDER, &req, SIO_OP_LIST, &evt), 0);
		for (unsigned i = 0; i < evt.count; i++) {
			assert_true(evt.entry[i].id > req.after);
			req.after = evt.entry[i].id;
		}
		seen += evt.count;
	} while (evt.more);
	assert_int_equal(seen, 2 * SIO_LIST_MAX + 1);
	fake_free(f);
}

static int bar(struct fake *f, uint64_t offset, uint64_t length, uint32_t access,
	       struct sio_evt_bar *ret)
{
	struct sio_req_bar req = {
		.device = DEV(LENDER, 0), .access = access, .offset = offset, .length = length};

	return ask(f, LENDER, &req, SIO_OP_BAR, ret);
}

static void bar_pages_are_given_by_purpose(void **state)
{
	struct fake *f = fake_new(0);
	struct sio_evt_bar a, b;
	struct fake_model *m;
	const void *first;

	(void)state;
	fake_up(f, LENDER);
	assert_int_equal(bar(f, REGISTERS, 0x1000, 3, &a), -EPERM); /* not open */
	fake_open(f, LENDER, 0);
	m = fake_model(f, LENDER, 0);
	assert_null(m->dev->view(m->dev, REGISTERS_RUN));
	assert_false(emu_room_watched(f->room));
	assert_int_equal(bar(f, REGISTERS, 0x1000, 1, &a), 0);
	assert_int_equal(a.bar_flags, SIO_BAR_MIRROR);
	assert_false(emu_room_watched(f->room));
	assert_int_equal(bar(f, REGISTERS, 0x1000, 3, &a), 0);
	assert_int_equal(a.bar_flags, SIO_BAR_REGISTERS | SIO_BAR_POLLED);
	assert_true(emu_room_watched(f->room));
	first = (const void *)(uintptr_t)m->dev->view(m->dev, REGISTERS_RUN);
	assert_non_null(first);
	assert_int_equal(bar(f, REGISTERS, 0x1000, 3, &b), -EBUSY);
	assert_int_equal(bar(f, REGISTERS, 0x2000, 3, &b), -EINVAL);
	assert_non_null(strstr(fake_text(f), "crosses the end of the registers"));
	assert_int_equal(bar(f, MSIX, 0x1000, 1, &b), -EACCES);
	assert_int_equal(bar(f, 0x5000, 0x1000, 1, &b), -EINVAL); /* nothing there */
	assert_int_equal(bar(f, 0x8000, 0x1000, 1, &b), -EINVAL); /* behind the BAR */
	assert_int_equal(bar(f, UINT64_MAX - 0xfff, 0x1000, 1, &b), -EINVAL);
	assert_int_equal(bar(f, MEMORY + 0x1000, 0x1000, 3, &b), 0);
	assert_int_equal(b.offset, 0x1000);
	assert_int_equal(bar(f, DOORBELLS, 0x1000, 3, &b), 0);
	assert_int_equal(bar(f, DOORBELLS, 0x1000, 3, &b), 0);
	assert_int_equal(b.bar_flags, SIO_BAR_POLLED);

	/* The next writer gets a page that the one before cannot reach. */
	assert_int_equal(fake_end(f, LENDER, SIO_OP_BAR_CLOSE, a.id, 0), 0);
	assert_null(m->dev->view(m->dev, REGISTERS_RUN));
	assert_int_equal(bar(f, REGISTERS, 0x1000, 3, &a), 0);
	assert_int_equal(m->view_changes, 3);
	fake_free(f);
}

static void devices_open_once_unless_forced(void **state)
{
	struct sio_req_device_open req = {.device = DEV(LENDER, 0)};
	struct sio_req_device_close close = {.device = DEV(LENDER, 0)};
	struct fake *f = fake_new(0);
	struct sio_evt_device evt;
	struct sio_evt_bar view;
	uint64_t w;

	(void)state;
	fake_up(f, LENDER);
	w = fake_owner(f, LENDER);
	req.h.owner = w;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_DEVICE_OPEN, &evt), 0);
	assert_string_equal(evt.name, "dev0");
	assert_int_equal(evt.msix_offset, MSIX);
	req.h.owner = 0;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_DEVICE_OPEN, &evt), -EBUSY);
	assert_int_equal(bar(f, DOORBELLS, 0x1000, 3, &view), 0);
	emu_room_owner_hup(f->room, LENDER, w); /* the view is the daemon's: it stays open */
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_OWNER), 1);
	req.h.flags = SIO_DEVICE_FORCE;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_DEVICE_OPEN, &evt), 0);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_OWNER), 0);
	assert_int_equal(ask_only(f, LENDER, &close, SIO_OP_DEVICE_CLOSE), -EBUSY);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_BAR_CLOSE, view.id, 0), 0);
	assert_int_equal(ask_only(f, LENDER, &close, SIO_OP_DEVICE_CLOSE), 0);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_DEVICE), 0);
	fake_free(f);
}

/* All that can fail once: -> whether the whole went through. Asserts nothing about success. */
static bool whole_life(struct fake *f)
{
	struct sio_req_bar bar_req = {.device = DEV(LENDER, 0), .access = 3, .length = 0x1000};
	struct sio_req_alloc alloc = {.size = 0x1000, .highest = SIO_PORT_ANY};
	struct sio_req_device_open open = {.device = DEV(LENDER, 0)};
	struct sio_req_owner_new owner = {0};
	struct sio_evt_owner_new owner_evt;
	struct sio_req_irq_new irq = {0};

	if (emu_room_host_up(f->room, LENDER) < 0)
		return false;
	if (ask(f, LENDER, &owner, SIO_OP_OWNER_NEW, &owner_evt) < 0)
		return false;
	alloc.h.owner = owner_evt.id;
	irq.h.owner = owner_evt.id;
	return ask_only(f, LENDER, &alloc, SIO_OP_ALLOC) == 0 &&
	       ask_only(f, LENDER, &irq, SIO_OP_IRQ_NEW) == 0 &&
	       ask_only(f, LENDER, &open, SIO_OP_DEVICE_OPEN) == 0 &&
	       ask_only(f, LENDER, &bar_req, SIO_OP_BAR) == 0;
}

static void each_operation_may_fail(void **state)
{
	bool done = false;

	(void)state;
	for (unsigned n = 1; !done; n++) {
		struct fake *f = fake_new(7);

		f->fail_at = n;
		done = whole_life(f);
		assert_true(done || f->calls == n); /* nothing went on after the failure */
		/* A failure changes nothing: the same goes through now. */
		f->fail_at = 0;
		if (!done && !f->room->host[LENDER].up)
			assert_true(whole_life(f));
		fake_free(f);
		assert_true(n < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requester_table_is_finite),
		cmocka_unit_test(descriptors_are_shared_out),
		cmocka_unit_test(window_is_finite),
		cmocka_unit_test(memory_is_finite),
		cmocka_unit_test(list_goes_on_after_its_limit),
		cmocka_unit_test(bar_pages_are_given_by_purpose),
		cmocka_unit_test(devices_open_once_unless_forced),
		cmocka_unit_test(each_operation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
