/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that uses a drive seldom.
 *   wake DEVICE [fork]           one read for each line of its input; says "open", then how long
 *                                each took (ns). fork: a child lives beside, with all that is
 * mapped wake DEVICE ROUNDS IDLE-US   reads after pauses, and beside each, after the same pause,
 * the round trip of an eventfd between two processes: median and 99th percentile of both, and how
 * they compare
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

static struct smartio_nvme *nvme;
static struct smartio_nvme_queue *queue;
static struct smartio_nvme_buffer *buffer;
static int ping = -1, pong = -1;

/* Nanoseconds from submit to completion; 0: it failed. */
static uint64_t one_read(void)
{
	struct smartio_nvme_completion c = {.status = 0};
	uint64_t start = smartio_now_ns();
	int n = smartio_nvme_submit(queue, SMARTIO_NVME_READ, 0, 8, buffer, 0, NULL);

	while (n == 0)
		n = smartio_nvme_poll(queue, &c, 1);
	if (n == 1 && c.status == 0)
		return smartio_now_ns() - start;
	fprintf(stderr, "wake: status %#x: %s\n", c.status, smartio_nvme_error());
	return 0;
}

static void pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(strtoul(cpu, NULL, 10), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fprintf(stderr, "wake: processor %s: %s\n", cpu, strerror(errno));
}

static void answer_pings(const char *cpu)
{
	uint64_t count;

	if (cpu)
		pin(cpu);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(ping, &count, sizeof(count)) == sizeof(count))
		if (write(pong, &count, sizeof(count)) != sizeof(count))
			break;
	_exit(0);
}

static uint64_t one_ping(void)
{
	uint64_t count = 1, start = smartio_now_ns();

	if (write(ping, &count, sizeof(count)) != sizeof(count) ||
	    read(pong, &count, sizeof(count)) != sizeof(count))
		return 0;
	return smartio_now_ns() - start;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void pause_us(unsigned long us)
{
	const struct timespec t = {.tv_sec = (time_t)(us / 1000000),
				   .tv_nsec = (long)(us % 1000000) * 1000};

	nanosleep(&t, NULL);
}

static int measure(unsigned long rounds, unsigned long us)
{
	uint64_t *io = calloc(rounds, sizeof(*io)), *rt = calloc(rounds, sizeof(*rt));
	unsigned long half = rounds / 2, most = rounds * 99 / 100;
	int status = 1;

	for (unsigned long i = 0; io && rt && i < rounds; i++) {
		pause_us(us);
		io[i] = one_read();
		pause_us(us);
		rt[i] = one_ping();
		if (!io[i] || !rt[i])
			goto out;
	}
	if (!io || !rt || rounds == 0)
		goto out;
	qsort(io, rounds, sizeof(*io), by_value);
	qsort(rt, rounds, sizeof(*rt), by_value);
	printf("after %lu us idle: read p50 %.1f us, p99 %.1f us; eventfd round trip p50 %.1f us, "
	       "p99 %.1f us; ratio %.2f\n",
	       us, (double)io[half] / 1e3, (double)io[most] / 1e3, (double)rt[half] / 1e3,
	       (double)rt[most] / 1e3, (double)io[half] / (double)rt[half]);
	status = 0;
out:
	free(io);
	free(rt);
	return status;
}

static int serve_lines(void)
{
	char line[16];
	uint64_t ns;

	puts("open");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		ns = one_read();
		if (!ns)
			return 1;
		printf("%llu\n", (unsigned long long)ns);
		fflush(stdout);
	}
	return 0;
}

static int run(int argc, char **argv)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4};

	if (smartio_nvme_open(argv[1], &nvme) < 0 ||
	    smartio_nvme_queue_open(nvme, &o, &queue) < 0 ||
	    smartio_nvme_buffer_alloc(nvme, 4096, &buffer) < 0) {
		fprintf(stderr, "wake: %s\n", smartio_nvme_error());
		return 1;
	}
	if (argc >= 4)
		return measure(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	if (argc == 3 && fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return serve_lines();
}

int main(int argc, char **argv)
{
	sci_error_t err;
	int status;

	if (argc < 2 || argc > 6 || argc == 5 || (argc == 3 && strcmp(argv[2], "fork") != 0)) {
		fprintf(stderr, "usage: wake DEVICE [fork | ROUNDS IDLE-US [CPU OTHER]]\n");
		return 2;
	}
	if (argc >= 4) { /* before there is anything that a child could hold */
		ping = eventfd(0, EFD_CLOEXEC);
		pong = eventfd(0, EFD_CLOEXEC);
		if (ping < 0 || pong < 0)
			return 1;
		if (fork() == 0)
			answer_pings(argc == 6 ? argv[5] : NULL);
		if (argc == 6)
			pin(argv[4]);
	}
	SCIInitialize(0, &err);
	if (err != SCI_ERR_OK) {
		fprintf(stderr, "wake: %s\n", smartio_last_error());
		return 1;
	}
	status = run(argc, argv);
	smartio_nvme_close(nvme);
	SCITerminate();
	return status;
}
