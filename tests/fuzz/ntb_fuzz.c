/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two machines joined by virtual NTBs, both hostile: the input is a program of accesses to their
 * registers and windows, of answers to what is asked of them, and of ends. What is sent must be
 * whole messages; memory that lies outside what the one granted stays as it is.
 */
#include <stdlib.h>
#include <string.h>

#include "../emu/ntbs.h"
#include "fuzz.h"
#include "input.h"

#define SECRET 0x8000u /* from here on the memory of machine 1 is granted by nobody */

struct run {
	struct ntbs *s;
	unsigned answered[2]; /* of what each was asked */
};

static const uint64_t region_size[] = {[SIO_VNTB_BAR_REGISTERS] = SIO_VNTB_BAR0_SIZE,
				       [SIO_VNTB_BAR_WINDOW] = (uint64_t)NTBS_ENTRY * NTBS_ENTRIES,
				       [SIO_VFIO_CONFIG] = 4096};

/* Machine 1 grants nothing behind SECRET: that is its own driver's care, not the bridge's. */
static bool grants_secret(unsigned machine, unsigned region, uint64_t offset)
{
	return machine == 1 && region == SIO_VNTB_BAR_REGISTERS &&
	       offset >= SIO_VNTB_RANGE(0) - 64 && offset < SIO_VNTB_RANGE(SIO_VNTB_MAX_RANGES);
}

static void access_region(struct run *r, struct input *in, bool write)
{
	static const unsigned regions[] = {SIO_VNTB_BAR_REGISTERS, SIO_VNTB_BAR_WINDOW,
					   SIO_VNTB_BAR_REGISTERS, SIO_VFIO_CONFIG};
	static const size_t lens[] = {4, 8, 4, 8, 1, 2, 3, 64};
	uint8_t what = take8(in), data[64];
	unsigned machine = what & 1, region = regions[what >> 1 & 3];
	size_t len = lens[what >> 3 & 7];
	uint32_t offset = 0;

	take(in, &offset, 3);
	offset %= region_size[region];
	if (offset > region_size[region] - len)
		offset = (uint32_t)(region_size[region] - len);
	if (write) {
		take(in, data, len);
		if (!grants_secret(machine, region, offset))
			ntbs_write(r->s, machine, region, offset, data, len);
	} else {
		ntbs_read(r->s, machine, region, offset, data, len);
	}
}

static void answer_one(struct run *r, struct input *in)
{
	uint8_t what = take8(in), data[64];
	unsigned machine = what & 1;

	if (r->answered[machine] == r->s->machine[machine].n_asks)
		return;
	take(in, data, sizeof(data));
	ntbs_answer(r->s, machine, r->answered[machine]++, what & 2 ? -1 : 0, data);
}

static void end_one(struct run *r, struct input *in)
{
	uint8_t what = take8(in);
	unsigned machine = what & 1;

	if (what & 2) {
		emu_ntb_link(r->s->ntb, 4 * (machine + 1), 0, what & 4);
		return;
	}
	ntbs_disconnect(r->s, machine);
	ntbs_connect(r->s, machine);
	r->answered[machine] = 0;
	if (machine == 1)
		ntbs_grant(r->s, 1, 0, 0, NTBS_RAM, SECRET,
			   SIO_VNTB_RANGE_READ | SIO_VNTB_RANGE_WRITE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.at = data, .left = size};
	struct run r = {.s = ntbs_new(2, true)};
	uint8_t *ram = r.s->machine[1].ram;

	memset(ram + SECRET, 0xa5, NTBS_RAM_BYTES - SECRET);
	ntbs_connect(r.s, 0);
	ntbs_connect(r.s, 1);
	ntbs_grant(r.s, 1, 0, 0, NTBS_RAM, SECRET, SIO_VNTB_RANGE_READ | SIO_VNTB_RANGE_WRITE);
	ntbs_grant(r.s, 1, 1, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, SIO_VNTB_RANGE_WRITE);
	ntbs_lead(r.s, 0, 0, 0, NTBS_RAM, 0);
	while (in.left > 0) {
		switch (take8(&in) % 8) {
		case 0:
		case 1:
		case 2:
			access_region(&r, &in, true);
			break;
		case 3:
		case 4:
			access_region(&r, &in, false);
			break;
		case 5:
			answer_one(&r, &in);
			break;
		case 6:
			r.s->now += (uint64_t)take8(&in) << 20;
			emu_ntb_expire(r.s->ntb);
			break;
		default:
			end_one(&r, &in);
			break;
		}
	}
	for (unsigned i = SECRET; i < NTBS_RAM_BYTES; i++)
		if (ram[i] != 0xa5)
			abort();
	ntbs_free(r.s);
	return 0;
}
