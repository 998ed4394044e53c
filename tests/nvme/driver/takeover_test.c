/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A manager is killed before each of its stores, and a standby goes on: its clients notice nothing,
 * each request is done once, and no queue pair is lost. Or it loses its path to the drive there,
 * and comes back over another one.
 */
#include "client.h"
#include "common.h"
#include "manager.h"

#define PAIRS 4u

static struct smartio_nvme_manager *standby(void)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_STANDBY};
	struct smartio_nvme_manager *m = NULL;

	assert_ok(smartio_nvme_manager_open("nvme0", &o, &m));
	return m;
}

static struct smartio_nvme_manager_status status_of(const struct smartio_nvme_manager *m)
{
	struct smartio_nvme_manager_status s;

	smartio_nvme_manager_get_status(m, &s);
	return s;
}

/* A manager that is killed at store @k, one that follows it, and a client with a queue. */
struct scene {
	struct smartio_nvme_manager *standby;
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	uint64_t borrower; /* the client's */
};

static void begin(struct scene *s, unsigned long k)
{
	uint64_t manager;

	fake_start(NULL);
	start_manager();
	manager = fake_last_borrower();
	s->standby = standby();
	s->n = client();
	s->borrower = fake_last_borrower();
	s->q = queue(s->n, 4);
	fake.killed_id = manager;
	fake.standby = s->standby;
	fake.killed_at = k;
}

/* Return: whether the manager was killed meanwhile. */
static bool end(struct scene *s, bool *ret_pinned)
{
	const bool killed = fake.manager == s->standby;
	uint8_t out[512], in[512];

	fake.killed_at = 0;
	if (!killed)
		smartio_nvme_manager_close(s->standby);
	else
		assert_int_equal(status_of(s->standby).kept, 1);
	/* The queue of before is the same, and all others can be had. */
	memset(out, 0x3c, sizeof(out));
	assert_ok(smartio_nvme_write(s->q, out, 4096, sizeof(out)));
	assert_ok(smartio_nvme_read(s->q, in, 4096, sizeof(in)));
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 1);
	for (unsigned i = 1; i < PAIRS; i++)
		assert_ok(smartio_nvme_read(queue(s->n, 4), in, 0, sizeof(in)));
	assert_int_equal(fake_csts(), 1);
	/* Killed between the lender's hold and its note: that memory stays with its client. */
	*ret_pinned = fake_holds() > 2 * PAIRS;
	assert_true(fake_holds() <= 2 * PAIRS + 1);
	fake_kill(s->borrower);
	for (unsigned i = 0; i < 100; i++)
		fake_step();
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	smartio_nvme_close(s->n);
	fake_bury(s->borrower);
	stop_manager();
	assert_int_equal(fake_quarantined(), 0);
	assert_int_equal(fake_holds(), 0);
	assert_int_equal(fake.faults, 0);
	assert_int_equal(fake.objects, 0);
	fake_stop();
	return killed;
}

static void at_every(unsigned long step, void (*act)(struct scene *s))
{
	unsigned long k = 1, pinned = 0;
	bool killed = true, pin;

	for (; killed; k += step) {
		struct scene s;

		begin(&s, k);
		act(&s);
		killed = end(&s, &pin);
		pinned += pin;
	}
	assert_true(k > 15);
	assert_true(pinned <= 16);
}

static void at_every_store(void (*act)(struct scene *s))
{
	at_every(1, act);
}

static void make_and_delete(struct scene *s)
{
	struct smartio_nvme_queue *q = queue(s->n, 8);
	uint8_t data[512];

	assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
	smartio_nvme_queue_close(q);
	assert_null(s->n->kept);
}

static void a_queue_pair_is_made_and_deleted_once(void **state)
{
	(void)state;
	at_every_store(make_and_delete);
}

static void lease_and_give(struct scene *s)
{
	struct smartio_nvme_lease_info list[4];
	struct smartio_nvme_lease *a, *b;

	assert_ok(smartio_nvme_lease_take(s->n, "one", 1, 0, 100, &a));
	assert_ok(smartio_nvme_lease_take(s->n, "two", 1, SMARTIO_NVME_ANYWHERE, 100, &b));
	assert_ok(smartio_nvme_lease_give(a));
	assert_int_equal(smartio_nvme_get_leases(s->n, list, 4), 1);
	assert_string_equal(list[0].name, "two");
	assert_int_equal(list[0].lba, 100);
	assert_int_equal(list[0].blocks, 100);
	assert_ok(smartio_nvme_lease_give(b));
	assert_int_equal(smartio_nvme_get_leases(s->n, list, 4), 0);
}

static void a_lease_is_taken_and_given_once(void **state)
{
	(void)state;
	at_every_store(lease_and_give);
}

/* From now on the next manager serves; or it takes over when the first one is killed. */
static void let_follow(struct scene *s)
{
	if (fake.manager)
		fake.standby = s->standby;
	else
		fake.manager = s->standby;
}

/*
 * The next manager is there when the client has given up. What it does not know to be done is
 * undone, or done again, ahead of its next request.
 */
static void lease_and_give_in_vain(struct scene *s)
{
	struct smartio_nvme_lease_info list[4];
	struct smartio_nvme_lease *l = NULL;

	fake.standby = NULL;
	if (smartio_nvme_lease_take(s->n, "one", 1, 0, 100, &l))
		assert_null(l);
	let_follow(s);
	if (fake.manager != s->standby)
		fake.standby = NULL;
	assert_ok(smartio_nvme_lease_give(l));
	let_follow(s);
	assert_int_equal(smartio_nvme_get_leases(s->n, list, 4), 0);
	assert_null(s->n->owed);
	assert_ok(smartio_nvme_lease_take(s->n, "one", 1, 0, 100, &l));
	assert_ok(smartio_nvme_lease_give(l));
}

static void a_lease_that_was_not_answered_is_taken_back(void **state)
{
	(void)state;
	at_every_store(lease_and_give_in_vain);
}

static struct smartio_nvme *two_ways(void)
{
	const struct smartio_nvme_open_options o = {.size = sizeof(o),
						    .flags = SMARTIO_NVME_MULTIPATH};
	struct smartio_nvme *n = NULL;

	assert_ok(smartio_nvme_open_with("nvme0", &o, &n));
	return n;
}

/* Both borrows of a client have a lease; then one alone has it; then the client dies. */
static void lease_over_two_ways(struct scene *s)
{
	struct smartio_nvme *n = two_ways();
	uint64_t id[] = {smartio_borrower_id(n->d.handle),
			 smartio_borrower_id(n->second->d.handle)};
	struct smartio_nvme_lease *l, *other;

	assert_ok(smartio_nvme_lease_take(n, "mine", 1, 0, 100, &l));
	assert_true(sio_nvme_lease_has(l, n) && sio_nvme_lease_has(l, n->second));
	fake_kill(id[0]);
	assert_int_equal(smartio_nvme_lease_take(s->n, "theirs", 1, 50, 100, &other), -EBUSY);
	fake_kill(id[1]);
	for (unsigned i = 0; i < 20; i++)
		fake_step();
	assert_ok(smartio_nvme_lease_take(s->n, "theirs", 1, 50, 100, &other));
	assert_ok(smartio_nvme_lease_give(other));
	smartio_nvme_close(n);
	fake_bury(id[0]);
	fake_bury(id[1]);
}

static void who_has_a_lease_is_known_to_who_follows(void **state)
{
	(void)state;
	at_every_store(lease_over_two_ways);
}

/* A client dies while nobody has the registers, with nothing that the lender keeps for the next. */
static void die_with_a_lease(struct scene *s)
{
	struct smartio_nvme_lease_info list[4];
	struct smartio_nvme *other = client();
	uint64_t id = fake_last_borrower();
	struct smartio_nvme_lease *l, *mine;

	fake.standby = NULL;
	if (smartio_nvme_lease_take(other, "theirs", 1, 0, 100, &l) == 0)
		smartio_nvme_lease_take(s->n, "mine", 1, 100, 100, &mine);
	fake_kill(id);
	let_follow(s);
	assert_true(smartio_nvme_get_leases(s->n, list, 4) >= 0);
	for (unsigned i = 0; i < 20; i++)
		fake_step();
	assert_ok(smartio_nvme_lease_take(s->n, "next", 1, 0, 100, &l));
	smartio_nvme_close(other);
	fake_bury(id);
}

static void the_dead_have_no_lease_of_who_follows(void **state)
{
	(void)state;
	at_every_store(die_with_a_lease);
}

static void identify(struct scene *s)
{
	uint8_t *data = malloc(4096);

	for (unsigned i = 0; i < 3; i++) {
		assert_ok(smartio_nvme_identify(s->n, 1, 0, data));
		assert_memory_equal(data + 4, "FAKE1", 5);
	}
	free(data);
}

static void what_is_only_looked_at_is_asked_again(void **state)
{
	(void)state;
	at_every_store(identify);
}

/* The manager dies while it takes back what another client had that died. */
static void lose_a_client(struct scene *s)
{
	struct smartio_nvme *other = client();
	uint64_t id = fake_last_borrower();
	uint8_t data[512];

	(void)queue(other, 4);
	(void)queue(other, 4);
	fake_kill(id);
	for (unsigned i = 0; i < 50; i++)
		fake_step();
	assert_ok(smartio_nvme_read(s->q, data, 0, sizeof(data)));
	smartio_nvme_close(other);
	fake_bury(id);
	for (unsigned i = 0; i < 50; i++)
		fake_step();
	/* What it had mapped is settled; what the dead manager had is not. */
	assert_true(fake_quarantined() <= 1);
}

static void deaths_are_seen_to_once(void **state)
{
	(void)state;
	at_every_store(lose_a_client);
}

static struct smartio_nvme_queue *one_for_several(struct smartio_nvme *n)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4, .cq_depth = 16};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static struct smartio_nvme_queue *completing_in(struct smartio_nvme_queue *of)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .completes_in = of};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(of->n, &o, &q));
	return q;
}

/* The manager dies while it makes or deletes queues of one completion queue. */
static void make_and_delete_several(struct scene *s)
{
	struct smartio_nvme_queue *first = one_for_several(s->n), *q[2];
	uint8_t data[512];

	for (unsigned i = 0; i < 2; i++)
		q[i] = completing_in(first);
	smartio_nvme_queue_close(first); /* the others first, in the drive */
	for (unsigned i = 0; i < 2; i++) {
		assert_ok(smartio_nvme_read(q[i], data, 0, sizeof(data)));
		smartio_nvme_queue_close(q[i]);
	}
	assert_null(s->n->kept);
}

static void queues_of_one_completion_queue_are_made_and_deleted_once(void **state)
{
	(void)state;
	at_every(3, make_and_delete_several);
}

/* The same while it takes back those of a client that died; the first has not the lowest number. */
static void lose_several(struct scene *s)
{
	struct smartio_nvme *other = client();
	uint64_t id = fake_last_borrower();
	struct smartio_nvme_queue *before = queue(s->n, 4), *first = one_for_several(other);
	uint8_t data[512];

	smartio_nvme_queue_close(before);
	assert_true(completing_in(first)->id < first->id);
	assert_true(completing_in(first)->id > first->id);
	fake_kill(id);
	for (unsigned i = 0; i < 50; i++)
		fake_step();
	assert_ok(smartio_nvme_read(s->q, data, 0, sizeof(data)));
	smartio_nvme_close(other);
	fake_bury(id);
	for (unsigned i = 0; i < 50; i++)
		fake_step();
	assert_true(fake_quarantined() <= 1);
}

static void deaths_of_several_are_seen_to_once(void **state)
{
	(void)state;
	at_every(2, lose_several);
}

static struct smartio_nvme_queue *shared(struct smartio_nvme *n)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o),
		.depth = 4,
		.flags = SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE | SMARTIO_NVME_ALONE |
			 SMARTIO_NVME_INTERRUPT};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

/* The manager dies while one of three that share a pair is given its place, leaves, or dies. */
static void lose_a_sharer(struct scene *s)
{
	struct smartio_nvme_queue *more[PAIRS - 2], *q[3];
	struct smartio_nvme *n[3];
	uint8_t out[512], in[512];
	uint64_t id[3];

	for (unsigned i = 0; i < PAIRS - 2; i++)
		more[i] = queue(s->n, 4);
	for (unsigned i = 0; i < 3; i++) {
		n[i] = client();
		id[i] = fake_last_borrower();
		q[i] = shared(n[i]);
		assert_int_equal(smartio_nvme_queue_id(q[i]), PAIRS);
	}
	smartio_nvme_close(n[2]);
	fake_kill(id[1]);
	for (unsigned i = 0; i < 50; i++)
		fake_step();
	memset(out, 0x19, sizeof(out));
	assert_ok(smartio_nvme_write(q[0], out, 8192, sizeof(out)));
	assert_ok(smartio_nvme_read(q[0], in, 8192, sizeof(in)));
	assert_memory_equal(in, out, sizeof(in));
	fake_kill(id[0]); /* what was held without a note stays with its client */
	for (unsigned i = 0; i < 2; i++) {
		smartio_nvme_close(n[i]);
		fake_bury(id[i]);
	}
	for (unsigned i = 0; i < PAIRS - 2; i++)
		smartio_nvme_queue_close(more[i]);
	for (unsigned i = 0; i < 50; i++)
		fake_step();
	assert_true(fake_quarantined() <= 1);
}

static void sharers_are_known_to_who_follows(void **state)
{
	(void)state;
	at_every(3, lose_a_sharer); /* there are many of them */
}

/* ---- a manager that lives, but loses its path ---- */
static void have_a_queue(struct smartio_nvme *n)
{
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, NULL, &q));
	smartio_nvme_queue_close(q);
	assert_null(n->kept);
}

static int identify_once(struct smartio_nvme *n)
{
	void *data = malloc(4096);
	int rc = smartio_nvme_identify(n, 1, 0, data);

	free(data);
	return rc;
}

static void have_identified(struct smartio_nvme *n)
{
	assert_ok(identify_once(n));
}

static void try_a_log(struct smartio_nvme *n)
{
	uint8_t data[512];

	smartio_nvme_get_log(n, 2, 0xffffffff, 0, data, sizeof(data));
}

/*
 * It loses its path before step @k, and, unless that is 0, the next one @then steps later. Return:
 * whether it lost all that before @act was over; then it has come back.
 */
static bool lose_path(unsigned long k, unsigned long then, void (*act)(struct smartio_nvme *n))
{
	struct smartio_nvme_manager_status s;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint64_t borrower;
	uint8_t data[512];
	bool lost;

	fake_start(NULL);
	start_manager();
	fake.killed_id = fake_last_borrower();
	n = client();
	borrower = smartio_borrower_id(n->d.handle);
	q = queue(n, 4);
	/* Clients know from now on that it will be back. */
	while (!status_of(fake.manager).second_path)
		fake_step();
	fake.spared = true;
	fake.killed_at = k;
	fake.then_at = then;
	act(n);
	for (unsigned i = 0; i < 100; i++)
		fake_step();
	lost = fake.killed_id == 0 && fake.then_at == 0;
	fake.killed_at = 0;
	assert_int_equal(fake.served, 0);
	s = status_of(fake.manager);
	assert_true(s.returns >= (fake.killed_id == 0));
	assert_int_equal(s.returns_kept, s.returns);
	assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
	/* It serves requests as before. */
	assert_ok(identify_once(n));
	smartio_nvme_queue_close(queue(n, 4));
	/* What was asked for and not answered ends with the client. */
	fake_kill(borrower);
	for (unsigned i = 0; i < 100; i++)
		fake_step();
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	smartio_nvme_close(n);
	fake_bury(borrower);
	stop_manager();
	assert_int_equal(fake_quarantined(), 0);
	assert_int_equal(fake.faults, 0);
	assert_int_equal(fake.objects, 0);
	fake_stop();
	return lost;
}

static void a_lost_path_is_no_end(void **state)
{
	static void (*const act[])(struct smartio_nvme * n) = {have_a_queue, have_identified,
							       try_a_log};

	(void)state;
	for (unsigned i = 0; i < sizeof(act) / sizeof(*act); i++) {
		unsigned long k = 1;

		while (lose_path(k, 0, act[i]))
			k++;
		assert_true(k > 5);
	}
}

static void nor_is_one_that_is_lost_on_the_way_back(void **state)
{
	unsigned long then = 1;

	(void)state;
	while (lose_path(1, then, have_identified))
		then += then < 60 ? 1 : 17; /* what it publishes is long */
	assert_true(then > 60);
}

/* A record whose path is lost as it is read has leases of ones: with them nothing is settled. */
static void a_lease_of_ones_ends_nothing(void **state)
{
	struct smartio_nvme_lease *lease;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint32_t generation;
	uint8_t data[512];

	(void)state;
	fake_start(NULL);
	start_manager();
	fake.killed_id = fake_last_borrower();
	n = client();
	q = queue(n, 4);
	generation = smartio_device_generation(n->d.handle);
	assert_ok(smartio_nvme_lease_take(n, "one", 1, 0, 100, &lease));
	fake.manager->leases.list[0].borrower[1] = UINT64_MAX;
	fake.manager->leases.changes++;
	sio_nvme_record_leases(&fake.manager->record, &fake.manager->leases);
	while (!status_of(fake.manager).second_path)
		fake_step();
	fake.spared = true;
	fake.killed_at = 1;
	have_identified(n);
	assert_int_equal(status_of(fake.manager).returns_kept, 1);
	assert_int_equal(smartio_device_generation(n->d.handle), generation);
	assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
	smartio_nvme_close(n);
	stop_manager();
	fake_stop();
}

static int nothing(void **state)
{
	(void)state;
	return 0;
}

#define ALONE(name) cmocka_unit_test_setup_teardown(name, nothing, nothing)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(a_queue_pair_is_made_and_deleted_once),
		ALONE(a_lease_is_taken_and_given_once),
		ALONE(a_lease_that_was_not_answered_is_taken_back),
		ALONE(who_has_a_lease_is_known_to_who_follows),
		ALONE(the_dead_have_no_lease_of_who_follows),
		ALONE(what_is_only_looked_at_is_asked_again),
		ALONE(deaths_are_seen_to_once),
		ALONE(queues_of_one_completion_queue_are_made_and_deleted_once),
		ALONE(deaths_of_several_are_seen_to_once),
		ALONE(sharers_are_known_to_who_follows),
		ALONE(a_lost_path_is_no_end),
		ALONE(nor_is_one_that_is_lost_on_the_way_back),
		ALONE(a_lease_of_ones_ends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
