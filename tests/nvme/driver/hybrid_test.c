/* SPDX-License-Identifier: BSD-2-Clause */
/* For how long waits poll before they sleep: the decision alone, with times that are made up. */
#include <stdlib.h>

#include "hybrid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define SLEEP 10000u	 /* what a sleep adds, in ns */
#define COST (2 * SLEEP) /* with the processor's time that it takes */

/* What a number of waits has cost. */
struct bill {
	uint64_t polled_ns, in_vain_ns, sleep_ns, found, slept;
};

/* A wait for something that comes after @comes. */
static void wait_for(struct sio_nvme_hybrid *h, uint64_t comes, struct bill *b)
{
	const uint64_t ns = sio_nvme_hybrid_begin(h);

	if (comes <= ns) {
		sio_nvme_hybrid_end(h, false, comes);
		b->polled_ns += comes;
		b->found++;
		return;
	}
	sio_nvme_hybrid_end(h, true, comes + SLEEP);
	b->in_vain_ns += ns;
	b->sleep_ns += COST;
	b->slept++;
}

static struct bill waits(struct sio_nvme_hybrid *h, unsigned n, uint64_t least, uint64_t spread)
{
	static uint64_t random = 88172645463325252ull;
	struct bill b = {0};

	for (unsigned i = 0; i < n; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		wait_for(h, least + (spread ? random % spread : 0), &b);
	}
	return b;
}

static void what_is_given_is_polled(void **state)
{
	struct sio_nvme_hybrid h;

	(void)state;
	sio_nvme_hybrid_start(&h, 7000);
	for (unsigned i = 0; i < 3 * SIO_NVME_HYBRID_PERIOD; i++) {
		assert_int_equal(sio_nvme_hybrid_begin(&h), 7000);
		assert_int_equal(h.way, SIO_NVME_HYBRID_POLLS);
		sio_nvme_hybrid_end(&h, true, 1000000); /* in vain each time */
	}
}

static void first_it_measures(void **state)
{
	struct sio_nvme_hybrid h;

	(void)state;
	sio_nvme_hybrid_start(&h, 0);
	for (unsigned i = 0; i < SIO_NVME_HYBRID_PROBES; i++) {
		assert_int_equal(sio_nvme_hybrid_begin(&h), 0);
		assert_int_equal(h.way, SIO_NVME_HYBRID_SLEEPS);
		sio_nvme_hybrid_end(&h, true, 12000 + 1000 * ((i + 2) % 4));
	}
	for (unsigned i = 0; i < SIO_NVME_HYBRID_PROBES; i++) {
		assert_int_equal(sio_nvme_hybrid_begin(&h), 12000);
		assert_int_equal(h.way, SIO_NVME_HYBRID_POLLS_LONG);
		sio_nvme_hybrid_end(&h, false, 2000 + 1000 * ((i + 3) % 4));
	}
	assert_int_equal(sio_nvme_hybrid_begin(&h), 20000);
	assert_int_equal(h.way, SIO_NVME_HYBRID_POLLS);
}

/* A completion that came before the sleep, and one slept for behind a poll, tell nothing. */
static void what_is_no_measure_is_none(void **state)
{
	struct sio_nvme_hybrid h;

	(void)state;
	sio_nvme_hybrid_start(&h, 0);
	for (unsigned i = 0; i < 2 * SIO_NVME_HYBRID_PROBES; i++) {
		assert_int_equal(sio_nvme_hybrid_begin(&h), 0);
		assert_int_equal(h.way, SIO_NVME_HYBRID_SLEEPS);
		sio_nvme_hybrid_end(&h, false, 50);
	}
	sio_nvme_hybrid_begin(&h);
	sio_nvme_hybrid_end(&h, true, 12000);
	assert_int_equal(sio_nvme_hybrid_begin(&h), 12000);
	assert_int_equal(h.way, SIO_NVME_HYBRID_POLLS_LONG);
	sio_nvme_hybrid_end(&h, true, 90);
	assert_int_equal(sio_nvme_hybrid_begin(&h), 0);
	assert_int_equal(h.way, SIO_NVME_HYBRID_SLEEPS);
	sio_nvme_hybrid_end(&h, true, 20000);
	assert_int_equal(sio_nvme_hybrid_begin(&h), 12000);
}

static void fast_completions_are_found_by_polling(void **state)
{
	const unsigned n = 16 * SIO_NVME_HYBRID_PERIOD;
	struct sio_nvme_hybrid h;
	struct bill b;

	(void)state;
	sio_nvme_hybrid_start(&h, 0);
	b = waits(&h, n, 1200, 300);
	/* All but those that measure what a sleep adds. */
	assert_int_equal(b.slept, 16 * SIO_NVME_HYBRID_PROBES);
	assert_int_equal(b.in_vain_ns, 0);
}

/* Those of a slow drive cost little more than if none polled. */
static void slow_completions_are_slept_for(void **state)
{
	const unsigned n = 16 * SIO_NVME_HYBRID_PERIOD;
	struct sio_nvme_hybrid h;
	struct bill b;

	(void)state;
	sio_nvme_hybrid_start(&h, 0);
	b = waits(&h, n, 100000, 400000);
	assert_true(b.slept > n * 95 / 100);
	/* One of 65 polls in vain: less than a hundredth of the 300 us that each wait takes. */
	assert_in_range(b.in_vain_ns / n, 1, 3000);
}

/* Neither is known to be better: never more than twice what the better one would have cost. */
static void no_mixture_costs_more_than_twice_the_best(void **state)
{
	const unsigned n = 64 * SIO_NVME_HYBRID_PERIOD;

	(void)state;
	for (uint64_t spread = 500; spread < 20 * COST; spread = spread * 3 / 2) {
		struct sio_nvme_hybrid h;
		uint64_t sleeps = (uint64_t)n * COST, polls = n * spread / 2, cost;
		struct bill b;

		sio_nvme_hybrid_start(&h, 0);
		b = waits(&h, n, 0, spread);
		cost = b.polled_ns + b.in_vain_ns + b.sleep_ns;
		assert_true(cost < 21 * (sleeps < polls ? sleeps : polls) / 10);
	}
}

/* A drive that becomes another one: what was measured before is forgotten after two periods. */
static void it_follows_what_changes(void **state)
{
	struct sio_nvme_hybrid h;
	struct bill b;

	(void)state;
	sio_nvme_hybrid_start(&h, 0);
	waits(&h, 8 * SIO_NVME_HYBRID_PERIOD, 1200, 300);
	waits(&h, 3 * SIO_NVME_HYBRID_PERIOD, 50000, 1000);
	b = waits(&h, 8 * SIO_NVME_HYBRID_PERIOD, 50000, 1000);
	assert_true(b.slept > 7 * SIO_NVME_HYBRID_PERIOD);
	b = waits(&h, 3 * SIO_NVME_HYBRID_PERIOD, 1200, 300);
	b = waits(&h, 8 * SIO_NVME_HYBRID_PERIOD, 1200, 300);
	assert_int_equal(b.slept, 8 * SIO_NVME_HYBRID_PROBES);
}

/* One processor for both sides: polling keeps the drive from its work, and a sleep adds nothing. */
static void where_polling_is_no_faster_it_sleeps(void **state)
{
	struct sio_nvme_hybrid h;
	unsigned polled = 0;

	(void)state;
	sio_nvme_hybrid_start(&h, 0);
	for (unsigned i = 0; i < 4 * SIO_NVME_HYBRID_PERIOD; i++) {
		uint64_t ns = sio_nvme_hybrid_begin(&h);

		polled += ns != 0;
		/* A poll for as long as a sleep takes finds it just so. */
		sio_nvme_hybrid_end(&h, ns == 0, 5000);
	}
	assert_int_equal(polled, 4 * SIO_NVME_HYBRID_PROBES);
}

/* Of a queue on which nothing comes few waits poll: what measures, and one behind each rest. */
static void waits_that_time_out_rest(void **state)
{
	struct sio_nvme_hybrid h;
	unsigned polled = 0;

	(void)state;
	sio_nvme_hybrid_start(&h, 0);
	sio_nvme_hybrid_begin(&h);
	sio_nvme_hybrid_end(&h, true, 1000000);
	for (unsigned i = 1; i < SIO_NVME_HYBRID_PERIOD; i++) {
		polled += sio_nvme_hybrid_begin(&h) != 0;
		sio_nvme_hybrid_timeout(&h);
	}
	/* 1, 2, 4 and so on up to 64 rest, and then 64 each time. */
	assert_in_range(polled, 1, 6 + SIO_NVME_HYBRID_PERIOD / SIO_NVME_HYBRID_REST + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_given_is_polled),
		cmocka_unit_test(first_it_measures),
		cmocka_unit_test(what_is_no_measure_is_none),
		cmocka_unit_test(fast_completions_are_found_by_polling),
		cmocka_unit_test(slow_completions_are_slept_for),
		cmocka_unit_test(no_mixture_costs_more_than_twice_the_best),
		cmocka_unit_test(it_follows_what_changes),
		cmocka_unit_test(where_polling_is_no_faster_it_sleeps),
		cmocka_unit_test(waits_that_time_out_rest),
	};

	return cmocka_run_group_tests_name("nvme driver: hybrid waits", tests, NULL, NULL);
}
