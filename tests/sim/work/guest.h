/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the malicious host: work/guest.c, and work/guest_device.c for its use of devices.
 */
#ifndef SIM_GUEST_H
#define SIM_GUEST_H

#include "work/canary.h"
#include "smartio/ext.h"

#define GUEST_SEEN 4
#define GUEST_PLACES 2
#define GUEST_PAGE 4096u
#define GUEST_OWN_BYTES (16u * GUEST_PAGE)

/* For a call whose result the malicious daemon can influence: any error of the API is allowed. */
#define GUEST_ASK(fn, args, e) (sim_call(#fn, 0), fn args, guest_judge(*(e)))
/* As SIM_END(), for such a call. */
#define GUEST_END(fn, args, e)                                                                     \
	do {                                                                                       \
		unsigned tries_ = 0;                                                               \
		do                                                                                 \
			GUEST_ASK(fn, args, e);                                                    \
		while (sim_again(*(e), tries_++));                                                 \
	} while (0)

/* A segment of any kind that the malicious host has, or of which it says where it lies. */
struct guest_seen {
	sci_remote_segment_t segment;
	sci_map_t map;
	volatile uint32_t *at;
	size_t offset, bytes; /* mapped */
	bool bar;
	bool of_device;			 /* a segment of a device of the malicious host */
	sci_smartio_device_t mapped_for; /* NULL: for no device */
};

/* A borrowed device, and whether the guest's own segment is mapped for it. */
struct guest_place {
	sci_smartio_device_t device;
	uint32_t fdid;
	bool own_mapped;
	unsigned vector;
	sci_remote_interrupt_t tied; /* the interrupt that the vector triggers, or is to trigger */
};

struct guest {
	sci_desc_t sd;
	struct sim_canary canary;
	struct guest_seen seen[GUEST_SEEN];
	struct guest_place place[GUEST_PLACES];
	sci_local_segment_t own;
	sci_remote_interrupt_t plain;
	sci_remote_data_interrupt_t data;
	sci_dma_queue_t queue;
};

/* Ends a call: the error must be one that the API has. */
sci_error_t guest_judge(sci_error_t e);
/* Maps @bytes of the segment from @offset on; one that is not connected any more is released. */
void guest_map(struct guest_seen *v, size_t offset, size_t bytes);
void guest_disconnect(struct guest_seen *v);
struct guest_seen *guest_pick_seen(struct guest *s);
struct guest_place *guest_pick_place(struct guest *s);

/* work/guest_device.c */
void guest_borrow(struct guest *s);
void guest_device_segment(struct guest *s);
void guest_make_own(struct guest *s);
void guest_own_for_device(struct guest *s);
void guest_tie(struct guest *s);
void guest_hear(struct guest *s);
void guest_give_back(struct guest *s, struct guest_place *p);

#endif
