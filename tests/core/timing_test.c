/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of transactions, against what can be worked out by hand or is counted again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/timing.h"
#include "prng.h"

/* x16 of generation 3, as 15.75 GB/s; one chip of 150 ns. */
static const struct sio_timing usual = {
	.rules = {256, 512, 64}, .hops = 1, .chips = 150000, .byte_fs = 63476, .around = 8};

static void links_have_their_rates(void **state)
{
	/* Bytes per microsecond, as the specification's tables have them, rounded down. */
	static const unsigned rate[] = {250, 500, 984, 1969, 3938, 7375};

	(void)state;
	for (unsigned g = 1; g <= 6; g++) {
		assert_int_equal(1000000000ull / sio_timing_byte(1, g), rate[g - 1]);
		for (unsigned w = 2; w <= 16; w *= 2)
			assert_int_equal(sio_timing_byte(1, g) / w, sio_timing_byte(w, g));
	}
	/* What comes after what is known is as fast as the last. */
	assert_int_equal(sio_timing_byte(4, 7), sio_timing_byte(4, 6));
}

static void writes_are_as_long_as_their_packets(void **state)
{
	(void)state;
	assert_int_equal(sio_timing_write(&usual, 0), 150000);
	/* 4 bytes, 16 of header, 8 around. */
	assert_int_equal(sio_timing_write(&usual, 4), 150000 + 28 * 63476 / 1000);
	assert_int_equal(sio_timing_write(&usual, 1), sio_timing_write(&usual, 4));
	assert_int_equal(sio_timing_write(&usual, 4096),
			 150000 + 16 * (256 + 24) * 63476ull / 1000);
}

static void one_read_goes_there_and_back(void **state)
{
	static const struct sio_timing_reader reader = {.tags = 1, .memory = 400000};

	(void)state;
	assert_int_equal(sio_timing_read(&usual, &reader, 0), 0);
	assert_int_equal(sio_timing_read(&usual, &reader, 64),
			 24 * 63476 / 1000 + 2 * 150000 + 400000 + (64 + 20) * 63476 / 1000);
	/* One request, two completions. */
	assert_int_equal(sio_timing_read(&usual, &reader, 512),
			 24 * 63476 / 1000 + 2 * 150000 + 400000 + (512 + 40) * 63476 / 1000);
	/* One at a time. */
	assert_int_equal(sio_timing_read(&usual, &reader, 8 * 512),
			 8 * sio_timing_read(&usual, &reader, 512));
}

static void many_requests_fill_the_link(void **state)
{
	static const struct sio_timing_reader reader = {.tags = SIO_TIMING_TAGS, .memory = 400000};
	static const struct sio_timing_reader few = {.tags = 4, .memory = 400000};
	const uint64_t len = 1 << 20, part = (512 + 40) * 63476ull / 1000;
	uint64_t one, t;

	(void)state;
	one = sio_timing_read(&usual, &few, 512);
	t = sio_timing_read(&usual, &reader, len);
	assert_int_equal(t, one + (len / 512 - 1) * part);
	/* Four per round trip: the rest of the time the link has nothing to do. */
	t = sio_timing_read(&usual, &few, len);
	assert_in_range(t, len / 512 / 4 * one, (len / 512 / 4 + 1) * one);
}

/*
 * ---- the same, told again ----
 */

#define REQUESTS 4096u

/*
 * All requests so far are kept with the instant at which their data are whole; those after now are
 * open, and whoever has as many as it may waits for the earliest of them.
 */
static uint64_t played(const struct sio_timing *t, const struct sio_timing_reader *reader,
		       uint64_t len)
{
	static uint64_t whole[REQUESTS];
	const uint64_t ask = (16 + t->around) * t->byte_fs / 1000;
	uint64_t now = 0, back = 0, sent = 0;
	unsigned n = 0;

	while (sent < len) {
		uint64_t earliest = UINT64_MAX, at;
		struct sio_pcie_count c = {0};
		uint32_t open = 0, part = t->rules.max_read_request;

		for (unsigned i = 0; i < n; i++) {
			open += whole[i] > now;
			if (whole[i] > now && whole[i] < earliest)
				earliest = whole[i];
		}
		if (open == reader->tags) {
			now = earliest;
			continue;
		}
		assert_true(n < REQUESTS && open < reader->tags);
		part = len - sent < part ? (uint32_t)(len - sent) : part;
		sent += part;
		now += ask;
		at = now + 2 * t->chips + reader->memory;
		sio_pcie_read(&t->rules, 0, part, &c);
		back = (back > at ? back : at) +
		       (c.completions * (12 + t->around) + ((part + 3) & ~3u)) * t->byte_fs / 1000;
		whole[n++] = back;
	}
	return back;
}

static void agrees_with_all_that_are_open(void **state)
{
	unsigned rounds = prng_start(7, 3000);

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct sio_timing t = {.rules = {128u << prng_below(6), 128u << prng_below(6), 64},
				       .chips = prng_below(2000000),
				       .byte_fs = sio_timing_byte(1u << prng_below(5),
								  1 + (uint32_t)prng_below(6)),
				       .around = prng_below(2) ? 8 : 0};
		struct sio_timing_reader reader = {.tags = 1 + (uint32_t)prng_below(64),
						   .memory = prng_below(1000000)};
		uint64_t len = 1 + prng_below(64 << 10);

		assert_int_equal(sio_timing_read(&t, &reader, len), played(&t, &reader, len));
	}
}

/* Anywhere in pages: as many packets as core/pcie.h counts, one request at a time. */
static void takes_the_packets_of_its_address(void **state)
{
	unsigned rounds = prng_start(8, 3000);

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct sio_timing t = {.rules = {128u << prng_below(6), 128u << prng_below(6), 64},
				       .chips = prng_below(2000000),
				       .byte_fs = sio_timing_byte(1, 1),
				       .around = sio_timing_around(1 + (uint32_t)prng_below(6))};
		const struct sio_timing_reader reader = {.tags = 1, .memory = prng_below(1000000)};
		uint64_t at = prng_below(3 * 4096), len = 1 + prng_below(16 << 10);
		uint64_t words = ((at % 4 + len + 3) & ~3ull), byte = t.byte_fs / 1000;
		struct sio_pcie_count c = {0};

		sio_pcie_read(&t.rules, at, len, &c);
		sio_pcie_write(&t.rules, at, len, &c);
		assert_int_equal(
			sio_timing_read_at(&t, &reader, at, len),
			c.read_requests * ((16 + t.around) * byte + 2 * t.chips + reader.memory) +
				(c.completions * (12 + t.around) + words) * byte);
		assert_int_equal(sio_timing_write_at(&t, at, len),
				 t.chips + (c.write_tlps * (16 + t.around) + words) * byte);
	}
}

/* ---- along a route ---- */

/* The topology of the paper's figure 34: a drive and another device in a box of the lender's. */
struct world {
	struct sio_topology t;
	struct sio_topo_host host[2];
	struct sio_topo_chassis chassis[3];
	struct sio_topo_device device[2];
	struct sio_topo_switch sw[1];
	struct sio_graph *g;
	struct sio_routes *r;
};

static int make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sio_topo_adapter port = {.attach = SIO_ATTACH_SWITCH,
					.link_width = 8,
					.link_generation = 3,
					.latency = SIO_TIMING_ADAPTER_NS};

	assert_non_null(w);
	for (unsigned i = 0; i < 3; i++)
		w->chassis[i] = (struct sio_topo_chassis){.in = i,
							  .link_width = 16,
							  .link_generation = 3,
							  .latency = i < 2 ? SIO_TIMING_ADAPTER_NS
									   : SIO_TIMING_CHASSIS_NS};
	for (unsigned i = 0; i < 2; i++)
		w->device[i] = (struct sio_topo_device){
			.in = 3, .link_width = i ? 16 : 4, .link_generation = 3};
	w->sw[0].latency = SIO_TIMING_SWITCH_NS;
	w->host[0] = (struct sio_topo_host){.node = 4,
					    .n_chassis = 3,
					    .chassis = w->chassis,
					    .n_devices = 2,
					    .device = w->device,
					    .n_adapters = 1,
					    .adapter = {port}};
	w->host[0].adapter[0].in = 3;
	w->host[1] = (struct sio_topo_host){.node = 8, .n_adapters = 1, .adapter = {port}};
	w->t = (struct sio_topology){.max_payload = 256,
				     .max_read_request = 512,
				     .read_completion_boundary = 64,
				     .n_hosts = 2,
				     .host = w->host,
				     .n_switches = 1,
				     .sw = w->sw};
	assert_int_equal(sio_graph_new(&w->t, &w->g), 0);
	assert_int_equal(sio_routes_new(w->g, &w->r), 0);
	*state = w;
	return 0;
}

static int drop(void **state)
{
	struct world *w = *state;

	sio_routes_free(w->r);
	sio_graph_free(w->g);
	free(w->t.distance);
	free(w);
	return 0;
}

static struct sio_timing timed(const struct world *w, unsigned from, unsigned to)
{
	struct sio_route route;

	assert_int_equal(sio_routes_find(w->r, from, to, &route), 0);
	return sio_timing_of(w->r, from, to, &route);
}

/* Round trips of a drive's fetch by where the queue is: borrower, lender, beside the drive. */
static void queues_are_as_far_as_the_paper_says(void **state)
{
	const struct world *w = *state;
	const unsigned drive = sio_graph_device(w->g, 0, 0);
	struct sio_timing borrower = timed(w, drive, sio_graph_host(w->g, 1));
	struct sio_timing lender = timed(w, drive, sio_graph_host(w->g, 0));
	struct sio_timing beside = timed(w, drive, sio_graph_device(w->g, 0, 1));

	assert_int_equal(borrower.hops, 4);
	assert_int_equal(lender.hops, 3);
	assert_int_equal(beside.hops, 1);
	assert_int_equal(2 * borrower.chips, 1168000);
	assert_int_equal(2 * lender.chips, 828000);
	assert_int_equal(2 * beside.chips, 300000);
	/* The drive's own link is the slowest, x4; from the other device the adapter's, x8. */
	assert_int_equal(borrower.byte_fs, sio_timing_byte(4, 3));
	assert_int_equal(borrower.rules.max_read_request, 512);
	assert_int_equal(timed(w, sio_graph_device(w->g, 0, 1), sio_graph_host(w->g, 1)).byte_fs,
			 sio_timing_byte(8, 3));
}

static void it_is_as_far_back(void **state)
{
	const struct world *w = *state;
	const unsigned drive = sio_graph_device(w->g, 0, 0), host = sio_graph_host(w->g, 1);
	struct sio_timing there = timed(w, drive, host), back = timed(w, host, drive);

	assert_int_equal(there.chips, back.chips);
	assert_int_equal(there.byte_fs, back.byte_fs);
	assert_int_equal(there.hops, back.hops);
}

static void flits_have_no_frame(void **state)
{
	struct world *w = *state;
	struct sio_timing t;

	for (unsigned i = 0; i < w->g->n_links; i++)
		w->g->link[i].generation = 6;
	t = timed(w, sio_graph_device(w->g, 0, 0), sio_graph_host(w->g, 0));
	assert_int_equal(t.around, 0);
	assert_int_equal(t.byte_fs, sio_timing_byte(4, 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_have_their_rates),
		cmocka_unit_test(writes_are_as_long_as_their_packets),
		cmocka_unit_test(one_read_goes_there_and_back),
		cmocka_unit_test(many_requests_fill_the_link),
		cmocka_unit_test(agrees_with_all_that_are_open),
		cmocka_unit_test(takes_the_packets_of_its_address),
		cmocka_unit_test_setup_teardown(queues_are_as_far_as_the_paper_says, make, drop),
		cmocka_unit_test_setup_teardown(it_is_as_far_back, make, drop),
		cmocka_unit_test_setup_teardown(flits_have_no_frame, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
