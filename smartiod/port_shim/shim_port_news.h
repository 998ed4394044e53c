/* SPDX-License-Identifier: BSD-2-Clause */
/* What the port tells unasked, out of what there was and what there is. Pure; not thread-safe. */
#ifndef SMARTIOD_SHIM_PORT_NEWS_H
#define SMARTIOD_SHIM_PORT_NEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smartio/uapi.h"

struct shim_known {
	uint64_t id, state; /* of a device its generation */
	bool seen;	    /* in this look */
	bool there;	    /* a device */
};

struct shim_known_list {
	struct shim_known *known;
	size_t n, room;
};

struct shim_news_event {
	struct shim_news_event *next;
	union {
		struct sio_evt h;
		struct sio_evt_owner_gone gone;
		struct sio_evt_device_state device;
	} u;
};

struct shim_news {
	struct shim_known_list owners, devices;
	struct shim_news_event *first, **last;
	bool first_look; /* nothing is news yet */
};

void shim_news_init(struct shim_news *n);
void shim_news_done(struct shim_news *n);

/*
 * A look: begin, each owner and each device that there is, end. All return 0 or -ENOMEM; then the
 * next look tells what is missing. @left: what stays of an owner that has ended, as OWNER_GONE
 * tells it; may be NULL. Outside of a look: an owner that was made.
 */
void shim_news_begin(struct shim_news *n);
int shim_news_owner(struct shim_news *n, uint64_t id, bool live,
		    const struct sio_evt_owner_gone *left);
/* Whether @left would be told: it has not been told to have ended. */
bool shim_news_wants(const struct shim_news *n, uint64_t owner);
int shim_news_device(struct shim_news *n, uint64_t id, uint64_t generation);
int shim_news_end(struct shim_news *n);

/* Instead of shim_news_device(): it is under reset, so that its generation tells nothing. */
void shim_news_unsure(struct shim_news *n, uint64_t device);
/* A reset made this its generation: no news. */
void shim_news_reset(struct shim_news *n, uint64_t id, uint64_t generation);

/* The next event into @evt of SIO_PORT_MAX_PACKET bytes. Return: its size; -EAGAIN: none. */
long shim_news_next(struct shim_news *n, void *evt);

#endif
