/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machines with virtual NTBs, without sockets: what each machine's QEMU would send and is sent. For
 * tests and the fuzzer.
 */
#ifndef TESTS_EMU_NTBS_H
#define TESTS_EMU_NTBS_H

#include "emu/ntb/ntb.h"
#include "smartio/vntb.h"

#define NTBS_MOST 4u
#define NTBS_ENTRY 4096u /* bytes that a look-up entry translates */
#define NTBS_ENTRIES 16u
#define NTBS_RAM 0x100000u /* bus address of each one's memory */
#define NTBS_RAM_BYTES 0x10000u
#define NTBS_DEVICE 0xfe000000u /* of a device: no file */
#define NTBS_DEVICE_BYTES 0x1000u
#define NTBS_HOST_RAM 0x50000u /* an emulated host grants this to all; a message behind it */
#define NTBS_HOST_BYTES 0x1000u
#define NTBS_ASKS 2048

enum { NTBS_REGISTERS = SIO_VNTB_BAR_REGISTERS, NTBS_WINDOW = SIO_VNTB_BAR_WINDOW };

/* What a machine was asked to do on its bus. */
struct ntbs_ask {
	uint16_t id;
	bool read;
	uint64_t address;
	size_t len;
	uint8_t data[64];
};

struct ntbs;
struct ntbs_machine {
	struct ntbs *all;
	unsigned index;
	struct emu_ntb_adapter *adapter;
	struct sio_vfio_session *session;
	uint8_t ram[NTBS_RAM_BYTES];
	unsigned signals[SIO_VNTB_VECTORS];
	uint16_t id; /* of the last message */
	bool replied;
	uint16_t reply_id;
	uint32_t reply_error;
	uint8_t reply[128];
	size_t reply_len;
	unsigned n_replies;
	struct ntbs_ask ask[NTBS_ASKS];
	unsigned n_asks; /* since it was connected */
	int fds;	 /* given and not closed */
	int mapped;
};

struct ntbs {
	struct sio_topology topo;
	struct sio_topo_host host[1 + NTBS_MOST];
	struct emu_ntb *ntb;
	struct ntbs_machine machine[NTBS_MOST];
	unsigned n;
	uint64_t now, alarm;
	/* Of an emulated host, and what it was asked. */
	uint8_t host_ram[NTBS_HOST_BYTES];
	unsigned n_outward, n_messages;
	struct emu_ntb_outward outward; /* the last */
	unsigned n_power;
	uint64_t power[1 + NTBS_MOST]; /* what it was told of each machine, by node / 4 - 1 */
};

/*
 * @n machines behind one switch; @mapped: each with 2M of RAM in the file of all. They are not
 * connected.
 */
struct ntbs *ntbs_new(unsigned n, bool mapped);
/* The same, not mapped, with multicast groups. */
struct ntbs *ntbs_new_exact(unsigned n);
/* The same, of one machine with two adapters, which are machines 0 and 1 here. */
struct ntbs *ntbs_new_two(void);
/* The same beside an emulated host, which has node id 4, and is off. */
struct ntbs *ntbs_new_beside(unsigned n);
/* The same, mapped: the host has a pool of 1 MiB, and 2 MiB of RAM from 4 GiB on. */
struct ntbs *ntbs_new_pool(unsigned n);
void ntbs_free(struct ntbs *s);
/* A QEMU: version, memory, interrupts, bus master. */
void ntbs_connect(struct ntbs *s, unsigned machine);
void ntbs_disconnect(struct ntbs *s, unsigned machine);

/* A message; 16 descriptors come with it if @fds. Return: of the session. */
int ntbs_tell(struct ntbs_machine *m, unsigned command, uint32_t flags, const void *body,
	      size_t len, int fd, unsigned n_fds);
/* Return: true: it was answered, at once. */
bool ntbs_read(struct ntbs *s, unsigned machine, unsigned region, uint64_t offset, void *buf,
	       size_t len);
void ntbs_write(struct ntbs *s, unsigned machine, unsigned region, uint64_t offset, const void *buf,
		size_t len);
uint32_t ntbs_get(struct ntbs *s, unsigned machine, uint64_t reg);
uint64_t ntbs_get64(struct ntbs *s, unsigned machine, uint64_t reg);
void ntbs_set(struct ntbs *s, unsigned machine, uint64_t reg, uint32_t value);
void ntbs_set64(struct ntbs *s, unsigned machine, uint64_t reg, uint64_t value);
/* Does what the machine was asked: @rc 0, with @data of a read; else it fails. */
void ntbs_answer(struct ntbs *s, unsigned machine, unsigned ask, int rc, const void *data);
/* Refuses that, and as long as it comes again, until it does not. */
void ntbs_refuse(struct ntbs *s, unsigned machine, unsigned ask);
/* Lets the time pass until the next alarm. */
void ntbs_rest(struct ntbs *s);

/* Row i's granted range to row @row, and entry @entry of the look-up table. */
void ntbs_grant(struct ntbs *s, unsigned machine, unsigned range, unsigned row, uint64_t base,
		uint64_t size, uint32_t rights);
void ntbs_lead(struct ntbs *s, unsigned machine, unsigned entry, unsigned row, uint64_t address,
	       uint32_t flags);

#endif
