/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration space by the port's CONFIG, and the SR-IOV capability in it (PCI Express Base 6.0,
 * section 9.3.3): the functions that it tells of are the devices, which come and go by it.
 */
#include <linux/pci_regs.h>

#include "fake.h"

#define FUNCTIONS 2u
#define SRIOV 0x100u
#define ON (PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE)

static struct fake *up(void)
{
	struct fake *f = fake_new_functions(1 << LENDER);

	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	fake_forget(f);
	return f;
}

static int config(struct fake *f, unsigned device, uint32_t offset, uint32_t width, uint32_t *ret)
{
	struct sio_req_config req = {
		.device = DEV(LENDER, device), .offset = offset, .width = width};
	struct sio_evt_config evt;
	int rc = ask(f, LENDER, &req, SIO_OP_CONFIG, &evt);

	*ret = evt.value;
	return rc;
}

static uint32_t get(struct fake *f, unsigned device, uint32_t offset, uint32_t width)
{
	uint32_t value = 0;

	assert_int_equal(config(f, device, offset, width, &value), 0);
	return value;
}

static int put(struct fake *f, unsigned device, uint32_t offset, uint32_t width, uint32_t value,
	       uint32_t mask)
{
	struct sio_req_config req = {.h.flags = SIO_CONFIG_WRITE,
				     .device = DEV(LENDER, device),
				     .offset = offset,
				     .width = width,
				     .value = value,
				     .mask = mask};
	struct sio_evt_config evt;

	return ask(f, LENDER, &req, SIO_OP_CONFIG, &evt);
}

static struct sio_evt_device describe(struct fake *f, unsigned device)
{
	struct sio_req_device_list req = {.after = DEV(LENDER, device) - 1};
	struct sio_evt_device evt;

	assert_int_equal(ask(f, LENDER, &req, SIO_OP_DEVICE_LIST, &evt), 0);
	assert_int_equal(evt.id, DEV(LENDER, device));
	return evt;
}

static bool is_there(struct fake *f, unsigned device)
{
	uint32_t value;
	int rc = config(f, device, 0, 4, &value);

	assert_true(rc == 0 || rc == -ENODEV);
	return rc == 0;
}

/* The daemon's words for device @device, in this order and no others. */
static void told(struct fake *f, uint32_t op, unsigned device)
{
	struct fake_event *e = fake_take(f, LENDER, op);

	assert_non_null(e);
	assert_int_equal(e->u.device.device, DEV(LENDER, device));
}

static void not_told(struct fake *f)
{
	assert_null(fake_take(f, LENDER, SIO_EV_DEVICE_GONE));
	assert_null(fake_take(f, LENDER, SIO_EV_DEVICE_BACK));
}

static void s9_3_3_the_capability_tells_of_the_devices_that_are_there(void **state)
{
	struct fake *f = up();
	struct sio_evt_device pf = describe(f, 0);
	uint32_t offset, stride;

	(void)state;
	assert_int_equal(get(f, 0, SRIOV, 4), PCI_EXT_CAP_ID_SRIOV | 1 << 16);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_CTRL, 2), ON);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_INITIAL_VF, 2), FUNCTIONS);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_TOTAL_VF, 2), FUNCTIONS);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2), FUNCTIONS);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_SUP_PGSIZE, 4), 0x553);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_SYS_PGSIZE, 4), 1);
	offset = get(f, 0, SRIOV + PCI_SRIOV_VF_OFFSET, 2);
	stride = get(f, 0, SRIOV + PCI_SRIOV_VF_STRIDE, 2);
	for (unsigned i = 1; i <= FUNCTIONS; i++) {
		struct sio_evt_device vf = describe(f, i);

		/* Section 9.2.1.2: routing ids; 9.3.3.11; 9.3.3.14. */
		assert_int_equal(vf.bdf, pf.bdf + offset + (i - 1) * stride);
		assert_int_equal(vf.device, get(f, 0, SRIOV + PCI_SRIOV_VF_DID, 2));
		for (unsigned bar = 0; bar < SIO_DEVICE_BARS; bar++) {
			uint32_t at = SRIOV + PCI_SRIOV_BAR + 4 * bar;
			uint64_t base;

			if (!vf.bar_size[bar])
				continue;
			base = (get(f, 0, at, 4) & ~0xfu) | (uint64_t)get(f, 0, at + 4, 4) << 32;
			assert_int_equal(vf.bar_addr[bar], base + (i - 1) * vf.bar_size[bar]);
		}
		/* Section 9.3.4.1: of a virtual function the physical one says what it is. */
		assert_int_equal(get(f, i, PCI_VENDOR_ID, 4), UINT32_MAX);
		assert_int_equal(get(f, i, PCI_CLASS_REVISION, 4) >> 8, pf.class_code);
		for (unsigned bar = 0; bar < 6; bar++)
			assert_int_equal(get(f, i, PCI_BASE_ADDRESS_0 + 4 * bar, 4), 0);
		assert_int_equal(get(f, i, SRIOV, 4), 0);
	}
	fake_free(f);
}

static void the_header_is_what_the_port_lists(void **state)
{
	struct fake *f = up();
	struct sio_evt_device pf = describe(f, 0);
	uint64_t base = (get(f, 0, PCI_BASE_ADDRESS_0, 4) & ~0xfu) |
			(uint64_t)get(f, 0, PCI_BASE_ADDRESS_0 + 4, 4) << 32;

	(void)state;
	assert_int_equal(get(f, 0, PCI_VENDOR_ID, 4), pf.vendor | pf.device << 16);
	assert_int_equal(get(f, 0, PCI_DEVICE_ID, 2), pf.device);
	assert_int_equal(get(f, 0, PCI_CLASS_DEVICE + 1, 1), pf.class_code >> 16);
	assert_int_equal(base, pf.bar_addr[0]);
	assert_int_equal(get(f, 0, PCI_COMMAND, 2), PCI_COMMAND_MEMORY);
	fake_open(f, LENDER, 0);
	assert_int_equal(get(f, 0, PCI_COMMAND, 2), PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	fake_open(f, LENDER, 1);
	assert_int_equal(get(f, 1, PCI_COMMAND, 2), PCI_COMMAND_MASTER);
	fake_free(f);
}

static void what_is_not_there_is_refused(void **state)
{
	struct fake *f = up();
	uint32_t value;

	(void)state;
	assert_int_equal(config(f, 0, 0, 3, &value), -EINVAL);
	assert_int_equal(config(f, 0, 0, 8, &value), -EINVAL);
	assert_int_equal(config(f, 0, 2, 4, &value), -EINVAL);
	assert_int_equal(config(f, 0, 0x1000, 1, &value), -EINVAL);
	assert_non_null(strstr(fake_text(f), "below 0x1000"));
	assert_int_equal(get(f, 0, 0xffc, 4), 0);
	assert_int_equal(config(f, 3, 0, 4, &value), -ENODEV);
	assert_int_equal(put(f, 0, PCI_COMMAND, 2, 0, PCI_COMMAND_MASTER), -EACCES);
	assert_int_equal(put(f, 0, PCI_BASE_ADDRESS_0, 4, 0, UINT32_MAX), -EACCES);
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_TOTAL_VF, 2, 7, 0xffff), -EACCES);
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_CTRL, 2, PCI_SRIOV_CTRL_VFM, 0xffff), -EACCES);
	assert_non_null(strstr(fake_text(f), "those that may be changed there are 0x9"));
	assert_int_equal(put(f, 1, SRIOV + PCI_SRIOV_NUM_VF, 2, 1, 0xffff), -EACCES);
	not_told(f);
	fake_free(f);
}

static void s9_3_3_7_their_number_is_fixed_while_they_are_enabled(void **state)
{
	struct fake *f = up();

	(void)state;
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2, 1, 0xffff), 0);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2), FUNCTIONS);
	assert_true(is_there(f, 2));
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_CTRL, 2, 0, ON), 0);
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2, FUNCTIONS + 1, 0xffff), 0);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2), FUNCTIONS);
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2, 1, 0xffff), 0);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2), 1);
	fake_free(f);
}

/* An open function with memory mapped: its user is notified, and it reaches nothing any more. */
static void s9_3_3_3_1_without_vf_enable_they_are_gone(void **state)
{
	struct fake *f = up();
	uint64_t owner = fake_owner(f, LENDER), mem = fake_alloc(f, LENDER, owner, 0x1000);
	struct sio_evt_dmamap map;
	struct emu_dev *dev = fake_dev(f, LENDER, 2);
	uint32_t word;

	(void)state;
	fake_open(f, LENDER, 2);
	map = fake_dmamap(f, LENDER, owner, 2, SIO_KIND_MEM, mem, 0x1000, 3);
	fake_forget(f);
	assert_int_equal(dev->read(dev, map.iova, &word, sizeof(word)), 0);
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_CTRL, 2, 0, PCI_SRIOV_CTRL_VFE), 0);
	told(f, SIO_EV_DEVICE_GONE, 1);
	told(f, SIO_EV_DEVICE_GONE, 2);
	not_told(f);
	assert_true(!is_there(f, 1) && !is_there(f, 2) && is_there(f, 0));
	assert_int_not_equal(dev->read(dev, map.iova, &word, sizeof(word)), 0);
	/* One of them comes back, as new. */
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2, 1, 0xffff), 0);
	assert_int_equal(
		put(f, 0, SRIOV + PCI_SRIOV_CTRL, 2, PCI_SRIOV_CTRL_VFE, PCI_SRIOV_CTRL_VFE), 0);
	told(f, SIO_EV_DEVICE_BACK, 1);
	not_told(f);
	assert_true(is_there(f, 1) && !is_there(f, 2));
	fake_free(f);
}

static void s9_3_3_3_4_without_vf_mse_nobody_reaches_them(void **state)
{
	struct fake *f = up();

	(void)state;
	assert_int_equal(put(f, 0, SRIOV + PCI_SRIOV_CTRL, 1, 0, PCI_SRIOV_CTRL_MSE), 0);
	assert_true(!is_there(f, 1) && !is_there(f, 2));
	fake_forget(f);
	assert_int_equal(
		put(f, 0, SRIOV + PCI_SRIOV_CTRL, 1, PCI_SRIOV_CTRL_MSE, PCI_SRIOV_CTRL_MSE), 0);
	told(f, SIO_EV_DEVICE_BACK, 1);
	told(f, SIO_EV_DEVICE_BACK, 2);
	not_told(f);
	fake_free(f);
}

/* A function level reset clears VF Enable; the host's kernel enables as many again. */
static void a_reset_of_the_physical_one_keeps_their_number(void **state)
{
	struct fake *f = up();
	struct sio_req_reset req = {.device = DEV(LENDER, 0), .kind = SIO_RESET_FUNCTION};
	struct sio_evt_reset evt;
	struct sio_err err;

	(void)state;
	assert_int_equal(emu_room_functions(f->room, LENDER, 0, 1, &err), 0);
	fake_open(f, LENDER, 0);
	fake_forget(f);
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_RESET, &evt), 0);
	told(f, SIO_EV_DEVICE_GONE, 1);
	told(f, SIO_EV_DEVICE_BACK, 1);
	not_told(f);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2), 1);
	assert_true(is_there(f, 1) && !is_there(f, 2));
	fake_free(f);
}

/* As `smartio fault device NAME functions N` asks for it. */
static void a_number_is_what_the_kernel_is_told(void **state)
{
	struct fake *f = up();
	struct emu_room *r = f->room;
	struct sio_err err;

	(void)state;
	assert_int_equal(emu_room_functions(r, LENDER, 0, FUNCTIONS, &err), 0);
	not_told(f);
	assert_int_equal(emu_room_functions(r, LENDER, 0, 1, &err), 0);
	told(f, SIO_EV_DEVICE_GONE, 1);
	told(f, SIO_EV_DEVICE_GONE, 2);
	told(f, SIO_EV_DEVICE_BACK, 1);
	not_told(f);
	assert_int_equal(emu_room_functions(r, LENDER, 0, 0, &err), 0);
	told(f, SIO_EV_DEVICE_GONE, 1);
	not_told(f);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_CTRL, 2), 0);
	assert_int_equal(emu_room_functions(r, LENDER, 0, FUNCTIONS, &err), 0);
	told(f, SIO_EV_DEVICE_BACK, 1);
	told(f, SIO_EV_DEVICE_BACK, 2);
	not_told(f);
	assert_int_equal(emu_room_functions(r, LENDER, 0, FUNCTIONS + 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "dev0 has 2 virtual functions; 0 to 2 is right"));
	assert_int_equal(emu_room_functions(r, LENDER, 1, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "dev1 has no virtual functions"));
	assert_int_equal(emu_room_functions(r, LENDER, 3, 0, &err), -ENODEV);
	assert_int_equal(emu_room_device(r, LENDER, 0, false), 0);
	assert_int_equal(emu_room_functions(r, LENDER, 0, 0, &err), -ENODEV);
	assert_non_null(strstr(err.text, "not in its slot"));
	emu_room_host_down(r, LENDER);
	assert_int_equal(emu_room_functions(r, LENDER, 0, 0, &err), -ENODEV);
	assert_non_null(strstr(err.text, "without power"));
	fake_free(f);
}

/* Whatever was set before: firmware and kernel enable all of them. */
static void a_start_and_a_drive_that_is_put_back_enable_all(void **state)
{
	struct fake *f = up();
	struct sio_err err;

	(void)state;
	assert_int_equal(emu_room_functions(f->room, LENDER, 0, 0, &err), 0);
	emu_room_host_down(f->room, LENDER);
	fake_up(f, LENDER);
	assert_true(is_there(f, 1) && is_there(f, 2));
	assert_int_equal(emu_room_functions(f->room, LENDER, 0, 1, &err), 0);
	assert_int_equal(emu_room_device(f->room, LENDER, 0, false), 0);
	fake_forget(f);
	assert_int_equal(emu_room_device(f->room, LENDER, 0, true), 0);
	for (unsigned i = 0; i < 3; i++)
		told(f, SIO_EV_DEVICE_BACK, i);
	assert_int_equal(get(f, 0, SRIOV + PCI_SRIOV_NUM_VF, 2), FUNCTIONS);
	/* Out of the slot while the host starts: they are out, too. */
	assert_int_equal(emu_room_device(f->room, LENDER, 0, false), 0);
	emu_room_host_down(f->room, LENDER);
	fake_up(f, LENDER);
	assert_true(!is_there(f, 0) && !is_there(f, 1) && !is_there(f, 2));
	fake_free(f);
}

/* Each operation fails once: what is missing is missing, and comes when they are enabled again. */
static void failures_leave_a_function_out(void **state)
{
	bool failed = true;

	(void)state;
	for (unsigned n = 1; failed; n++) {
		struct fake *f = up();
		struct sio_err err;
		int rc;

		assert_int_equal(emu_room_functions(f->room, LENDER, 0, 0, &err), 0);
		f->calls = 0;
		f->fail_at = n;
		rc = emu_room_functions(f->room, LENDER, 0, FUNCTIONS, &err);
		failed = f->calls >= n;
		f->fail_at = 0;
		assert_int_equal(rc < 0, failed);
		assert_int_equal(rc < 0, !is_there(f, 1) || !is_there(f, 2));
		assert_int_equal(emu_room_functions(f->room, LENDER, 0, 0, &err), 0);
		assert_int_equal(emu_room_functions(f->room, LENDER, 0, FUNCTIONS, &err), 0);
		assert_true(is_there(f, 1) && is_there(f, 2));
		fake_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s9_3_3_the_capability_tells_of_the_devices_that_are_there),
		cmocka_unit_test(the_header_is_what_the_port_lists),
		cmocka_unit_test(what_is_not_there_is_refused),
		cmocka_unit_test(s9_3_3_7_their_number_is_fixed_while_they_are_enabled),
		cmocka_unit_test(s9_3_3_3_1_without_vf_enable_they_are_gone),
		cmocka_unit_test(s9_3_3_3_4_without_vf_mse_nobody_reaches_them),
		cmocka_unit_test(a_reset_of_the_physical_one_keeps_their_number),
		cmocka_unit_test(a_number_is_what_the_kernel_is_told),
		cmocka_unit_test(a_start_and_a_drive_that_is_put_back_enable_all),
		cmocka_unit_test(failures_leave_a_function_out),
	};

	return cmocka_run_group_tests_name("configuration space", tests, NULL, NULL);
}
