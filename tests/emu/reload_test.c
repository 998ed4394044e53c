/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices come and go by another file while the room runs: others go on, what hosts have of one
 * that goes is cut off as when it is pulled out, and a file that cannot be taken changes nothing.
 */
#include "next.h"

static void expect(struct fake *f, uint32_t op, uint32_t fdid)
{
	struct fake_event *e = fake_take(f, LENDER, op);

	assert_non_null(e);
	assert_int_equal(e->u.device.device, fdid);
}

static unsigned listed(struct fake *f, unsigned host)
{
	struct sio_req_device_list req = {.after = 0};
	struct sio_evt_device evt;
	unsigned n = 0;

	for (; ask(f, host, &req, SIO_OP_DEVICE_LIST, &evt) == 0; n++)
		req.after = evt.id;
	return n;
}

static void a_new_device_appears_and_works(void **state)
{
	struct fake *f;
	struct next n;

	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		struct fake_model *before;
		uint64_t owner, mem;
		struct sio_evt_dmamap map;
		uint32_t word = 0x5eed;
		unsigned resets;

		f = fake_new(iommu);
		fake_up(f, LENDER);
		fake_open(f, LENDER, 0);
		before = fake_model(f, LENDER, 0);
		resets = before->resets;
		read_next(f, &n);
		add(&n, LENDER);
		fake_forget(f);
		assert_int_equal(reload(&n), 0);
		expect(f, SIO_EV_DEVICE_BACK, DEV(LENDER, ADDED));
		assert_null(fake_take(f, LENDER, SIO_EV_DEVICE_BACK));
		assert_null(fake_take(f, LENDER, SIO_EV_DEVICE_GONE));
		assert_int_equal(listed(f, LENDER), 4);
		/* Nobody else notices. */
		assert_ptr_equal(fake_model(f, LENDER, 0), before);
		assert_int_equal(before->resets, resets);
		owner = fake_owner(f, LENDER);
		mem = fake_alloc(f, LENDER, owner, 0x1000);
		fake_open(f, LENDER, ADDED);
		map = fake_dmamap(f, LENDER, owner, ADDED, SIO_KIND_MEM, mem, 0x1000, 3);
		assert_int_equal(
			fake_dev(f, LENDER, 3)
				->write(fake_dev(f, LENDER, 3), map.iova, &word, sizeof(word)),
			0);
		assert_memory_equal(fake_data(f, LENDER, mem), &word, sizeof(word));
		emu_room_step(f->room, 1);
		assert_int_equal(fake_model(f, LENDER, 3)->steps, 1);
		fake_free(f);
	}
}

/* What a host, and a peer, have of it stays as objects that lead nowhere until they end them. */
static void a_device_goes_while_it_is_in_use(void **state)
{
	struct fake *f = fake_new(1);
	struct sio_req_bar bar = {
		.device = DEV(LENDER, 0), .offset = DOORBELLS, .length = 0x1000, .access = 3};
	struct sio_req_watch watch = {
		.target_kind = SIO_KIND_BAR, .kind = SIO_WATCH_EVENT, .length = 0x1000};
	struct sio_evt_dmamap map;
	struct sio_evt_bar view;
	struct sio_evt_watch evt;
	uint64_t owner, mem;
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_open(f, LENDER, 0);
	fake_open(f, LENDER, 1);
	owner = fake_owner(f, LENDER);
	mem = fake_alloc(f, LENDER, owner, 0x1000);
	map = fake_dmamap(f, LENDER, owner, 0, SIO_KIND_MEM, mem, 0x1000, 3);
	bar.h.owner = watch.h.owner = owner;
	assert_int_equal(ask(f, LENDER, &bar, SIO_OP_BAR, &view), 0);
	watch.target = view.id;
	assert_int_equal(ask(f, LENDER, &watch, SIO_OP_WATCH, &evt), 0);
	read_next(f, &n);
	take_out(&n, LENDER, 0);
	fake_forget(f);
	assert_int_equal(reload(&n), 0);
	expect(f, SIO_EV_DEVICE_GONE, DEV(LENDER, 0));
	assert_int_equal(listed(f, LENDER), 2);
	assert_int_equal(f->topo.host[LENDER].n_devices, 2);
	assert_int_equal(ask_only(f, LENDER, &bar, SIO_OP_BAR), -ENODEV);
	assert_non_null(f->room->removed);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_BAR), 1);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_DMAMAP), 1);
	/* The next reload finds it referred to, the one after the last object's end does not. */
	read_next(f, &n);
	assert_int_equal(reload(&n), 0);
	assert_non_null(f->room->removed);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_DMAUNMAP, map.id, owner), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNWATCH, evt.id, owner), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_BAR_CLOSE, view.id, owner), 0);
	read_next(f, &n);
	assert_int_equal(reload(&n), 0);
	assert_null(f->room->removed);
	fake_free(f);
}

/* Not even by the next reload: nobody takes what is left of the one for the other. */
static void one_that_comes_back_is_another(void **state)
{
	struct sio_req_device_list req = {.after = DEV(LENDER, 0) - 1};
	struct fake *f = fake_new(0);
	struct sio_topo_device was;
	struct sio_evt_device before, evt;
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_DEVICE_LIST, &before), 0);
	was = f->device[0];
	read_next(f, &n);
	take_out(&n, LENDER, 0);
	assert_int_equal(reload(&n), 0);
	read_next(f, &n);
	n.device[LENDER][n.host[LENDER].n_devices++] = was;
	fake_forget(f);
	assert_int_equal(reload(&n), 0);
	expect(f, SIO_EV_DEVICE_BACK, DEV(LENDER, 0));
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_DEVICE_LIST, &evt), 0);
	assert_int_equal(evt.id, before.id);
	assert_true(evt.generation > before.generation + 1);
	fake_free(f);
}

static void virtual_functions_come_and_go_with_their_device(void **state)
{
	struct fake *f = fake_new_functions(0);
	struct sio_topo_device was[3];
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	memcpy(was, f->device, sizeof(was));
	read_next(f, &n);
	n.host[LENDER].n_devices = 0;
	fake_forget(f);
	assert_int_equal(reload(&n), 0);
	for (unsigned i = 3; i-- > 0;)
		expect(f, SIO_EV_DEVICE_GONE, DEV(LENDER, i));
	assert_int_equal(listed(f, LENDER), 0);
	/* Behind another device: its functions have other places in the file's order. */
	read_next(f, &n);
	add(&n, LENDER);
	memcpy(&n.device[LENDER][1], was, sizeof(was));
	n.host[LENDER].n_devices = 4;
	n.device[LENDER][2].physical = n.device[LENDER][3].physical = 2;
	fake_forget(f);
	assert_int_equal(reload(&n), 0);
	expect(f, SIO_EV_DEVICE_BACK, DEV(LENDER, ADDED));
	for (unsigned i = 0; i < 3; i++)
		expect(f, SIO_EV_DEVICE_BACK, DEV(LENDER, i));
	assert_int_equal(listed(f, LENDER), 4);
	assert_int_equal(emu_room_functions(f->room, LENDER, 1, 1, &n.err), 0);
	assert_int_equal(listed(f, LENDER), 3);
	/* And the other one goes, so that they move back. */
	read_next(f, &n);
	take_out(&n, LENDER, 0);
	n.device[LENDER][1].physical = n.device[LENDER][2].physical = 1;
	assert_int_equal(reload(&n), 0);
	assert_int_equal(listed(f, LENDER), 2);
	assert_int_equal(emu_room_functions(f->room, LENDER, 0, 2, &n.err), 0);
	assert_int_equal(listed(f, LENDER), 3);
	fake_free(f);
}

static void a_host_that_is_off_has_them_when_it_starts(void **state)
{
	struct fake *f = fake_new(0);
	struct next n;

	(void)state;
	read_next(f, &n);
	add(&n, LENDER);
	take_out(&n, LENDER, 1);
	assert_int_equal(reload(&n), 0);
	assert_int_equal(f->n_events, 0);
	fake_up(f, LENDER);
	assert_int_equal(listed(f, LENDER), 3);
	emu_room_host_down(f->room, LENDER);
	assert_null(f->room->removed);
	fake_up(f, LENDER);
	assert_int_equal(listed(f, LENDER), 3);
	fake_free(f);
}

static void what_cannot_be_taken_changes_nothing(void **state)
{
	struct fake *f = fake_new_cascade(true);
	struct emu_change *c = NULL;
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	fake_forget(f);
	read_next(f, &n);
	add(&n, LENDER);
	n.host[CLIENT].ram_size *= 2;
	assert_int_equal(reload(&n), -EOPNOTSUPP);
	assert_non_null(strstr(n.err.text, "needs a restart: host"));
	read_next(f, &n);
	n.device[LENDER][0].dma_bits = 32;
	assert_int_equal(reload(&n), -EOPNOTSUPP);
	assert_non_null(strstr(n.err.text, "dev0: dma_bits is 32, was 64"));
	/* A model that is not to be had, behind one that is. */
	read_next(f, &n);
	strcpy(add(&n, LENDER)->type, "unknown");
	assert_int_equal(reload(&n), -EINVAL);
	assert_non_null(strstr(n.err.text, "no model of type 'unknown'"));
	/* And who changed his mind. */
	read_next(f, &n);
	add(&n, LENDER);
	take_out(&n, LENDER, 0);
	measure(&n);
	for (unsigned try = 0; try < 2; try++) {
		assert_int_equal(emu_room_prepare(f->room, &n.topo, try, &c, &n.err), 0);
		emu_room_drop(f->room, c);
	}
	assert_int_equal(f->n_events, 0);
	assert_int_equal(listed(f, LENDER), 3);
	assert_int_equal(f->topo.host[LENDER].n_devices, 3);
	fake_free(f);
}

static void one_without_pages_is_out_of_its_slot(void **state)
{
	struct fake *f = fake_new(0);
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	read_next(f, &n);
	add(&n, LENDER);
	f->calls = 0;
	f->fail_at = 1;
	assert_true(reload(&n) < 0);
	f->fail_at = 0;
	assert_non_null(strstr(n.err.text, "added is out of its slot"));
	assert_int_equal(listed(f, LENDER), 3);
	assert_int_equal(emu_room_device(f->room, LENDER, 3, true), 0);
	assert_int_equal(listed(f, LENDER), 4);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_device_appears_and_works),
		cmocka_unit_test(a_device_goes_while_it_is_in_use),
		cmocka_unit_test(one_that_comes_back_is_another),
		cmocka_unit_test(virtual_functions_come_and_go_with_their_device),
		cmocka_unit_test(a_host_that_is_off_has_them_when_it_starts),
		cmocka_unit_test(what_cannot_be_taken_changes_nothing),
		cmocka_unit_test(one_without_pages_is_out_of_its_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
