/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paper's largest cluster, 60 hosts at seven switches (examples/topologies/sixty-hosts.yaml):
 * 31 of them share one drive, each with one of its 31 queue pairs, at once. The hosts that have
 * nothing to do are not started. One more client hears who holds the pairs, waits, and has one when
 * somebody leaves. With SIO_MANY_S=N the clients write and check for N seconds,
 * and look at each other's blocks every 20.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "manager.h"
#include "program.h"
#include "smartio/uapi.h"

#define CLIENTS 31u
enum { LENDER = 4, FIRST = 8, LAST = FIRST + 4 * (CLIENTS - 1), ONE_MORE = LAST + 4 };
enum { SERVING, OPENED, BEGIN, WRITTEN, CHECK_OTHERS, CHECKED, LEAVE, LEFT, REFUSED, WAITING, GOT };

#define BLOCK 512u
#define PART (1u << 20) /* bytes of the drive that each client writes */
#define LARGEST (128u << 10)
#define DEPTH 8u
#define ROUNDS 40u /* of DEPTH commands of each, if there is no time given */
#define TURN_S 20u /* a step is not waited for much longer */

/* ---- the manager, on the lender ---- */
static struct smartio_nvme_manager *serving;

static void on_term(int sig)
{
	(void)sig;
	smartio_nvme_manager_stop(serving);
}

static int manager(void *arg)
{
	uint32_t waiting = 0;
	int rc;

	(void)arg;
	begin();
	OK(smartio_nvme_manager_open("nvme0", NULL, &serving));
	signal(SIGTERM, on_term);
	step_done(SERVING);
	while ((rc = smartio_nvme_manager_serve(serving, UINT32_MAX)) > 0) {
		if (serving->waiters.n > waiting)
			step_done(WAITING);
		waiting = serving->waiters.n;
	}
	smartio_nvme_manager_close(serving);
	SCITerminate();
	return rc ? 2 : 0;
}

/* ---- clients ---- */
struct stamp {
	uint64_t block;
	uint32_t client, round;
};

struct client {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	uint8_t *data;
	unsigned me;
	uint64_t random;
	uint32_t round;
	uint32_t *written; /* of each block of its part: the round that wrote it; 0: none */
};

static uint64_t part_of(unsigned client)
{
	return (uint64_t)client * (PART / BLOCK);
}

static unsigned pick(struct client *c, unsigned n)
{
	c->random = c->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((c->random >> 33) % n);
}

/* The whole block says whose it is, which, and of when. */
static void stamp(uint8_t *to, uint64_t block, unsigned client, uint32_t round)
{
	const struct stamp s = {.block = block, .client = client, .round = round};

	for (unsigned i = 0; i < BLOCK; i += sizeof(s))
		memcpy(to + i, &s, sizeof(s));
}

static void check_stamp(const uint8_t *data, uint64_t block, unsigned client, uint32_t round)
{
	uint8_t want[BLOCK];
	struct stamp got;

	stamp(want, block, client, round);
	if (memcmp(data, want, BLOCK) == 0)
		return;
	memcpy(&got, data, sizeof(got));
	fprintf(stderr, "block %llu is of client %u, round %u: found block %llu, %u, %u\n",
		(unsigned long long)block, client, round, (unsigned long long)got.block, got.client,
		got.round);
	exit(1);
}

static void open_client(struct client *c, uint32_t wait_ms)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = DEPTH, .wait_ms = wait_ms};

	OK(smartio_nvme_open("nvme0", &c->n));
	OK(smartio_nvme_queue_open(c->n, &o, &c->q));
	OK(smartio_nvme_buffer_alloc(c->n, DEPTH * LARGEST, &c->b));
	c->data = smartio_nvme_buffer_data(c->b);
	c->random = c->me + 1;
	c->written = calloc(PART / BLOCK, sizeof(*c->written));
	CHECK(c->written);
}

struct flight {
	uint64_t block;
	uint32_t blocks;
	bool write;
};

/* One of DEPTH commands that are given together; they do not touch each other's blocks. */
static void send(struct client *c, unsigned slot, struct flight *f)
{
	const uint32_t room = PART / BLOCK / DEPTH;
	uint8_t *at = c->data + slot * LARGEST;

	f->blocks = 1 + pick(c, LARGEST / BLOCK);
	f->block = part_of(c->me) + slot * room + pick(c, room - f->blocks + 1);
	f->write = pick(c, 2);
	for (uint32_t i = 0; f->write && i < f->blocks; i++)
		stamp(at + i * BLOCK, f->block + i, c->me, c->round);
	OK(smartio_nvme_submit(c->q, f->write ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ, f->block,
			       f->blocks, c->b, slot * LARGEST, f));
}

static void landed(struct client *c, const struct flight *f, unsigned slot)
{
	for (uint32_t i = 0; i < f->blocks; i++) {
		uint32_t *written = &c->written[f->block - part_of(c->me) + i];

		if (f->write)
			*written = c->round;
		else if (*written)
			check_stamp(c->data + slot * LARGEST + i * BLOCK, f->block + i, c->me,
				    *written);
	}
}

static void one_round(struct client *c)
{
	struct smartio_nvme_completion done[DEPTH];
	struct flight f[DEPTH];
	unsigned left = DEPTH;
	int n;

	c->round++;
	for (unsigned i = 0; i < DEPTH; i++)
		send(c, i, &f[i]);
	while (left > 0) {
		n = smartio_nvme_poll(c->q, done, DEPTH);
		OK(n);
		for (int i = 0; i < n; i++) {
			const struct flight *landing = done[i].cookie;

			CHECK(done[i].status == 0);
			landed(c, landing, (unsigned)(landing - f));
		}
		left -= (unsigned)n;
	}
}

static unsigned seconds(void)
{
	const char *s = getenv("SIO_MANY_S");

	return s ? (unsigned)strtoul(s, NULL, 0) : 0;
}

static unsigned turns(void)
{
	return seconds() > TURN_S ? seconds() / TURN_S : 1;
}

static void work(struct client *c)
{
	uint64_t end = smartio_now_ns() + TURN_S * 1000000000ull;

	for (unsigned i = 0; seconds() ? smartio_now_ns() < end : i < ROUNDS; i++)
		one_round(c);
}

/* So that all of it is of one round, which the others know. */
static void write_all(struct client *c)
{
	uint8_t *all = malloc(PART);

	CHECK(all);
	for (uint32_t i = 0; i < PART / BLOCK; i++)
		stamp(all + i * BLOCK, part_of(c->me) + i, c->me, UINT32_MAX);
	OK(smartio_nvme_write(c->q, all, part_of(c->me) * BLOCK, PART));
	for (uint32_t i = 0; i < PART / BLOCK; i++)
		c->written[i] = UINT32_MAX;
	free(all);
}

static void check_all(struct client *c, unsigned other)
{
	uint8_t *all = malloc(PART);

	CHECK(all);
	OK(smartio_nvme_read(c->q, all, part_of(other) * BLOCK, PART));
	for (uint32_t i = 0; i < PART / BLOCK; i++)
		check_stamp(all + i * BLOCK, part_of(other) + i, other, UINT32_MAX);
	free(all);
}

static void close_client(struct client *c)
{
	free(c->written);
	smartio_nvme_close(c->n);
	SCITerminate();
}

static int client(void *arg)
{
	struct client c = {.me = *(const unsigned *)arg};

	begin();
	open_client(&c, 0);
	step_done(OPENED);
	for (unsigned turn = 1; turn <= turns(); turn++) {
		step_await(BEGIN);
		work(&c);
		write_all(&c);
		step_done(WRITTEN);
		step_await(CHECK_OTHERS);
		check_all(&c, (c.me + turn) % CLIENTS);
		step_done(CHECKED);
	}
	step_await(LEAVE);
	close_client(&c);
	step_done(LEFT);
	return 0;
}

/* Every pair's holder, by node and program. */
static void check_holders(const char *text)
{
	char holder[64];

	CHECK(smartio_nvme_exhausted() == SIO_OUT_OF_QUEUE_PAIRS);
	CHECK(strstr(text, "no queue pairs left: the 31 of nvme0 are held by node 8: 1 ("));
	for (unsigned node = FIRST; node <= LAST; node += 4) {
		snprintf(holder, sizeof(holder), "node %u: 1 (%.15s)", node,
			 program_invocation_short_name);
		if (!strstr(text, holder)) {
			fprintf(stderr, "\"%s\" does not name %s\n", text, holder);
			exit(1);
		}
	}
}

static int one_more(void *arg)
{
	struct client c = {.me = 0};
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;

	(void)arg;
	begin();
	OK(smartio_nvme_open("nvme0", &n));
	CHECK(smartio_nvme_queue_open(n, NULL, &q) == -ENOSPC);
	check_holders(smartio_nvme_error());
	smartio_nvme_close(n);
	step_done(REFUSED);
	open_client(&c, UINT32_MAX);
	for (unsigned other = 0; other < CLIENTS; other++)
		check_all(&c, other);
	step_done(GOT);
	step_await(LEAVE);
	close_client(&c);
	return 0;
}

/* ---- the test ---- */
static char *read_example(void)
{
	FILE *f = fopen(getenv("SMARTIO_TEST_SIXTY"), "r");
	char *text = calloc(1, 65536);

	assert_non_null(f);
	assert_non_null(text);
	assert_in_range(fread(text, 1, 65535, f), 1, 65534);
	fclose(f);
	return text;
}

static void all(unsigned step, unsigned n, bool await)
{
	for (unsigned i = 0; i < n; i++) {
		if (await)
			step_await(step);
		else
			step_done(step);
	}
}

static void every_pair_on_a_host_of_its_own(void **state)
{
	static unsigned number[CLIENTS];
	pid_t pid[CLIENTS], last, m;
	char *topology = read_example();
	struct cluster *c = cluster_up_first(topology, ONE_MORE / 4);

	*state = c;
	free(topology);
	assert_non_null(c);
	m = cluster_fork(c, LENDER, manager, NULL);
	step_await(SERVING);
	for (unsigned i = 0; i < CLIENTS; i++) {
		number[i] = i;
		pid[i] = cluster_fork(c, FIRST + 4 * i, client, &number[i]);
	}
	all(OPENED, CLIENTS, true);
	for (unsigned turn = 0; turn < turns(); turn++) {
		all(BEGIN, CLIENTS, false);
		all(WRITTEN, CLIENTS, true);
		all(CHECK_OTHERS, CLIENTS, false);
		all(CHECKED, CLIENTS, true);
	}
	/* All pairs are taken. */
	last = cluster_fork(c, ONE_MORE, one_more, NULL);
	step_await(REFUSED);
	step_await(WAITING);
	step_done(LEAVE);
	step_await(GOT);
	all(LEAVE, CLIENTS, false);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(cluster_wait(pid[i]), 0);
	assert_int_equal(cluster_wait(last), 0);
	kill(m, SIGTERM);
	assert_int_equal(cluster_wait(m), 0);
	assert_int_equal(cluster_down(c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_pair_on_a_host_of_its_own)};

	steps_reset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
