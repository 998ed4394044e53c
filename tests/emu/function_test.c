/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual functions: devices of their own, but for the reset and the slot of the physical one. */
#include "fake.h"

#define SIZE 0x2000

/* Two functions, each of an owner with memory mapped for it and a requester entry. */
struct had {
	struct fake *f;
	uint64_t owner[3], mem[3], requester[3];
	struct sio_evt_dmamap map[3];
};

static void have(struct had *h, unsigned iommu)
{
	struct fake *f = fake_new_functions(iommu);

	memset(h, 0, sizeof(*h));
	h->f = f;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	for (unsigned i = 0; i < 3; i++) {
		fake_open(f, LENDER, i);
		h->owner[i] = fake_owner(f, LENDER);
		h->mem[i] = fake_alloc(f, LENDER, h->owner[i], SIZE);
		h->map[i] =
			fake_dmamap(f, LENDER, h->owner[i], i, SIO_KIND_MEM, h->mem[i], SIZE, 3);
	}
	fake_forget(f);
}

static int reset(struct had *h, unsigned device)
{
	struct sio_req_reset req = {.device = DEV(LENDER, device), .kind = SIO_RESET_FUNCTION};
	struct sio_evt_reset evt;

	return ask(h->f, LENDER, &req, SIO_OP_RESET, &evt);
}

static bool reaches(struct had *h, unsigned device)
{
	struct emu_dev *dev = fake_dev(h->f, LENDER, device);
	uint32_t word;

	return dev->read(dev, h->map[device].iova, &word, sizeof(word)) == 0;
}

static unsigned resets(struct had *h, unsigned device)
{
	return fake_model(h->f, LENDER, device)->resets;
}

/* The daemon's words for device @device, in this order and no others. */
static void told(struct had *h, uint32_t op, unsigned device)
{
	struct fake_event *e = fake_take(h->f, LENDER, op);

	assert_non_null(e);
	assert_int_equal(e->u.device.device, DEV(LENDER, device));
}

static void not_told(struct had *h)
{
	assert_null(fake_take(h->f, LENDER, SIO_EV_DEVICE_GONE));
	assert_null(fake_take(h->f, LENDER, SIO_EV_DEVICE_BACK));
}

static void each_is_a_device_of_its_own(void **state)
{
	struct sio_req_device_list req = {.after = 0};
	struct sio_evt_device evt;
	struct had h;

	(void)state;
	have(&h, 1 << LENDER);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask(h.f, LENDER, &req, SIO_OP_DEVICE_LIST, &evt), 0);
		assert_int_equal(evt.id, DEV(LENDER, i));
		assert_int_equal(evt.bdf, 0x100 | i);
		assert_int_equal(evt.slot, 0);
		assert_int_equal(evt.functions, 3);
		assert_int_equal(evt.iommu_group, i + 1);
		assert_true(reaches(&h, i));
		req.after = evt.id;
	}
	/* What is mapped for one leads nowhere for another, and a requester entry is one's own. */
	for (unsigned i = 0; i < 2; i++) {
		h.requester[i] = fake_requester(h.f, LENDER, h.owner[i], i);
		assert_int_not_equal(h.requester[i], 0);
	}
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_DMAUNMAP, h.map[1].id, h.owner[1]), 0);
	assert_true(reaches(&h, 0) && !reaches(&h, 1) && reaches(&h, 2));
	fake_free(h.f);
}

static void a_reset_of_one_touches_no_other(void **state)
{
	struct had h;
	unsigned before[3];

	(void)state;
	have(&h, 1 << LENDER);
	for (unsigned i = 0; i < 3; i++)
		before[i] = resets(&h, i);
	assert_int_equal(reset(&h, 1), 0);
	assert_int_equal(resets(&h, 0), before[0]);
	assert_int_equal(resets(&h, 1), before[1] + 1);
	assert_int_equal(resets(&h, 2), before[2]);
	for (unsigned i = 0; i < 3; i++)
		assert_true(reaches(&h, i));
	not_told(&h);
	fake_free(h.f);
}

static void a_reset_of_the_physical_one_is_told_of_all(void **state)
{
	struct had h;
	unsigned before;

	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		have(&h, iommu << LENDER);
		before = resets(&h, 2);
		assert_int_equal(reset(&h, 0), 0);
		told(&h, SIO_EV_DEVICE_GONE, 1);
		told(&h, SIO_EV_DEVICE_GONE, 2);
		told(&h, SIO_EV_DEVICE_BACK, 1);
		told(&h, SIO_EV_DEVICE_BACK, 2);
		not_told(&h);
		assert_true(resets(&h, 2) > before);
		/* Without an IOMMU nothing but the lender keeps a device from memory. */
		assert_true(reaches(&h, 0));
		if (iommu)
			assert_true(!reaches(&h, 1) && !reaches(&h, 2));
		fake_forget(h.f);
		fake_open(h.f, LENDER, 1); /* it is there, and nobody has it */
		fake_free(h.f);
	}
}

static void they_leave_their_slot_with_the_drive(void **state)
{
	struct had h;

	(void)state;
	have(&h, 1 << LENDER);
	assert_int_equal(emu_room_device(h.f->room, LENDER, 1, false), -EINVAL);
	not_told(&h);
	assert_int_equal(emu_room_device(h.f->room, LENDER, 0, false), 0);
	told(&h, SIO_EV_DEVICE_GONE, 1);
	told(&h, SIO_EV_DEVICE_GONE, 2);
	told(&h, SIO_EV_DEVICE_GONE, 0);
	not_told(&h);
	assert_int_equal(emu_room_device(h.f->room, LENDER, 0, false), -EALREADY);
	/* The host loses its power meanwhile: they are as new when it is back. */
	emu_room_host_down(h.f->room, LENDER);
	fake_up(h.f, LENDER);
	fake_forget(h.f);
	assert_int_equal(emu_room_device(h.f->room, LENDER, 0, true), 0);
	told(&h, SIO_EV_DEVICE_BACK, 0);
	told(&h, SIO_EV_DEVICE_BACK, 1);
	told(&h, SIO_EV_DEVICE_BACK, 2);
	not_told(&h);
	fake_open(h.f, LENDER, 2);
	fake_free(h.f);
}

/* Pulled and put while the host has no power, and each operation of a reset fails once. */
static void failures_leave_it_out_until_the_next_reset(void **state)
{
	struct had h;
	bool failed = true;

	(void)state;
	for (unsigned n = 1; failed; n++) {
		int rc;

		have(&h, 1 << LENDER);
		h.f->calls = 0;
		h.f->fail_at = n;
		rc = reset(&h, 0);
		failed = h.f->calls >= n;
		h.f->fail_at = 0;
		/* Refused, with nothing done; or a function may be missing until the next. */
		assert_true(rc == 0 || failed);
		assert_int_equal(reset(&h, 0), 0);
		for (unsigned i = 1; i < 3; i++)
			fake_open(h.f, LENDER, i);
		fake_free(h.f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_a_device_of_its_own),
		cmocka_unit_test(a_reset_of_one_touches_no_other),
		cmocka_unit_test(a_reset_of_the_physical_one_is_told_of_all),
		cmocka_unit_test(they_leave_their_slot_with_the_drive),
		cmocka_unit_test(failures_leave_it_out_until_the_next_reset),
	};

	return cmocka_run_group_tests_name("virtual functions", tests, NULL, NULL);
}
