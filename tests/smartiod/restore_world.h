/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that hold all there is, a smartiod that is killed and started again, what they say to
 * it.
 */
#ifndef SMARTIO_TESTS_RESTORE_WORLD_H
#define SMARTIO_TESTS_RESTORE_WORLD_H

#include "device_calls.h"
#include "fake_device.h"
#include "library.h"

#define FDID 0x400001
#define NODE 4
#define SHARED_NUMBER 7
#define GROUP 2
#define PICTURE 16384

/* Handles of one program: whatever it has of each. */
struct handles {
	struct world_client *c;
	struct call_borrow b;
	uint32_t bar, bar_map, access[4], mirror, dma, segment, connection, map, remote_dma;
	uint32_t interrupt, number, link, vector, dev_segment, queue;
	uint32_t group, group_map, group_dma;
	uint64_t ioaddr, remote_ioaddr, hold, range[3];
};

/* @b manages the device, @c uses it; @a has what both connect to. */
struct programs {
	struct handles a, b, c;
	uint32_t data, data_number, data_link, shared[2], shared_link, attached, empty, release_it,
		given, kept, kept_map, member;
	unsigned ok; /* calls that succeeded */
};

#define OK(call)                                                                                   \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_)                                                                           \
			fail_msg("%s: %d", #call, rc_);                                            \
		p->ok++;                                                                           \
	} while (0)

struct fixture {
	struct fake_device fake;
	struct world *w;
	struct programs p;
};

void start_programs(struct world *w, struct programs *p);
void make_all(struct world *w, struct programs *p);
void give_all_back(struct world *w, struct programs *p);
/* The port's things, then the daemon's by what they are, not by its own numbers. */
void take_picture(struct world *w, char *text);
/* Libraries hear what came to them; w->before_step, here and in what replaces it. */
/* @w is a real host with @fake, and its libraries keep journals. */
void begin(struct world *w, struct fake_device *fake);
int setup(void **state);
/* All are killed; what they left goes with a reset. */
void check_all_gone(struct world *w);
int teardown(void **state);
void restart(struct world *w);
/* What @c has of @type; by the test's own mouth. */
struct sio_msg_restore entry_of(struct world_client *c, uint32_t type);
/*
 * Seal @m by the program's own secret, which it does not know: what is behind the seal must hold,
 * too.
 */
void forge(struct world *w, const struct world_client *c, struct sio_msg_restore *m, uint32_t type,
	   uint64_t number);
/* Events of @reason that came to @c for a local segment. */
unsigned n_told(struct world_client *c, uint32_t reason);
/* How many resets it was told of, and that their generation is the port's. */
unsigned resets_told(const struct fixture *f, struct world_client *c);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
