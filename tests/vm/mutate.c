/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that make no sense, and some that nearly do, at smartio.ko's device node; and whatever
 * an unprivileged holder of its descriptors can try with them. Nothing is judged here but that each
 * request has exactly one answer, that a descriptor of each kind was tried, and that memory of
 * other owners, which somebody else holds, is what it was: the kernel's checks and the drive's
 * bytes are looked at by others.
 * usage: mutate DEVICE SECONDS SEED USER-ID MEGABYTES-OF-OTHERS
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mutate.h"
#include "smartio/uapi.h"

#define KEEP 64 /* ids and descriptors remembered */

#define SIZE(NAME, name, ...) [SIO_OP_##NAME] = sizeof(struct sio_req_##name),
static const uint16_t sizes[SIO_OP_COUNT] = {SIO_PORT_REQUESTS(SIZE)};

static uint64_t state, ids[KEEP];
static int fds[KEEP], each[KINDS];
static unsigned n_ids, n_fds;
static unsigned long sent, answered, good;

static uint64_t next(void)
{
	state += 0x9e3779b97f4a7c15ull;
	uint64_t z = state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t below(uint64_t n)
{
	return next() % n;
}

/* A number that may mean something. */
static uint64_t value(void)
{
	static const uint64_t edge[] = {0,	    1,	       2,      3,      0xfff,
					0x1000,	    0x1001,    0x2000, 0x3fff, 4u << 20,
					UINT32_MAX, INT64_MAX, ~0ull};

	switch (below(6)) {
	case 0:
		return edge[below(sizeof(edge) / sizeof(edge[0]))];
	case 1:
		return n_ids ? ids[below(n_ids)] : 0;
	case 2:
		return below(16);
	case 3:
		return below(64) << 12;
	case 4:
		return next();
	default:
		return 0;
	}
}

static void keep_id(uint64_t id)
{
	ids[n_ids < KEEP ? n_ids++ : below(KEEP)] = id;
}

static void keep_fd(int fd)
{
	unsigned at = n_fds < KEEP ? n_fds++ : (unsigned)below(KEEP);

	if (fds[at] >= 0)
		close(fds[at]);
	fds[at] = fd;
}

/* Fill what follows the header, 32 bits or 64 at a time, so that some fields come out right. */
static void fill(uint64_t *words, size_t bytes)
{
	for (size_t i = 4; i < bytes / 8; i++) {
		if (below(3))
			words[i] = value();
		else
			words[i] = (value() & UINT32_MAX) | value() << 32;
	}
}

static void make_request(uint64_t *words, struct sio_ioc_packet *packet)
{
	struct sio_req *h = (void *)words;
	uint32_t op = (uint32_t)(below(50) ? below(SIO_OP_COUNT) : value());
	uint32_t size = op < SIO_OP_COUNT && sizes[op] ? sizes[op] : (uint32_t)below(256);

	/* An end of everything now and then is enough. */
	if ((op == SIO_OP_RESET || op == SIO_OP_OWNER_CLOSE) && below(8))
		op = SIO_OP_LIST, size = sizes[op];
	memset(words, 0, SIO_PORT_MAX_PACKET);
	fill(words, size < SIO_PORT_MAX_PACKET ? size : SIO_PORT_MAX_PACKET);
	h->size = below(30) ? size : (uint32_t)value();
	h->op = op;
	h->flags = below(4) ? 0 : (uint32_t)below(4);
	h->reserved = below(40) ? 0 : 1;
	h->cookie = sent + 1; /* 0 is of news */
	h->owner = below(2) && n_ids ? ids[below(n_ids)] : 0;
	*packet = (struct sio_ioc_packet){.data = (uintptr_t)words, .size = size};
	if (!below(50))
		packet->size = (uint32_t)value();
	if ((op == SIO_OP_IMPORT || op == SIO_OP_IDENTIFY || !below(20)) && n_fds) {
		packet->n_fds = below(30) ? 1 : (uint32_t)value();
		packet->fd[0] = fds[below(n_fds)];
	}
}

static void take_answer(const struct sio_ioc_packet *packet)
{
	const uint64_t *words = (const void *)(uintptr_t)packet->answer;
	const struct sio_evt *h = (const void *)words;

	answered += h->cookie == sent && packet->size == h->size;
	if (!h->error && h->size >= 40) {
		good++;
		keep_id(words[4]);
	}
	for (uint32_t i = 0; i < packet->n_fds; i++)
		keep_fd(packet->fd[i]);
}

/* Its own pages, or some that it may not have. */
static int pin(int fd)
{
	static char page[4 * 4096] __attribute__((aligned(4096)));
	struct sio_ioc_pin p = {.address = (uintptr_t)page, .length = sizeof(page), .access = 3};

	if (below(2))
		p = (struct sio_ioc_pin){.address = value(), .length = value(), .access = 3};
	return ioctl(fd, SIO_IOC_PIN, &p);
}

/* What a program could do with a descriptor that it was passed. BAR pages are only read. */
static void poke(int fd)
{
	uint64_t words[64], length = value() % (8u << 20);
	int prot = below(2) ? PROT_READ : PROT_READ | PROT_WRITE;
	void *at;

	for (size_t i = 0; i < 64; i++)
		words[i] = value();
	switch (below(8)) {
	case 0:
		if (below(2))
			pin(fd);
		else
			ioctl(fd, (unsigned long)value(), words);
		return;
	case 1:
		ioctl(fd, SIO_IOC_REQUEST, words);
		return;
	case 2:
		if (ftruncate(fd, (off_t)value()) == 0 || fallocate(fd, 0, 0, 4096) == 0)
			printf("mutate: a descriptor let itself be resized\n");
		return;
	case 3:
		if (fcntl(fd, F_SETFL, (int)below(2) ? O_NONBLOCK : O_NONBLOCK | O_APPEND) < 0 ||
		    read(fd, words, below(512)) < 0 || lseek(fd, (off_t)value(), SEEK_SET) < 0)
			return;
		return;
	case 4:
		if (write(fd, words, below(64)) < 0)
			return;
		return;
	default:
		at = mmap(NULL, length, prot, below(4) ? MAP_SHARED : MAP_PRIVATE, fd,
			  (off_t)(value() & ~0xfffull));
		if (at == MAP_FAILED)
			return;
		for (uint64_t i = 0; i < length && below(2); i += 4096)
			*(volatile char *)((char *)at + i);
		if (below(2))
			mprotect(at, length, PROT_READ | PROT_WRITE);
		madvise(at, length, below(2) ? MADV_DONTNEED : MADV_DONTFORK);
		munmap(at, length);
	}
}

/* A member of the group, with one of everything, until it is told to end. */
static pid_t start_holder(uid_t uid, uint64_t seed)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (!become(uid))
		_exit(1);
	state = seed;
	for (unsigned long i = 0; i < 3000; i++) {
		int fd = n_fds && below(2) ? fds[below(n_fds)] : each[below(KINDS)];

		if (fd >= 0)
			poke(fd);
	}
	_exit(0);
}

static bool time_is_up(const struct timespec *begin, long seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - begin->tv_sec >= seconds;
}

static void keep_pins(int port)
{
	int fd = pin(port);

	if (fd >= 0)
		keep_fd(fd);
}

static void one_round(int port)
{
	uint64_t words[SIO_PORT_MAX_PACKET / 8], answer[SIO_PORT_MAX_PACKET / 8];
	struct sio_ioc_packet packet;

	for (int i = 0; i < 200; i++) {
		make_request(words, &packet);
		packet.answer = (uintptr_t)answer;
		if (ioctl(port, SIO_IOC_REQUEST, &packet) == 0) {
			sent++;
			take_answer(&packet);
		}
		if (!below(20))
			keep_pins(port);
		while (read(port, answer, sizeof(answer)) > 0)
			;
	}
}

int main(int argc, char **argv)
{
	struct timespec begin;
	int port, status, bad = 0;
	char kinds[200];
	uid_t uid;

	if (argc != 6) {
		fprintf(stderr, "usage: mutate DEVICE SECONDS SEED USER-ID MEGABYTES-OF-OTHERS\n");
		return 2;
	}
	uid = (uid_t)strtoul(argv[4], NULL, 0);
	memset(each, 0xff, sizeof(each));
	state = strtoull(argv[3], NULL, 0);
	memset(fds, 0xff, sizeof(fds));
	port = open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (port < 0) {
		fprintf(stderr, "mutate: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	if (!start_others(port, strtoul(argv[5], NULL, 0), uid)) {
		fprintf(stderr, "mutate: no memory for other owners\n");
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (!bad && !time_is_up(&begin, strtol(argv[2], NULL, 0))) {
		pid_t holder;

		one_of_each(port, each);
		holder = start_holder(uid, next());
		for (int i = 0; i < 5; i++)
			one_round(port);
		if (holder < 0 || waitpid(holder, &status, 0) != holder)
			bad = 1;
		/* SIGBUS is what touching what has been taken away may give. */
		else if (!WIFEXITED(status) && WTERMSIG(status) != 7)
			bad = 1;
	}
	if (answered != sent)
		bad = 1;
	if (!had_each(kinds, sizeof(kinds)))
		bad = 1;
	printf("mutate: tried as a member of the group: %s\n", kinds);
	if (!others_are_well())
		bad = 1;
	printf("mutate: seed %s: %lu requests, %lu answers, %lu of them good%s\n", argv[3], sent,
	       answered, good, bad ? ": FAILED" : "");
	return bad || good < sent / 100;
}
