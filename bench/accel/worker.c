/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one program measures of accelerators, in rows of CSV (bench.py says what they mean):
 *
 *	worker dma ACCEL MOST TRANSFERS		with memory of this host, both directions
 *	worker peer ACCEL OTHER MOST TRANSFERS	from one accelerator's memory to the other's
 *	worker memcpy MOST TRANSFERS		what a processor copies meanwhile
 *	worker ping-pong ACCEL OTHER ROUNDS	two kernels
 *	worker threads ROUNDS			two bare threads
 *
 * Sizes go from 4 KiB to MOST bytes, each doubled.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartio/accel.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define LEAST 4096u
#define AT_ONCE 16u
#define PATIENCE_MS 60000u

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, smartio_accel_error());
	exit(1);
}

static void must_sci(sci_error_t error, const char *what)
{
	if (error == SCI_ERR_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, SCIGetErrorString(error));
	exit(1);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (end != text && !*end && n > 0)
		return n;
	fprintf(stderr, "%s: a number from 1 on is right\n", text);
	exit(2);
}

static void *get(size_t bytes)
{
	void *p = malloc(bytes);

	if (p)
		return p;
	fprintf(stderr, "no memory of %zu bytes\n", bytes);
	exit(1);
}

/* ---- rows ---- */

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * The time of each of @n rounds, of @at_once transfers, as throughput; and @of, how much of
 * memcpy's that is.
 */
static void throughput(const char *what, uint64_t bytes, unsigned at_once, uint64_t *ns, uint64_t n,
		       double of)
{
	const double megabytes = 1e3 * (double)bytes * at_once; /* per ns: in a second */

	qsort(ns, n, sizeof(*ns), by_value);
	printf("%s,%llu,%llu,%.1f,%.1f,%.1f,%.4f\n", what, (unsigned long long)bytes,
	       (unsigned long long)n, megabytes / (double)ns[n / 2], megabytes / (double)ns[n - 1],
	       megabytes / (double)ns[0], of);
	fflush(stdout);
}

static void latency(const char *what, uint64_t *ns, uint64_t n)
{
	static const unsigned per_mille[] = {0, 10, 250, 500, 750, 990, 999};

	qsort(ns, n, sizeof(*ns), by_value);
	printf("%s,%llu", what, (unsigned long long)n);
	for (unsigned i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++)
		printf(",%llu", (unsigned long long)ns[n * per_mille[i] / 1000]);
	printf(",%llu\n", (unsigned long long)ns[n - 1]);
}

/* ---- throughput ---- */

static struct smartio_accel *take(const char *name, struct smartio_accel_info *info)
{
	struct smartio_accel *a;

	must(smartio_accel_open(name, 0, &a), name);
	smartio_accel_get_info(a, info);
	return a;
}

/* Nanoseconds until @n transfers, all submitted at once, are done. */
static uint64_t transfers_of(struct smartio_accel_queue *q, const uint64_t argument[6], unsigned n)
{
	const uint64_t before = smartio_now_ns();
	struct sio_accel_completion c;

	for (unsigned i = 0; i < n; i++)
		must(smartio_accel_submit(q, SIO_ACCEL_TRANSFER, argument), "submit");
	for (unsigned i = 0; i < n; i++) {
		must(smartio_accel_wait(q, PATIENCE_MS, &c), "transfer");
		if (c.status == SIO_ACCEL_OK)
			continue;
		fprintf(stderr, "transfer: %s\n", smartio_accel_status_string(c.status));
		exit(1);
	}
	return smartio_now_ns() - before;
}

static uint64_t memcpy_of(char *to, const char *from, uint64_t bytes)
{
	const uint64_t before = smartio_now_ns();

	memcpy(to, from, bytes);
	__asm__ volatile("" ::"r"(to) : "memory"); /* it is wanted */
	return smartio_now_ns() - before;
}

static char *filled(uint64_t bytes, int with)
{
	return memset(get(bytes), with, bytes);
}

static int by_share(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Of @n pairs of one round each the median of what memcpy's time is of ours, a transfer. */
static double of_memcpy(const uint64_t *copy, const uint64_t *ns, unsigned at_once, uint64_t n)
{
	double *share = get(n * sizeof(*share)), median;

	for (uint64_t i = 0; i < n; i++)
		share[i] = (double)copy[i] * at_once / (double)ns[i];
	qsort(share, n, sizeof(*share), by_share);
	median = share[n / 2];
	free(share);
	return median;
}

/* Times of @n turns: of one transfer and of a memcpy in each; of several at once in some. */
struct turns {
	uint64_t n, n_many;
	uint64_t *one, *copy;
	uint64_t *many, *beside; /* and the memcpy in the same turn */
};

/* In how many: as many transfers in all as there are turns, or so. */
static uint64_t batches(uint64_t n)
{
	if (n < AT_ONCE)
		return n;
	return n / AT_ONCE < AT_ONCE ? AT_ONCE : n / AT_ONCE;
}

static void take_turns(struct turns *t, struct smartio_accel_queue *q, const uint64_t argument[6],
		       char *there, const char *here)
{
	const uint64_t little[6] = {argument[0], argument[1], LEAST};
	const uint64_t every = t->n / batches(t->n);

	t->n_many = 0;
	transfers_of(q, argument, 1); /* so that all pages are there and translated */
	for (uint64_t i = 0; i < t->n; i++) {
		const bool several = i % every == 0 && t->n_many < batches(t->n);

		transfers_of(q, little, 1); /* it may have gone to sleep meanwhile */
		t->one[i] = transfers_of(q, argument, 1);
		if (several)
			t->many[t->n_many] = transfers_of(q, argument, AT_ONCE);
		t->copy[i] = memcpy_of(there, here, argument[2]);
		if (several)
			t->beside[t->n_many++] = t->copy[i];
	}
}

/* One transfer, several at once, and this processor's memcpy of as much, in turns. */
static void copies(const char *what, struct smartio_accel_queue *q, uint64_t from, uint64_t to,
		   uint64_t most, uint64_t transfers)
{
	const size_t room = transfers * sizeof(uint64_t);
	struct turns t = {transfers, 0, get(room), get(room), get(room), get(room)};
	char *here = filled(most, 1), *there = filled(most, 2), name[64];
	double of_one, of_many;

	for (uint64_t bytes = LEAST; bytes <= most; bytes *= 2) {
		take_turns(&t, q, (const uint64_t[6]){from, to, bytes}, there, here);
		/* Pairs first: throughput() sorts. */
		of_one = of_memcpy(t.copy, t.one, 1, t.n);
		of_many = of_memcpy(t.beside, t.many, AT_ONCE, t.n_many);
		throughput(what, bytes, 1, t.one, t.n, of_one);
		snprintf(name, sizeof(name), "%s %u at once", what, AT_ONCE);
		throughput(name, bytes, AT_ONCE, t.many, t.n_many, of_many);
		snprintf(name, sizeof(name), "memcpy beside %s", what);
		throughput(name, bytes, 1, t.copy, t.n, 1);
	}
	free(t.one);
	free(t.copy);
	free(t.many);
	free(t.beside);
	free(here);
	free(there);
}

static void check_fits(const char *name, const struct smartio_accel_info *info, uint64_t most)
{
	if (info->memory_bytes >= most)
		return;
	fprintf(stderr, "%s has %llu bytes of memory, %llu at least are right\n", name,
		(unsigned long long)info->memory_bytes, (unsigned long long)most);
	exit(1);
}

static int dma(char **arg)
{
	const uint64_t most = number(arg[1]), transfers = number(arg[2]);
	struct smartio_accel_buffer *b;
	struct smartio_accel_queue *q;
	struct smartio_accel_info info;
	struct smartio_accel *a = take(arg[0], &info);

	check_fits(arg[0], &info, most);
	must(smartio_accel_buffer_alloc(a, most, &b), "memory of this host");
	must(smartio_accel_queue_open(a, SMARTIO_ACCEL_DMA, 0, 0, &q), "queue");
	copies("write", q, smartio_accel_local(0), smartio_accel_buffer_address(b), most,
	       transfers);
	copies("read", q, smartio_accel_buffer_address(b), smartio_accel_local(0), most, transfers);
	smartio_accel_close(a);
	return 0;
}

static int peer(char **arg)
{
	const uint64_t most = number(arg[2]), transfers = number(arg[3]);
	struct smartio_accel_info info, other_info;
	struct smartio_accel *a = take(arg[0], &info), *other = take(arg[1], &other_info);
	struct smartio_accel_queue *q;
	uint64_t far;

	check_fits(arg[0], &info, most);
	check_fits(arg[1], &other_info, most);
	must(smartio_accel_reach(a, other, &far), "reach");
	must(smartio_accel_queue_open(a, SMARTIO_ACCEL_DMA, 0, 0, &q), "queue");
	copies("write", q, smartio_accel_local(0), far, most, transfers);
	copies("read", q, far, smartio_accel_local(0), most, transfers);
	smartio_accel_close(a);
	smartio_accel_close(other);
	return 0;
}

static int by_memcpy(char **arg)
{
	const uint64_t most = number(arg[0]), transfers = number(arg[1]);
	uint64_t *ns = get(transfers * sizeof(*ns));
	char *from = filled(most, 1), *to = filled(most, 2);

	for (uint64_t bytes = LEAST; bytes <= most; bytes *= 2) {
		for (uint64_t i = 0; i < transfers; i++)
			ns[i] = memcpy_of(to, from, bytes);
		throughput("memcpy", bytes, 1, ns, transfers, 1);
	}
	free(from);
	free(to);
	free(ns);
	return 0;
}

/* ---- ping-pong ---- */

static int ping_pong(char **arg)
{
	const uint64_t rounds = number(arg[2]), word = smartio_accel_local(0), times = 4096;
	struct smartio_accel_info info, other_info;
	struct smartio_accel *a = take(arg[0], &info), *other = take(arg[1], &other_info);
	struct smartio_accel_queue *first, *second;
	struct sio_accel_completion c, d;
	uint64_t far, back, *ns = get(rounds * sizeof(*ns));
	const volatile uint32_t *at;

	check_fits(arg[0], &info, times + rounds * 4);
	must(smartio_accel_reach(a, other, &far), "reach");
	must(smartio_accel_reach(other, a, &back), "reach");
	must(smartio_accel_queue_open(other, SMARTIO_ACCEL_UNIT, 0, 0, &second), "queue");
	must(smartio_accel_queue_open(a, SMARTIO_ACCEL_UNIT, 0, 0, &first), "queue");
	must(smartio_accel_submit(second, SIO_ACCEL_PING_PONG,
				  (uint64_t[6]){word, back, rounds, 0}),
	     "submit");
	smartio_accel_ring(second);
	must(smartio_accel_submit(first, SIO_ACCEL_PING_PONG,
				  (uint64_t[6]){word, far, rounds, 1, smartio_accel_local(times)}),
	     "submit");
	must(smartio_accel_wait(first, PATIENCE_MS, &c), "ping-pong");
	must(smartio_accel_wait(second, PATIENCE_MS, &d), "ping-pong");
	if (c.status != SIO_ACCEL_OK || d.status != SIO_ACCEL_OK) {
		fprintf(stderr, "ping-pong: %s, %s\n", smartio_accel_status_string(c.status),
			smartio_accel_status_string(d.status));
		return 1;
	}
	at = (const volatile uint32_t *)((const volatile char *)smartio_accel_memory(a) + times);
	for (uint64_t i = 0; i < rounds; i++)
		ns[i] = sio_read32(at + i);
	latency("kernels", ns, rounds);
	smartio_accel_close(a);
	smartio_accel_close(other);
	free(ns);
	return 0;
}

static struct {
	uint32_t word __attribute__((aligned(128)));
} side[2];
static uint32_t last;

static void await(uint32_t *word, uint32_t value)
{
	for (unsigned looks = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; looks++)
		if (looks % 1000 == 999) /* on one processor the other one has to run */
			sched_yield();
}

/* Each on a processor of its own, if there are two: else they would take turns, at times. */
static void pin(unsigned which)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) || CPU_COUNT(&allowed) < 2)
		return;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && which-- == 0)
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *answer(void *arg)
{
	pin(1);
	for (uint32_t i = 1; i <= last; i++) {
		await(&side[1].word, i);
		__atomic_store_n(&side[0].word, i, __ATOMIC_RELEASE);
	}
	return arg;
}

static int threads(char **arg)
{
	const uint64_t rounds = number(arg[0]);
	uint64_t *ns = get(rounds * sizeof(*ns));
	pthread_t thread;

	last = (uint32_t)rounds;
	if (pthread_create(&thread, NULL, answer, NULL)) {
		fprintf(stderr, "no thread\n");
		return 1;
	}
	pin(0);
	for (uint32_t i = 1; i <= last; i++) {
		const uint64_t before = smartio_now_ns();

		__atomic_store_n(&side[1].word, i, __ATOMIC_RELEASE);
		await(&side[0].word, i);
		ns[i - 1] = smartio_now_ns() - before;
	}
	pthread_join(thread, NULL);
	latency("threads", ns, rounds);
	free(ns);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int arguments;
		int (*run)(char **arg);
	} all[] = {{"dma", 3, dma},
		   {"peer", 4, peer},
		   {"memcpy", 2, by_memcpy},
		   {"ping-pong", 3, ping_pong},
		   {"threads", 1, threads}};
	sci_error_t error;
	int rc;

	for (unsigned i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[1], all[i].name) != 0 || argc - 2 != all[i].arguments)
			continue;
		SCIInitialize(0, &error);
		must_sci(error, "SCIInitialize");
		rc = all[i].run(argv + 2);
		SCITerminate();
		return rc;
	}
	fprintf(stderr,
		"usage: worker dma ACCEL MOST TRANSFERS | peer ACCEL OTHER MOST TRANSFERS |\n"
		"       memcpy MOST TRANSFERS | ping-pong ACCEL OTHER ROUNDS | threads ROUNDS\n");
	return 2;
}
