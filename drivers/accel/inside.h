/* SPDX-License-Identifier: BSD-2-Clause */
/* libsmartio-accel, inside. */
#ifndef ACCEL_INSIDE_H
#define ACCEL_INSIDE_H

#include <stdbool.h>

#include "smartio/accel.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define SIO_ACCEL_PAGE 4096u

/* A page of BAR 0. */
struct sio_accel_page {
	volatile uint8_t *at;
	sci_map_t map;
	const volatile uint32_t *sleeps; /* smartio_map_sleep_word() */
};

/* @by reaches the memory of @other. In the lists of both; ends with the first that is closed. */
struct sio_accel_reach {
	struct smartio_accel *by, *other;
	struct sio_accel_reach *next_by, *next_other; /* of the same @by, @other */
};

struct smartio_accel {
	char name[64];
	unsigned fdid, node; /* node: this host */
	struct smartio_accel_info info;
	sci_desc_t sd;
	sci_smartio_device_t handle;
	sci_remote_segment_t bar, memory;
	struct sio_accel_page registers, doorbells;
	volatile uint8_t *at; /* of its memory */
	sci_map_t map;
	uint32_t generation;
	struct smartio_accel_buffer *buffers;
	struct smartio_accel_queue *queues;
	struct sio_accel_reach *reaches, *reached; /* what it reaches; who reaches it */
};

struct smartio_accel_buffer {
	struct smartio_accel *a;
	struct smartio_accel_buffer *next;
	sci_local_segment_t segment;
	sci_map_t map;
	volatile uint8_t *at;
	size_t bytes;
	sci_ioaddr_t address;
	bool available, reachable;
};

/* error.c: keep the text for smartio_accel_error() and return @code, which is -errno. */
int sio_accel_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for a call of the API that failed just now: adds what it says, returns its -errno. */
int sio_accel_fail_sci(sci_error_t err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* After a store through @p: wake the device if it sleeps. */
void sio_accel_wake(const struct sio_accel_page *p);
/* Between two looks: yields first, later sleeps of a millisecond. @n counts them. */
void sio_accel_pause(unsigned *n);
/* -ENODEV: it was reset or is lost. */
int sio_accel_check(const struct smartio_accel *a);

/* Free by @call, with its error in @err, until nobody else uses it any more. */
#define SIO_ACCEL_UNTIL_FREE(err, call)                                                            \
	do                                                                                         \
		for (unsigned tries_ = 0; call, sio_accel_not_yet_free(err, tries_); tries_++)     \
			;                                                                          \
	while (0)
/* After a while of waiting: whether it may be tried once more. */
bool sio_accel_not_yet_free(sci_error_t err, unsigned tries);

#endif
