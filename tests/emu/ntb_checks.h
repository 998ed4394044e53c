/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of virtual NTBs look at again and again. */
#ifndef TESTS_EMU_NTB_CHECKS_H
#define TESTS_EMU_NTB_CHECKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ntbs.h"

#define ONES 0xffffffffu
#define BOTH (SIO_VNTB_RANGE_READ | SIO_VNTB_RANGE_WRITE)

/* @n machines that are all on; of two each is the other one's row 0. */
static inline struct ntbs *connected(unsigned n)
{
	struct ntbs *s = ntbs_new(n, false);

	for (unsigned i = 0; i < n; i++)
		ntbs_connect(s, i);
	return s;
}

/* The first page of @from's window leads to a device of @to. */
static inline void lead_to_device(struct ntbs *s, unsigned from, unsigned to)
{
	ntbs_grant(s, to, 0, 0, NTBS_DEVICE, NTBS_DEVICE_BYTES, BOTH);
	ntbs_lead(s, from, 0, 0, NTBS_DEVICE, 0);
}

static inline uint32_t reply32(const struct ntbs_machine *m)
{
	uint32_t value;

	assert_int_equal(m->reply_len, sizeof(struct sio_vfio_access) + sizeof(value));
	memcpy(&value, m->reply + sizeof(struct sio_vfio_access), sizeof(value));
	return value;
}

static inline uint32_t window32(struct ntbs *s, unsigned machine, uint64_t offset)
{
	uint32_t value = 0x5a5a5a5a;

	assert_true(ntbs_read(s, machine, NTBS_WINDOW, offset, &value, sizeof(value)));
	return value;
}

static inline void window_set32(struct ntbs *s, unsigned machine, uint64_t offset, uint32_t value)
{
	ntbs_write(s, machine, NTBS_WINDOW, offset, &value, sizeof(value));
}

static inline uint32_t ram32(struct ntbs *s, unsigned machine, uint64_t at)
{
	uint32_t value;

	memcpy(&value, s->machine[machine].ram + at, sizeof(value));
	return value;
}

/* The oldest fault, which is taken. Return: its reason; 0: there is none. */
static inline uint32_t next_fault(struct ntbs *s, unsigned machine, uint32_t kind, uint64_t address)
{
	uint32_t reason;

	if (ntbs_get(s, machine, SIO_VNTB_FAULT_COUNT) == 0)
		return 0;
	assert_int_equal(ntbs_get(s, machine, SIO_VNTB_FAULT_KIND), kind);
	assert_true(ntbs_get64(s, machine, SIO_VNTB_FAULT_ADDRESS) == address);
	reason = ntbs_get(s, machine, SIO_VNTB_FAULT_REASON);
	ntbs_set(s, machine, SIO_VNTB_FAULT_COUNT, 1);
	return reason;
}

static inline void no_fault(struct ntbs *s)
{
	for (unsigned i = 0; i < s->n; i++)
		assert_int_equal(ntbs_get(s, i, SIO_VNTB_FAULT_COUNT), 0);
}

static inline uint32_t peer_state(struct ntbs *s, unsigned machine)
{
	return ntbs_get(s, machine, SIO_VNTB_PEER(0) + SIO_VNTB_PEER_STATE);
}

#endif
