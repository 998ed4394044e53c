/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Root on a hostile machine: no driver has its virtual NTB, this program stores into registers,
 * tables and the window whatever it likes, most of it meant: look-up entries that name the other
 * machine's memory, interrupt addresses and devices, and accesses through them.
 *
 * usage: rogue PCI-ADDRESS SEED ACCESSES
 * Prints how many loads through the window gave something else than ones.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "smartio/vntb.h"

struct rogue {
	volatile uint8_t *registers, *window;
	size_t registers_size, window_size;
	uint32_t entries, peers;
	unsigned shift; /* of an entry's bytes */
	uint64_t x;	/* random */
};

static volatile uint8_t *map(const char *bdf, unsigned bar, size_t *ret_size)
{
	char path[128];
	struct stat st;
	void *p;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource%u", bdf, bar);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		perror(path);
		exit(1);
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	*ret_size = (size_t)st.st_size;
	return p;
}

static uint64_t draw(struct rogue *r)
{
	r->x ^= r->x << 13;
	r->x ^= r->x >> 7;
	r->x ^= r->x << 17;
	return r->x;
}

static void store(struct rogue *r, size_t offset, uint32_t value)
{
	*(volatile uint32_t *)(r->registers + offset) = value;
}

static void store_long(struct rogue *r, size_t offset, uint64_t value)
{
	store(r, offset, (uint32_t)value);
	store(r, offset + 4, (uint32_t)(value >> 32));
}

static uint32_t load(const struct rogue *r, size_t offset)
{
	return *(const volatile uint32_t *)(r->registers + offset);
}

/* Where something of the other machine might be: its memory, interrupts, registers. */
static uint64_t target(struct rogue *r)
{
	uint64_t any = draw(r) & ~0xfffULL;

	switch (draw(r) % 8) {
	case 0:
		return 0xfee00000; /* its processors' interrupts */
	case 1:
		return 0xfe000000 | (any & 0xfff000); /* BARs */
	case 2:
		return any;
	default:
		return any & 0x1fffffff; /* RAM */
	}
}

static void aim(struct rogue *r, uint32_t entry)
{
	size_t at = SIO_VNTB_LUT(entry);
	uint32_t how = SIO_VNTB_LUT_VALID;
	uint64_t to = target(r);

	if (draw(r) % 4 == 0) { /* a range of the peer, by its row */
		how |= SIO_VNTB_LUT_RANGE;
		to = (draw(r) % 16) << 48;
	}
	store(r, at + SIO_VNTB_LUT_CONTROL, 0);
	store_long(r, at + SIO_VNTB_LUT_ADDRESS, to);
	store_long(r, at + SIO_VNTB_LUT_START, draw(r) % 4);
	store(r, at + SIO_VNTB_LUT_CONTROL,
	      how | SIO_VNTB_LUT_ROW((uint32_t)(draw(r) % (r->peers + 1))));
}

/* Return: whether something was read. */
static int access_window(struct rogue *r)
{
	uint32_t entry = (uint32_t)(draw(r) % r->entries);
	size_t at = ((size_t)entry << r->shift) + (draw(r) & ((1u << r->shift) - 1) & ~7ULL);

	if (draw(r) % 4)
		aim(r, entry);
	if (at + 8 > r->window_size)
		return 0;
	if (draw(r) % 3 == 0)
		return *(volatile uint32_t *)(r->window + at) != UINT32_MAX;
	*(volatile uint32_t *)(r->window + at) = (uint32_t)draw(r);
	return 0;
}

static void access_register(struct rogue *r)
{
	size_t offset = draw(r) % (r->registers_size / 4) * 4;

	switch (draw(r) % 4) {
	case 0:
		store(r, offset, (uint32_t)draw(r));
		break;
	case 1:
		load(r, offset);
		break;
	case 2: /* what the peer hears of */
		store(r, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_DOORBELL, (uint32_t)draw(r));
		store(r, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_MESSAGE(draw(r) % 4), (uint32_t)draw(r));
		store(r, SIO_VNTB_PEER_SPAD(0, draw(r) % SIO_VNTB_SPADS), (uint32_t)draw(r));
		break;
	default: /* on and off, now and then: all that was granted ends */
		if (draw(r) % 64 == 0)
			store(r, SIO_VNTB_ENABLE, draw(r) & 1);
	}
}

int main(int argc, char **argv)
{
	unsigned long accesses, seen = 0;
	struct rogue r;

	if (argc != 4) {
		fprintf(stderr, "usage: rogue PCI-ADDRESS SEED ACCESSES\n");
		return 2;
	}
	r.registers = map(argv[1], SIO_VNTB_BAR_REGISTERS, &r.registers_size);
	r.window = map(argv[1], SIO_VNTB_BAR_WINDOW, &r.window_size);
	r.x = strtoull(argv[2], NULL, 0) | 1;
	if (load(&r, SIO_VNTB_MAGIC) != SIO_VNTB_MAGIC_VALUE) {
		fprintf(stderr, "rogue: %s is no virtual NTB\n", argv[1]);
		return 1;
	}
	r.entries = load(&r, SIO_VNTB_ENTRIES);
	r.shift = load(&r, SIO_VNTB_ENTRY_SHIFT);
	r.peers = load(&r, SIO_VNTB_PEERS);
	accesses = strtoul(argv[3], NULL, 0);
	for (unsigned long i = 0; i < accesses; i++) {
		if (draw(&r) % 5)
			seen += (unsigned long)access_window(&r);
		else
			access_register(&r);
	}
	printf("%lu accesses, %lu loads that gave something\n", accesses, seen);
	return 0;
}
