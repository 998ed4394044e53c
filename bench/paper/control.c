/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the control path takes, in lines of "operation, nanoseconds" (control.py says what they mean):
 *
 *	control export N		N segments, until standard input ends
 *	control crowd N M NODE...	N segments; at a line of standard input M of each NODE's are
 *					mapped; until standard input ends
 *	control OPERATION DEVICE NODE N	N times: connect, map, borrow, device, read
 *	control floor TRIPS MAPS N	as many bare round trips between two processes, and mmaps
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define SEGMENT 77u
#define BYTES 4096u
#define MESSAGE 64u /* bytes of a bare message */

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void check(sci_error_t error, const char *what)
{
	if (error != SCI_ERR_OK)
		fail(what, smartio_last_error());
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n > 10000000)
		fail(text, "a number up to 10000000 is right");
	return (unsigned)n;
}

static void *get(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (!p)
		fail("memory", "there is none");
	return p;
}

/* ---- the operations: begin at what is there already, take and give back one thing ---- */

struct context {
	sci_desc_t sd;
	unsigned node, fdid;
	sci_remote_segment_t segment;	    /* of map, read */
	sci_smartio_device_t device;	    /* of device */
	sci_local_segment_t memory;	    /* the same */
	uint64_t taken, given, first, last; /* nanoseconds of the last time */
};

static void connect_to(struct context *c)
{
	sci_error_t error;

	SCIConnectSegment(c->sd, &c->segment, c->node, SEGMENT, 0, NULL, NULL, SCI_INFINITE_TIMEOUT,
			  0, &error);
	check(error, "SCIConnectSegment");
}

static void disconnect(struct context *c)
{
	sci_error_t error;

	SCIDisconnectSegment(c->segment, 0, &error);
	check(error, "SCIDisconnectSegment");
}

static volatile void *map(struct context *c, sci_map_t *ret)
{
	sci_error_t error;
	volatile void *p = SCIMapRemoteSegment(c->segment, ret, 0, BYTES, NULL, 0, &error);

	check(error, "SCIMapRemoteSegment");
	return p;
}

static void unmap(sci_map_t m)
{
	sci_error_t error;

	SCIUnmapSegment(m, 0, &error);
	check(error, "SCIUnmapSegment");
}

static void do_connect(struct context *c)
{
	uint64_t from = smartio_now_ns();

	connect_to(c);
	c->taken = smartio_now_ns() - from;
	from = smartio_now_ns();
	disconnect(c);
	c->given = smartio_now_ns() - from;
}

static void do_map(struct context *c)
{
	uint64_t from = smartio_now_ns();
	sci_map_t m;

	map(c, &m);
	c->taken = smartio_now_ns() - from;
	from = smartio_now_ns();
	unmap(m);
	c->given = smartio_now_ns() - from;
}

/* What it would cost to map memory for each read, against a read of what is mapped. */
static void do_read(struct context *c)
{
	uint64_t from = smartio_now_ns();
	volatile uint32_t *p;
	sci_map_t m;

	p = map(c, &m);
	sio_read32(p);
	unmap(m);
	c->taken = smartio_now_ns() - from;
	p = map(c, &m);
	from = smartio_now_ns();
	sio_read32(p);
	c->given = smartio_now_ns() - from;
	unmap(m);
}

static void borrow(struct context *c)
{
	sci_error_t error;

	SCIBorrowDevice(c->sd, &c->device, c->fdid, 0, &error);
	check(error, "SCIBorrowDevice");
}

static void give_back(struct context *c)
{
	sci_error_t error;

	SCIReturnDevice(c->device, 0, &error);
	check(error, "SCIReturnDevice");
}

static void do_borrow(struct context *c)
{
	uint64_t from = smartio_now_ns();

	borrow(c);
	c->taken = smartio_now_ns() - from;
	from = smartio_now_ns();
	give_back(c);
	c->given = smartio_now_ns() - from;
}

static void do_device(struct context *c)
{
	uint64_t from = smartio_now_ns();
	sci_ioaddr_t at;
	sci_error_t error;

	SCIMapLocalSegmentForDevice(c->memory, 0, c->device, &at, 0, BYTES, 0, &error);
	check(error, "SCIMapLocalSegmentForDevice");
	c->taken = smartio_now_ns() - from;
	from = smartio_now_ns();
	SCIUnmapLocalSegmentForDevice(c->memory, 0, c->device, 0, &error);
	check(error, "SCIUnmapLocalSegmentForDevice");
	c->given = smartio_now_ns() - from;
}

static sci_local_segment_t make_segment(sci_desc_t sd, unsigned id, unsigned flags)
{
	sci_local_segment_t s;
	sci_error_t error;

	SCICreateSegment(sd, &s, id, BYTES, NULL, NULL, flags, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(s, 0, 0, &error);
	check(error, "SCIPrepareSegment");
	SCISetSegmentAvailable(s, 0, 0, &error);
	check(error, "SCISetSegmentAvailable");
	return s;
}

static void begin_device(struct context *c)
{
	borrow(c);
	c->memory = make_segment(c->sd, 0, SCI_FLAG_AUTO_ID);
}

static void end_device(struct context *c)
{
	sci_error_t error;

	give_back(c);
	SCIRemoveSegment(c->memory, 0, &error);
	check(error, "SCIRemoveSegment");
}

static void nothing(struct context *c)
{
	(void)c;
}

static const struct operation {
	const char *name, *taken, *given;
	void (*begin)(struct context *c), (*once)(struct context *c), (*end)(struct context *c);
} operations[] = {
	{"connect", "connect", "disconnect", nothing, do_connect, nothing},
	{"map", "map", "unmap", connect_to, do_map, disconnect},
	{"borrow", "borrow", "return", nothing, do_borrow, nothing},
	{"device", "map for device", "unmap for device", begin_device, do_device, end_device},
	{"read", "map, read, unmap", "read", connect_to, do_read, disconnect},
};

static int run(const struct operation *o, char **argv)
{
	const unsigned n = number(argv[2]);
	uint64_t *taken = get((n + 1) * sizeof(*taken)), *given = get((n + 1) * sizeof(*given));
	struct context c = {.node = number(argv[1])};
	sci_error_t error;

	SCIInitialize(0, &error);
	check(error, "SCIInitialize");
	SCIOpen(&c.sd, 0, &error);
	check(error, "SCIOpen");
	smartio_find_device(argv[0], &c.fdid, &error);
	check(error, argv[0]);
	o->begin(&c);
	for (unsigned i = 0; i < n; i++) {
		o->once(&c);
		taken[i] = c.taken;
		given[i] = c.given;
	}
	o->end(&c);
	SCIClose(c.sd, 0, &error);
	check(error, "SCIClose");
	SCITerminate();
	for (unsigned i = 0; i < n; i++)
		printf("%s,%llu\n%s,%llu\n", o->taken, (unsigned long long)taken[i], o->given,
		       (unsigned long long)given[i]);
	free(taken);
	free(given);
	return 0;
}

static void export_segments(struct context *c, unsigned n)
{
	sci_error_t error;

	SCIInitialize(0, &error);
	check(error, "SCIInitialize");
	SCIOpen(&c->sd, 0, &error);
	check(error, "SCIOpen");
	for (unsigned i = 0; i < n; i++)
		make_segment(c->sd, SEGMENT + i, 0);
	puts("ready");
	fflush(stdout);
}

static int wait_for_end(void)
{
	while (getchar() != EOF)
		;
	SCITerminate();
	return 0;
}

static int export_only(unsigned n)
{
	struct context c = {.node = 0};

	export_segments(&c, n);
	return wait_for_end();
}

static int crowd(unsigned n, unsigned each, char **nodes)
{
	struct context c = {.node = 0};
	sci_error_t error;
	sci_map_t m;

	export_segments(&c, n);
	if (getchar() == EOF) /* nobody is left who wants it */
		return 1;
	for (; *nodes; nodes++)
		for (unsigned i = 0; i < each; i++) {
			SCIConnectSegment(c.sd, &c.segment, number(*nodes), SEGMENT + i, 0, NULL,
					  NULL, SCI_INFINITE_TIMEOUT, 0, &error);
			check(error, "SCIConnectSegment");
			map(&c, &m);
		}
	puts("mapped");
	fflush(stdout);
	return wait_for_end();
}

/* ---- the floor ---- */

static void echo(int fd)
{
	char message[MESSAGE];
	ssize_t n;

	while ((n = recv(fd, message, sizeof(message), 0)) > 0)
		if (send(fd, message, (size_t)n, MSG_NOSIGNAL) != n)
			break;
	_exit(0);
}

static void trip(int fd)
{
	char message[MESSAGE] = {0};

	if (send(fd, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message) ||
	    recv(fd, message, sizeof(message), 0) != sizeof(message))
		fail("socket", "the other end is gone");
}

static void map_once(int memory)
{
	volatile uint32_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	if (p == MAP_FAILED)
		fail("mmap", "refused");
	(void)munmap((void *)(uintptr_t)p, BYTES);
}

/* Both ends on one processor, where a switch from one to the other is cheapest. */
static void pin(void)
{
	cpu_set_t allowed, one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static int floor_of(unsigned trips, unsigned maps, unsigned n)
{
	uint64_t *taken = get((n + 1) * sizeof(*taken));
	int fd[2], memory = memfd_create("floor", MFD_CLOEXEC);
	pid_t child;

	if (memory < 0 || ftruncate(memory, BYTES) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0)
		fail("floor", "no sockets or memory");
	pin();
	child = fork();
	if (child < 0)
		fail("fork", "refused");
	if (child == 0) {
		close(fd[0]);
		echo(fd[1]);
	}
	close(fd[1]);
	for (unsigned i = 0; i < n; i++) {
		uint64_t from = smartio_now_ns();

		for (unsigned k = 0; k < trips; k++)
			trip(fd[0]);
		for (unsigned k = 0; k < maps; k++)
			map_once(memory);
		taken[i] = smartio_now_ns() - from;
	}
	close(fd[0]);
	waitpid(child, NULL, 0);
	for (unsigned i = 0; i < n; i++)
		printf("floor,%llu\n", (unsigned long long)taken[i]);
	free(taken);
	close(memory);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "export") == 0)
		return export_only(number(argv[2]));
	if (argc > 4 && strcmp(argv[1], "crowd") == 0)
		return crowd(number(argv[2]), number(argv[3]), argv + 4);
	if (argc == 5 && strcmp(argv[1], "floor") == 0)
		return floor_of(number(argv[2]), number(argv[3]), number(argv[4]));
	for (size_t i = 0; argc == 5 && i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(argv[1], operations[i].name) == 0)
			return run(&operations[i], argv + 2);
	fprintf(stderr,
		"usage: control export N | crowd N M NODE... | connect|map|borrow|device|read DEVICE NODE N | "
		"floor TRIPS MAPS N\n");
	return 2;
}
