/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles, as the files of the fake's API half share them. */
#ifndef TESTS_NVME_DRIVER_FAKE_HANDLE_H
#define TESTS_NVME_DRIVER_FAKE_HANDLE_H

#include "fake_internal.h"

enum fake_kind { SD = 1, SEGMENT, CONNECTION, MAP, DINT, SENDER, SEQUENCE };

/* One struct for every kind of handle; the address is the handle. */
struct fake_handle {
	enum fake_kind kind;
	bool dead;
	unsigned users;
	struct fake_borrower *b;
	struct fake_handle
		*of; /* connection: segment; map: connection or segment; sender: interrupt */
	unsigned id, memtype, way;		 /* sender: its adapter */
	bool bar, reachable, registers, lasting; /* reachable: of a connection */
	struct fake_over {
		struct fake_borrower *b; /* for whose device; NULL: for none */
		bool available;
	} over[FAKE_ADAPTERS]; /* of a segment */
	bool managers;	       /* made while it served */
	size_t size;
	uint8_t *at;
	sci_cb_remote_segment_t callback; /* of a connection; NULL: none */
	void *callback_arg;
	unsigned n_messages;
	struct {
		unsigned len;
		uint8_t data[8192];
	} * message;
	struct fake_handle *next;
};

/* All but device segments. */
extern struct fake_handle *fake_handles;
struct fake_handle *fake_make(enum fake_kind kind);
/* It must be one of this kind. */
struct fake_handle *fake_get(const void *p, enum fake_kind kind);
void fake_drop(struct fake_handle *h);

/* Device segments are nobody's handle: they live in a list of their own kind. */
extern struct fake_handle *fake_segments;
/* Whoever is connected is told that it is lost. */
void fake_segment_lost(struct fake_handle *s);
/* Its maker has ended, and what that had mapped is in quarantine. */
bool fake_segment_lasts(const struct fake_handle *s);
void fake_segment_free(struct fake_handle *s);

/* It must be borrowed. */
struct fake_borrower *fake_borrower_of(sci_smartio_device_t device);

#endif
