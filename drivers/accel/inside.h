/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to libsmartio-accel. */
#ifndef ACCEL_INSIDE_H
#define ACCEL_INSIDE_H

#include <stdbool.h>

#include "../base/memory.h"
#include "smartio/accel.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define SIO_ACCEL_PAGE 4096u

/* A mapped page of BAR 0. */
struct sio_accel_page {
	volatile uint8_t *at;
	sci_map_t map;
	const volatile uint32_t *sleeps; /* smartio_map_sleep_word() */
};

/*
 * @by reaches the memory of @other. The struct is in the lists of both, and ends with the first of
 * them that is closed.
 */
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

/* error.c: keeps the text for smartio_accel_error(). Return: @code, which is -errno. */
int sio_accel_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* With -ENOMEM: @fmt names what there was no memory for. */
#define sio_accel_no_memory(fmt, ...)                                                              \
	sio_accel_fail(-ENOMEM, "no memory for " fmt ": " SIO_DRIVER_MORE_MEMORY, ##__VA_ARGS__)
/*
 * The same for a call of the API that has just failed: appends the API's text, and returns its
 * -errno.
 */
int sio_accel_fail_sci(sci_error_t err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* To be called after a store through @p: wakes the device if it sleeps. */
void sio_accel_wake(const struct sio_accel_page *p);
/* Pauses between two polls: yields first, later sleeps for a millisecond. @n counts the calls. */
void sio_accel_pause(unsigned *n);
/* Checks that the device is usable. -ENODEV: it was reset or is lost. */
int sio_accel_check(const struct smartio_accel *a);

/*
 * Calls @call, which frees something, with its error in @err, again until nobody else uses that
 * thing any more.
 */
#define SIO_ACCEL_UNTIL_FREE(err, call)                                                            \
	do                                                                                         \
		for (unsigned tries_ = 0; call, sio_accel_not_yet_free(err, tries_); tries_++)     \
			;                                                                          \
	while (0)
/*
 * Waits a while after a failed attempt to free something. Return: whether another attempt makes
 * sense.
 */
bool sio_accel_not_yet_free(sci_error_t err, unsigned tries);

#endif
