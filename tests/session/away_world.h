/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world of the test's own for one program: a clock that only waiting moves, and a smartiod that
 * is there at the times that the test says. The program's event thread runs when it is given a
 * turn, or where the test would wait for ever; what runs then is a real thread, but one at a time.
 */
#ifndef TESTS_SESSION_AWAY_WORLD_H
#define TESTS_SESSION_AWAY_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/types.h"
#include "smartio/uapi.h"
#include "wire/client.h"

#define S 1000000000ull
#define MS 1000000ull
#define EVENTS 8
#define REPLIES 4
#define FIRST_FD 1000 /* the numbers of connections follow it */

struct away_thread;

struct away_world {
	uint64_t now, up_from; /* SIO_FOREVER: never again */
	bool machine, open;
	int fd, fds[2];
	unsigned connections;	   /* open */
	unsigned unholds, returns; /* it was asked for */
	/* cut: so many HELLOs end the connection; cut_after: before, or after the answer. */
	unsigned connects, hellos, resumed, cut;
	bool cut_after;
	unsigned room, no_room; /* behind so many packets so many cannot be sent */
	uint64_t room_at;	/* nor any before that */
	bool talking;		/* a program that came back has not said all yet */
	bool forgotten;		/* it hung up then: whom it was is over */
	bool other_version;	/* of the protocol: says so */
	unsigned restores;	/* it was told what the program has */
	unsigned disconnects;
	uint32_t last[2]; /* the types of the last two requests, the last one first */
	uint32_t error;	  /* answer to all but HELLO */
	unsigned scarce;  /* so many ends of steps it has no memory to note */
	unsigned full;	  /* and for so many objects, unless it is told to lose them then */
	unsigned lost;	  /* objects */
	unsigned n_fds, n_replies, n_events;
	uint64_t event[EVENTS];
	struct {
		size_t len;
		_Alignas(8) unsigned char data[SIO_WIRE_MAX];
	} reply[REPLIES];
	_Alignas(SIO_PAGE_SIZE) uint8_t status[SIO_PAGE_SIZE]; /* struct sio_status_page */
	void *library;
	struct away_thread *thread;
	uint32_t stop_at; /* the thread's turn ends when it has sent one of this type */
	unsigned turns;
};
extern struct away_world me;

/* Smartiod ends, and is there again at @until. */
void goes(uint64_t until);
/* The event thread, until it waits, stops or has ended. */
void its_turn(void);

#endif
