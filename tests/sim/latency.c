/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a remote drive costs, modelled: single commands of 4 KiB, on the drive's own host, from
 * another host over a cable, and through one to four switches; and by where the submission queue
 * lies. The comparisons are the paper's (sections 7.4.3 and 7.4.1; Markussen et al., "SmartIO", ACM
 * TOCS 38, 2021); the times are the model's (docs/simulation.md), of the real driver and device
 * model over modelled PCIe. Nothing here was measured.
 *
 *   sim_latency [COMMANDS]
 */
#undef NDEBUG /* what fails here is a mistake of the program */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "base/sim.h"
#include "sisci_api.h"
#include "smartio/nvme.h"

#define BLOCK 4096u
#define MOST_SWITCHES 4u

static const char cable[] = "cluster: cable\n"
			    "hosts:\n"
			    "  lender:\n"
			    "    iommu: on\n"
			    "    adapters: [{to: client}]\n"
			    "    devices: {nvme0: {type: nvme, size: 16M, block: 4096}}\n"
			    "  client: {iommu: on, adapters: [{to: lender}]}\n";
static const char one_switch[] = "cluster: switch\n"
				 "switches: [sw0]\n"
				 "hosts:\n"
				 "  lender:\n"
				 "    iommu: on\n"
				 "    devices: {nvme0: {type: nvme, size: 16M, block: 4096}}\n"
				 "  client: {iommu: on}\n";

/* The drive and an adapter are in one chassis, the host's slot has a card that leads there. */
static const char chassis[] =
	"cluster: chassis\n"
	"switches: [sw0]\n"
	"hosts:\n"
	"  lender:\n"
	"    iommu: off\n"
	"    chassis: {card: {}, box: {in: card}}\n"
	"    adapters: [{to: sw0, in: box}]\n"
	"    devices: {nvme0: {type: nvme, size: 16M, block: 4096, in: box}}\n"
	"  client: {iommu: on}\n";

/* Submission queues are 4, 3 and 1 chips from this drive: paper, section 7.4.1. */
static const char places[] = "cluster: places\n"
			     "switches: [sw0]\n"
			     "hosts:\n"
			     "  lender:\n"
			     "    iommu: off\n"
			     "    chassis: {card: {}, link: {in: card}, box: {in: link}}\n"
			     "    adapters: [{to: sw0, in: box}]\n"
			     "    devices:\n"
			     "      nvme0: {type: nvme, size: 16M, block: 4096, in: box}\n"
			     "      mem0: {type: memory, size: 1M, in: box}\n"
			     "  client: {iommu: on}\n";

struct result {
	uint64_t median, least, most;
};

static unsigned commands = 200;
static struct smartio_nvme_queue_options queue = {.size = sizeof(queue)}; /* of the client */
static bool serving, finished;
static uint64_t *taken; /* nanoseconds of each command: reads, then writes */

static void manager_main(struct sim_proc *p)
{
	struct smartio_nvme_manager *m;
	sci_error_t err;
	int rc;

	(void)p;
	SCIInitialize(0, &err);
	assert(err == SCI_ERR_OK);
	rc = smartio_nvme_manager_open("nvme0", NULL, &m);
	assert(rc == 0);
	serving = true;
	while (rc >= 0)
		rc = smartio_nvme_manager_serve(m, UINT32_MAX);
	assert(!"the manager goes on");
}

static uint64_t one_command(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b,
			    enum smartio_nvme_op op, unsigned i)
{
	struct smartio_nvme_completion c;
	uint64_t before = sim_now();
	int rc = smartio_nvme_submit(q, op, i % 1024, 1, b, 0, NULL);

	assert(rc == 0);
	smartio_nvme_ring(q);
	while ((rc = smartio_nvme_poll(q, &c, 1)) == 0)
		;
	assert(rc == 1 && c.status == 0);
	return sim_now() - before;
}

static void client_main(struct sim_proc *p)
{
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	sci_error_t err;
	int rc;

	(void)p;
	SCIInitialize(0, &err);
	assert(err == SCI_ERR_OK);
	rc = smartio_nvme_open("nvme0", &n);
	assert(rc == 0);
	rc = smartio_nvme_queue_open(n, &queue, &q);
	assert(rc == 0);
	rc = smartio_nvme_buffer_alloc(n, BLOCK, &b);
	assert(rc == 0);
	for (unsigned i = 0; i < 2 * commands; i++)
		taken[i] =
			one_command(q, b, i < commands ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE, i);
	finished = true;
}

static bool is_set(void *arg)
{
	return *(bool *)arg;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static struct result sum_up(uint64_t *ns)
{
	qsort(ns, commands, sizeof(*ns), by_size);
	return (struct result){ns[commands / 2], ns[0], ns[commands - 1]};
}

/* In a process of its own, which ends with it. */
static void run(const char *topology, unsigned host, const struct fabric_params *hardware, int out)
{
	struct result r[2];
	bool ok;

	taken = calloc(2 * commands, sizeof(*taken));
	assert(taken);
	sim_steady = true;
	sim_hardware = hardware;
	sim_start(1);
	sim_cluster_start(topology);
	sim_run(is_set, &serving, SIM_SECOND / 10); /* the daemons get ready */
	sim_proc_new("manager", 0, manager_main, NULL);
	ok = sim_run(is_set, &serving, 60 * SIM_SECOND);
	assert(ok);
	sim_proc_new("client", host, client_main, NULL);
	ok = sim_run(is_set, &finished, 600 * SIM_SECOND);
	assert(ok);
	r[0] = sum_up(taken);
	r[1] = sum_up(taken + commands);
	if (write(out, r, sizeof(r)) != sizeof(r))
		_exit(1);
	_exit(0);
}

static void measure(const char *topology, unsigned host, const struct fabric_params *hardware,
		    struct result r[2])
{
	int pipes[2], rc = pipe(pipes);
	ssize_t n;
	pid_t pid;

	assert(rc == 0);
	fflush(NULL);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		run(topology, host, hardware, pipes[1]);
	close(pipes[1]);
	n = read(pipes[0], r, 2 * sizeof(*r));
	close(pipes[0]);
	waitpid(pid, NULL, 0);
	if (n != 2 * sizeof(*r))
		exit(1);
}

static void row(const char *name, const char *topology, unsigned host,
		const struct fabric_params *hardware, struct result local[2])
{
	struct result r[2];

	measure(topology, host, hardware, r);
	if (host == 0)
		memcpy(local, r, sizeof(r));
	printf("modelled: %-20s", name);
	for (unsigned i = 0; i < 2; i++)
		printf("  %-5s %6.2f us (%.2f to %.2f), local + %5.2f", i ? "write" : "read",
		       (double)r[i].median / 1000, (double)r[i].least / 1000,
		       (double)r[i].most / 1000,
		       ((double)r[i].median - (double)local[i].median) / 1000);
	printf("\n");
}

/* A read of the drive's client by where the queue lies: the nearer, the shorter the fetch. */
static void by_place(const struct fabric_params *hardware)
{
	static const char *const name[] = {"borrower's RAM", "lender's RAM", "a device beside"};
	static const uint32_t place[] = {SMARTIO_NVME_PLACE_LOCAL, SMARTIO_NVME_PLACE_DEVICE, 0};
	struct result r[2];

	for (unsigned i = 0; i < 3; i++) {
		queue.sq_placement = place[i];
		queue.sq_device = i == 2 ? "mem0" : NULL;
		measure(places, 1, hardware, r);
		printf("modelled: queue in %-16s  read %6.2f us\n", name[i],
		       (double)r[0].median / 1000);
	}
}

int main(int argc, char **argv)
{
	struct fabric_params p;
	struct result local[2];

	if (argc > 1)
		commands = (unsigned)strtoul(argv[1], NULL, 0);
	if (argc > 2 || commands == 0) {
		fprintf(stderr, "usage: %s [COMMANDS]\n", argv[0]);
		return 2;
	}
	fabric_params_default(&p);
	p.steady = true;
	printf("Modelled, not measured: one command of 4 KiB at a time, %u of a kind; median (least to "
	       "most)\n",
	       commands);
	row("local", one_switch, 0, &p, local);
	row("remote, cable", cable, 1, &p, local);
	for (unsigned i = 1; i <= MOST_SWITCHES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "remote, %u switch%s", i, i > 1 ? "es" : "");
		p.more_switches = i - 1;
		row(name, one_switch, 1, &p, local);
	}
	p.more_switches = 0;
	row("remote, in a chassis", chassis, 1, &p, local);
	by_place(&p);
	fabric_params_print(&p, stdout);
	return 0;
}
