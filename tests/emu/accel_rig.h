/* SPDX-License-Identifier: BSD-2-Clause */
/* The accelerator's model alone: its pages and the fabric's memory are the test's. */
#ifndef ACCEL_RIG_H
#define ACCEL_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/devices/model.h"
#include "smartio/acceldev.h"

#define MEMORY 0x40000u
#define FAR 0x40000u /* bytes of the fabric's memory, at address BASE */
#define BASE 0x100000000u
#define RINGS 0x0u /* offsets there: a page each */
#define WORDS 0x10000u
#define DATA 0x20000u
#define ENTRIES 8u
#define UNITS 3u
#define QUEUES (2 + UNITS)
#define LOCAL(offset) (SIO_ACCEL_LOCAL | (offset))

struct rig {
	struct emu_dev dev;
	struct emu_dev_config config;
	void *model;
	uint32_t view[1024], mirror[1024], doorbell[1024];
	uint8_t memory[MEMORY] __attribute__((aligned(64)));
	uint8_t far[FAR] __attribute__((aligned(64)));
	bool taken; /* somebody has the registers */
	unsigned raised[4];
	uint64_t moved, now;
	unsigned failed;    /* accesses that led nowhere */
	uint32_t n[QUEUES]; /* commands given */
};

/* A model as the topology would have it; setup() makes the usual one, with all queues running. */
int make(struct rig *r, uint64_t size, uint32_t units, uint32_t vectors, struct sio_err *err);
int setup(void **state);
int teardown(void **state);
/* Until nothing happens; a kernel that waits does nothing. */
void run(struct rig *r);

/* Registers, of the device and of one queue. */
uint32_t reg(const struct rig *r, unsigned offset);
uint32_t queue_reg(const struct rig *r, unsigned queue, unsigned offset);
void set(struct rig *r, unsigned queue, unsigned offset, uint32_t value);
void enable(struct rig *r, unsigned queue, uint64_t ring, uint32_t entries);

/* A command, whose completion word() finds, and is_done() asserts. Return: its result. */
void give(struct rig *r, unsigned queue, uint32_t operation, uint32_t flags, uint64_t a0,
	  uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4);
struct sio_accel_completion *word(struct rig *r, unsigned queue);
uint64_t is_done(struct rig *r, unsigned queue, uint32_t status);
/* One transfer by queue 0. Return: its status. */
uint32_t copy(struct rig *r, uint64_t from, uint64_t to, uint64_t bytes);
/* One kernel on a compute unit, which succeeds. Return: its result. */
uint64_t compute(struct rig *r, uint32_t number, uint64_t a0, uint64_t a1, uint64_t a2);

#endif
