/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One host's half of what goes through an adapter: requests to smartio.ko, whose answers another
 * machine's are made of.
 *
 * usage: peer grant NODE [BYTES]     memory: its id, BUS LENGTH GENERATION TOKEN, of the first page
 *        peer irq NODE               an interrupt: the same; then waits for it, and says "told"
 *        peer map NODE BUS LENGTH GENERATION TOKEN VALUE    reads a word, stores VALUE there
 *        peer trigger NODE BUS LENGTH GENERATION TOKEN
 *        peer word ID                the first word of memory
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "smartio/uapi.h"

#define PAGE 4096
#define LIMIT_MS 240000

static int node;
static union {
	struct sio_req req;
	struct sio_req_alloc alloc;
	struct sio_req_grant grant;
	struct sio_req_map map;
	struct sio_req_reopen reopen;
} q;
static union {
	struct sio_evt evt;
	struct sio_evt_error error;
	struct sio_evt_alloc alloc;
	struct sio_evt_irq_new irq;
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	uint64_t words[SIO_PORT_MAX_PACKET / 8];
} a;
static int fd[SIO_PORT_MAX_FDS];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void ask(uint32_t op, size_t size)
{
	struct sio_ioc_packet p = {
		.data = (uintptr_t)&q, .answer = (uintptr_t)&a, .size = (uint32_t)size};

	q.req.op = op;
	q.req.size = (uint32_t)size;
	if (ioctl(node, SIO_IOC_REQUEST, &p) < 0)
		die("SIO_IOC_REQUEST");
	memcpy(fd, p.fd, sizeof(fd));
	if (a.evt.error) {
		fprintf(stderr, "%s\n", a.error.text);
		exit(1);
	}
}

static void grant(uint32_t kind, uint64_t source, uint32_t peer)
{
	memset(&q, 0, sizeof(q));
	q.grant.source_kind = kind;
	q.grant.source = source;
	q.grant.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	q.grant.length = kind == SIO_KIND_IRQ ? 0 : PAGE;
	q.grant.peer_node = peer;
	ask(SIO_OP_GRANT, sizeof(q.grant));
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " ", (uint64_t)a.grant.bus_addr,
	       (uint64_t)a.grant.length, (uint64_t)a.grant.generation);
	for (unsigned i = 0; i < SIO_TOKEN; i++)
		printf("%02x", a.grant.token[i]);
	printf("\n");
	fflush(stdout);
}

/* The words of a grant that follow NODE. */
static void map(char **word)
{
	memset(&q, 0, sizeof(q));
	q.map.peer_node = (uint32_t)strtoul(word[0], NULL, 0);
	q.map.bus_addr = strtoull(word[1], NULL, 0);
	q.map.length = strtoull(word[2], NULL, 0);
	q.map.generation = strtoull(word[3], NULL, 0);
	for (unsigned i = 0; i < SIO_TOKEN; i++) {
		unsigned byte;

		if (sscanf(word[4] + 2 * i, "%2x", &byte) != 1)
			exit(2);
		q.map.token[i] = (uint8_t)byte;
	}
	ask(SIO_OP_MAP, sizeof(q.map));
}

static volatile uint32_t *look(int file)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

static void await(int file)
{
	struct pollfd p = {.fd = file, .events = POLLIN};

	if (poll(&p, 1, LIMIT_MS) != 1)
		die("poll");
	printf("told\n");
}

static void grant_memory(uint32_t peer, uint64_t bytes)
{
	q.alloc.size = bytes;
	q.alloc.highest = SIO_PORT_ANY;
	ask(SIO_OP_ALLOC, sizeof(q.alloc));
	*look(fd[0]) = 4711;
	printf("%" PRIu64 " ", (uint64_t)a.alloc.id);
	grant(SIO_KIND_MEM, a.alloc.id, peer);
}

static void grant_interrupt(uint32_t peer)
{
	int file;

	ask(SIO_OP_IRQ_NEW, sizeof(struct sio_req_irq_new));
	file = fd[0];
	printf("%" PRIu64 " ", (uint64_t)a.irq.id);
	grant(SIO_KIND_IRQ, a.irq.id, peer);
	await(file);
}

static void use_map(char **word)
{
	volatile uint32_t *at;

	map(word);
	at = look(fd[0]);
	printf("%u\n", *at);
	*at = (uint32_t)strtoul(word[5], NULL, 0);
	(void)*at; /* it has arrived */
}

static void trigger(char **word)
{
	uint64_t one = 1;

	map(word);
	if (!(a.map.map_flags & SIO_MAP_TRIGGER) || write(fd[0], &one, sizeof(one)) != sizeof(one))
		die("trigger");
}

static void tell_word(uint64_t id)
{
	q.reopen.kind = SIO_KIND_MEM;
	q.reopen.id = id;
	ask(SIO_OP_REOPEN, sizeof(q.reopen));
	printf("%u\n", *look(fd[0]));
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	node = open("/dev/smartio0", O_RDWR | O_CLOEXEC);
	if (node < 0)
		die("/dev/smartio0");
	if (strcmp(what, "grant") == 0)
		grant_memory((uint32_t)strtoul(argv[2], NULL, 0),
			     argc > 3 ? strtoull(argv[3], NULL, 0) : PAGE);
	else if (strcmp(what, "irq") == 0)
		grant_interrupt((uint32_t)strtoul(argv[2], NULL, 0));
	else if (strcmp(what, "map") == 0 && argc == 8)
		use_map(argv + 2);
	else if (strcmp(what, "trigger") == 0 && argc == 7)
		trigger(argv + 2);
	else if (strcmp(what, "word") == 0)
		tell_word(strtoull(argv[2], NULL, 0));
	else
		return 2;
	return 0;
}
