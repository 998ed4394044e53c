/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt vectors of a lent device: whose they are, what they hit, and what ends them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"

#define FDID 0x400001

/*
 * Host 0 lends. A client of each host has a plain interrupt; the ones of hosts 1 and 2 borrow the
 * device, and are connected to all three interrupts.
 */
struct fixture {
	struct fake_device fake;
	struct world *w;
	struct world_client *c[3];
	uint32_t interrupt[3], number[3]; /* of each host */
	uint32_t link[3][3];		  /* [client][host] */
	struct call_borrow b[3];	  /* of clients 1 and 2 */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	*state = f;
	f->w = world_new(3, 0);
	fake_device_add(f->w, &f->fake);
	world_start(f->w);
	for (unsigned i = 0; i < 3; i++) {
		f->c[i] = world_client(f->w, i, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_plain_create(f->w, f->c[i], &f->interrupt[i], &f->number[i]),
				 0);
	}
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(call_borrow(f->w, f->c[i], FDID, 0, &f->b[i]), 0);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(call_plain_connect(f->w, f->c[i], 4 + 4 * k, f->number[k],
							    &f->link[i][k]),
					 0);
	}
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	assert_nothing_left(f->w);
	assert_int_equal(f->fake.bad, 0);
	assert_int_equal(f->w->bad_ends, 0);
	world_free(f->w);
	free(f);
	return 0;
}

/* Vector @vector for client @i, hitting the interrupt of host @k. */
static int connect(struct fixture *f, unsigned i, uint32_t vector, unsigned k)
{
	uint32_t given = vector;
	int rc = call_vector(f->w, f->c[i], f->b[i].handle, &given, f->link[i][k]);

	if (rc == 0)
		assert_int_equal(given, vector);
	return rc;
}

static int disconnect(struct fixture *f, unsigned i, uint32_t vector)
{
	return call_unvector(f->w, f->c[i], f->b[i].handle, vector);
}

static uint32_t kind_hit(struct fixture *f, uint32_t vector)
{
	uint64_t id = fake_vector(f->w, vector);

	if (id == 0)
		return 0;
	return world_res_find(f->w, 0, SIO_KIND_IRQ, id) ? SIO_KIND_IRQ : SIO_KIND_MAP;
}

static void vectors_hit_interrupts_of_every_host(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(connect(f, 1, i, i), 0);
	assert_int_equal(kind_hit(f, 0), SIO_KIND_IRQ); /* the lender's own */
	assert_int_equal(kind_hit(f, 1), SIO_KIND_MAP);
	assert_int_equal(kind_hit(f, 2), SIO_KIND_MAP);
	assert_int_equal(kind_hit(f, 3), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_REQUESTER), 1);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(disconnect(f, 1, i), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_REQUESTER), 0);
}

static void numbers_are_given_and_taken(void **state)
{
	struct fixture *f = *state;
	uint32_t any = SIO_VECTOR_ANY;

	assert_int_equal(connect(f, 1, 2, 1), 0);
	for (uint32_t want = 1; want <= 3; want += 2) { /* never 0 */
		any = SIO_VECTOR_ANY;
		assert_int_equal(call_vector(f->w, f->c[2], f->b[2].handle, &any, f->link[2][2]),
				 0);
		assert_int_equal(any, want);
	}
	any = SIO_VECTOR_ANY;
	assert_int_equal(call_vector(f->w, f->c[2], f->b[2].handle, &any, f->link[2][2]), ENOSPC);
	assert_int_equal(connect(f, 2, 2, 2), EBUSY);  /* the other's */
	assert_int_equal(connect(f, 2, 3, 0), EBUSY);  /* its own */
	assert_int_equal(connect(f, 2, 4, 0), EINVAL); /* none */
	assert_int_equal(connect(f, 2, 0, 0), 0);
	assert_int_equal(disconnect(f, 2, 2), EBADF);
	assert_int_equal(disconnect(f, 1, 2), 0);
	assert_int_equal(disconnect(f, 1, 2), EBADF);
	assert_int_equal(connect(f, 2, 2, 2), 0);
}

static uint32_t ask(struct fixture *f, uint32_t type, uint32_t vector, uint32_t link)
{
	struct sio_msg_dev_vector msg = {.device = sio_to_le32(f->b[1].handle),
					 .vector = sio_to_le32(vector),
					 .link = sio_to_le32(link)};

	return world_send(f->w, f->c[1], type, &msg, sizeof(msg));
}

/*
 * Whoever does not wait for the answer, or never had it, has no vector: that is not a matter of
 * time.
 */
static void a_vector_that_is_being_connected_is_nobodys(void **state)
{
	struct fixture *f = *state;
	uint32_t on = ask(f, SIO_MSG_DEV_VECTOR, 1, f->link[1][2]);
	uint32_t off = ask(f, SIO_MSG_DEV_UNVECTOR, 1, 0);
	const struct world_message *reply;

	while (!world_reply(f->c[1], off))
		assert_true(world_step(f->w));
	assert_null(world_reply(f->c[1], on));
	assert_int_equal(world_reply(f->c[1], off)->error, EBADF);
	world_run(f->w);
	reply = world_reply(f->c[1], on);
	assert_non_null(reply);
	assert_int_equal(reply->error, 0);
	assert_int_equal(kind_hit(f, 1), SIO_KIND_MAP);
	assert_int_equal(disconnect(f, 1, 1), 0);
}

static void only_plain_connections_will_do(void **state)
{
	struct fixture *f = *state;
	uint32_t any = 1, handle, number, data;

	assert_int_equal(call_vector(f->w, f->c[1], f->b[1].handle, &any, 0), EBADF);
	assert_int_equal(call_vector(f->w, f->c[1], f->b[1].handle, &any, f->b[1].handle), EBADF);
	assert_int_equal(call_vector(f->w, f->c[1], 77, &any, f->link[1][1]), EBADF);
	assert_int_equal(call_dint_create(f->w, f->c[1], 0, 0, &handle, &number), 0);
	assert_int_equal(call_dint_connect(f->w, f->c[1], 8, number, &data), 0);
	assert_int_equal(call_vector(f->w, f->c[1], f->b[1].handle, &any, data), EINVAL);
	/* The interrupt went, and its connection knows. */
	assert_int_equal(call_handle(f->w, f->c[2], SIO_MSG_DINT_DISCONNECT, f->link[2][2], 0), 0);
	world_kill(f->w, f->c[2]);
	world_run(f->w);
	assert_int_equal(connect(f, 1, 1, 2), ECONNRESET);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
}

/* The device is a sender like others: the interrupt cannot be removed under it. */
static void an_interrupt_stays_while_a_vector_hits_it(void **state)
{
	struct fixture *f = *state;

	for (unsigned k = 0; k < 2; k++) {
		assert_int_equal(connect(f, 1, 1, k), 0);
		for (unsigned i = 1; i < 3; i++)
			assert_int_equal(call_handle(f->w, f->c[i], SIO_MSG_DINT_DISCONNECT,
						     f->link[i][k], 0),
					 0);
		assert_int_equal(
			call_handle(f->w, f->c[k], SIO_MSG_DINT_REMOVE, f->interrupt[k], 0), EBUSY);
		assert_int_equal(disconnect(f, 1, 1), 0);
		assert_int_equal(
			call_handle(f->w, f->c[k], SIO_MSG_DINT_REMOVE, f->interrupt[k], 0), 0);
	}
}

static void returning_the_device_ends_its_vectors(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(connect(f, 1, i, i), 0);
	assert_int_equal(connect(f, 2, 3, 2), 0);
	assert_int_equal(call_handle(f->w, f->c[1], SIO_MSG_DEV_RETURN, f->b[1].handle, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 1);
	assert_int_equal(kind_hit(f, 3), SIO_KIND_MAP);
	assert_int_equal(connect(f, 2, 1, 1), 0);
}

/* Nothing waits for a manager: the others' vectors go on. */
static void a_dead_borrowers_vectors_end_at_once(void **state)
{
	struct fixture *f = *state;

	for (unsigned style = WORLD_KILL; style <= WORLD_OWNER_FIRST; style++) {
		struct call_borrow b;
		struct world_client *c = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
		uint32_t link, vector = 3;

		assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
		assert_int_equal(call_plain_connect(f->w, c, 4, f->number[0], &link), 0);
		assert_int_equal(call_vector(f->w, c, b.handle, &vector, link), 0);
		assert_int_equal(connect(f, 1, 1, 1), 0);
		f->w->style = style;
		world_kill(f->w, c);
		world_run(f->w);
		assert_int_equal(kind_hit(f, 3), 0);
		assert_int_equal(kind_hit(f, 1), SIO_KIND_MAP);
		assert_int_equal(disconnect(f, 1, 1), 0);
	}
	f->w->style = WORLD_KILL;
}

static void a_dead_receivers_vectors_end_at_once(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(connect(f, 1, 0, 0), 0);
	assert_int_equal(connect(f, 1, 2, 2), 0);
	assert_int_equal(connect(f, 1, 1, 1), 0);
	world_kill(f->w, f->c[0]);
	world_kill(f->w, f->c[2]);
	world_run(f->w);
	assert_int_equal(kind_hit(f, 0), 0);
	assert_int_equal(kind_hit(f, 2), 0);
	assert_int_equal(kind_hit(f, 1), SIO_KIND_MAP);
	assert_int_equal(disconnect(f, 1, 0), EBADF);
	assert_int_equal(connect(f, 1, 0, 1), 0); /* free again */
}

static void hosts_and_links_go_down(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	assert_int_equal(connect(f, 1, 0, 0), 0);
	assert_int_equal(connect(f, 1, 1, 1), 0);
	assert_int_equal(connect(f, 1, 2, 2), 0);
	world_link(f->w, 0, 2, false);
	world_run(f->w);
	/* Messages are lost while it is; the vector goes on with the link. */
	assert_int_equal(kind_hit(f, 2), SIO_KIND_MAP);
	assert_int_equal(kind_hit(f, 1), SIO_KIND_MAP);
	world_crash(f->w, 1); /* the borrower's, too */
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
	world_boot(f->w, 1);
	world_link(f->w, 0, 2, true);
	world_pass(f->w, 100000000);
}

static void a_reset_leaves_vectors_as_they_are(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow b;

	assert_int_equal(connect(f, 1, 1, 1), 0);
	assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RESET, b.handle, 0), 0);
	assert_int_equal(kind_hit(f, 1), SIO_KIND_MAP);
}

/* A rule about them is also about those of devices, but a borrower's program may choose its own. */
static void a_rule_about_interrupts_is_about_devices_too(void **state)
{
	struct fixture *f = *state;
	struct sio_policy_rule rule = {
		.kind = SIO_POLICY_INTERRUPTS, .last = UINT32_MAX, .has_nodes = true};
	struct sio_policy *policy = &f->w->topology->policy;
	uint32_t link;

	policy->rule = &rule;
	policy->n_rules = 1;
	assert_int_equal(connect(f, 1, 0, 0), EACCES);
	assert_int_equal(connect(f, 1, 0, 1), 0);
	/* That it borrows from there gives it away to none of the lender's programs and devices. */
	assert_int_equal(connect(f, 1, 1, 2), EACCES);
	assert_int_equal(call_plain_connect(f->w, f->c[0], 12, f->number[2], &link), EACCES);
	assert_int_equal(connect(f, 2, 1, 2), 0);
	/* Nor does that its own device sends it let the lender's devices of others. */
	assert_int_equal(connect(f, 1, 2, 2), EACCES);
	rule.all_nodes = true;
	assert_int_equal(connect(f, 1, 2, 0), 0);
	policy->n_rules = 0;
	policy->rule = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(vectors_hit_interrupts_of_every_host),
		TEST(numbers_are_given_and_taken),
		TEST(a_vector_that_is_being_connected_is_nobodys),
		TEST(only_plain_connections_will_do),
		TEST(an_interrupt_stays_while_a_vector_hits_it),
		TEST(returning_the_device_ends_its_vectors),
		TEST(a_dead_borrowers_vectors_end_at_once),
		TEST(a_dead_receivers_vectors_end_at_once),
		TEST(hosts_and_links_go_down),
		TEST(a_reset_leaves_vectors_as_they_are),
		TEST(a_rule_about_interrupts_is_about_devices_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
