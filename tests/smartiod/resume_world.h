/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three real hosts, of which one lends a device and another borrows it, and what they share when
 * their daemons lose each other and meet again.
 */
#ifndef SMARTIO_TESTS_RESUME_WORLD_H
#define SMARTIO_TESTS_RESUME_WORLD_H

#include "device_calls.h"
#include "fake_device.h"
#include "library.h"

#define LENDER 0
#define BORROWER 1
#define NODE(host) (4 * ((host) + 1))
#define FDID 0x400100	   /* by its place */
#define MEET 1000000000ull /* ns in which two daemons have met */

struct fixture {
	struct fake_device fake;
	struct world *w;
	struct world_client *c;
	struct call_borrow b;
	uint32_t bar, bar_map, access[4], segment, dma, near, near_node, near_map, near_dma;
	unsigned messages; /* that the borrower's program had received */
	unsigned asked;	   /* for the registers, by somebody else */
};

/* Libraries hear what came to them; w->before_step, here and in what replaces it. */
/* A program of one host has of a device of the other what an NVMe client has. */
int setup(void **state);
int teardown(void **state);
/* How many resources of each kind the ports have. @ret: one for each kind up to SIO_KIND_SHADOW. */
void picture(struct fixture *f, unsigned *ret);
/* The ports have what they had in picture() @before, and the program has had no event since. */
void expect_unchanged(struct fixture *f, const unsigned *before);
/* The program was told that the device is lost, and has no window any more. */
void expect_lost(struct fixture *f);
/*
 * The daemon of @host is started again, and killed once more at any point of its meeting with the
 * other, or that one is, or their connection breaks: nothing changes.
 */
void kill_at_every_step(struct fixture *f, unsigned host);
/* Each thing is still what its handle says, at both ends. */
void give_back(struct fixture *f);
/* Two queues of the device lie in the page at @at. Return: the number of the hold. */
uint64_t hold_twice(struct fixture *f, uint64_t at);
/* Map @dma stays as long as a queue lies in it; both holds are let go of. */
void expect_held_twice(struct fixture *f, uint32_t dma, uint64_t number);
/* A message of @from's daemon to the one of @to. Its header is filled in here. */
void message(struct fixture *f, unsigned to, unsigned from, uint32_t type, void *msg, size_t len);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
