/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shadows of the fake ports: they refer to their first BAR's map, which cannot end before, and last
 * like everything else of their owner. Their drivers ask for configuration space when a test says
 * so.
 */
#ifndef TESTS_SMARTIOD_FAKE_SHADOW_H
#define TESTS_SMARTIOD_FAKE_SHADOW_H

#include "device_calls.h"

#define FAKE_SHADOW_TOLD 8
#define FAKE_SHADOW_RAM (1u << 30)

struct fake_shadows {
	bool refused;  /* the kernel takes no shadow */
	unsigned lost; /* those that ended with nothing behind them */
	/* Peer-to-peer: what the kernel was told, of two shadows. */
	struct {
		uint64_t id, target, address;
		uint32_t bar;
	} told[FAKE_SHADOW_TOLD];
	unsigned n_told, n_twice;
	bool slow; /* drivers take their time to go: until fake_shadows_go() */
	unsigned held_host;
	struct sio_req_shadow_del held; /* id 0: none */
	int peer_error; /* of all that it is told: it does not believe the address */
	/* The question of a driver that is not answered; 0: none. */
	unsigned host;
	uint64_t shadow, turn;
	unsigned n_turns, n_answers;
	uint32_t value; /* the last answer, */
	int error;
};

/* All shadows of @w are in @s from now on. After fake_device_add(). */
void fake_shadows_add(struct world *w, struct fake_shadows *s);
/* The driver of shadow @id of @host reads its ids. */
void fake_shadow_ask(struct world *w, unsigned host, uint64_t id);
/* The driver of some shadow does, if none waits already. */
void fake_shadow_ask_any(struct world *w);
/* The one shadow that there is. */
struct world_res *fake_shadow_of(struct world *w);
/* The driver that takes its time goes, if there is one; and those that come are not slow. */
void fake_shadows_go(struct world *w);
/* Of BARs, at their lender. */
unsigned fake_shadow_peer_maps(const struct world *w);

/* SHADOW with all memory and those interrupts, and SHADOW_DEL, by a program. */
uint32_t fake_shadow_plug_in(struct world *w, struct world_client *c, uint32_t device,
			     uint32_t flags, const uint32_t *interrupts, uint32_t n);
uint32_t fake_shadow_unplug(struct world *w, struct world_client *c, uint32_t device);

#endif
