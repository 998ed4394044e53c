/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three real hosts: a program has borrowed a drive of one, and a device; the program and the device
 * may be anywhere. The drive may reach that device.
 */
#ifndef SMARTIO_TESTS_BAR_FAR_WORLD_H
#define SMARTIO_TESTS_BAR_FAR_WORLD_H

#include "device_calls.h"
#include "fake_device.h"
#include "library.h"
#include "smartiod/restart/restore.h"

#define LENDER 0 /* of the drive */
#define BORROWER 1
#define OTHER 2
#define NODE(host) (4 * ((host) + 1))
#define DRIVE 0x400100
#define CMB_BAR 2
#define CMB 0x10000
#define PAGE 4096
#define MEMORY (FAKE_CMB_ADDRESS - FAKE_BAR_ADDRESS)
#define MEET 1000000000ull /* ns in which daemons have met */

struct fixture {
	struct world *w;
	struct fake_device drive, target;
	unsigned at, who;	/* the host that lends the target, and that of the program */
	struct world_client *c; /* has both, and the registers of the target */
	struct call_borrow on, of;
	uint32_t regs, regs_map, access[4], cmb;
	unsigned messages; /* that it had received */
};

/* A program on BORROWER. The target is the drive's neighbour; in a third host; in its own host. */
int far_beside(void **state);
int far_third(void **state);
int far_own(void **state);
/* The program is where the drive is, and the target is not. */
int far_near(void **state);
/* As far_third(), and of the two lenders the target's alone has an IOMMU; the drive's; neither. */
int far_held(void **state);
int far_cut(void **state);
int far_neither(void **state);
/* As far_beside(), without. */
int far_beside_without(void **state);
int far_teardown(void **state);
/* The daemon of @host is started again, and all have met. */
void far_restart(struct fixture *f, unsigned host);
/* A range of a BAR of the target, for the drive. Return: as device_calls.h. */
int far_map(struct fixture *f, uint32_t bar, uint64_t offset, uint64_t bytes, uint32_t *ret);
int far_unmap(struct fixture *f, uint32_t dma);
/* How many mappings the drive has that lead to something, or (@cut) nowhere. */
unsigned far_reach(const struct fixture *f, bool cut);
/* Of those that are not cut, how many lead to pages that are still somebody's. */
unsigned far_leads(const struct fixture *f);
/* How many windows the host that lends the drive has. */
unsigned far_windows(const struct fixture *f);
/* Views of pages from @offset of the target's BAR 0, or of its memory (MEMORY). */
unsigned far_views(const struct fixture *f, uint64_t offset);
/* How many resources of each kind the ports have. @ret: one for each kind up to SIO_KIND_SHADOW. */
void far_picture(struct fixture *f, unsigned *ret);
/* They have what they had then, and the program has had no event since. */
void far_expect_unchanged(struct fixture *f, const unsigned *before);
/* An administrator resets the target, where it is. */
void far_reset(struct fixture *f);
uint32_t far_target(const struct fixture *f);

#define AT(where, name) cmocka_unit_test_setup_teardown(name, far_##where, far_teardown)
#define FAR(name) AT(third, name), AT(own, name), AT(near, name)
#define ANYWHERE(name) AT(beside, name), FAR(name)
/* Through a window, whatever takes it away. */
#define WINDOW(name) AT(third, name), AT(held, name), AT(cut, name)

#endif
