/* SPDX-License-Identifier: BSD-2-Clause */
/* Configuration space of a borrowed device: what a borrower's host may write, and whose it is. */
#include <errno.h>
#include <linux/pci_regs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "wire/check.h"

#define FDID 0x400001
#define BORROWER 8
#define EXPRESS 0x70
#define ALL_ERRORS 0xf9000000u

static struct fake_device fake;
static struct world_client *borrower;

static struct world *make(uint32_t flags, struct call_borrow *ret)
{
	struct world *w = world_new(3, 0);

	fake = (struct fake_device){.generation = 0};
	fake_device_add(w, &fake);
	fake.config[PCI_COMMAND] = PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY;
	fake.config[PCI_CAPABILITY_LIST] = 0x40;
	fake.config[0x40] = PCI_CAP_ID_PM;
	fake.config[0x41] = EXPRESS;
	fake.config[EXPRESS] = PCI_CAP_ID_EXP;
	world_start(w);
	borrower = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, borrower, FDID, flags, ret), 0);
	return w;
}

/* As the lender's daemon reads it from @node's. */
static void ask(struct world *w, uint32_t node, const struct call_borrow *b, uint32_t reg,
		uint32_t value, uint32_t mask)
{
	struct sio_peer_config msg = {
		.h = {.size = sio_to_le32(sizeof(msg)),
		      .type = sio_to_le32(SIO_PEER_CONFIG),
		      .id = sio_to_le32(4711)},
		.borrower = sio_to_le64(b->id),
		.fdid = sio_to_le32(FDID),
		.reg = sio_to_le32(reg),
		.value = sio_to_le32(value),
		.mask = sio_to_le32(mask),
	};

	w->drop_peer_messages = true; /* the true daemon has not asked */
	smartiod_peer_message(w->host[0].daemon, node, &msg, sizeof(msg));
	world_run(w);
	w->drop_peer_messages = false;
}

static uint32_t word(unsigned at)
{
	uint32_t value;

	memcpy(&value, fake.config + at, sizeof(value));
	return value;
}

static void what_may_be_written_is_written(void **state)
{
	struct call_borrow b;
	struct world *w = make(SCI_FLAG_EXCLUSIVE, &b);

	(void)state;
	ask(w, BORROWER, &b, SIO_SHADOW_COMMAND, 0, PCI_COMMAND_MASTER);
	assert_int_equal(word(PCI_COMMAND), PCI_COMMAND_MEMORY);
	ask(w, BORROWER, &b, SIO_SHADOW_COMMAND, ~0u, PCI_COMMAND_MASTER | ALL_ERRORS);
	assert_int_equal(word(PCI_COMMAND), PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | ALL_ERRORS);
	ask(w, BORROWER, &b, SIO_SHADOW_CONTROL, PCI_EXP_DEVCTL_RELAX_EN, PCI_EXP_DEVCTL_RELAX_EN);
	assert_int_equal(word(EXPRESS + PCI_EXP_DEVCTL), PCI_EXP_DEVCTL_RELAX_EN);
	assert_int_equal(fake.config_writes, 4);
	world_free(w);
}

static void nothing_else_is(void **state)
{
	struct call_borrow b;
	struct world *w = make(SCI_FLAG_EXCLUSIVE, &b);
	static const uint32_t never[SIO_SHADOW_REGISTERS] = {
		[SIO_SHADOW_ID] = ~0u,
		[SIO_SHADOW_COMMAND] = ~(ALL_ERRORS | PCI_COMMAND_MASTER),
		[SIO_SHADOW_CONTROL] = ~(0xf0000u | PCI_EXP_DEVCTL_RELAX_EN |
					 PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ),
	};

	(void)state;
	for (uint32_t reg = 0; reg < SIO_SHADOW_REGISTERS; reg++)
		for (unsigned bit = 0; bit < 32; bit++)
			if (never[reg] >> bit & 1)
				ask(w, BORROWER, &b, reg, ~0u, 1u << bit);
	for (uint32_t reg = SIO_SHADOW_REGISTERS; reg < 100; reg++)
		ask(w, BORROWER, &b, reg, ~0u, ~0u);
	assert_int_equal(fake.config_writes, 0);
	/* Of others, whatever they name. */
	ask(w, 12, &b, SIO_SHADOW_COMMAND, 0, PCI_COMMAND_MASTER);
	b.id++;
	ask(w, BORROWER, &b, SIO_SHADOW_COMMAND, 0, PCI_COMMAND_MASTER);
	assert_int_equal(fake.config_writes, 0);
	world_free(w);
}

static void a_sharer_writes_nothing(void **state)
{
	struct call_borrow b;
	struct world *w = make(0, &b);

	(void)state;
	ask(w, BORROWER, &b, SIO_SHADOW_COMMAND, 0, PCI_COMMAND_MASTER);
	assert_int_equal(fake.config_writes, 0);
	ask(w, BORROWER, &b, SIO_SHADOW_COMMAND, 0, 0);
	assert_int_equal(fake.config_reads, 1);
	world_free(w);
}

static void the_next_one_may_send(void **state)
{
	struct world_client *c;
	struct call_borrow b;
	struct world *w = make(SCI_FLAG_EXCLUSIVE, &b);

	(void)state;
	ask(w, BORROWER, &b, SIO_SHADOW_COMMAND, 0, PCI_COMMAND_MASTER);
	assert_false(word(PCI_COMMAND) & PCI_COMMAND_MASTER);
	world_kill(w, borrower);
	world_pass(w, 100000000);
	c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, c, FDID, SCI_FLAG_EXCLUSIVE, &b), 0);
	assert_true(word(PCI_COMMAND) & PCI_COMMAND_MASTER);
	world_free(w);
}

static void a_device_without_the_capability(void **state)
{
	struct call_borrow b;
	struct world *w = make(SCI_FLAG_EXCLUSIVE, &b);

	(void)state;
	fake.config[0x41] = 0x40; /* a circle */
	ask(w, BORROWER, &b, SIO_SHADOW_CONTROL, 0, 0);
	assert_in_range(fake.config_reads, 2, 60);
	world_free(w);
}

/* Else what the one's driver asks for would be asked of the other's device. */
static void one_shadow_at_a_time(void **state)
{
	struct sio_msg_shadow msg = {.flags = sio_to_le32(SIO_SHADOW_ALL_MEMORY)};
	struct call_borrow b;
	struct world *w = make(SCI_FLAG_EXCLUSIVE, &b);
	uint32_t first;

	(void)state;
	msg.device = sio_to_le32(b.handle);
	w->late = SIO_OP_IMPORT;
	first = world_send(w, borrower, SIO_MSG_SHADOW, &msg, sizeof(msg));
	world_run(w);
	assert_null(world_reply(borrower, first));
	assert_int_equal(world_call(w, borrower, SIO_MSG_SHADOW, &msg, sizeof(msg))->error, EBUSY);
	w->late = 0;
	world_run(w);
	/* This port has no shadows, and the next one fails by that again. */
	assert_int_equal(world_reply(borrower, first)->error, EOPNOTSUPP);
	assert_int_equal(world_call(w, borrower, SIO_MSG_SHADOW, &msg, sizeof(msg))->error,
			 EOPNOTSUPP);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_be_written_is_written),
		cmocka_unit_test(nothing_else_is),
		cmocka_unit_test(a_sharer_writes_nothing),
		cmocka_unit_test(the_next_one_may_send),
		cmocka_unit_test(a_device_without_the_capability),
		cmocka_unit_test(one_shadow_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
