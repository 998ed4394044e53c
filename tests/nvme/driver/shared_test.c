/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More programs than queue pairs: those of a host share pairs, and are killed at random under
 * stamped I/O. Nobody may hang, no block may be another's, and no acknowledged write be lost. They
 * poll, and once more all but some sleep until an interrupt wakes them.
 * SIO_SHARED_KILLS=N kills so many, SIO_SHARED_PROGRAMS=N starts so many on each of two hosts,
 * SIO_SHARED_PAIRS=N gives the drive so many pairs.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "serving.h"
#include "smartio/ext.h"

enum { LENDER = 4, MANAGER = 8, CLIENT1 = 12, CLIENT2 = 16 };
enum { OPENED = SERVING + 1, ROUND, ENDED };
#define MOST 32u /* programs on each host */
#define DEPTH 8u
#define BLOCK 512u
#define BYTES 4096u
#define PART (DEPTH * BYTES / BLOCK) /* blocks of each program */

/* What a program has seen of its own blocks: kept by the test when it is killed. */
struct record {
	uint32_t me;
	bool alone, sleeps;
	uint32_t epoch; /* the last one in which it has done a round */
	/* Of each command's blocks: the round that was sent last, and acknowledged last. */
	uint64_t sent[DEPTH], acked[DEPTH];
};

static struct common {
	uint32_t epoch;
	bool sleep;
	uint64_t woken; /* how often, of those that ended in order */
	struct record of[2 * MOST];
} * common;

static unsigned number(const char *name, unsigned otherwise)
{
	const char *s = getenv(name);

	return s ? (unsigned)strtoul(s, NULL, 0) : otherwise;
}

/* ---- programs ---- */
static volatile sig_atomic_t ending;

static void end(int sig)
{
	(void)sig;
	ending = 1;
}

/* In the end nobody has a pair any more. */
static int counting_manager(void *arg)
{
	int rc = serve();

	(void)arg;
	CHECK(rc < 0 || smartio_nvme_manager_queue_pairs(serving, NULL) == 0);
	smartio_nvme_manager_close(serving);
	SCITerminate();
	return rc ? 2 : 0;
}

struct stamp {
	uint64_t block, round;
	uint32_t me, reserved[3];
};

static void stamp(uint8_t *to, uint32_t me, unsigned command, uint64_t round)
{
	for (size_t i = 0; i < BYTES; i += sizeof(struct stamp)) {
		const struct stamp s = {.block = (uint64_t)me * PART + command * (BYTES / BLOCK) +
						 i / BLOCK,
					.round = round,
					.me = me};

		memcpy(to + i, &s, sizeof(s));
	}
}

/* Every block is ours, and of a round between those two; nothing was written before the first. */
static void check(const uint8_t *data, uint32_t me, unsigned command, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < BYTES; i += sizeof(struct stamp)) {
		struct stamp s;

		memcpy(&s, data + i, sizeof(s));
		if (from == 0 && s.me == 0 && s.block == 0 && s.round == 0)
			continue;
		if (s.me == me && s.round >= from && s.round <= to &&
		    s.block == (uint64_t)me * PART + command * (BYTES / BLOCK) + i / BLOCK)
			continue;
		fprintf(stderr,
			"program %u, command %u, byte %zu: found program %u, block %llu, round "
			"%llu; expected rounds %llu to %llu\n",
			me, command, i, s.me, (unsigned long long)s.block,
			(unsigned long long)s.round, (unsigned long long)from,
			(unsigned long long)to);
		exit(1);
	}
}

struct worker {
	struct record *r;
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	uint8_t *data;
};

static void submit(struct worker *w, enum smartio_nvme_op op, unsigned command)
{
	const uint64_t lba = (uint64_t)w->r->me * PART + command * (BYTES / BLOCK);
	struct smartio_nvme_completion none;
	int rc;

	/* Between two pairs none is taken. */
	while ((rc = smartio_nvme_submit(w->q, op, lba, BYTES / BLOCK, w->b,
					 (size_t)command * BYTES, &w->r->sent[command])) == -EAGAIN)
		CHECK(smartio_nvme_poll(w->q, &none, 1) == 0);
	OK(rc);
}

/* All DEPTH of them; a write whose fate is unknown is done once more. */
static void all(struct worker *w, enum smartio_nvme_op op)
{
	struct smartio_nvme_completion c[DEPTH];

	for (unsigned i = 0; i < DEPTH; i++)
		submit(w, op, i);
	for (unsigned done = 0; done < DEPTH;) {
		int n = smartio_nvme_poll(w->q, c, DEPTH);

		OK(n);
		if (n == 0 && w->r->sleeps)
			OK(smartio_nvme_wait(w->q, UINT32_MAX));
		for (int i = 0; i < n; i++) {
			unsigned command = (unsigned)((uint64_t *)c[i].cookie - w->r->sent);

			CHECK(command < DEPTH);
			if (c[i].status == SMARTIO_NVME_UNSURE && op == SMARTIO_NVME_WRITE &&
			    !w->r->alone) {
				submit(w, op, command);
				continue;
			}
			CHECK(c[i].status == 0);
			if (op == SMARTIO_NVME_WRITE)
				w->r->acked[command] = w->r->sent[command];
			done++;
		}
	}
}

static void one_round(struct worker *w, uint64_t round)
{
	for (unsigned i = 0; i < DEPTH; i++) {
		stamp(w->data + (size_t)i * BYTES, w->r->me, i, round);
		w->r->sent[i] = round;
	}
	all(w, SMARTIO_NVME_WRITE);
	memset(w->data, 0, DEPTH * BYTES);
	all(w, SMARTIO_NVME_READ);
	for (unsigned i = 0; i < DEPTH; i++)
		check(w->data + (size_t)i * BYTES, w->r->me, i, round, round);
}

static void open_worker(struct worker *w)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o),
		.depth = DEPTH,
		.wait_ms = UINT32_MAX,
		.flags = SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE |
			 (w->r->alone ? SMARTIO_NVME_ALONE : 0) |
			 (w->r->sleeps ? SMARTIO_NVME_INTERRUPT : 0)};

	OK(smartio_nvme_open("nvme0", &w->n));
	OK(smartio_nvme_queue_open(w->n, &o, &w->q));
	OK(smartio_nvme_buffer_alloc(w->n, DEPTH * BYTES, &w->b));
	w->data = smartio_nvme_buffer_data(w->b);
}

/* Who sleeps where the first program polls looks now and then. */
static void count_interrupts(const struct worker *w)
{
	struct smartio_nvme_counters c;

	smartio_nvme_queue_counters(w->q, &c);
	CHECK(w->r->sleeps || !c.interrupts);
	__atomic_add_fetch(&common->woken, c.interrupts, __ATOMIC_RELAXED);
}

static int worker(void *arg)
{
	struct worker w = {.r = arg};
	uint64_t round = 0;

	signal(SIGTERM, end);
	begin();
	open_worker(&w);
	/* What the one before, which was killed, has left. */
	all(&w, SMARTIO_NVME_READ);
	for (unsigned i = 0; i < DEPTH; i++) {
		check(w.data + (size_t)i * BYTES, w.r->me, i, w.r->acked[i], w.r->sent[i]);
		if (w.r->sent[i] > round)
			round = w.r->sent[i];
	}
	step_done(OPENED);
	while (!ending) {
		uint32_t epoch = __atomic_load_n(&common->epoch, __ATOMIC_ACQUIRE);

		one_round(&w, ++round);
		if (w.r->epoch == epoch)
			continue;
		w.r->epoch = epoch;
		step_done(ROUND);
	}
	count_interrupts(&w);
	smartio_nvme_close(w.n);
	SCITerminate();
	return 0;
}

/* ---- the test ---- */
static pid_t start(struct cluster *c, unsigned i, unsigned programs)
{
	struct record *r = &common->of[i];

	r->me = i + 1;
	r->alone = i % 2;
	r->sleeps = common->sleep && i % 4 != 3;
	r->epoch = common->epoch;
	return cluster_fork(c, i < programs ? CLIENT1 : CLIENT2, worker, r);
}

static unsigned pick(unsigned n)
{
	static uint64_t random = 1;

	random = random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((random >> 33) % n);
}

static void a_round_of_each(unsigned n)
{
	__atomic_add_fetch(&common->epoch, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < n; i++)
		step_await(ROUND);
}

static void share_and_be_killed(void **state, bool sleep)
{
	const unsigned programs = number("SIO_SHARED_PROGRAMS", 5), n = 2 * programs;
	const unsigned kills = number("SIO_SHARED_KILLS", 20);
	pid_t pid[2 * MOST], m;
	char topology[1024];
	struct cluster *c;

	assert_in_range(programs, 1, MOST);
	snprintf(topology, sizeof(topology),
		 "cluster: nvme\n"
		 "switches: [sw0]\n"
		 "hosts:\n"
		 "  lender: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 16M, "
		 "queue_pairs: %u}}}\n"
		 "  manager: {ram: 64M, iommu: off}\n"
		 "  client1: {ram: 256M, iommu: on}\n"
		 "  client2: {ram: 256M, iommu: off}\n",
		 number("SIO_SHARED_PAIRS", 4));
	common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(common, MAP_FAILED);
	common->sleep = sleep;
	*state = c = cluster_up(topology);
	assert_non_null(c);
	m = cluster_fork(c, MANAGER, counting_manager, NULL);
	step_await(SERVING);
	/* In turns, so that both hosts have pairs. */
	for (unsigned i = 0; i < programs; i++) {
		pid[i] = start(c, i, programs);
		pid[programs + i] = start(c, programs + i, programs);
		step_await(OPENED);
		step_await(OPENED);
	}
	a_round_of_each(n);
	for (unsigned i = 0; i < kills; i++) {
		const struct timespec some = {.tv_nsec = pick(3000000)};
		const unsigned victim = pick(n);

		nanosleep(&some, NULL); /* wherever it is then */
		kill(pid[victim], SIGKILL);
		assert_int_equal(cluster_wait(pid[victim]), 128 + SIGKILL);
		pid[victim] = start(c, victim, programs);
		step_await(OPENED);
		a_round_of_each(n);
	}
	for (unsigned i = 0; i < n; i++)
		kill(pid[i], SIGTERM);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(cluster_wait(pid[i]), 0);
	assert_true(!sleep == !common->woken);
	kill(m, SIGTERM);
	assert_int_equal(cluster_wait(m), 0);
	assert_int_equal(cluster_down(c), 0);
}

static void programs_share_pairs_and_are_killed(void **state)
{
	share_and_be_killed(state, false);
}

static void programs_that_sleep_are_killed(void **state)
{
	share_and_be_killed(state, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(programs_share_pairs_and_are_killed),
					   cmocka_unit_test(programs_that_sleep_are_killed)};

	steps_reset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
